//! Are planned pods with the pods they must be with, away from those they must not be with, and evenly spread?
//!
//! Only what is required counts; preferences and `ScheduleAnyway` never break a plan. Nothing here is shared with the solver:
//! where pods end up is read from the snapshot and the plan, and rules are kube-scheduler's own. Where Karpenter's differ, the
//! difference is said next to the rule.

mod affinity;
mod anti_affinity;
mod placed;
mod spread_counts;
mod spread_replay;
mod terms;

use std::collections::BTreeMap;

use tenon_model::{PodShape, Spread, WhenUnsatisfiable};

use super::{Checker, of_pod};
use placed::{Domains, Placed};

impl Checker<'_> {
    pub(super) fn topology_holds(&mut self) {
        let is_alone = |shape: &PodShape| {
            shape.pod_affinity.is_empty() && shape.pod_anti_affinity.is_empty() && hard(shape).next().is_none()
        };
        let mut bound = self.snapshot.nodes.iter().flat_map(|node| &node.pods);
        // The common case, at the price of one look at each pod.
        if self.snapshot.pods.iter().all(|pod| is_alone(pod)) && bound.all(|pod| pod.shape.pod_anti_affinity.is_empty())
        {
            return;
        }
        let placed = Placed::of(self.snapshot, self.plan);
        let domains = domains(&placed);
        let broken = [
            anti_affinity::broken(&placed, &domains),
            affinity::broken(&placed, &domains),
            spread_replay::broken(&placed, &domains),
        ];
        for (key, rule) in broken.into_iter().flatten() {
            self.expect(false, || of_pod(key, &rule));
        }
    }
}

/// Constraints that a pod waits for.
fn hard(shape: &PodShape) -> impl Iterator<Item = &Spread> {
    shape.spreads.iter().filter(|spread| spread.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule)
}

/// The domains of every label that a rule speaks of.
fn domains<'p, 'a>(placed: &'p Placed<'a>) -> BTreeMap<&'a str, Domains<'p>> {
    let mut domains = BTreeMap::new();
    for class in &placed.classes {
        let shape = class.shape;
        let terms = shape.pod_affinity.iter().chain(&shape.pod_anti_affinity).map(|term| term.label.as_str());
        for label in terms.chain(hard(shape).map(|spread| spread.label.as_str())) {
            domains.entry(label).or_insert_with(|| placed.domains(label));
        }
    }
    domains
}
