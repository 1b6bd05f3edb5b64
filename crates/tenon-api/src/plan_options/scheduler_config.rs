//! Spread constraints for pods that have none: the part of a scheduler's configuration that changes a plan.

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use serde::Deserialize;
use serde_json::Value;
use tenon_model::label_text::key_faults;

use super::{PlanOptions, yaml_options};
use crate::yaml_words;

/// The document. A field nobody knows is an error, as it is for the controller at its start.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct SchedulerConfig {
    pod_topology_spread: Spread,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Spread {
    default_constraints: Vec<Constraint>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Constraint {
    max_skew: i32,
    topology_key: String,
    when_unsatisfiable: String,
    #[serde(default)]
    min_domains: Option<i32>,
    #[serde(default)]
    node_affinity_policy: Option<String>,
    #[serde(default)]
    node_taints_policy: Option<String>,
    #[serde(default)]
    label_selector: Option<Value>,
    #[serde(default)]
    match_label_keys: Option<Vec<String>>,
}

/// Takes the constraints from a document, or from its text.
pub(super) fn apply(options: &mut PlanOptions, value: &Value) -> Result<(), String> {
    let config = match value {
        Value::String(text) if text.trim().is_empty() => SchedulerConfig::default(),
        Value::String(text) => {
            serde_saphyr::from_str_with_options(text, yaml_options()).map_err(|error| yaml_words::words(&error))?
        }
        other => serde_json::from_value(other.clone()).map_err(|error| error.to_string())?,
    };
    let mut found: Vec<TopologySpreadConstraint> = Vec::new();
    for (index, constraint) in config.pod_topology_spread.default_constraints.into_iter().enumerate() {
        let fail = |why: String| format!("podTopologySpread.defaultConstraints[{index}].{why}");
        let constraint = checked(constraint).map_err(fail)?;
        let is_same = |other: &TopologySpreadConstraint| {
            other.topology_key == constraint.topology_key && other.when_unsatisfiable == constraint.when_unsatisfiable
        };
        if found.iter().any(is_same) {
            return Err(fail("topologyKey: another constraint has the same key and whenUnsatisfiable".to_owned()));
        }
        found.push(constraint);
    }
    options.default_spread = found;
    Ok(())
}

fn checked(constraint: Constraint) -> Result<TopologySpreadConstraint, String> {
    if constraint.max_skew <= 0 {
        return Err(format!("maxSkew: {} is not greater than 0", constraint.max_skew));
    }
    if let Some(why) = key_faults(&constraint.topology_key).into_iter().next() {
        return Err(format!("topologyKey: {why}"));
    }
    if !["DoNotSchedule", "ScheduleAnyway"].contains(&constraint.when_unsatisfiable.as_str()) {
        let word = constraint.when_unsatisfiable;
        return Err(format!("whenUnsatisfiable: `{word}` is neither DoNotSchedule nor ScheduleAnyway"));
    }
    if constraint.label_selector.is_some() {
        return Err("labelSelector: must not be set; it is derived from the pod's services and owner".to_owned());
    }
    if constraint.match_label_keys.is_some_and(|keys| !keys.is_empty()) {
        return Err("matchLabelKeys: must not be set here".to_owned());
    }
    Ok(TopologySpreadConstraint {
        label_selector: None,
        match_label_keys: None,
        max_skew: constraint.max_skew,
        min_domains: constraint.min_domains,
        node_affinity_policy: constraint.node_affinity_policy,
        node_taints_policy: constraint.node_taints_policy,
        topology_key: constraint.topology_key,
        when_unsatisfiable: constraint.when_unsatisfiable,
    })
}

#[cfg(test)]
mod tests {
    use super::super::read;

    const GOOD: &str = "{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}";

    fn document(constraints: &str) -> String {
        format!("schedulerConfig: {{podTopologySpread: {{defaultConstraints: [{constraints}]}}}}")
    }

    #[test]
    fn constraints_are_read_from_a_document_and_from_its_text() {
        let text = format!("SCHEDULER_CONFIG: |\n  podTopologySpread:\n    defaultConstraints:\n    - {GOOD}\n");
        for text in [document(GOOD), text] {
            let spread = read(&text).unwrap().default_spread;
            assert_eq!((spread.len(), spread[0].max_skew, spread[0].topology_key.as_str()), (1, 1, "zone"), "{text}");
        }
        assert!(read("schedulerConfig: \"\"").unwrap().default_spread.is_empty());
    }

    #[test]
    fn what_a_controller_would_not_start_with_is_refused() {
        for (text, words) in [
            (document(&GOOD.replace("maxSkew: 1", "maxSkew: 0")), "defaultConstraints[0].maxSkew: 0 is not greater"),
            (document(&GOOD.replace("zone", "z/o/n")), "topologyKey"),
            (document(&GOOD.replace("ScheduleAnyway", "Never")), "`Never` is neither"),
            (document(&GOOD.replace("{", "{labelSelector: {}, ")), "labelSelector"),
            (document(&GOOD.replace("{", "{matchLabelKeys: [a], ")), "matchLabelKeys"),
            (document(&GOOD.replace("{", "{fly: 1, ")), "unknown field `fly`"),
            (document(&format!("{GOOD}, {GOOD}")), "[1].topologyKey: another constraint"),
            ("schedulerConfig: {profiles: []}".to_owned(), "unknown field `profiles`"),
            ("schedulerConfig: 3".to_owned(), "invalid type"),
        ] {
            let said = read(&text).unwrap_err().to_string();
            assert!(said.contains(words) && said.contains("schedulerConfig"), "{text}: {said}");
        }
    }
}
