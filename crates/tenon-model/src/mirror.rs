//! The cluster as a plan sees it, kept by small changes: pods, nodes and pools come, change and go, and a snapshot of all
//! of it is cheap at any time.
//!
//! Law: a mirror that was told of every change is equal to one that was told only of what is there in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::bound_pod::BoundPod;
use crate::disruption_inputs::DisruptionInputs;
use crate::launch::Seconds;
use crate::launch_site::LaunchSite;
use crate::node_state::NodeState;
use crate::options::Options;
use crate::pod::{Pod, PodKey};
use crate::pool::Pool;
use crate::quantity::Quantity;
use crate::resources::Resources;
use crate::snapshot::Snapshot;
use crate::volumes::Attachment;

/// The key of a limit that counts nodes.
const NODES: &str = "nodes";

/// A node that is there or on its way. What its pods use is summed up here, whatever its state says.
#[derive(Debug, Clone)]
struct Machine {
    /// The name of its Node, once there is one: that is where pods are bound to.
    node: Option<String>,
    state: Arc<NodeState>,
}

/// Everything a snapshot is made from. What nodes and pools use is summed up here, not told.
#[derive(Debug, Clone, Default)]
pub struct Mirror {
    pools: BTreeMap<String, Arc<Pool>>,
    machines: BTreeMap<String, Machine>,
    /// Machines by the name of their Node.
    by_node: BTreeMap<String, BTreeSet<String>>,
    /// The pods on each node in the order of their keys, also of nodes that are not known yet.
    bound: BTreeMap<Arc<str>, Vec<Arc<BoundPod>>>,
    /// The node of each pod that has one.
    node_of: BTreeMap<Arc<PodKey>, Arc<str>>,
    waiting: BTreeMap<Arc<PodKey>, Arc<Pod>>,
    invalid: BTreeMap<Arc<PodKey>, String>,
    daemons: BTreeMap<PodKey, Arc<Pod>>,
    /// Machines and pools whose sums are out of date.
    stale_machines: BTreeSet<String>,
    stale_pools: BTreeSet<String>,
}

impl Mirror {
    /// A pool is there, or is another now.
    pub fn set_pool(&mut self, pool: Pool) {
        self.stale_pools.insert(pool.name.clone());
        self.pools.insert(pool.name.clone(), Arc::new(pool));
    }

    /// A pool is gone.
    pub fn remove_pool(&mut self, name: &str) {
        self.pools.remove(name);
    }

    /// A machine is there, or is another now: its state, and the name of its Node once there is one. A claim that was just
    /// made is told of at once.
    pub fn set_machine(&mut self, id: &str, node: Option<&str>, state: NodeState) {
        self.remove_machine(id);
        if let Some(node) = node {
            self.by_node.entry(node.to_owned()).or_default().insert(id.to_owned());
        }
        self.stale_pools.extend(state.pool.clone());
        self.stale_machines.insert(id.to_owned());
        self.machines.insert(id.to_owned(), Machine { node: node.map(str::to_owned), state: Arc::new(state) });
    }

    /// A machine is gone.
    pub fn remove_machine(&mut self, id: &str) {
        let Some(before) = self.machines.remove(id) else { return };
        self.stale_pools.extend(before.state.pool.clone());
        let Some(node) = before.node else { return };
        if let Some(ids) = self.by_node.get_mut(&node) {
            ids.remove(id);
            if ids.is_empty() {
                self.by_node.remove(&node);
            }
        }
    }

    /// A pod is on a node now, wherever it was before.
    pub fn bind(&mut self, node: &str, pod: BoundPod) {
        self.remove_pod(&pod.key);
        self.mark(node);
        // There are many pods: each name is held once.
        let node = self.bound.get_key_value(node).map_or_else(|| Arc::from(node), |(known, _)| known.clone());
        self.node_of.insert(pod.key.clone(), node.clone());
        let others = self.bound.entry(node).or_default();
        let place = others.partition_point(|other| other.key < pod.key);
        others.insert(place, Arc::new(pod));
    }

    /// A pod needs a node.
    pub fn wait(&mut self, pod: Pod) {
        self.remove_pod(&pod.key);
        self.waiting.insert(pod.key.clone(), Arc::new(pod));
    }

    /// A pod needs a node, and none could ever be what it asks for.
    pub fn refuse(&mut self, key: &PodKey, why: String) {
        self.remove_pod(key);
        self.invalid.insert(Arc::new(key.clone()), why);
    }

    /// A pod is gone, or over.
    pub fn remove_pod(&mut self, key: &PodKey) {
        self.waiting.remove(key);
        self.invalid.remove(key);
        let Some(node) = self.node_of.remove(key) else { return };
        self.mark(&node);
        if let Some(others) = self.bound.get_mut(&node) {
            others.retain(|other| *other.key != *key);
            if others.is_empty() {
                self.bound.remove(&node);
            }
        }
    }

    /// A DaemonSet is there, or is another now; one pod of it as it would be on a new node.
    pub fn set_daemon(&mut self, set: &PodKey, pod: Pod) {
        self.daemons.insert(set.clone(), Arc::new(pod));
    }

    /// A DaemonSet is gone.
    pub fn remove_daemon(&mut self, set: &PodKey) {
        self.daemons.remove(set);
    }

    /// The nodes that go, by the names pods know them by: one that did not register yet has its claim's name in a plan.
    pub fn leaving(&self) -> BTreeSet<&str> {
        let leaving = self.machines.values().filter(|machine| machine.state.is_leaving);
        leaving.filter_map(|machine| machine.node.as_deref()).collect()
    }

    /// The cluster at this moment, every list sorted. Only what changed since the last one is summed up again; the rest
    /// is shared with it. Hosts are looked at as a whole each time, and are no business of the mirror.
    pub fn snapshot(&mut self, options: &Options, now: Seconds) -> Snapshot {
        self.sum_up();
        let mut nodes: Vec<Arc<NodeState>> = self.machines.values().map(|machine| machine.state.clone()).collect();
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
        Snapshot {
            pools: self.pools.values().cloned().collect(),
            hosts: Vec::new(),
            host_rules: BTreeMap::new(),
            nodes,
            pods: self.waiting.values().cloned().collect(),
            invalid: self.invalid.iter().map(|(key, why)| (key.clone(), why.clone())).collect(),
            namespaces: Arc::default(),
            daemons: self.daemons.values().cloned().collect(),
            launch_site: LaunchSite::default(),
            options: options.clone(),
            disruption: DisruptionInputs::default(),
            now,
        }
    }

    fn mark(&mut self, node: &str) {
        self.stale_machines.extend(self.by_node.get(node).into_iter().flatten().cloned());
    }

    fn sum_up(&mut self) {
        for id in std::mem::take(&mut self.stale_machines) {
            let Some(machine) = self.machines.get_mut(&id) else { continue };
            let pods = machine.node.as_deref().and_then(|node| self.bound.get(node));
            fill(Arc::make_mut(&mut machine.state), pods.map_or(&[], Vec::as_slice));
        }
        let stale = std::mem::take(&mut self.stale_pools);
        if stale.is_empty() {
            return;
        }
        let mut used: BTreeMap<&str, Resources> =
            stale.iter().map(|name| (name.as_str(), Resources::default())).collect();
        for state in self.machines.values().map(|machine| &machine.state).filter(|state| !state.is_leaving) {
            if let Some(sum) = state.pool.as_deref().and_then(|pool| used.get_mut(pool)) {
                sum.add(&state.capacity);
                sum.add(&Resources::default().with(NODES, Quantity::whole(1)));
            }
        }
        for (name, used) in used {
            if let Some(pool) = self.pools.get_mut(name) {
                Arc::make_mut(pool).used = used;
            }
        }
    }
}

/// Writes down the pods on a node, and what they use.
fn fill(state: &mut NodeState, pods: &[Arc<BoundPod>]) {
    state.pods = pods.to_vec();
    (state.bound, state.bound_daemons) = (Resources::default(), Resources::default());
    state.host_ports.clear();
    for pod in &state.pods {
        state.bound.add(&pod.shape.requests);
        if pod.is_daemon() {
            state.bound_daemons.add(&pod.shape.requests);
        }
        let ports = pod.shape.host_ports.iter();
        state.host_ports.extend(ports.map(|port| (pod.key.clone(), port.clone())));
    }
    let attached: BTreeSet<&Attachment> = state.pods.iter().flat_map(|pod| &pod.attachments).collect();
    state.attachments = attached.into_iter().cloned().collect();
}
