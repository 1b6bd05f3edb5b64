//! Is a move worth it? Policy `Balanced`: the share of the pool's cost that is saved must be at least half the share of the
//! pool's disruption that is caused.

use std::collections::BTreeMap;

use tenon_model::{ConsolidationPolicy, Price};

use super::candidates::Node;
use super::command::{Command, PoolScore};
use super::kept::Kept;
use super::prices::sum;
use super::scan::Scan;

/// Half: Karpenter's k of 2. A larger one would move more pods for smaller savings.
pub const THRESHOLD: f64 = 0.5;

/// What all nodes of a pool cost together, and what moving all its pods would.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct PoolTotals {
    cost: f64,
    disruption: f64,
}

/// Whether a move is worth it.
#[derive(Debug)]
pub(super) enum Verdict {
    /// With the scores of all pools that ask for one.
    Approved(Vec<PoolScore>),
    /// The first pool that says no.
    Rejected(Kept),
}

impl PoolTotals {
    /// By pool. Nodes that go already count until they are gone, as in Karpenter.
    pub(super) fn of<'s>(nodes: &[Node<'s>]) -> BTreeMap<&'s str, PoolTotals> {
        let mut totals: BTreeMap<&str, PoolTotals> = BTreeMap::new();
        for node in nodes {
            let total = totals.entry(node.pool_name()).or_default();
            total.cost += node.price.map_or(0.0, Price::value);
            total.disruption += node.cost;
        }
        totals
    }

    /// How much of the pool's cost is saved for how much of its disruption.
    fn score(self, savings: f64, disruption: f64) -> f64 {
        if self.cost <= 0.0 || self.disruption <= 0.0 || savings <= 0.0 {
            return 0.0;
        }
        if disruption <= 0.0 {
            return f64::INFINITY;
        }
        (savings / self.cost) / (disruption / self.disruption)
    }
}

impl Scan<'_> {
    /// Whether every `Balanced` pool among the nodes finds the savings worth it. Savings of several pools are shared by what
    /// their nodes cost.
    pub(super) fn score(&self, nodes: &[usize], savings: f64) -> Verdict {
        let mut of_pool: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for node in nodes.iter().map(|number| &self.nodes[*number]) {
            let (cost, disruption) = of_pool.entry(node.pool_name()).or_default();
            *cost += node.price.map_or(0.0, Price::value);
            *disruption += node.cost;
        }
        let all = sum(nodes.iter().filter_map(|number| self.nodes[*number].price)).value();
        let mut scores = Vec::new();
        for (pool, (cost, disruption)) in of_pool {
            if self.policy(pool) != Some(ConsolidationPolicy::Balanced) {
                continue;
            }
            let share = if all > 0.0 { savings * cost / all } else { 0.0 };
            let totals = self.totals.get(pool).copied().unwrap_or_default();
            let score = totals.score(share, disruption);
            let of = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
            let (saved, disrupted) = (of(share, totals.cost), of(disruption, totals.disruption));
            let pool = pool.to_owned();
            if score < THRESHOLD {
                return Verdict::Rejected(Kept::BelowThreshold { pool, saved, disrupted, score });
            }
            scores.push(PoolScore { pool, saved, disrupted, score });
        }
        Verdict::Approved(scores)
    }

    /// The move with its score, if it is worth it.
    pub(super) fn approved(&self, mut command: Command, nodes: &[usize]) -> Result<Command, Kept> {
        match self.score(nodes, command.savings) {
            Verdict::Rejected(why) => Err(why),
            Verdict::Approved(scores) => {
                command.scores = scores;
                Ok(command)
            }
        }
    }

    fn policy(&self, pool: &str) -> Option<ConsolidationPolicy> {
        let found = self.snapshot.pools.iter().find(|found| found.name == pool)?;
        Some(found.disruption.as_ref()?.policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h14_a_score_compares_the_share_of_cost_with_the_share_of_disruption() {
        let totals = PoolTotals { cost: 100.0, disruption: 100.0 };
        for (savings, disruption, expected) in [
            (20.0, 5.0, 4.0),
            (10.0, 10.0, 1.0),
            (5.0, 50.0, 0.1),
            (0.0, 1.0, 0.0),
            (-1.0, 1.0, 0.0),
            (1.0, 0.0, f64::INFINITY),
        ] {
            let score = totals.score(savings, disruption);
            assert!((score - expected).abs() < 1e-9 || score == expected, "{savings} / {disruption}: {score}");
        }
        assert!(PoolTotals::default().score(1.0, 1.0) < THRESHOLD, "without totals nothing is approved");
    }
}
