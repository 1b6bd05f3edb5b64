//! Is there a better plan that differs only in which of several equal nodes, or equally good domains, came first?
//!
//! Which of several planned nodes with equally many pods gets the next one is nobody's demand, and Karpenter leaves it to a
//! sort that is not stable. So it is tried in a few ways, and the best plan is taken.

use std::collections::BTreeMap;

use crate::index::{PodClassIx, PodIx};
use crate::solver::{MOST_IMPROVED, Ties, Trust, Work};

/// Up to so many pods a plan takes no time, and more ways are tried.
const FEW_PODS: usize = 100;

/// Takes a better solve for the same pods, if one is found. Only the one that is kept is written as a plan.
pub(crate) fn improve(best: &mut Work<'_>) {
    let pods = best.base.pending;
    // Whoever waits because of other pods may find a place where those are elsewhere.
    let may_place_more = |work: &Work<'_>| work.base.topology.is_used() && !work.failures.is_empty();
    if pods > MOST_IMPROVED || (best.open.nodes.len() < 2 && !may_place_more(best)) {
        return;
    }
    let first = Ties::for_nodes(best.base, best.open.nodes.len());
    if first != Ties::usual(best.base) {
        *best = solved(best, first);
    }
    let may_place_more = may_place_more(best);
    let mut score = Score::of(best);
    if score.nodes < 2 && !may_place_more {
        return;
    }
    let (mixed, stirred) = if pods > FEW_PODS { (3, 2) } else { (12, 8) };
    let other = if first == Ties::Oldest { Ties::Latest } else { Ties::Oldest };
    // Without constraints on other pods there are no domains to choose from.
    let (turned, stirred) = if best.base.topology.is_used() { (3, stirred) } else { (0, 0) };
    let mixes = (1..=mixed).map(Ties::Mixed);
    let turns = (1..=turned).map(Ties::Turned).chain(mixes).chain((1..=stirred).map(Ties::Stirred));
    for ties in [other, Ties::Newest].into_iter().chain(turns) {
        let mut other = solved(best, ties);
        let found = Score::of(&mut other);
        let is_equal = found.leaves_the_same_as(&score, best.base.topology.is_used());
        if (is_equal && found.is_better_than(&score)) || (may_place_more && found.places_more_than(&score)) {
            (*best, score) = (other, found);
        } else {
            best.memo = other.memo;
        }
    }
}

/// Another solve, with what was found out in this one.
fn solved<'b>(best: &mut Work<'b>, ties: Ties) -> Work<'b> {
    let mut other = Work::new(best.base, std::mem::take(&mut best.memo), (ties, Trust::Remembered));
    other.solve();
    other
}

/// What counts when solves are compared.
struct Score {
    nodes: usize,
    cost: f64,
    /// Pods that were tried and wait.
    waiting: Vec<PodIx>,
    /// How many of each class.
    waiting_of: BTreeMap<PodClassIx, usize>,
}

impl Score {
    fn of(work: &mut Work<'_>) -> Score {
        let open = std::mem::take(&mut work.open.nodes);
        let mut waiting: Vec<PodIx> = work.failures.keys().copied().collect();
        let mut prices = Vec::with_capacity(open.len());
        for node in open.iter() {
            match work.offering_for(node) {
                Ok(offering) => prices.push(work.base.catalog_of(node.template).way(offering).price.value()),
                Err(_) => waiting.extend(&node.pods),
            }
        }
        waiting.sort_unstable();
        work.open.nodes = open;
        let mut waiting_of = BTreeMap::new();
        for pod in &waiting {
            *waiting_of.entry(work.base.pods[*pod].1).or_default() += 1;
        }
        Score { nodes: prices.len(), cost: prices.iter().sum(), waiting, waiting_of }
    }

    /// Whether fewer pods wait, and of no class more.
    fn places_more_than(&self, other: &Score) -> bool {
        let is_no_more =
            |(class, pods): (&PodClassIx, &usize)| other.waiting_of.get(class).is_some_and(|more| pods <= more);
        self.waiting.len() < other.waiting.len() && self.waiting_of.iter().all(is_no_more)
    }

    /// Whether the same pods wait; or as many of each class, where it depends on other pods which of them does.
    fn leaves_the_same_as(&self, other: &Score, is_by_class: bool) -> bool {
        if is_by_class { self.waiting_of == other.waiting_of } else { self.waiting == other.waiting }
    }

    /// Whether neither more nodes nor more money are needed, and less of one.
    fn is_better_than(&self, other: &Score) -> bool {
        let is_no_worse = self.nodes <= other.nodes && self.cost <= other.cost;
        is_no_worse && (self.nodes < other.nodes || self.cost < other.cost)
    }
}
