//! Which pods would need another node if theirs went? Read only where somebody asks what would be if nodes were gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_model::{NodeState, Pod, Reason, Snapshot, Unplaced};

use super::{Nodes, reason_to_wait};
use crate::index::{Id, NodeIx, PodIx, Table};

/// Pods on nodes that are there, by node. Empty if they were not read.
#[derive(Debug, Default)]
pub(crate) struct Movable {
    of_node: Table<NodeIx, OfNode>,
}

/// Pods of a node that need another one if it goes.
#[derive(Debug, Default)]
pub(crate) struct OfNode {
    /// Pods to be placed, and whether they count where pods are spread while they are on the node.
    pub(crate) pods: Vec<(PodIx, bool)>,
    /// Pods that are not tried, and why.
    pub(crate) refused: Vec<Unplaced>,
}

/// A pod on a node that is there.
pub(super) struct OnNode<'s> {
    node: &'s str,
    pub(super) pod: Arc<Pod>,
    is_counted: bool,
    refusal: Option<Reason>,
}

/// The pods of each node as they would be without one, and whether they count where pods are spread; by the node they are on.
#[derive(Debug, Default)]
pub(super) struct Unbound {
    of_node: BTreeMap<usize, Vec<(Arc<Pod>, bool)>>,
    /// Kept, so that nothing else can come to be at the same places.
    nodes: Vec<Arc<NodeState>>,
}

impl Unbound {
    /// The pods of all nodes that stay, as far as they would need another one. Those of a node that did not change are the same.
    pub(super) fn of(snapshot: &Snapshot, mut before: Unbound) -> Unbound {
        let mut unbound = Unbound::default();
        for node in snapshot.nodes.iter().filter(|node| node.takes_pods()) {
            let place = Arc::as_ptr(node).addr();
            let pods = before.of_node.remove(&place).unwrap_or_else(|| {
                let moving = node.pods.iter().filter(|pod| pod.needs_another_node());
                moving.map(|pod| (Arc::new(pod.unbound()), !pod.is_terminating)).collect()
            });
            unbound.of_node.insert(place, pods);
            unbound.nodes.push(node.clone());
        }
        unbound
    }

    /// All of them, and why some would not be tried.
    pub(super) fn on_nodes<'s>(&self, snapshot: &'s Snapshot) -> Vec<OnNode<'s>> {
        let staying = snapshot.nodes.iter().filter(|node| node.takes_pods());
        let pods = staying.filter_map(|node| Some((node.name.as_str(), self.of_node.get(&Arc::as_ptr(node).addr())?)));
        let each = pods.flat_map(|(node, pods)| pods.iter().map(move |(pod, is_counted)| (node, pod, *is_counted)));
        let on_node = |(node, pod, is_counted): (&'s str, &Arc<Pod>, bool)| OnNode {
            node,
            pod: pod.clone(),
            is_counted,
            refusal: reason_to_wait(snapshot, pod),
        };
        each.map(on_node).collect()
    }
}

impl OnNode<'_> {
    /// Whether it would be tried.
    pub(super) fn is_tried(&self) -> bool {
        self.refusal.is_none()
    }
}

impl Movable {
    /// Pods by node, and all others in the order they are tried. `origins` says where each pod stood before they were put in order:
    /// those that are tried of these stood last.
    pub(super) fn new(on_nodes: Vec<OnNode<'_>>, origins: &[usize], nodes: &Nodes) -> (Movable, Vec<PodIx>) {
        let pods = || (0..origins.len()).map(PodIx::of);
        if on_nodes.is_empty() {
            return (Movable::default(), pods().collect());
        }
        let numbers: BTreeMap<&str, NodeIx> =
            nodes.nodes.pairs().map(|(number, node)| (node.name.as_str(), number)).collect();
        let mut of_node: Table<NodeIx, OfNode> = nodes.nodes.iter().map(|_| OfNode::default()).collect();
        let mut tried = Vec::new();
        let mut last: Option<(&str, Option<NodeIx>)> = None;
        for on_node in on_nodes {
            // Pods of a node stand together.
            let known = last.filter(|(name, _)| *name == on_node.node);
            let (_, node) = *last.insert(known.unwrap_or_else(|| (on_node.node, numbers.get(on_node.node).copied())));
            match (on_node.refusal, node) {
                (Some(reason), Some(node)) => {
                    of_node[node].refused.push(Unplaced { pod: on_node.pod.key.clone(), reason });
                }
                (Some(_), None) => {}
                (None, node) => tried.push((node, on_node.is_counted)),
            }
        }
        let before = origins.len().saturating_sub(tried.len());
        let mut waiting = Vec::new();
        for (number, origin) in pods().zip(origins) {
            match origin.checked_sub(before).map(|place| tried[place]) {
                None => waiting.push(number),
                Some((Some(node), is_counted)) => of_node[node].pods.push((number, is_counted)),
                // Its node is none that a plan looks at.
                Some((None, _)) => {}
            }
        }
        (Movable { of_node }, waiting)
    }

    /// Pods of a node; none if they were not read.
    pub(crate) fn of(&self, node: NodeIx) -> Option<&OfNode> {
        (!self.of_node.is_empty()).then(|| &self.of_node[node])
    }
}
