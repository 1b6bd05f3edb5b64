//! Whether our plan is as good as Karpenter's: for one scenario, and for all together.

use std::collections::BTreeSet;
use std::fmt;

use super::outcome::{Outcome, Summary};

/// Two sums of the same prices in another order may differ by this much.
pub(super) const EPSILON: f64 = 1e-6;

/// What is wrong with our plan of one scenario. Empty is right.
pub(crate) fn judge(ours: &Outcome, theirs: &Summary) -> Vec<String> {
    let mut faults = Vec::new();
    if let Some(difference) = set_difference(&ours.schedulable(), &theirs.sets) {
        faults.push(difference);
    }
    if ours.nodes() > theirs.nodes.max {
        faults.push(format!("Tenon needs {} nodes; Karpenter needs at most {}", ours.nodes(), theirs.nodes.max));
    }
    if ours.cost() > theirs.cost.max + EPSILON {
        faults.push(format!("Tenon's plan costs {:.4}; Karpenter's costs at most {:.4}", ours.cost(), theirs.cost.max));
    }
    faults
}

/// The same pods must have a place. Where Karpenter itself is of two minds, more is also right.
fn set_difference(ours: &BTreeSet<String>, theirs: &[BTreeSet<String>]) -> Option<String> {
    let is_right = |set: &BTreeSet<String>| ours == set || theirs.len() > 1 && ours.is_superset(set);
    if theirs.iter().any(is_right) {
        return None;
    }
    let nearest = theirs.iter().min_by_key(|set| set.symmetric_difference(ours).count())?;
    let names = |from: &BTreeSet<String>, to: &BTreeSet<String>| {
        let all: Vec<_> = from.difference(to).map(String::as_str).collect();
        if all.is_empty() { "none".to_owned() } else { all.join(" ") }
    };
    Some(format!(
        "pods only Karpenter places: {}; pods only Tenon places: {}",
        names(nearest, ours),
        names(ours, nearest)
    ))
}

/// What is known about one scenario.
#[derive(Debug)]
pub(super) enum Verdict {
    Void(&'static str),
    Judged {
        nodes: usize,
        cost: f64,
        faults: Vec<String>,
    },
    /// We place more pods than Karpenter, so that neither nodes nor cost can be compared.
    More(String),
    /// We made no plan.
    Failed(String),
}

/// Sums over all scenarios that count.
#[derive(Debug, Default)]
pub(super) struct Totals {
    right: usize,
    wrong: usize,
    void: usize,
    more: usize,
    nodes: usize,
    their_nodes: usize,
    cost: f64,
    their_cost: f64,
}

impl Totals {
    pub(super) fn add(&mut self, verdict: &Verdict, theirs: &Summary) {
        match verdict {
            Verdict::Void(_) => self.void += 1,
            Verdict::More(_) => self.more += 1,
            Verdict::Failed(_) => self.wrong += 1,
            Verdict::Judged { nodes, cost, faults } => {
                if faults.is_empty() {
                    self.right += 1;
                } else {
                    self.wrong += 1;
                }
                self.nodes += nodes;
                self.their_nodes += theirs.nodes.median;
                self.cost += cost;
                self.their_cost += theirs.cost.median;
            }
        }
    }

    /// In sum we may not need more than Karpenter's middle run, and something must have been compared.
    pub(super) fn is_right(&self) -> bool {
        self.wrong == 0 && self.right > 0 && self.nodes <= self.their_nodes && self.cost <= self.their_cost + EPSILON
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Totals { right, wrong, void, more, nodes, their_nodes, cost, their_cost } = self;
        write!(
            f,
            "{right} right, {wrong} wrong, {more} with more pods placed, {void} void; nodes: Tenon {nodes}, Karpenter {their_nodes} (sum of medians); \
             cost: Tenon {cost:.4}, Karpenter {their_cost:.4}"
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(claims: &[&[&str]], cost: f64) -> Outcome {
        let claims: Vec<_> = claims.iter().map(|pods| json!({"pods": pods})).collect();
        serde_json::from_value(json!({"newNodeClaims": claims, "existingNodes": [], "stats": {"cost": cost}})).unwrap()
    }

    #[test]
    fn the_same_pods_on_as_many_nodes_are_right() {
        let theirs = Summary::of(&[outcome(&[&["a"], &["b"]], 2.0)]).unwrap();
        assert!(judge(&outcome(&[&["a", "b"]], 1.5), &theirs).is_empty());
        assert!(judge(&outcome(&[&["a"], &["b"]], 2.0), &theirs).is_empty());
    }

    #[test]
    fn another_set_of_pods_is_wrong_even_if_it_is_larger() {
        let theirs = Summary::of(&[outcome(&[&["a"]], 1.0)]).unwrap();
        assert_eq!(judge(&outcome(&[&["b"]], 1.0), &theirs).len(), 1);
        let larger = judge(&outcome(&[&["a", "b"]], 1.0), &theirs);
        assert_eq!(larger, ["pods only Karpenter places: none; pods only Tenon places: b"]);
    }

    #[test]
    fn where_karpenter_is_of_two_minds_a_superset_is_right() {
        let theirs = Summary::of(&[outcome(&[&["a"]], 1.0), outcome(&[&["b"]], 1.0)]).unwrap();
        assert!(judge(&outcome(&[&["a", "b"]], 1.0), &theirs).is_empty());
        assert!(judge(&outcome(&[&["b"]], 1.0), &theirs).is_empty());
        assert_eq!(judge(&outcome(&[&["c"]], 1.0), &theirs).len(), 1);
    }

    #[test]
    fn more_nodes_or_cost_than_the_largest_run_is_wrong() {
        let theirs = Summary::of(&[outcome(&[&["a", "b"]], 1.0)]).unwrap();
        let faults = judge(&outcome(&[&["a"], &["b"]], 3.0), &theirs);
        assert_eq!(faults.len(), 2, "{faults:?}");
    }

    #[test]
    fn the_sums_are_held_to_the_medians() {
        let theirs = Summary::of(&[1.0, 2.0, 9.0].map(|cost| outcome(&[&["a"]], cost))).unwrap();
        let total = |cost: f64| {
            let mut totals = Totals::default();
            totals.add(&Verdict::Judged { nodes: 1, cost, faults: Vec::new() }, &theirs);
            totals
        };
        assert!(total(2.0).is_right());
        assert!(!total(3.0).is_right());
        assert!(!Totals::default().is_right(), "nothing was compared");
    }
}
