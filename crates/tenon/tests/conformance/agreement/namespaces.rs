//! Terms of pods that choose namespaces by label, with the namespaces by name.
//!
//! kube-scheduler 1.36.3 reads the selector of a pod's own required terms wrongly: it adds the namespaces that are chosen, and then
//! asks the selector again, of no labels at all. One with `NotIn` or `DoesNotExist` so stands for every namespace.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};

use super::scenario::{list, text};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// A namespace that no scenario has, for a selector that chooses none: an empty list would mean the pod's own.
const NOWHERE: &str = "no-namespace";

/// Writes into all pods which namespaces their required terms mean.
pub(super) fn name_all(items: &mut [Value]) -> anyhow::Result<()> {
    let known: Vec<(String, BTreeMap<String, String>)> = items
        .iter()
        .filter(|item| item["kind"] == "Namespace")
        .map(|found| {
            let labels = serde_json::from_value(found["metadata"]["labels"].clone()).unwrap_or_default();
            (text(&found["metadata"]["name"]), labels)
        })
        .collect();
    for pod in items.iter_mut().filter(|item| item["kind"] == "Pod") {
        for kind in ["podAffinity", "podAntiAffinity"] {
            let terms = pod.pointer_mut(&format!("/spec/affinity/{kind}/{REQUIRED}")).and_then(Value::as_array_mut);
            for term in terms.into_iter().flatten() {
                name(term, &known)?;
            }
        }
    }
    Ok(())
}

fn name(term: &mut Value, known: &[(String, BTreeMap<String, String>)]) -> anyhow::Result<()> {
    let selector: LabelSelector = match &term["namespaceSelector"] {
        Value::Null => return Ok(()),
        selector => serde_json::from_value(selector.clone())?,
    };
    if selector == LabelSelector::default() {
        return Ok(());
    }
    let chosen = known.iter().filter(|(_, labels)| chooses(&selector, labels)).map(|(name, _)| json!(name));
    let mut names: Vec<Value> = list(&term["namespaces"]).into_iter().chain(chosen).collect();
    if names.is_empty() {
        names.push(json!(NOWHERE));
    }
    term["namespaces"] = json!(names);
    term.as_object_mut().into_iter().for_each(|term| drop(term.remove("namespaceSelector")));
    Ok(())
}

fn chooses(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let named = selector.match_labels.iter().flatten().all(|(label, value)| labels.get(label) == Some(value));
    let expressed = selector.match_expressions.iter().flatten().all(|asked| {
        let has = |value: &String| asked.values.iter().flatten().any(|listed| listed == value);
        let found = labels.get(&asked.key);
        match asked.operator.as_str() {
            "In" => found.is_some_and(has),
            "NotIn" => !found.is_some_and(has),
            "Exists" => found.is_some(),
            _ => found.is_none(),
        }
    });
    named && expressed
}
