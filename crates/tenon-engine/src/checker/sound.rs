//! What is left of a plan without everything its checker refuses.
//!
//! A plan that breaks a rule is a bug of ours. The pods it concerns must not keep all others from getting nodes, and
//! nothing that was refused may be made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenon_model::{Plan, PodKey, Reason, Snapshot, Unplaced};

use super::mentions::asked;
use super::{Subject, Violation, check};

/// Dropping one part may break the rest, say a node that shares a reservation. After this many rounds nothing of the plan
/// is trusted any more.
const ROUNDS_MAX: usize = 8;

/// A plan that breaks no rule, and what was wrong with the one it was made from.
#[derive(Debug, Clone, Default)]
pub struct CheckedPlan {
    /// The sound part. Pods of the rest are unplaced.
    pub plan: Plan,
    /// Why the rest was dropped; empty if nothing was.
    pub violations: Vec<Violation>,
}

/// Checks a plan and drops what breaks a rule, until nothing does.
pub fn sound_part(snapshot: &Snapshot, mut plan: Plan) -> CheckedPlan {
    let mut violations = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let found = check(snapshot, &plan);
        if found.is_empty() {
            return CheckedPlan { plan, violations };
        }
        plan = Drop::of(&plan, &found).applied(snapshot, plan);
        add_new(&mut violations, found);
    }
    let found = check(snapshot, &plan);
    if !found.is_empty() {
        plan = nothing(snapshot, &found);
        add_new(&mut violations, found);
    }
    CheckedPlan { plan, violations }
}

/// Adds violations, each once: one fault may break the same rule for every instance type of a node.
fn add_new(violations: &mut Vec<Violation>, found: Vec<Violation>) {
    for violation in found {
        if !violations.contains(&violation) {
            violations.push(violation);
        }
    }
}

/// A plan that makes nothing, because of these violations.
fn nothing(snapshot: &Snapshot, violations: &[Violation]) -> Plan {
    let rule = violations.first().map(ToString::to_string).unwrap_or_default();
    let reason = |key: &Arc<PodKey>| Unplaced { pod: key.clone(), reason: Reason::CheckFailed(rule.clone()) };
    Plan { unplaced: asked(snapshot).collect::<BTreeSet<_>>().into_iter().map(reason).collect(), ..Plan::default() }
}

/// What is dropped from a plan, each with the rule it breaks.
#[derive(Default)]
struct Drop {
    pods: BTreeMap<Arc<PodKey>, String>,
    new_nodes: BTreeMap<usize, String>,
    existing_nodes: BTreeMap<String, String>,
}

impl Drop {
    fn of(plan: &Plan, violations: &[Violation]) -> Drop {
        let mut drop = Drop::default();
        for violation in violations {
            for subject in violation.concerns() {
                drop.add(plan, subject, &violation.to_string());
            }
        }
        drop
    }

    fn add(&mut self, plan: &Plan, subject: &Subject, rule: &str) {
        let nodes = plan.new_nodes.iter().enumerate();
        let indexes: Vec<usize> = match subject {
            Subject::Pod(key) => {
                self.pods.entry(key.clone()).or_insert_with(|| rule.to_owned());
                return;
            }
            Subject::ExistingNode(name) => {
                self.existing_nodes.entry(name.clone()).or_insert_with(|| rule.to_owned());
                return;
            }
            Subject::NewNode(index) => vec![*index],
            Subject::NodePool(name) => nodes.filter(|(_, node)| node.pool == *name).map(|(index, _)| index).collect(),
            Subject::Host(place) => {
                let is_there = |place_of: &Option<_>| place_of.as_ref() == Some(place);
                nodes.filter(|(_, node)| is_there(&node.chosen.place)).map(|(index, _)| index).collect()
            }
        };
        for index in indexes {
            self.new_nodes.entry(index).or_insert_with(|| rule.to_owned());
        }
    }

    /// The plan without it. A new node stays with the pods that are left on it, as long as there are some.
    fn applied(mut self, snapshot: &Snapshot, plan: Plan) -> Plan {
        let Plan { new_nodes, placements, mut unplaced } = plan;
        let mut kept = Vec::new();
        for (index, mut node) in new_nodes.into_iter().enumerate() {
            match self.new_nodes.get(&index) {
                Some(rule) => self.pods.extend(node.pods.drain(..).map(|pod| (pod, rule.clone()))),
                None => node.pods.retain(|pod| !self.pods.contains_key(pod)),
            }
            kept.extend((!node.pods.is_empty()).then_some(node));
        }
        let (mut stay, pods) = (placements, &mut self.pods);
        stay.retain(|placement| match self.existing_nodes.get(&placement.node) {
            Some(rule) => {
                pods.insert(placement.pod.clone(), rule.clone());
                false
            }
            None => !pods.contains_key(&placement.pod),
        });
        unplaced.retain(|waits| !self.pods.contains_key(&waits.pod));
        let asked: BTreeSet<&Arc<PodKey>> = asked(snapshot).collect();
        let dropped = self.pods.into_iter().filter(|(pod, _)| asked.contains(pod));
        unplaced.extend(dropped.map(|(pod, rule)| Unplaced { pod, reason: Reason::CheckFailed(rule) }));
        Plan { new_nodes: kept, placements: stay, unplaced }
    }
}
