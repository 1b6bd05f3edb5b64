//! Which pods would need another node if theirs went? Read only where somebody asks what would be if nodes were gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_model::{Pod, Reason, Snapshot, Unplaced};

use super::{Nodes, reason_to_wait};
use crate::index::{NodeIx, PodClassIx, PodIx, Table};

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

impl<'s> OnNode<'s> {
    /// Pods of all nodes that stay, as far as they would need another one.
    pub(super) fn all(snapshot: &'s Snapshot) -> Vec<OnNode<'s>> {
        let staying = snapshot.nodes.iter().filter(|node| node.takes_pods());
        let bound = staying.flat_map(|node| node.pods.iter().map(move |pod| (node.name.as_str(), pod)));
        let movable = bound.filter(|(_, pod)| pod.needs_another_node()).map(|(node, bound)| {
            let pod = Arc::new(bound.unbound());
            let refusal = reason_to_wait(snapshot, &pod);
            OnNode { node, pod, is_counted: !bound.is_terminating, refusal }
        });
        movable.collect()
    }

    /// Whether it would be tried.
    pub(super) fn is_tried(&self) -> bool {
        self.refusal.is_none()
    }
}

impl Movable {
    /// Pods by node, and all others in the order they are tried.
    pub(super) fn new(
        on_nodes: Vec<OnNode<'_>>,
        pods: &Table<PodIx, (Arc<Pod>, PodClassIx)>,
        nodes: &Nodes,
    ) -> (Movable, Vec<PodIx>) {
        if on_nodes.is_empty() {
            return (Movable::default(), pods.ids().collect());
        }
        let numbers: BTreeMap<&str, NodeIx> =
            nodes.nodes.pairs().map(|(number, node)| (node.name.as_str(), number)).collect();
        let mut of_node: Table<NodeIx, OfNode> = nodes.nodes.iter().map(|_| OfNode::default()).collect();
        let mut tried = BTreeMap::new();
        for on_node in on_nodes {
            let Some(node) = numbers.get(on_node.node) else { continue };
            match on_node.refusal {
                Some(reason) => of_node[*node].refused.push(Unplaced { pod: on_node.pod.key.clone(), reason }),
                None => drop(tried.insert(Arc::as_ptr(&on_node.pod).addr(), (*node, on_node.is_counted))),
            }
        }
        let mut waiting = Vec::new();
        for (number, (pod, _)) in pods.pairs() {
            match tried.get(&Arc::as_ptr(pod).addr()) {
                Some((node, is_counted)) => of_node[*node].pods.push((number, *is_counted)),
                None => waiting.push(number),
            }
        }
        (Movable { of_node }, waiting)
    }

    /// Pods of a node; none if they were not read.
    pub(crate) fn of(&self, node: NodeIx) -> Option<&OfNode> {
        (!self.of_node.is_empty()).then(|| &self.of_node[node])
    }
}
