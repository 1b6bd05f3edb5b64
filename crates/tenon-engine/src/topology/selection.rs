//! Which labels of pods matter? Those that some selector names. All others would make every pod of a StatefulSet another class.

use std::collections::{BTreeMap, BTreeSet};

use tenon_model::{
    PodAffinityTerm, PodShape, PreferencePolicy, Selector, Snapshot, Spread, WeightedPodAffinityTerm, WhenUnsatisfiable,
};

/// What of pods is looked at because other pods ask for it.
#[derive(Debug, Default)]
pub(crate) struct Relevant {
    /// Whether any pod cares where others are.
    pub(crate) is_used: bool,
    labels: BTreeSet<String>,
}

impl Relevant {
    /// Reads every constraint of pods to be placed, also of those that may have to be, and the anti-affinity of pods on nodes.
    pub(crate) fn of<'m>(snapshot: &Snapshot, movable: impl Iterator<Item = &'m PodShape>) -> Relevant {
        let mut relevant = Relevant::default();
        let policy = snapshot.options.preferences;
        for pod in &snapshot.pods {
            relevant.read(&pod.shape, policy);
        }
        movable.for_each(|shape| relevant.read(shape, policy));
        for pod in snapshot.nodes.iter().flat_map(|node| &node.pods) {
            pod.shape.pod_anti_affinity.iter().for_each(|term| relevant.add(term.selector.as_ref()));
        }
        relevant
    }

    fn read(&mut self, shape: &PodShape, policy: PreferencePolicy) {
        let spreads = shape.spreads.iter().filter(|spread| counts(spread, policy));
        spreads.for_each(|spread| self.add(spread.selector.as_ref()));
        let terms = shape.pod_affinity.iter().chain(&shape.pod_anti_affinity);
        terms.chain(wishes(shape, policy)).for_each(|term| self.add(term.selector.as_ref()));
    }

    fn add(&mut self, selector: Option<&Selector>) {
        self.is_used = true;
        for demand in selector.iter().flat_map(|selector| &selector.requirements) {
            if !self.labels.contains(&demand.label) {
                self.labels.insert(demand.label.clone());
            }
        }
    }

    /// The labels of a pod that some selector names.
    pub(crate) fn labels<'p>(&self, labels: &'p BTreeMap<String, String>) -> Vec<(&'p str, &'p str)> {
        let named = labels.iter().filter(|(label, _)| self.labels.contains(*label));
        named.map(|(label, value)| (label.as_str(), value.as_str())).collect()
    }
}

/// Whether a spread is looked at.
pub(crate) fn counts(spread: &Spread, policy: PreferencePolicy) -> bool {
    policy == PreferencePolicy::Respect || spread.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule
}

/// Terms of preferred affinity and anti-affinity that are looked at.
fn wishes(shape: &PodShape, policy: PreferencePolicy) -> impl Iterator<Item = &PodAffinityTerm> {
    let wishes = shape.preferred_pod_affinity.iter().chain(&shape.preferred_pod_anti_affinity);
    wishes.filter(move |_| policy == PreferencePolicy::Respect).map(|wish: &WeightedPodAffinityTerm| &wish.term)
}
