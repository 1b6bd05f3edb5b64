//! What is on each node that is there or on its way, and what is left?

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_model::labels::HOSTNAME;
use tenon_model::{NodeStage, NodeState, Pod, Requirement, Requirements, Resources, Taint, Toleration};

use super::daemon_overhead::tolerates;
use crate::index::{Bits, Id, LabelIndex, NodeIx, Table};
use crate::resources::{Columns, Rows};

/// Nodes, in the order they are asked.
#[derive(Debug, Default)]
pub(crate) struct Nodes {
    pub(crate) nodes: Table<NodeIx, Arc<NodeState>>,
    /// What is left on each.
    pub(crate) remaining: Rows<NodeIx>,
    /// Nodes of which nothing is overdrawn: where less than nothing is left of anything, nothing is put, whatever it asks for.
    sound: Bits<NodeIx>,
    labels: LabelIndex<NodeIx>,
    taints: Vec<(Vec<Taint>, Bits<NodeIx>)>,
}

impl Nodes {
    /// Nodes that take pods already are asked before those that will; of each kind by name. What leaves, or does not say what it is, is not asked.
    pub(crate) fn new(nodes: &[Arc<NodeState>], daemons: &[&Pod], columns: &Columns) -> Nodes {
        let mut nodes: Vec<&Arc<NodeState>> = nodes.iter().filter(|node| node.takes_pods()).collect();
        nodes.sort_by_key(|node| (node.stage == NodeStage::Rising, &node.name));
        // One at a time: all of them would take more memory than the nodes.
        let labels = LabelIndex::new(nodes.iter().map(|node| facts(node)));
        let taints = taint_sets(&nodes);
        let mut expected: Table<NodeIx, Resources> = nodes.iter().map(|_| Resources::default()).collect();
        for daemon in daemons {
            let mut running = Bits::none(nodes.len());
            daemon.alternatives.iter().for_each(|wanted| running.join(&labels.meeting(wanted)));
            running.keep(&tolerating(&taints, nodes.len(), |set| tolerates(daemon, set)));
            running.iter().for_each(|node| expected[node].add(&daemon.requests));
        }
        let (mut remaining, mut sound) = (Rows::new(columns.len()), Bits::none(nodes.len()));
        for ((node, expected), number) in nodes.iter().zip(expected.iter()).zip(expected.ids()) {
            let left = left_on(node, expected);
            remaining.push(&columns.offered(&left));
            if !left.iter().any(|(_, amount)| amount.is_negative()) {
                sound.insert(number);
            }
        }
        Nodes { nodes: nodes.into_iter().cloned().collect(), remaining, sound, labels, taints }
    }

    /// Sound nodes with the right labels.
    pub(crate) fn meeting(&self, demand: &Requirements) -> Bits<NodeIx> {
        let mut meeting = self.labels.meeting(demand);
        meeting.keep(&self.sound);
        meeting
    }

    /// Nodes with no taint in the way.
    pub(crate) fn tolerated_by(&self, tolerations: &[Toleration]) -> Bits<NodeIx> {
        let is_welcome = |set: &[Taint]| set.iter().all(|taint| taint.is_tolerated_by(tolerations));
        tolerating(&self.taints, self.nodes.len(), is_welcome)
    }
}

fn left_on(node: &NodeState, expected_daemons: &Resources) -> Resources {
    // More daemons than were expected leave nothing over for others.
    let missing = expected_daemons.without(&node.bound_daemons);
    let missing: Resources = missing.iter().map(|(name, amount)| (name, amount.at_least_zero())).collect();
    let left = node.allocatable.without(&node.bound).without(&missing);
    // What a node does not report cannot be overdrawn: pods that are bound there may ask for it all the same.
    left.iter().filter(|(resource, _)| node.allocatable.names(resource)).collect()
}

/// Labels of a node, its host name among them.
fn facts(node: &NodeState) -> Requirements {
    let mut facts = Requirements::from_labels(node.labels.iter());
    if facts.get(HOSTNAME).is_none() {
        facts.add(HOSTNAME, &Requirement::is(&node.name));
    }
    facts
}

/// The nodes for each set of taints: there are few sets and many nodes.
fn taint_sets(nodes: &[&Arc<NodeState>]) -> Vec<(Vec<Taint>, Bits<NodeIx>)> {
    let mut sets: BTreeMap<Vec<&Taint>, Bits<NodeIx>> = BTreeMap::new();
    for (position, node) in nodes.iter().enumerate() {
        let mut taints: Vec<&Taint> = node.lasting_taints().collect();
        taints.sort_unstable();
        sets.entry(taints).or_default().insert(NodeIx::of(position));
    }
    sets.into_iter().map(|(set, nodes)| (set.into_iter().cloned().collect(), nodes)).collect()
}

fn tolerating(sets: &[(Vec<Taint>, Bits<NodeIx>)], length: usize, test: impl Fn(&[Taint]) -> bool) -> Bits<NodeIx> {
    let mut welcome = Bits::none(length);
    sets.iter().filter(|(set, _)| test(set)).for_each(|(_, nodes)| welcome.join(nodes));
    welcome
}
