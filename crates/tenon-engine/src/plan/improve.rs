//! Is there a better plan that differs only in which of several equal nodes was asked first?
//!
//! Which of several planned nodes with equally many pods gets the next one is nobody's demand, and Karpenter leaves it to a
//! sort that is not stable. So it is tried in a few ways, and the best plan is taken.

use std::collections::BTreeSet;

use tenon_model::{Plan, PodKey};

use crate::base::Base;
use crate::solver::Ties;

/// With more pods than this the first plan stands: the difference is small there, and the time is not.
const MOST_PODS: usize = 500;

/// Up to so many pods a plan takes no time, and more ways are tried.
const FEW_PODS: usize = 100;

/// The plan, or a better one for the same pods.
pub(crate) fn improved(base: &Base, first: Plan, mut solve: impl FnMut(Ties) -> Plan) -> Plan {
    let pods = base.pending;
    if first.new_nodes.len() < 2 || pods > MOST_PODS {
        return first;
    }
    let mixed = if pods > FEW_PODS { 3 } else { 12 };
    let ways = [Ties::Oldest, Ties::Newest].into_iter().chain((1..=mixed).map(Ties::Mixed));
    ways.fold(first, |best, ties| {
        let other = solve(ties);
        if is_better(&other, &best) { other } else { best }
    })
}

/// Whether a plan leaves the same pods waiting, needs neither more nodes nor more money, and less of one.
fn is_better(plan: &Plan, than: &Plan) -> bool {
    let nodes = (plan.new_nodes.len(), than.new_nodes.len());
    let (cost, other) = (cost(plan), cost(than));
    let is_no_worse = nodes.0 <= nodes.1 && cost <= other;
    is_no_worse && (nodes.0 < nodes.1 || cost < other) && waiting(plan) == waiting(than)
}

fn cost(plan: &Plan) -> f64 {
    plan.new_nodes.iter().map(|node| node.chosen.price.value()).sum()
}

fn waiting(plan: &Plan) -> BTreeSet<&PodKey> {
    plan.unplaced.iter().map(|unplaced| &unplaced.pod).collect()
}
