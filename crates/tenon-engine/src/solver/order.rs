//! Which of the planned nodes is asked first? Those with the fewest pods; which of equal ones is nobody's demand.

use super::order_buckets::Buckets;
use super::order_chains::Chains;
use crate::base::Base;
use crate::index::{Bits, Id, OpenIx};

/// With more pods than this the first plan stands: what other orders save is little there, and the time is not.
pub(crate) const MOST_IMPROVED: usize = 500;

/// Which of several planned nodes with equally many pods is asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ties {
    /// The one that came to so many last.
    Latest,
    /// The one that was planned first.
    Oldest,
    /// The one that was planned last.
    Newest,
    /// The one that came to so many last. Of equally good domains not the first one is begun with, but one so many further on.
    Turned(usize),
    /// One or the other, in an order that this number stirs; domains are turned by it, too.
    Mixed(usize),
    /// The one that came to so many last. Among equally good domains another one is begun with each time, in an order that this
    /// number stirs.
    Stirred(usize),
}

/// Up to so many nodes Karpenter sorts in a way that keeps equal ones as they are.
const MOST_SORTED: usize = 12;

impl Ties {
    /// How a snapshot is solved first: as Karpenter does where that is defined, which is up to a number of nodes.
    ///
    /// With more, and where pods care where others are, many nodes have a pod each that keeps its like away, and the rest of the
    /// pods is spread best over nodes in the order they were planned. It takes a solve to know how many nodes there are, so with
    /// many pods it is taken for granted.
    pub(crate) fn usual(base: &Base) -> Ties {
        let is_large = base.pending > MOST_IMPROVED;
        if base.topology.is_used() && is_large { Ties::Oldest } else { Ties::Latest }
    }

    /// How a snapshot is solved for which so many nodes are planned.
    pub(crate) fn for_nodes(base: &Base, nodes: usize) -> Ties {
        if base.topology.is_used() && nodes > MOST_SORTED { Ties::Oldest } else { Ties::usual(base) }
    }

    /// Where to begin among so many ways that are as good as each other, when so many choices were made before.
    pub(super) fn first_of(self, ways: usize, choices: usize) -> usize {
        match self {
            Ties::Turned(turn) | Ties::Mixed(turn) if ways > 0 => turn % ways,
            Ties::Stirred(salt) if ways > 0 => hashed(choices, salt) % ways,
            _ => 0,
        }
    }

    /// Whether new nodes are made where they cost least, of domains that are as good as each other.
    pub(super) fn prefers_cheap(self) -> bool {
        !matches!(self, Ties::Mixed(salt) if salt % 3 == 0) && !matches!(self, Ties::Stirred(_))
    }

    /// Whether a node comes before another with equally many pods.
    pub(super) fn puts_first(self, other: OpenIx, mine: OpenIx) -> bool {
        match self {
            Ties::Latest | Ties::Turned(_) | Ties::Stirred(_) => false,
            Ties::Oldest => other < mine,
            Ties::Newest => other > mine,
            Ties::Mixed(salt) => stirred(other.position(), salt) < stirred(mine.position(), salt),
        }
    }
}

/// The place of a number in an order that a salt stirs. Multiples of a large odd number are spread evenly enough.
fn stirred(number: usize, salt: usize) -> usize {
    (number + salt).wrapping_mul(salt.wrapping_mul(2_654_435_769) | 1) % 1_009
}

/// A number that says nothing of the two it is made from. Stirred numbers would do for an order, but leave a pattern where only the
/// remainder of a few counts.
fn hashed(number: usize, salt: usize) -> usize {
    let mut hash = number.wrapping_add(salt << 10).wrapping_add(1);
    for shift in [15, 13] {
        hash = hash.wrapping_mul(2_654_435_769);
        hash ^= hash >> shift;
    }
    hash
}

/// Nodes in the order they are asked.
#[derive(Debug)]
pub(super) enum Order {
    Chains(Chains),
    Buckets(Buckets),
}

impl Order {
    pub(super) fn new(ties: Ties) -> Order {
        match ties {
            Ties::Oldest => Order::Buckets(Buckets::default()),
            _ => Order::Chains(Chains::new(ties)),
        }
    }

    /// A new node with one pod.
    pub(super) fn add(&mut self) {
        match self {
            Order::Chains(chains) => chains.add(),
            Order::Buckets(buckets) => buckets.add(),
        }
    }

    /// The node took one more pod.
    pub(super) fn advance(&mut self, node: OpenIx) {
        match self {
            Order::Chains(chains) => chains.advance(node),
            Order::Buckets(buckets) => buckets.advance(node),
        }
    }

    /// The node that is asked first.
    pub(super) fn first(&self) -> Option<OpenIx> {
        match self {
            Order::Chains(chains) => chains.first(),
            Order::Buckets(buckets) => buckets.first(),
        }
    }

    /// The node that is asked after another.
    pub(super) fn next(&self, node: OpenIx) -> Option<OpenIx> {
        match self {
            Order::Chains(chains) => chains.next(node),
            Order::Buckets(buckets) => buckets.next(node),
        }
    }

    /// The node of these that is asked first.
    pub(super) fn first_of(&self, nodes: &Bits<OpenIx>) -> Option<OpenIx> {
        match self {
            Order::Chains(chains) => chains.first_of(nodes),
            Order::Buckets(buckets) => buckets.first_of(nodes),
        }
    }

    /// Whether the place of a node among all is known without walking there.
    pub(super) fn is_ranked(&self) -> bool {
        match self {
            Order::Chains(chains) => chains.is_ranked(),
            Order::Buckets(_) => true,
        }
    }

    /// The place of a node among all, if that is known.
    pub(super) fn rank(&self, node: OpenIx) -> (usize, i64) {
        match self {
            Order::Chains(chains) => chains.rank(node),
            Order::Buckets(buckets) => buckets.rank(node),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Where five choices among three domains begin.
    fn begins(ties: Ties) -> [usize; 5] {
        [0, 1, 2, 3, 4].map(|choices| ties.first_of(3, choices))
    }

    #[test]
    fn stirred_ties_begin_with_another_domain_from_choice_to_choice_and_turned_ones_do_not() {
        assert_eq!(begins(Ties::Latest), [0; 5]);
        assert_eq!(begins(Ties::Turned(2)), [2; 5]);
        for salt in 1..=8 {
            let domains: BTreeSet<usize> = begins(Ties::Stirred(salt)).into_iter().collect();
            assert!(domains.len() > 1 && domains.iter().all(|domain| *domain < 3), "{salt}: {domains:?}");
        }
        assert_eq!(Ties::Stirred(1).first_of(0, 7), 0, "there is nothing to choose from");
    }
}
