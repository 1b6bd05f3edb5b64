//! Which pods a pod must or must not be with (pod affinity and anti-affinity), and how evenly it is spread.

use crate::kube_objects::PodSpec;
use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    PodAffinityTerm as KubeTerm, TopologySpreadConstraint, WeightedPodAffinityTerm as KubeWeightedTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use tenon_model::{
    NamespaceChoice, Operator, PodAffinityTerm, Selector, Spread, UseNodes, WeightedPodAffinityTerm, WhenUnsatisfiable,
    WrittenRequirement,
};

/// The pod that asks: terms speak of its labels and its namespace.
pub(crate) struct Asker<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) labels: &'a BTreeMap<String, String>,
}

/// Pod affinity and anti-affinity, required and preferred for.
#[derive(Default)]
pub(crate) struct PodAffinities {
    pub(crate) pod_affinity: Vec<PodAffinityTerm>,
    pub(crate) pod_anti_affinity: Vec<PodAffinityTerm>,
    pub(crate) preferred_pod_affinity: Vec<WeightedPodAffinityTerm>,
    pub(crate) preferred_pod_anti_affinity: Vec<WeightedPodAffinityTerm>,
}

impl Asker<'_> {
    pub(crate) fn affinities(&self, spec: &PodSpec) -> PodAffinities {
        let Some(affinity) = &spec.affinity else { return PodAffinities::default() };
        let (mut pod_affinity, mut preferred_pod_affinity) = (Vec::new(), Vec::new());
        if let Some(wanted) = &affinity.pod_affinity {
            pod_affinity = self.required(wanted.required_during_scheduling_ignored_during_execution.as_ref());
            preferred_pod_affinity =
                self.preferred(wanted.preferred_during_scheduling_ignored_during_execution.as_ref());
        }
        let (mut pod_anti_affinity, mut preferred_pod_anti_affinity) = (Vec::new(), Vec::new());
        if let Some(avoided) = &affinity.pod_anti_affinity {
            pod_anti_affinity = self.required(avoided.required_during_scheduling_ignored_during_execution.as_ref());
            preferred_pod_anti_affinity =
                self.preferred(avoided.preferred_during_scheduling_ignored_during_execution.as_ref());
        }
        PodAffinities { pod_affinity, pod_anti_affinity, preferred_pod_affinity, preferred_pod_anti_affinity }
    }

    pub(crate) fn spreads(&self, spec: &PodSpec) -> Vec<Spread> {
        spec.topology_spread_constraints.iter().flatten().map(|constraint| self.spread(constraint)).collect()
    }

    fn required(&self, terms: Option<&Vec<KubeTerm>>) -> Vec<PodAffinityTerm> {
        terms.into_iter().flatten().map(|term| self.term(term)).collect()
    }

    fn preferred(&self, terms: Option<&Vec<KubeWeightedTerm>>) -> Vec<WeightedPodAffinityTerm> {
        let weighted = |term: &KubeWeightedTerm| WeightedPodAffinityTerm {
            weight: term.weight,
            term: self.term(&term.pod_affinity_term),
        };
        terms.into_iter().flatten().map(weighted).collect()
    }

    fn term(&self, term: &KubeTerm) -> PodAffinityTerm {
        let mut selector = term.label_selector.as_ref().map(selector);
        if let Some(selector) = &mut selector {
            self.compare(selector, Operator::In, term.match_label_keys.as_ref());
            self.compare(selector, Operator::NotIn, term.mismatch_label_keys.as_ref());
        }
        let mut names: BTreeSet<String> = term.namespaces.iter().flatten().cloned().collect();
        // Who names no namespace means his own.
        if names.is_empty() && term.namespace_selector.is_none() {
            names.insert(self.namespace.to_owned());
        }
        let namespaces = NamespaceChoice { names, selector: term.namespace_selector.as_ref().map(self::selector) };
        PodAffinityTerm { label: term.topology_key.clone(), selector, namespaces }
    }

    pub(crate) fn spread(&self, constraint: &TopologySpreadConstraint) -> Spread {
        let mut selector = constraint.label_selector.as_ref().map(selector);
        if let Some(selector) = &mut selector {
            self.compare(selector, Operator::In, constraint.match_label_keys.as_ref());
        }
        let when_unsatisfiable = match constraint.when_unsatisfiable.as_str() {
            "ScheduleAnyway" => WhenUnsatisfiable::ScheduleAnyway,
            _ => WhenUnsatisfiable::DoNotSchedule,
        };
        Spread {
            label: constraint.topology_key.clone(),
            max_skew: u32::try_from(constraint.max_skew).unwrap_or(1),
            min_domains: constraint.min_domains.and_then(|least| u32::try_from(least).ok()),
            when_unsatisfiable,
            selector,
            nodes: UseNodes {
                that_are_wanted: constraint.node_affinity_policy.as_deref() != Some("Ignore"),
                that_are_tolerated: constraint.node_taints_policy.as_deref() == Some("Honor"),
            },
        }
    }

    /// Adds that labels are, or are not, what the pod's own are. A label the pod does not have says nothing; one the API
    /// server wrote into the selector before is said twice, which changes nothing.
    fn compare(&self, selector: &mut Selector, operator: Operator, keys: Option<&Vec<String>>) {
        let own = keys.into_iter().flatten().filter_map(|key| Some((key, self.labels.get(key)?)));
        selector.requirements.extend(own.map(|(key, value)| demand(key, operator, vec![value.clone()])));
    }
}

/// A selector as the engine knows it. An operator nobody knows is a bound without a number, which chooses nothing.
pub(crate) fn selector(selector: &LabelSelector) -> Selector {
    let labels = selector.match_labels.iter().flatten();
    let equal = labels.map(|(label, value)| demand(label, Operator::In, vec![value.clone()]));
    let expressions = selector.match_expressions.iter().flatten().map(|expression| match expression.operator.parse() {
        Ok(operator) => demand(&expression.key, operator, expression.values.clone().unwrap_or_default()),
        Err(_) => demand(&expression.key, Operator::Gt, Vec::new()),
    });
    Selector { requirements: equal.chain(expressions).collect() }
}

/// A demand on one label.
pub(crate) fn demand(label: &str, operator: Operator, values: Vec<String>) -> WrittenRequirement {
    WrittenRequirement { label: label.to_owned(), operator, values, min_values: None }
}
