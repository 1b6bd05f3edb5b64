//! What a plan comes to, and what several plans of the same input come to.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The part of a plan's JSON that is compared.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outcome {
    pub(super) new_node_claims: Vec<Claim>,
    existing_nodes: Vec<Existing>,
    stats: Stats,
}

/// A new node.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Claim {
    pub(super) pods: Vec<String>,
    pub(super) offering: Option<Value>,
}

#[derive(Debug, Clone, Deserialize)]
struct Existing {
    pods: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stats {
    cost: f64,
    #[serde(default)]
    solve_micros: u64,
    #[serde(default)]
    build_micros: u64,
}

impl Outcome {
    /// The pods that have a place.
    pub(super) fn schedulable(&self) -> BTreeSet<String> {
        self.placed().cloned().collect()
    }

    /// The same, each as often as it is placed.
    pub(super) fn placed(&self) -> impl Iterator<Item = &String> {
        let (new, existing) = (self.new_node_claims.iter(), self.existing_nodes.iter());
        new.flat_map(|claim| &claim.pods).chain(existing.flat_map(|node| &node.pods))
    }

    pub(crate) fn nodes(&self) -> usize {
        self.new_node_claims.len()
    }

    pub(crate) fn cost(&self) -> f64 {
        self.stats.cost
    }

    /// How long solving alone took.
    pub(crate) fn solving(&self) -> Duration {
        Duration::from_micros(self.stats.solve_micros)
    }

    /// How long it took to prepare for solving, when everything was read.
    pub(crate) fn building(&self) -> Duration {
        Duration::from_micros(self.stats.build_micros)
    }
}

/// Smallest, middle and largest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Range<T> {
    pub(super) min: T,
    pub(super) median: T,
    pub(super) max: T,
}

impl<T: Copy> Range<T> {
    fn of(mut values: Vec<T>, compare: impl FnMut(&T, &T) -> std::cmp::Ordering) -> Option<Range<T>> {
        values.sort_by(compare);
        Some(Range { min: *values.first()?, median: *values.get(values.len() / 2)?, max: *values.last()? })
    }
}

/// What several runs of Karpenter on one input came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(super) runs: usize,
    /// Each set of schedulable pods that came out, once.
    pub(super) sets: Vec<BTreeSet<String>>,
    pub(super) nodes: Range<usize>,
    pub(super) cost: Range<f64>,
    /// The runs themselves, where they were not only recorded.
    #[serde(skip)]
    pub(super) each: Vec<Run>,
}

/// What one run came to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Run {
    pub(super) placed: BTreeSet<String>,
    pub(super) nodes: usize,
    pub(super) cost: f64,
}

impl Summary {
    /// Only these runs, if there are any.
    pub(super) fn only(&self, is_wanted: impl Fn(&Run) -> bool) -> Option<Summary> {
        let each: Vec<Run> = self.each.iter().filter(|run| is_wanted(run)).cloned().collect();
        let sets: BTreeSet<BTreeSet<String>> = each.iter().map(|run| run.placed.clone()).collect();
        Some(Summary {
            runs: each.len(),
            sets: sets.into_iter().collect(),
            nodes: Range::of(each.iter().map(|run| run.nodes).collect(), usize::cmp)?,
            cost: Range::of(each.iter().map(|run| run.cost).collect(), f64::total_cmp)?,
            each,
        })
    }
}

impl Summary {
    pub(crate) fn of(outcomes: &[Outcome]) -> anyhow::Result<Summary> {
        let sets: BTreeSet<BTreeSet<String>> = outcomes.iter().map(Outcome::schedulable).collect();
        let nothing = "the file has no plans";
        Ok(Summary {
            runs: outcomes.len(),
            sets: sets.into_iter().collect(),
            nodes: Range::of(outcomes.iter().map(Outcome::nodes).collect(), usize::cmp).context(nothing)?,
            cost: Range::of(outcomes.iter().map(Outcome::cost).collect(), f64::total_cmp).context(nothing)?,
            each: outcomes
                .iter()
                .map(|one| Run { placed: one.schedulable(), nodes: one.nodes(), cost: one.cost() })
                .collect(),
        })
    }

    /// Reads the array of plans that our program around Karpenter writes.
    pub(super) fn read(path: &Path) -> anyhow::Result<Summary> {
        let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let outcomes: Vec<Outcome> =
            serde_json::from_slice(&text).with_context(|| format!("cannot read {}", path.display()))?;
        Summary::of(&outcomes).with_context(|| format!("cannot sum up {}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn runs_are_summed_up_by_their_sets_and_ranges() {
        let run = |pods: &[&str], cost: f64| {
            let plan = json!({"version": 1, "newNodeClaims": [{"nodePool": "a", "pods": pods}], "unschedulable": [],
                "existingNodes": [{"name": "n", "pods": ["default/x"]}], "stats": {"nodes": 1, "cost": cost}});
            serde_json::from_value::<Outcome>(plan).unwrap()
        };
        let runs = [run(&["default/a"], 3.0), run(&["default/a"], 1.0), run(&["default/b"], 2.0)];
        let summary = Summary::of(&runs).unwrap();
        assert_eq!(summary.sets.len(), 2);
        assert!(summary.sets.iter().all(|set| set.len() == 2 && set.contains("default/x")), "{summary:?}");
        assert_eq!(summary.cost, Range { min: 1.0, median: 2.0, max: 3.0 });
        assert_eq!(summary.nodes, Range { min: 1, median: 1, max: 1 });
        assert!(Summary::of(&[]).is_err());
    }
}
