//! How many pods are where? Kept by group and domain; of host names by node, because every node is a domain of its own.

use super::groups::Kind;
use crate::index::{Bits, DomainIx, GroupIx, Id, NodeIx, OpenIx, Table};

/// The counts of all groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) groups: Table<GroupIx, Count>,
}

/// The counts of one group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Domains that exist for the group. Nothing of host names.
    pub(crate) registered: Bits<DomainIx>,
    /// Domains with a pod.
    pub(crate) occupied: Bits<DomainIx>,
    /// Domains of nodes that are there and count.
    pub(crate) with_nodes: Bits<DomainIx>,
    domains: Table<DomainIx, u32>,
    /// Of host names: pods by node that is there, and by planned node.
    pub(crate) nodes: ByNode<NodeIx>,
    pub(crate) open: ByNode<OpenIx>,
    /// Of host names: whether nodes that leave have pods. Nobody goes there, but the group is not without pods.
    pub(crate) is_elsewhere: bool,
    /// Rises with every change: what was found out from it before is out of date.
    pub(crate) version: u32,
    max_skew: u32,
}

/// Pods by node, and which nodes have some, or as many as may be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ByNode<I> {
    counts: Vec<u32>,
    /// Nodes with a pod.
    pub(crate) hit: Bits<I>,
    /// Nodes that no pod of the group may be added to.
    pub(crate) full: Bits<I>,
    /// Nodes that have more than they may have.
    pub(crate) over: Bits<I>,
}

/// Where pods of a group are counted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Spot {
    Domain(DomainIx),
    Node(NodeIx),
    /// Some planned node.
    Open,
}

impl<I: Id> ByNode<I> {
    fn of(&self, node: I) -> u32 {
        self.counts.get(node.position()).copied().unwrap_or_default()
    }

    fn set(&mut self, node: I, count: u32, max_skew: u32) {
        let position = node.position();
        if self.counts.len() <= position {
            self.counts.resize(position + 1, 0);
        }
        self.counts[position] = count;
        self.hit.set(node, count > 0);
        self.full.set(node, count >= max_skew);
        self.over.set(node, count > max_skew);
    }
}

impl Count {
    pub(crate) fn new(kind: Kind, registered: Bits<DomainIx>, domains: usize) -> Count {
        let max_skew = match kind {
            Kind::Spread { max_skew, .. } => max_skew,
            _ => u32::MAX,
        };
        let domains = (0..domains).map(|_| 0).collect();
        Count { registered, domains, max_skew, ..Count::default() }
    }

    /// How many pods a domain has.
    pub(crate) fn of(&self, domain: DomainIx) -> u32 {
        self.domains[domain]
    }

    /// A pod is in a domain.
    pub(crate) fn add(&mut self, domain: DomainIx) {
        self.domains[domain] += 1;
        self.occupied.insert(domain);
        self.registered.insert(domain);
        self.version += 1;
    }

    /// A pod is on a node that is there.
    pub(crate) fn add_on_node(&mut self, node: NodeIx) {
        self.nodes.set(node, self.nodes.of(node) + 1, self.max_skew);
        self.version += 1;
    }

    /// A pod is no longer in a domain.
    pub(crate) fn remove(&mut self, domain: DomainIx) {
        self.domains[domain] = self.domains[domain].saturating_sub(1);
        self.occupied.set(domain, self.domains[domain] > 0);
        self.version += 1;
    }

    /// A pod is no longer on a node that is there.
    pub(crate) fn remove_from_node(&mut self, node: NodeIx) {
        self.nodes.set(node, self.nodes.of(node).saturating_sub(1), self.max_skew);
        self.version += 1;
    }

    /// No node of a domain is there any more. Pods that stay where they are, and nodes that can be made, still make it a domain.
    pub(crate) fn remove_nodes_of(&mut self, domain: DomainIx, is_provided: bool) {
        self.with_nodes.remove(domain);
        self.registered.set(domain, is_provided || self.domains[domain] > 0);
        self.version += 1;
    }

    /// Takes what another says of a spot.
    pub(crate) fn restore(&mut self, spot: Spot, other: &Count) {
        match spot {
            Spot::Domain(domain) => {
                self.domains[domain] = other.domains[domain];
                self.registered.set(domain, other.registered.has(domain));
                self.occupied.set(domain, other.occupied.has(domain));
                self.with_nodes.set(domain, other.with_nodes.has(domain));
            }
            Spot::Node(node) => self.nodes.set(node, other.nodes.of(node), self.max_skew),
            Spot::Open => self.open = other.open.clone(),
        }
        self.version += 1;
    }

    /// Whether a group of host names has pods at all.
    pub(crate) fn is_on_some_host(&self) -> bool {
        self.is_elsewhere || !self.nodes.hit.is_empty() || !self.open.hit.is_empty()
    }

    /// A pod is on a planned node.
    pub(crate) fn add_on_open(&mut self, node: OpenIx) {
        self.open.set(node, self.open.of(node) + 1, self.max_skew);
        self.version += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_full_for_pods_that_are_counted_before_it_is_over_for_others() {
        let mut count = Count::new(Kind::Spread { max_skew: 2, min_domains: None }, Bits::default(), 0);
        let node = OpenIx::of(3);
        let told = |count: &Count| (count.open.hit.has(node), count.open.full.has(node), count.open.over.has(node));
        assert_eq!(told(&count), (false, false, false));
        count.add_on_open(node);
        assert_eq!(told(&count), (true, false, false));
        count.add_on_open(node);
        assert_eq!(told(&count), (true, true, false));
        count.add_on_open(node);
        assert_eq!((told(&count), count.version), ((true, true, true), 3));
    }

    #[test]
    fn a_domain_with_a_pod_exists_and_is_occupied() {
        let mut count = Count::new(Kind::Affinity, Bits::none(2), 2);
        let domain = DomainIx::of(1);
        count.add(domain);
        assert!(count.registered.has(domain) && count.occupied.has(domain) && !count.occupied.has(DomainIx::of(0)));
        assert_eq!((count.of(domain), count.of(DomainIx::of(0))), (1, 0));
    }
}
