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
        let nodes = in_order(nodes);
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

    /// Goes on to the nodes as they are now. Only those that changed are read, which takes that all stand where they stood: otherwise
    /// nothing happens. Daemons and columns are those that the nodes were read with.
    pub(crate) fn follow(&mut self, now: &[Arc<NodeState>], daemons: &[&Pod], columns: &Columns) -> bool {
        let now = in_order(now);
        let stands = |(before, now): (&Arc<NodeState>, &&Arc<NodeState>)| {
            Arc::ptr_eq(before, now) || place_of(before) == place_of(now)
        };
        if now.len() != self.nodes.len() || !self.nodes.iter().zip(&now).all(stands) {
            return false;
        }
        for (number, node) in self.nodes.ids().zip(now) {
            if !Arc::ptr_eq(&self.nodes[number], node) {
                self.replace(number, &Nodes::new(std::slice::from_ref(node), daemons, columns));
            }
        }
        true
    }

    /// Becomes what another one says of the only node it has.
    fn replace(&mut self, number: NodeIx, alone: &Nodes) {
        let only = NodeIx::of(0);
        let node = &alone.nodes[only];
        self.remaining.row_mut(number).copy_from_slice(alone.remaining.row(only));
        self.sound.set(number, alone.sound.has(only));
        self.labels.replace(number, &facts(&self.nodes[number]), &facts(node));
        self.taints.iter_mut().for_each(|(_, nodes)| nodes.remove(number));
        for (set, _) in &alone.taints {
            match self.taints.iter_mut().find(|(known, _)| known == set) {
                Some((_, nodes)) => nodes.insert(number),
                None => self.taints.push((set.clone(), Bits::those(self.nodes.len(), |other| other == number))),
            }
        }
        self.taints.retain(|(_, nodes)| !nodes.is_empty());
        self.nodes[number] = node.clone();
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

/// Nodes that can be asked, in the order they are.
fn in_order(nodes: &[Arc<NodeState>]) -> Vec<&Arc<NodeState>> {
    let mut nodes: Vec<&Arc<NodeState>> = nodes.iter().filter(|node| node.takes_pods()).collect();
    nodes.sort_by_key(|node| place_of(node));
    nodes
}

fn place_of(node: &NodeState) -> (bool, &str) {
    (node.stage == NodeStage::Rising, &node.name)
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

#[cfg(test)]
mod tests {
    use tenon_model::Effect;
    use tenon_model::labels::ZONE;

    use super::*;

    fn node(name: &str, zone: &str) -> Arc<NodeState> {
        let labels = [(ZONE.to_owned(), zone.to_owned())].into_iter().collect();
        Arc::new(NodeState { name: name.to_owned(), labels, ..NodeState::default() })
    }

    #[test]
    fn a_node_that_changed_where_it_stood_is_read_alone_and_the_rest_is_kept() {
        let mut now = vec![node("a", "1"), node("b", "1"), node("c", "2")];
        let columns = Columns::default();
        let mut nodes = Nodes::new(&now, &[], &columns);
        let taint = Taint { key: "busy".to_owned(), value: String::new(), effect: Effect::NoSchedule };
        let mut changed = NodeState::clone(&node("b", "3"));
        changed.taints.push(taint);
        now[1] = Arc::new(changed);
        assert!(nodes.follow(&now, &[], &columns));
        let numbers = |bits: Bits<NodeIx>| bits.iter().map(Id::position).collect::<Vec<_>>();
        let zone = |zone: &str| [(ZONE.to_owned(), Requirement::is(zone))].into_iter().collect::<Requirements>();
        assert_eq!(numbers(nodes.meeting(&zone("1"))), [0]);
        assert_eq!(numbers(nodes.meeting(&zone("3"))), [1]);
        assert_eq!(numbers(nodes.tolerated_by(&[])), [0, 2]);
        assert!(Arc::ptr_eq(&nodes.nodes[NodeIx::of(1)], &now[1]));
    }

    #[test]
    fn nodes_that_come_or_go_are_read_with_all_others() {
        let (one, two) = (vec![node("a", "1"), node("b", "1")], vec![node("a", "1"), node("c", "1")]);
        let mut nodes = Nodes::new(&one, &[], &Columns::default());
        for other in [&two[..], &one[..1], &[]] {
            assert!(!nodes.follow(other, &[], &Columns::default()));
        }
        assert_eq!(nodes.nodes.len(), 2, "nothing happened");
    }
}
