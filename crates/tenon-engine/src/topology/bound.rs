//! How many pods are where before anything is placed? Pods on nodes, counted by group.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_model::labels::HOSTNAME;
use tenon_model::{BoundPod, NodeState, Requirements, Snapshot};

use super::build::{World, placed_again};
use super::counts::{Count, Counts};
use super::domains::Key;
use super::groups::{Group, Kind};
use super::node_filter::NodeFilter;
use crate::index::{Bits, FilterIx, GroupIx, KeyIx, NodeIx, Table};

/// What counting needs to know.
pub(super) struct Counting<'c> {
    pub(super) snapshot: &'c Snapshot,
    pub(super) world: &'c World<'c>,
    pub(super) keys: &'c Table<KeyIx, Key>,
    pub(super) groups: &'c Table<GroupIx, Group>,
    pub(super) filters: &'c Table<FilterIx, NodeFilter>,
    /// The numbers of nodes that stay, by name.
    pub(super) numbers: BTreeMap<&'c str, NodeIx>,
}

/// A pod on a node, and the groups of pods it keeps away.
pub(super) type Repelling<'s> = (&'s NodeState, &'s BoundPod, Vec<GroupIx>);

impl<'c> Counting<'c> {
    /// The counts of all groups.
    pub(super) fn counts(&self, repelling: &[Repelling<'c>]) -> Counts {
        let mut counts = Counts { groups: self.groups.iter().map(|group| self.empty(group)).collect() };
        self.add_bound(&mut counts);
        for (node, _, groups) in repelling {
            groups.iter().for_each(|group| self.add(&mut counts, *group, node));
        }
        counts
    }

    /// A group without pods: its domains are those new nodes can be in, and those of nodes that count.
    fn empty(&self, group: &Group) -> Count {
        let (key, filter) = (&self.keys[group.key], &self.filters[group.filter]);
        let (mut registered, mut with_nodes) =
            (key.provided(filter.tolerated(self.world.meanings)), Bits::none(key.values.len()));
        if !key.is_hostname {
            let staying = self.world.nodes.pairs().filter_map(|(number, node)| Some((key.of_node(number)?, node)));
            let unidentified = self.snapshot.nodes.iter().filter(|node| node.is_unidentified);
            let with_pods_only =
                unidentified.filter_map(|node| Some((key.domain(node.labels.get(&key.label)?)?, node)));
            let counting = staying.chain(with_pods_only).filter(|(_, node)| self.admits(filter, node));
            counting.for_each(|(domain, _)| with_nodes.insert(domain));
            registered.join(&with_nodes);
        }
        let mut count = Count::new(group.kind, registered, key.values.len());
        count.with_nodes = with_nodes;
        count
    }

    fn admits(&self, filter: &NodeFilter, node: &NodeState) -> bool {
        filter.is_open()
            || filter.admits_node(self.world.meanings, &Requirements::from_labels(node.labels.iter()), node)
    }

    /// Pods that run or will run where they are. Those that are being deleted, and those that are placed again, do not count.
    fn add_bound(&self, counts: &mut Counts) {
        let placed_again = placed_again(self.snapshot);
        // Pods of one workload share a shape, and all of its pods are counted by the same groups.
        let mut known: BTreeMap<(usize, &str), Vec<GroupIx>> = BTreeMap::new();
        for node in &self.snapshot.nodes {
            for pod in node.pods.iter().filter(|pod| !pod.is_terminating && !placed_again.contains(&*pod.key)) {
                let namespace = &*pod.key.namespace;
                let place = (Arc::as_ptr(&pod.shape).addr(), namespace);
                let groups = known.entry(place).or_insert_with(|| {
                    let is_counted = |group: &Group| group.selects(namespace, &pod.shape.labels);
                    let counting = self.groups.pairs().filter(|(_, group)| group.kind != Kind::Inverse);
                    counting.filter(|(_, group)| is_counted(group)).map(|(number, _)| number).collect()
                });
                groups.iter().for_each(|group| self.add(counts, *group, node));
            }
        }
    }

    /// One more pod on a node, if the node counts.
    fn add(&self, counts: &mut Counts, group: GroupIx, node: &NodeState) {
        let Group { key, filter, .. } = &self.groups[group];
        let key = &self.keys[*key];
        if !self.admits(&self.filters[*filter], node) {
            return;
        }
        let count = &mut counts.groups[group];
        if key.is_hostname {
            match self.numbers.get(node.name.as_str()) {
                Some(number) => count.add_on_node(*number),
                None => count.is_elsewhere = true,
            }
        } else if let Some(domain) = node.labels.get(&key.label).and_then(|value| key.domain(value)) {
            count.add(domain);
        }
    }
}

/// The values of a label on nodes.
pub(super) fn values<'n>(
    nodes: impl Iterator<Item = &'n Arc<NodeState>> + Clone,
    label: &str,
) -> impl Iterator<Item = Option<&'n str>> + Clone {
    nodes.map(move |node| node.labels.get(label))
}

/// Nodes that count for a filter.
pub(super) fn filtered(world: &World<'_>, filter: &NodeFilter) -> Bits<NodeIx> {
    Bits::those(world.nodes.len(), |number: NodeIx| {
        let node = &world.nodes[number];
        filter.is_open() || filter.admits_node(world.meanings, &Requirements::from_labels(node.labels.iter()), node)
    })
}

/// Whether a label names the node itself.
pub(super) fn is_hostname(label: &str) -> bool {
    label == HOSTNAME
}
