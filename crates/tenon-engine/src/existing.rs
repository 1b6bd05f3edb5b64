//! Nodes that are there or on their way: what is left on them, and who takes a pod.

use std::collections::BTreeMap;

use tenon_model::labels::HOSTNAME;
use tenon_model::{HostPort, NodeStage, NodeState, Pod, Requirements, Resources, Snapshot, Taint, Toleration};

use crate::attempts::Attempt;
use crate::axes::{self, Amounts, Axes};
use crate::bits::Bits;
use crate::bug::found;
use crate::daemons::tolerates;
use crate::label_index::LabelIndex;

/// Nodes, in the order they are asked.
pub(crate) struct Existing<'a> {
    pub(crate) rooms: Vec<Room<'a>>,
    labels: LabelIndex,
    taints: Vec<(Vec<&'a Taint>, Bits)>,
    by_demand: BTreeMap<usize, Bits>,
    by_tolerations: BTreeMap<usize, Bits>,
}

/// What is left on a node.
pub(crate) struct Room<'a> {
    pub(crate) node: &'a NodeState,
    pub(crate) pods: Vec<usize>,
    left: Amounts,
    /// Where less than nothing is left of anything, nothing is put, whatever it asks for.
    is_overdrawn: bool,
    ports: Vec<&'a HostPort>,
}

impl<'a> Existing<'a> {
    /// Nodes that take pods already are asked before those that will; of each kind by name. What leaves is not asked.
    pub(crate) fn new(snapshot: &'a Snapshot, daemons: &[&Pod], axes: &Axes) -> Existing<'a> {
        let staying = snapshot.nodes.iter().map(AsRef::as_ref).filter(|node: &&NodeState| !node.is_leaving);
        let mut nodes: Vec<&NodeState> = staying.collect();
        nodes.sort_by_key(|node| (node.stage == NodeStage::Rising, &node.name));
        let facts: Vec<Requirements> = nodes.iter().map(|node| facts(node)).collect();
        let labels = LabelIndex::new(&facts);
        let taints = taint_sets(&nodes);
        let mut expected = vec![Resources::default(); nodes.len()];
        for daemon in daemons {
            let mut running = Bits::none(nodes.len());
            daemon.alternatives.iter().for_each(|wanted| running.join(&labels.meeting(wanted)));
            running.keep(&tolerating(&taints, nodes.len(), |set| tolerates(daemon, set.iter().copied())));
            running.iter().filter_map(|n| expected.get_mut(n).map(|sum| sum.add(&daemon.requests))).for_each(drop);
        }
        let room = |(node, expected): (&&'a NodeState, &Resources)| Room::of(node, expected, axes);
        let rooms = nodes.iter().zip(&expected).map(room).collect();
        Existing { rooms, labels, taints, by_demand: BTreeMap::new(), by_tolerations: BTreeMap::new() }
    }

    /// Puts the pod on the first node that takes it.
    pub(crate) fn place(
        &mut self,
        attempt: &mut Attempt<'a>,
        asked: (&Requirements, &[Toleration]),
        pod: usize,
    ) -> bool {
        let mut open = match attempt.failed.open_nodes.take() {
            Some(open) => open,
            None => self.suiting(attempt, asked),
        };
        let mut next = open.next_from(0);
        while let Some(number) = next {
            let room = found(self.rooms.get_mut(number), "the node");
            if let Some(room) = room.filter(|room| room.has_room_for(attempt)) {
                axes::take(&mut room.left, &attempt.amounts);
                room.ports.extend(attempt.ports);
                room.pods.push(pod);
                attempt.failed.open_nodes = Some(open);
                return true;
            }
            open.remove(number);
            next = open.next_from(number);
        }
        attempt.failed.open_nodes = Some(open);
        false
    }

    /// Nodes with the right labels and no taint in the way.
    fn suiting(&mut self, attempt: &Attempt<'_>, (demand, tolerations): (&Requirements, &[Toleration])) -> Bits {
        let (labels, taints, length) = (&self.labels, &self.taints, self.rooms.len());
        let suiting = self.by_demand.entry(attempt.demand).or_insert_with(|| labels.meeting(demand));
        let welcome = self.by_tolerations.entry(attempt.tolerations).or_insert_with(|| {
            tolerating(taints, length, |set| set.iter().all(|taint| taint.is_tolerated_by(tolerations)))
        });
        suiting.and(welcome)
    }
}

impl<'a> Room<'a> {
    fn of(node: &'a NodeState, expected_daemons: &Resources, axes: &Axes) -> Room<'a> {
        // More daemons than were expected leave nothing over for others.
        let missing = expected_daemons.without(&node.bound_daemons);
        let missing: Resources = missing.iter().map(|(name, amount)| (name, amount.at_least_zero())).collect();
        let left = node.allocatable.without(&node.bound).without(&missing);
        // What a node does not report cannot be overdrawn: pods that are bound there may ask for it all the same.
        let left: Resources = left.iter().filter(|(resource, _)| node.allocatable.names(resource)).collect();
        let is_overdrawn = left.iter().any(|(_, amount)| amount.is_negative());
        let ports = node.host_ports.iter().map(|(_, port)| port).collect();
        Room { node, pods: Vec::new(), left: axes.row(&left), is_overdrawn, ports }
    }

    fn has_room_for(&self, attempt: &Attempt<'_>) -> bool {
        let is_free = |port: &HostPort| !self.ports.iter().any(|used| used.conflicts_with(port));
        !self.is_overdrawn && axes::fits(&attempt.amounts, &self.left) && attempt.ports.iter().all(is_free)
    }
}

/// Labels of a node, its host name among them.
fn facts(node: &NodeState) -> Requirements {
    let mut facts = Requirements::from_labels(&node.labels);
    if facts.get(HOSTNAME).is_none() {
        facts.add(HOSTNAME, &tenon_model::Requirement::is(&node.name));
    }
    facts
}

/// The nodes for each set of taints: there are few sets and many nodes.
fn taint_sets<'a>(nodes: &[&'a NodeState]) -> Vec<(Vec<&'a Taint>, Bits)> {
    let mut sets: BTreeMap<Vec<&Taint>, Bits> = BTreeMap::new();
    for (number, node) in nodes.iter().enumerate() {
        let mut taints: Vec<&Taint> = node.lasting_taints().collect();
        taints.sort_unstable();
        sets.entry(taints).or_default().insert(number);
    }
    sets.into_iter().collect()
}

fn tolerating(sets: &[(Vec<&Taint>, Bits)], length: usize, test: impl Fn(&[&Taint]) -> bool) -> Bits {
    let mut welcome = Bits::none(length);
    sets.iter().filter(|(set, _)| test(set)).for_each(|(_, nodes)| welcome.join(nodes));
    welcome
}
