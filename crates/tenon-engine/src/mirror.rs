//! The cluster as a plan sees it, kept by small changes: pods, nodes and pools come, change and go, and a snapshot of all
//! of it is cheap at any time.
//!
//! Law: a mirror that was told of every change is equal to one that was told only of what is there in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenon_model::{
    Host, HostPort, NodeState, Options, Place, Pod, PodKey, Pool, Quantity, Resources, Seconds, Snapshot,
};

/// The key of a limit that counts nodes.
const NODES: &str = "nodes";

/// A pod that is on a node: what it uses there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundPod {
    /// Which.
    pub key: PodKey,
    /// The node.
    pub node: String,
    /// What it needs.
    pub requests: Resources,
    /// Ports of the node it takes.
    pub host_ports: Vec<HostPort>,
    /// Whether a DaemonSet put it there.
    pub is_daemon: bool,
}

/// Everything a snapshot is made from. What nodes and pools use is summed up here, not told.
#[derive(Debug, Clone, Default)]
pub struct Mirror {
    pools: BTreeMap<String, Arc<Pool>>,
    hosts: BTreeMap<Place, Host>,
    nodes: BTreeMap<String, Arc<NodeState>>,
    bound: BTreeMap<PodKey, BoundPod>,
    waiting: BTreeMap<PodKey, Arc<Pod>>,
    daemons: BTreeMap<PodKey, Arc<Pod>>,
    /// Nodes and pools whose sums are out of date.
    stale_nodes: BTreeSet<String>,
    stale_pools: BTreeSet<String>,
    /// The keys of the pods on each node, also of nodes that are not known yet.
    on_node: BTreeMap<String, BTreeSet<PodKey>>,
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

    /// A host is there, or has other room now.
    pub fn set_host(&mut self, host: Host) {
        self.hosts.insert(host.place.clone(), host);
    }

    /// A host is gone.
    pub fn remove_host(&mut self, place: &Place) {
        self.hosts.remove(place);
    }

    /// A node or claim is there, or is another now. A claim that was just made is told of at once.
    pub fn set_node(&mut self, node: NodeState) {
        self.stale_nodes.insert(node.name.clone());
        self.stale_pools.extend(node.pool.clone());
        if let Some(before) = self.nodes.insert(node.name.clone(), Arc::new(node)) {
            self.stale_pools.extend(before.pool.clone());
        }
    }

    /// A node or claim is gone.
    pub fn remove_node(&mut self, name: &str) {
        if let Some(before) = self.nodes.remove(name) {
            self.stale_pools.extend(before.pool.clone());
        }
    }

    /// A pod is on a node now, wherever it was before.
    pub fn bind(&mut self, pod: BoundPod) {
        self.remove_pod(&pod.key.clone());
        self.stale_nodes.insert(pod.node.clone());
        self.on_node.entry(pod.node.clone()).or_default().insert(pod.key.clone());
        self.bound.insert(pod.key.clone(), pod);
    }

    /// A pod needs a node.
    pub fn wait(&mut self, pod: Pod) {
        self.remove_pod(&pod.key.clone());
        self.waiting.insert(pod.key.clone(), Arc::new(pod));
    }

    /// A pod is gone, or over.
    pub fn remove_pod(&mut self, key: &PodKey) {
        self.waiting.remove(key);
        let Some(before) = self.bound.remove(key) else { return };
        if let Some(others) = self.on_node.get_mut(&before.node) {
            others.remove(key);
            if others.is_empty() {
                self.on_node.remove(&before.node);
            }
        }
        self.stale_nodes.insert(before.node);
    }

    /// A DaemonSet is there, or is another now; one pod of it as it would be on a new node.
    pub fn set_daemon(&mut self, pod: Pod) {
        self.daemons.insert(pod.key.clone(), Arc::new(pod));
    }

    /// A DaemonSet is gone.
    pub fn remove_daemon(&mut self, key: &PodKey) {
        self.daemons.remove(key);
    }

    /// The cluster at this moment, every list sorted. Only what changed since the last one is summed up again.
    pub fn snapshot(&mut self, options: &Options, now: Seconds) -> Snapshot {
        self.sum_up();
        Snapshot {
            pools: self.pools.values().cloned().collect(),
            hosts: self.hosts.values().cloned().collect(),
            nodes: self.nodes.values().cloned().collect(),
            pods: self.waiting.values().cloned().collect(),
            daemons: self.daemons.values().cloned().collect(),
            options: options.clone(),
            now,
            ..Snapshot::default()
        }
    }

    fn sum_up(&mut self) {
        for name in std::mem::take(&mut self.stale_nodes) {
            let Some(node) = self.nodes.get_mut(&name).map(Arc::make_mut) else { continue };
            (node.bound, node.bound_daemons) = (Resources::default(), Resources::default());
            node.host_ports.clear();
            let keys = self.on_node.get(&name).into_iter().flatten();
            for pod in keys.filter_map(|key| self.bound.get(key)) {
                node.bound.add(&pod.requests);
                if pod.is_daemon {
                    node.bound_daemons.add(&pod.requests);
                }
                node.host_ports.extend(pod.host_ports.iter().map(|port| (pod.key.clone(), port.clone())));
            }
        }
        for name in std::mem::take(&mut self.stale_pools) {
            let Some(pool) = self.pools.get_mut(&name).map(Arc::make_mut) else { continue };
            pool.used = Resources::default();
            let own = self.nodes.values().filter(|node| !node.is_leaving && node.pool.as_ref() == Some(&name));
            for node in own {
                pool.used.add(&node.capacity);
                pool.used.add(&Resources::default().with(NODES, Quantity::whole(1)));
            }
        }
    }
}
