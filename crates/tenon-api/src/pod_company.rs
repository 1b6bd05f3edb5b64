//! Whose company a pod wants or avoids, and how evenly it is spread.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PodAffinityTerm, PodSpec, TopologySpreadConstraint, WeightedPodAffinityTerm};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use tenon_model::{
    Company, Demand, NamespaceChoice, Operator, PreferredCompany, Selector, Spread, UseNodes, WhenUnsatisfiable,
};

/// The pod that asks: terms speak of its labels and its namespace.
pub(crate) struct Asker<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) labels: &'a BTreeMap<String, String>,
}

/// Pods to be with and not to be with, required and wished for.
#[derive(Default)]
pub(crate) struct Companies {
    pub(crate) near: Vec<Company>,
    pub(crate) apart: Vec<Company>,
    pub(crate) preferred_near: Vec<PreferredCompany>,
    pub(crate) preferred_apart: Vec<PreferredCompany>,
}

impl Asker<'_> {
    pub(crate) fn companies(&self, spec: &PodSpec) -> Companies {
        let Some(affinity) = &spec.affinity else { return Companies::default() };
        let (mut near, mut preferred_near) = (Vec::new(), Vec::new());
        if let Some(wanted) = &affinity.pod_affinity {
            near = self.required(wanted.required_during_scheduling_ignored_during_execution.as_ref());
            preferred_near = self.wished(wanted.preferred_during_scheduling_ignored_during_execution.as_ref());
        }
        let (mut apart, mut preferred_apart) = (Vec::new(), Vec::new());
        if let Some(avoided) = &affinity.pod_anti_affinity {
            apart = self.required(avoided.required_during_scheduling_ignored_during_execution.as_ref());
            preferred_apart = self.wished(avoided.preferred_during_scheduling_ignored_during_execution.as_ref());
        }
        Companies { near, apart, preferred_near, preferred_apart }
    }

    pub(crate) fn spreads(&self, spec: &PodSpec) -> Vec<Spread> {
        spec.topology_spread_constraints.iter().flatten().map(|constraint| self.spread(constraint)).collect()
    }

    fn required(&self, terms: Option<&Vec<PodAffinityTerm>>) -> Vec<Company> {
        terms.into_iter().flatten().map(|term| self.company(term)).collect()
    }

    fn wished(&self, terms: Option<&Vec<WeightedPodAffinityTerm>>) -> Vec<PreferredCompany> {
        let wish = |term: &WeightedPodAffinityTerm| PreferredCompany {
            weight: term.weight,
            company: self.company(&term.pod_affinity_term),
        };
        terms.into_iter().flatten().map(wish).collect()
    }

    fn company(&self, term: &PodAffinityTerm) -> Company {
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
        Company { label: term.topology_key.clone(), selector, namespaces }
    }

    fn spread(&self, constraint: &TopologySpreadConstraint) -> Spread {
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
        selector.demands.extend(own.map(|(key, value)| demand(key, operator, vec![value.clone()])));
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
    Selector { demands: equal.chain(expressions).collect() }
}

fn demand(label: &str, operator: Operator, values: Vec<String>) -> Demand {
    Demand { label: label.to_owned(), operator, values, min_values: None }
}
