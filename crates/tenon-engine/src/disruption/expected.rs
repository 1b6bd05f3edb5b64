//! What will the cluster be once a move is done? Its nodes are gone, what comes for them is ready, and pods are where they were
//! to go.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenon_model::labels::{HOSTNAME, INSTANCE_TYPE, NODEPOOL, REGION, ZONE};
use tenon_model::{
    BoundPod, CandidateClaim, CandidateKubeNode, CatalogType, DisruptionFacts, Host, NewNode, NodeStage, NodeState,
    Overrides, PodKey, Pool, Quantity, Resources, Snapshot, Timestamp,
};

use super::command::{Command, Destination, Replacement};

/// What of a host a VM takes.
const OF_HOST: [&str; 2] = [tenon_model::resources::CPU, tenon_model::resources::MEMORY];

/// The snapshot once a move is done, at the same moment. Nodes that come are named after the first node that goes, with `suffix`.
pub fn expected(snapshot: &Snapshot, command: &Command, suffix: &str) -> Snapshot {
    let mut after = snapshot.clone();
    if command.is_reboot() {
        rebooting(&mut after, command);
        return after;
    }
    let going: BTreeSet<&str> = command.names().into_iter().collect();
    let (gone, staying): (Vec<_>, Vec<_>) =
        snapshot.nodes.iter().cloned().partition(|node| going.contains(node.name.as_str()));
    after.nodes = staying;
    let pods: BTreeMap<&PodKey, &Arc<BoundPod>> =
        gone.iter().flat_map(|node| node.pods.iter().map(|pod| (&*pod.key, pod))).collect();
    gone.iter().for_each(|node| leave(&mut after, node));
    let names: Vec<String> =
        (1..).take(command.replacements.len()).map(|number| name(command, suffix, number)).collect();
    for (name, replacement) in names.iter().zip(&command.replacements) {
        arrive(&mut after, name, (replacement, gone.first().map(AsRef::as_ref)));
    }
    let placed: BTreeSet<&PodKey> = command.moves.iter().map(|place| &*place.pod).collect();
    let without = pods.values().filter(|pod| pod.needs_another_node() && !placed.contains(&*pod.key));
    after.pods.extend(without.map(|pod| Arc::new(pod.unbound())));
    let mut moved: BTreeMap<&str, Vec<Arc<BoundPod>>> = BTreeMap::new();
    for place in &command.moves {
        let to = match &place.to {
            Destination::Node(node) => Some(node.as_str()),
            Destination::Replacement(index) => names.get(*index).map(String::as_str),
        };
        if let (Some(to), Some(pod)) = (to, pods.get(&*place.pod)) {
            moved.entry(to).or_default().push(Arc::clone(pod));
        }
    }
    for node in &mut after.nodes {
        if let Some(pods) = moved.remove(node.name.as_str()) {
            pods.iter().for_each(|pod| take(Arc::make_mut(node), pod, snapshot));
        }
    }
    after.nodes.sort_by(|a, b| a.name.cmp(&b.name));
    after
}

/// A node that is rebooted stays, with its pods.
fn rebooting(after: &mut Snapshot, command: &Command) {
    let names = command.names();
    for node in after.nodes.iter_mut().filter(|node| names.contains(&node.name.as_str())) {
        Arc::make_mut(node).stage = NodeStage::Rebooting;
    }
}

fn name(command: &Command, suffix: &str, number: usize) -> String {
    let first = command.removed.first().map_or("node", |removed| removed.node.as_str());
    // One that came for another keeps the name of the first of all.
    let stem = first.split_once("-for-").map_or(first, |(_, stem)| stem);
    format!("{suffix}-{number}-for-{stem}")
}

/// What a node has is given back to its pool and to its host.
fn leave(after: &mut Snapshot, node: &NodeState) {
    if let Some(pool) = after.pools.iter_mut().find(|pool| Some(&pool.name) == node.pool.as_ref()) {
        let pool = Arc::make_mut(pool);
        pool.used = pool.used.without(&node.capacity).without(&one_node());
    }
    if let Some(host) = host_of(after, node) {
        host.free.add(&on_host(&node.capacity));
    }
}

fn one_node() -> Resources {
    Resources::default().with("nodes", Quantity::whole(1))
}

fn on_host(capacity: &Resources) -> Resources {
    OF_HOST.into_iter().map(|name| (name, capacity.get(name))).collect()
}

fn host_of<'a>(after: &'a mut Snapshot, node: &NodeState) -> Option<&'a mut Host> {
    let (region, zone) = (node.labels.get(REGION), node.labels.get(ZONE)?);
    after
        .hosts
        .iter_mut()
        .find(|host| host.place.host.as_str() == zone && region.is_none_or(|region| region == host.place.region))
}

/// A replacement is ready, without pods.
fn arrive(after: &mut Snapshot, name: &str, (replacement, before): (&Replacement, Option<&NodeState>)) {
    let now = Timestamp::from(after.now);
    let node = match replacement {
        Replacement::Planned(new) => {
            let Some(pool) = after.pools.iter().find(|pool| pool.name == new.pool).cloned() else { return };
            let Some(size) = pool.catalog.find(&new.chosen.instance_type) else { return };
            planned(name, (new, &pool), size)
        }
        Replacement::Template { .. } => match before {
            Some(before) => NodeState { pods: Vec::new(), ..empty_like(before, name) },
            None => return,
        },
    };
    let facts = DisruptionFacts {
        claim: CandidateClaim {
            name: name.to_owned(),
            created: Some(now),
            initialized_at: Some(now),
            last_pod_event: Some(now),
            ..CandidateClaim::default()
        },
        node: Some(CandidateKubeNode {
            name: name.to_owned(),
            is_initialized: true,
            is_ready: true,
            ..CandidateKubeNode::default()
        }),
    };
    if let Some(pool) = after.pools.iter_mut().find(|pool| Some(&pool.name) == node.pool.as_ref()) {
        let pool = Arc::make_mut(pool);
        pool.used.add(&node.capacity);
        pool.used.add(&one_node());
    }
    if let Some(host) = host_of(after, &node) {
        host.free = host.free.without(&on_host(&node.capacity));
    }
    after.nodes.push(Arc::new(NodeState { disruption: Some(Arc::new(facts)), ..node }));
}

/// A static pool makes the same node again.
fn empty_like(before: &NodeState, name: &str) -> NodeState {
    let labels = before.labels.iter().filter(|(label, _)| *label != HOSTNAME);
    NodeState {
        name: name.to_owned(),
        labels: labels.chain([(HOSTNAME, name)]).collect(),
        bound: Resources::default(),
        bound_daemons: Resources::default(),
        host_ports: Vec::new(),
        attachments: Vec::new(),
        is_leaving: false,
        ..before.clone()
    }
}

fn planned(name: &str, (new, pool): (&NewNode, &Pool), size: &CatalogType) -> NodeState {
    let is_chosen =
        |way: &&tenon_model::Offering| way.requirements == new.chosen.requirements && way.place == new.chosen.place;
    let way = size.offerings.iter().find(is_chosen);
    let nothing = Overrides::default();
    let overrides = way.map_or(&nothing, |way| &way.overrides);
    let single = new.requirements.iter().filter_map(|(label, demand)| Some((label.to_owned(), demand.any()?)));
    let mut labels: BTreeMap<String, String> = single.collect();
    labels.extend(new.chosen.labels.clone());
    let facts = [(NODEPOOL, &new.pool), (INSTANCE_TYPE, &new.chosen.instance_type)];
    labels.extend(facts.map(|(label, value)| (label.to_owned(), value.clone())));
    labels.insert(HOSTNAME.to_owned(), name.to_owned());
    NodeState {
        name: name.to_owned(),
        pool: Some(new.pool.clone()),
        is_managed: true,
        labels: labels.into_iter().collect(),
        taints: pool.taints.clone(),
        startup_taints: pool.startup_taints.clone(),
        capacity: size.capacity_with(overrides),
        allocatable: size.allocatable(overrides),
        attach_limits: size.volume_attachment_limits.clone(),
        ..NodeState::default()
    }
}

/// A pod is on the node, and the node had a pod event.
fn take(node: &mut NodeState, pod: &Arc<BoundPod>, snapshot: &Snapshot) {
    node.bound.add(&pod.shape.requests);
    node.host_ports.extend(pod.shape.host_ports.iter().map(|port| (pod.key.clone(), port.clone())));
    node.attachments.extend(pod.attachments.iter().cloned());
    node.attachments.sort();
    node.attachments.dedup();
    let moved = BoundPod { started: Some(snapshot.now), is_terminating: false, ..BoundPod::clone(pod) };
    node.pods.push(Arc::new(moved));
    node.pods.sort_by(|a, b| a.key.cmp(&b.key));
    if let Some(facts) = &mut node.disruption {
        Arc::make_mut(facts).claim.last_pod_event = Some(Timestamp::from(snapshot.now));
    }
}
