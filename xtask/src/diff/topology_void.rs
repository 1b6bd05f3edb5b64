//! Which scenarios say nothing, because Karpenter v1.15.0 counts pods by domain wrongly there.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::scenario::{Scenario, sorted};
use super::void::{key, list};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Why a plan that leaves out pods which Karpenter places says nothing: kube-scheduler never binds them.
pub(super) const EACH_TERM_ALONE: &str =
    "of several required terms of pod affinity it looks at each alone, where only pods that match all of them count";

/// Whether several required terms of pod affinity choose different pods.
pub(super) fn has_terms_to_match_together(spec: &Value) -> bool {
    let choices: BTreeSet<String> = list(&spec["affinity"]["podAffinity"][REQUIRED])
        .iter()
        .map(|term| {
            let mut choice = sorted(term);
            choice.as_object_mut().map(|fields| fields.remove("topologyKey"));
            choice.to_string()
        })
        .collect();
    choices.len() > 1
}

/// Why a comparison of constraints on topology would be void.
pub(super) fn reason(scenario: &Scenario, pods: &[&Value], pools: &[&Value]) -> Option<&'static str> {
    let constraints: Vec<&Value> = pods.iter().flat_map(|pod| constraints(&pod["spec"])).collect();
    let labels: BTreeSet<&str> = constraints.iter().filter_map(|one| one["topologyKey"].as_str()).collect();
    if labels.iter().any(|label| pools.iter().any(|pool| excludes(pool, label)) && !is_always_said(scenario, label)) {
        return Some("it takes a value that a NodePool excludes for a domain that pods could be in");
    }
    let runs = pods.iter().any(|pod| !pod["spec"]["nodeName"].is_null());
    if runs && constraints.iter().any(|one| one["labelSelector"].is_null()) {
        return Some("without a selector it counts every pod that runs, and afterwards none");
    }
    if differ_in_min_domains(pods) {
        return Some("of spreads that differ only in minDomains, the first that it sees decides for all");
    }
    None
}

/// Spreads and terms of a pod.
pub(super) fn constraints(spec: &Value) -> Vec<&Value> {
    let mut all: Vec<&Value> = list(&spec["topologySpreadConstraints"]).iter().collect();
    for kind in ["podAffinity", "podAntiAffinity"] {
        let terms = &spec["affinity"][kind];
        all.extend(list(&terms[REQUIRED]));
        all.extend(list(&terms[PREFERRED]).iter().map(|wish| &wish["podAffinityTerm"]));
    }
    all
}

fn excludes(pool: &Value, label: &str) -> bool {
    list(&pool["spec"]["template"]["spec"]["requirements"])
        .iter()
        .any(|one| key(one) == label && one["operator"] == "NotIn")
}

/// Whether every instance type lists its values of a label.
fn is_always_said(scenario: &Scenario, label: &str) -> bool {
    let says =
        |size: &Value| list(&size["requirements"]).iter().any(|one| key(one) == label && one["operator"] == "In");
    list(&scenario.types).iter().all(says)
}

fn differ_in_min_domains(pods: &[&Value]) -> bool {
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    pods.iter().any(|pod| {
        list(&pod["spec"]["topologySpreadConstraints"]).iter().any(|spread| {
            let mut rest = sorted(spread);
            let least = rest.as_object_mut().and_then(|fields| fields.remove("minDomains")).unwrap_or(Value::Null);
            // Strictness is not part of what pods are counted by.
            rest.as_object_mut().and_then(|fields| fields.remove("whenUnsatisfiable"));
            let place = format!("{} {rest}", pod["metadata"]["namespace"]);
            *known.entry(place).or_insert_with(|| least.clone()) != least
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reason_of(pods: &[Value], pools: &[Value]) -> Option<&'static str> {
        let scenario = Scenario { objects: json!({}), types: json!([{"name": "a"}]), options: None };
        reason(&scenario, &pods.iter().collect::<Vec<_>>(), &pools.iter().collect::<Vec<_>>())
    }

    fn pod(spread: &Value) -> Value {
        json!({"spec": {"topologySpreadConstraints": [spread]}})
    }

    #[test]
    fn a_value_that_a_pool_excludes_is_no_domain() {
        let requirements = json!([{"key": "rack", "operator": "NotIn", "values": ["1"]}]);
        let pool = json!({"spec": {"template": {"spec": {"requirements": requirements}}}});
        let on = |label: &str| pod(&json!({"topologyKey": label, "labelSelector": {}}));
        assert!(reason_of(&[on("rack")], std::slice::from_ref(&pool)).is_some());
        assert_eq!(reason_of(&[on("zone")], &[pool]), None);
    }

    #[test]
    fn a_constraint_without_a_selector_is_void_only_where_pods_run() {
        let runs = json!({"spec": {"nodeName": "a"}});
        let open = pod(&json!({"topologyKey": "zone"}));
        assert_eq!(reason_of(std::slice::from_ref(&open), &[]), None);
        assert!(reason_of(&[open, runs], &[]).is_some());
    }

    #[test]
    fn spreads_that_differ_only_in_min_domains_are_void() {
        let least = |number: u32| pod(&json!({"topologyKey": "zone", "labelSelector": {}, "minDomains": number}));
        assert!(reason_of(&[least(1), least(2)], &[]).is_some());
        assert_eq!(reason_of(&[least(2), least(2)], &[]), None);
    }
}
