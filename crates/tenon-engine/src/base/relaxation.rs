//! What is given up, and in which order? A pod is tried with all its wishes first, as if they were demands.
//!
//! One wish is given up at a time: alternatives of required node affinity but for the last; preferred pod affinity; preferred pod
//! anti-affinity; preferred node affinity, each the heaviest first; spreads that are only wished for; last, taints that advise.

use std::cmp::Reverse;

use tenon_model::{
    Effect, Options, PodAffinityTerm, PodShape, PreferencePolicy, Preferred, Requirements, Spread, Tolerated,
    Toleration, WeightedPodAffinityTerm, WhenUnsatisfiable,
};

use crate::topology::counts;

/// What decides how pods are tried.
pub(crate) struct Rules<'r> {
    pub(crate) options: &'r Options,
    /// Whether some pool has a taint that only advises; it counts until everything else was given up.
    pub(crate) has_advice: bool,
}

/// What is left of a pod's wishes.
#[derive(Clone)]
pub(super) struct Stage<'s> {
    shape: &'s PodShape,
    /// The alternatives that are left; the first one is tried.
    pub(super) alternatives: &'s [Requirements],
    wishes: Vec<&'s Preferred>,
    pub(super) affinity: Vec<&'s WeightedPodAffinityTerm>,
    pub(super) anti_affinity: Vec<&'s WeightedPodAffinityTerm>,
    pub(super) spreads: Vec<&'s Spread>,
    /// Whether taints that advise are tolerated.
    is_patient: bool,
}

/// The stages in which a pod is tried.
pub(super) fn stages<'s>(shape: &'s PodShape, rules: &Rules<'_>) -> Vec<Stage<'s>> {
    let mut stages = vec![Stage::first(shape, rules.options.preferences)];
    while let Some(next) = stages.last().and_then(|last| last.relaxed(rules.has_advice)) {
        stages.push(next);
    }
    stages
}

impl<'s> Stage<'s> {
    fn first(shape: &'s PodShape, policy: PreferencePolicy) -> Stage<'s> {
        let is_kept = policy == PreferencePolicy::Respect;
        let mut wishes: Vec<&Preferred> = shape.preferred.iter().filter(|_| is_kept).collect();
        // Stable: of equal ones the first that was written is given up first.
        wishes.sort_by_key(|wish| Reverse(wish.weight));
        let heaviest_first = |terms: &'s [WeightedPodAffinityTerm]| {
            let mut terms: Vec<&WeightedPodAffinityTerm> = terms.iter().filter(|_| is_kept).collect();
            terms.sort_by_key(|term| Reverse(term.weight));
            terms
        };
        Stage {
            shape,
            alternatives: &shape.alternatives,
            wishes,
            affinity: heaviest_first(&shape.preferred_pod_affinity),
            anti_affinity: heaviest_first(&shape.preferred_pod_anti_affinity),
            spreads: shape.spreads.iter().filter(|spread| counts(spread, policy)).collect(),
            is_patient: false,
        }
    }

    /// The same with one wish less.
    fn relaxed(&self, has_advice: bool) -> Option<Stage<'s>> {
        let mut next = self.clone();
        let is_wish = |spread: &&Spread| spread.when_unsatisfiable == WhenUnsatisfiable::ScheduleAnyway;
        if next.alternatives.len() > 1 {
            next.alternatives = next.alternatives.get(1..).unwrap_or_default();
        } else if !next.affinity.is_empty() {
            next.affinity.remove(0);
        } else if !next.anti_affinity.is_empty() {
            next.anti_affinity.remove(0);
        } else if !next.wishes.is_empty() {
            next.wishes.remove(0);
        } else if let Some(wish) = next.spreads.iter().position(is_wish) {
            next.spreads.swap_remove(wish);
        } else if has_advice && !next.is_patient {
            next.is_patient = true;
        } else {
            return None;
        }
        Some(next)
    }

    /// What the pod insists on.
    pub(super) fn strict(&self) -> Requirements {
        self.alternatives.first().cloned().unwrap_or_default()
    }

    /// What is demanded of a node: what the pod insists on, and the heaviest of its wishes.
    pub(super) fn demand(&self) -> Requirements {
        let mut demand = self.strict();
        self.wishes.first().into_iter().for_each(|wish| demand.join(&wish.requirements));
        demand
    }

    /// Taints that are tolerated.
    pub(super) fn tolerations(&self) -> Vec<Toleration> {
        let more = Toleration { key: None, value: Tolerated::Exists, effect: Some(Effect::PreferNoSchedule) };
        self.shape.tolerations.iter().cloned().chain(self.is_patient.then_some(more)).collect()
    }

    /// Pods it would rather be with. Those it must be with are the same at every stage.
    pub(super) fn wished_near(&self) -> impl Iterator<Item = &'s PodAffinityTerm> {
        self.affinity.clone().into_iter().map(|wish| &wish.term)
    }

    /// Pods it does not want to be with, required ones first.
    pub(super) fn apart(&self) -> impl Iterator<Item = &'s PodAffinityTerm> {
        self.shape.pod_anti_affinity.iter().chain(self.anti_affinity.clone().into_iter().map(|wish| &wish.term))
    }
}
