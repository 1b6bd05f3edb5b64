//! What if nodes were gone? Their pods need another one, and no longer count where they are.

use tenon_model::{Quantity, Resources, Unplaced};

use super::Work;
use crate::capacity::Allowance;
use crate::index::{Bits, FilterIx, GroupIx, HostIx, NodeIx, PodClassIx, PodIx};
use crate::topology::{Meanings, Spot};

/// What is tried.
#[derive(Debug, Default)]
pub(crate) struct Removal<'r> {
    /// Nodes that go.
    pub(crate) gone: Vec<NodeIx>,
    /// Nodes that no pod is put on.
    pub(crate) closed: Vec<NodeIx>,
    /// The most nodes that may be planned.
    pub(crate) most_new_nodes: Option<usize>,
    /// Pods of nodes that go and that no other node is looked for.
    pub(crate) kept: Option<&'r Bits<PodIx>>,
    /// Nodes that take no pods of nodes that go.
    pub(crate) avoided: Bits<NodeIx>,
    /// Hosts that nothing is planned on.
    pub(crate) shut: Bits<HostIx>,
}

impl Work<'_> {
    /// Takes nodes away, before anything is placed.
    pub(crate) fn remove(&mut self, removal: Removal<'_>) {
        let base = self.base;
        self.avoided = removal.avoided;
        self.shut = removal.shut;
        self.most_new_nodes = removal.most_new_nodes;
        removal.closed.iter().for_each(|node| self.closed.insert(*node));
        for node in &removal.gone {
            self.gone.insert(*node);
            self.closed.insert(*node);
            let pods = base.movable.of(*node).into_iter().flat_map(|found| &found.pods);
            for (pod, is_counted) in pods.filter(|(pod, _)| !removal.kept.is_some_and(|kept| kept.has(*pod))) {
                self.tried.push(*pod);
                self.moved.insert(*pod);
                self.uncount(base.pods[*pod].1, (*node, *is_counted));
            }
        }
        self.tried.sort_unstable();
        removal.gone.iter().for_each(|node| self.leave_domains(*node));
        self.give_back(&removal.gone);
    }

    /// Nodes that may take a pod, without those that take none of nodes that go. `None` is all of them.
    pub(super) fn without_avoided(&self, pod: PodIx, allowed: Option<Bits<NodeIx>>) -> Option<Bits<NodeIx>> {
        if self.avoided.is_empty() || !self.moved.has(pod) {
            return allowed;
        }
        let mut left = allowed.unwrap_or_else(|| Bits::all(self.base.nodes.nodes.len()));
        left.drop_all(&self.avoided);
        Some(left)
    }

    /// A pod no longer counts on its node.
    fn uncount(&mut self, class: PodClassIx, (node, is_counted): (NodeIx, bool)) {
        let (class, topology) = (&self.base.classes.classes[class], &self.base.topology);
        let counted = class.counted_in.iter().filter(|_| is_counted);
        for group in counted.chain(&class.repels).filter(|group| topology.counts_node(**group, node)) {
            let key = &topology.keys[topology.groups[*group].key];
            let count = &mut self.counts.groups[*group];
            if key.is_hostname {
                count.remove_from_node(node);
                self.journal.note(*group, Spot::Node(node));
            } else if let Some(domain) = key.of_node(node) {
                count.remove(domain);
                self.journal.note(*group, Spot::Domain(domain));
            }
        }
    }

    /// A domain whose last node went is none, unless nodes can be made there, or pods that stay are still counted there.
    fn leave_domains(&mut self, node: NodeIx) {
        let topology = &self.base.topology;
        for (number, key) in topology.keys.pairs().filter(|(_, key)| !key.is_hostname) {
            let Some(domain) = key.of_node(node) else { continue };
            let mut others = key.nodes_of(domain).clone();
            others.drop_all(&self.gone);
            // Many groups count the same nodes: what is left is found once for each filter.
            let mut left: Vec<(FilterIx, bool)> = Vec::new();
            let of_key = topology.groups.pairs().filter(|(_, group)| group.key == number);
            for (group, found) in of_key.filter(|(group, _)| topology.counts_node(*group, node)) {
                let known = left.iter().find(|(filter, _)| *filter == found.filter).map(|(_, is_left)| *is_left);
                let is_left = known.unwrap_or_else(|| {
                    let is_left = topology.counts_any(group, others.clone());
                    left.push((found.filter, is_left));
                    is_left
                });
                if !is_left {
                    let is_provided = self.provided(group).has(domain);
                    self.counts.groups[group].remove_nodes_of(domain, is_provided);
                    self.journal.note(group, Spot::Domain(domain));
                }
            }
        }
    }

    /// Domains of a group that new nodes can be in.
    fn provided(&self, group: GroupIx) -> Bits<crate::index::DomainIx> {
        let (topology, classes) = (&self.base.topology, &self.base.classes);
        let meanings = Meanings { demands: &classes.demands, tolerations: &classes.tolerations };
        let found = &topology.groups[group];
        topology.keys[found.key].provided(topology.filters[found.filter].tolerated(meanings))
    }

    /// What nodes had no longer counts against the limits of their pools.
    fn give_back(&mut self, gone: &[NodeIx]) {
        for (number, template) in self.base.templates.pairs() {
            let nodes = gone.iter().map(|node| &self.base.nodes.nodes[*node]);
            let mut given_back = Resources::default();
            for node in nodes.filter(|node| node.pool.as_ref() == Some(&template.pool.name)) {
                given_back.add(&node.capacity);
                given_back.add(&Resources::default().with("nodes", Quantity::whole(1)));
            }
            if given_back != Resources::default() {
                self.allowances[number] = Allowance::with(&template.limits, &given_back);
            }
        }
    }

    /// Pods that are not tried, and why: with those of nodes that go.
    pub(crate) fn refused_pods(&self) -> impl Iterator<Item = &Unplaced> {
        let of_nodes = self.gone.iter().filter_map(|node| self.base.movable.of(node));
        self.base.refused.iter().chain(of_nodes.flat_map(|found| &found.refused))
    }
}
