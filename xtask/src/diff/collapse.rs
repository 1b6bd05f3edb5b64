//! Where several demands of one pod on a label come to mean that it may be absent, and something lacks it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::scenario::Scenario;
use super::vocabulary::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, ZONE, canonical};
use super::void::{key, list, preferred_terms, required_terms};

/// Whether a pod's demands, or a daemon's, collapse on a label that a node may lack.
pub(super) fn happens(scenario: &Scenario, pods: &[&Value], existing: &[&Value]) -> bool {
    let has_wishes = scenario.options.as_ref().is_none_or(|options| options["preferencePolicy"] != "Ignore");
    let mut labels = BTreeSet::new();
    for pod in pods {
        let spec = &pod["spec"];
        let wishes = if has_wishes { preferred_terms(spec) } else { Vec::new() };
        labels.extend(collapsed(&spec["nodeSelector"], required_terms(spec), &wishes));
    }
    let sets = list(&scenario.objects["items"]).iter().filter(|item| item["kind"] == "DaemonSet");
    for set in sets {
        // A live pod stands for its set, but with the affinity of the set's template.
        let template = &set["spec"]["template"]["spec"];
        let is_owned = |pod: &&&Value| pod["metadata"]["labels"]["daemon"] == set["metadata"]["name"];
        let live = pods.iter().filter(is_owned).map(|pod| &pod["spec"]["nodeSelector"]);
        for selector in live.chain([&template["nodeSelector"]]) {
            labels.extend(collapsed(selector, required_terms(template), &[]));
        }
    }
    labels.iter().any(|label| may_be_absent(label, scenario, existing))
}

/// The labels on which the demands that count at one time collapse.
fn collapsed(selector: &Value, required: &[Value], preferred: &[&Value]) -> BTreeSet<String> {
    let chosen = selector.as_object().into_iter().flatten();
    let chosen: Vec<Value> =
        chosen.map(|(label, value)| json!({"key": label, "operator": "In", "values": [value]})).collect();
    let none = Value::Null;
    let required = if required.is_empty() { std::slice::from_ref(&none) } else { required };
    let mut labels = BTreeSet::new();
    for need in required {
        for wish in preferred.iter().copied().chain([&none]) {
            let expressions = list(&need["matchExpressions"]).iter().chain(list(&wish["matchExpressions"]));
            let all: Vec<&Value> = chosen.iter().chain(expressions).collect();
            let keys: BTreeSet<&str> = all.iter().map(|one| key(one)).collect();
            let collapses =
                |label: &&str| do_collapse(&all.iter().copied().filter(|one| key(one) == *label).collect::<Vec<_>>());
            labels.extend(keys.into_iter().filter(collapses).map(str::to_owned));
        }
    }
    labels
}

/// Whether demands on one label, of which one needs it, are together met by its absence.
fn do_collapse(demands: &[&Value]) -> bool {
    let of = |operator: &'static str| demands.iter().filter(move |one| one["operator"] == operator);
    let number = |one: &&Value| one["values"][0].as_str().and_then(|text| text.parse::<i64>().ok());
    let least = of("Gt").filter_map(number).max().map_or(i64::MIN, |bound| bound.saturating_add(1));
    let most = of("Lt").filter_map(number).min().map_or(i64::MAX, |bound| bound.saturating_sub(1));
    let has_bounds = least > i64::MIN || most < i64::MAX;
    let is_within =
        |value: &str| !has_bounds || value.parse().is_ok_and(|number: i64| (least..=most).contains(&number));
    let is_denied = |value: &str| of("NotIn").any(|one| list(&one["values"]).iter().any(|denied| denied == value));
    let are_needed = ["In", "Exists", "Gt", "Lt"].iter().any(|operator| of(operator).next().is_some());
    if !are_needed || demands.len() < 2 {
        return false;
    }
    if of("DoesNotExist").next().is_some() || least > most {
        return true;
    }
    if let Some(first) = of("In").next() {
        let is_in_all = |value: &&Value| of("In").all(|one| list(&one["values"]).contains(value));
        let common = list(&first["values"]).iter().filter(is_in_all).filter_map(Value::as_str);
        return !common.into_iter().any(|value| is_within(value) && !is_denied(value));
    }
    of("NotIn").flat_map(|one| list(&one["values"])).filter_map(Value::as_str).any(is_within)
}

/// Whether a node that is there lacks the label, or a new one may.
fn may_be_absent(label: &str, scenario: &Scenario, existing: &[&Value]) -> bool {
    if existing.iter().any(|object| object["metadata"]["labels"][label].is_null()) {
        return true;
    }
    // Every offering has a zone and a capacity type, every size its name, and one that says nothing has the usual system.
    let says = |one: &Value| key(one) == label && one["operator"] == "In";
    let is_said = |size: &Value| match &size["requirements"] {
        Value::Null => [ARCH, OS].contains(&label),
        said => list(said).iter().any(says),
    };
    if [ZONE, CAPACITY_TYPE, INSTANCE_TYPE].contains(&label) || list(&scenario.types).iter().all(is_said) {
        return false;
    }
    let mut pools = list(&scenario.objects["items"]).iter().filter(|item| item["kind"] == "NodePool");
    pools.any(|pool| {
        let template = &pool["spec"]["template"];
        let mut labels = template["metadata"]["labels"].as_object().into_iter().flatten();
        let needs = |one: &Value| key(one) == label && one["operator"] != "NotIn" && one["operator"] != "DoesNotExist";
        !labels.any(|(name, _)| canonical(name) == label) && !list(&template["spec"]["requirements"]).iter().any(needs)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(operator: &str, values: &[&str]) -> Value {
        json!({"key": "k", "operator": operator, "values": values})
    }

    fn collapse(demands: &[Value]) -> bool {
        do_collapse(&demands.iter().collect::<Vec<_>>())
    }

    #[test]
    fn demands_collapse_when_nothing_or_only_exclusions_are_left_of_a_needed_label() {
        assert!(collapse(&[demand("Exists", &[]), demand("NotIn", &["a"])]));
        assert!(collapse(&[demand("In", &["a"]), demand("In", &["b"])]));
        assert!(collapse(&[demand("In", &["a"]), demand("DoesNotExist", &[])]));
        assert!(collapse(&[demand("In", &["2"]), demand("Gt", &["2"])]));
        assert!(collapse(&[demand("Gt", &["2"]), demand("Lt", &["3"])]));
        assert!(collapse(&[demand("Gt", &["2"]), demand("NotIn", &["4"])]));
    }

    #[test]
    fn demands_that_leave_a_value_do_not_collapse() {
        assert!(!collapse(&[demand("In", &["a", "b"]), demand("NotIn", &["a"])]));
        assert!(!collapse(&[demand("In", &["3"]), demand("Gt", &["2"])]));
        assert!(!collapse(&[demand("Gt", &["2"]), demand("Lt", &["4"])]));
        assert!(!collapse(&[demand("Gt", &["2"]), demand("NotIn", &["1"])]), "it is excluded already");
        assert!(!collapse(&[demand("NotIn", &["a"]), demand("DoesNotExist", &[])]), "nobody needs it");
    }

    #[test]
    fn a_selector_and_a_term_against_it_are_void_only_where_a_node_may_lack_the_label() {
        let term = json!({"nodeSelectorTerms": [{"matchExpressions": [demand("In", &["b"])]}]});
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}});
        let pod = json!({"kind": "Pod", "spec": {"nodeSelector": {"k": "a"}, "affinity": affinity}});
        let void = |labels: Value| {
            let pool = json!({"kind": "NodePool", "spec": {"template": {"metadata": {"labels": labels}}}});
            let types = json!([{"name": "one"}]);
            let scenario = Scenario { objects: json!({"items": [pool, pod]}), types, options: None };
            happens(&scenario, &[&pod], &[])
        };
        assert!(void(json!({})));
        assert!(!void(json!({"k": "a"})));
    }

    #[test]
    fn a_term_does_not_collapse_with_another_term() {
        let terms = [demand("Exists", &[]), demand("NotIn", &["a"])].map(|one| json!({"matchExpressions": [one]}));
        assert!(collapsed(&Value::Null, &terms, &[]).is_empty());
        assert_eq!(collapsed(&Value::Null, &terms[..1], &[&terms[1]]).len(), 1, "with a wish it does");
    }
}
