//! Which rule of ours makes a run dearer, or move more, than Karpenter's? Proven by playing the scenario again without what the rule is
//! about: if that is right, the rule is the reason. The rules stand in `docs/reference/differences.md`.

use std::path::Path;

use serde_json::{Value, json};

use super::super::scenario::Scenario;
use super::judge::judge;
use super::report::{Report, Run, read};
use crate::diff::programs::Tenon;

/// A rule by its name in the documentation, and the objects without what it is about.
struct Rule {
    name: &'static str,
    without: fn(&mut Value) -> bool,
}

const RULES: [Rule; 1] = [Rule { name: "Cost of moving a pod of a Job", without: without_jobs }];

/// The rule that makes our run what it is, if there is one.
pub(super) fn excusing(
    tenon: &Tenon,
    scenario: &Scenario,
    theirs: &[Run],
    scratch: &Path,
) -> anyhow::Result<Option<&'static str>> {
    for rule in RULES {
        let mut other = scenario.clone();
        if !(rule.without)(&mut other.objects) {
            continue;
        }
        other.write(scratch)?;
        let played = scratch.join("played.json");
        tenon.play(scratch, &played)?;
        if judge(&read::<Report>(&played)?.run(), theirs, None).faults.is_empty() {
            return Ok(Some(rule.name));
        }
    }
    Ok(None)
}

/// Pods of Jobs become pods of a ReplicaSet. Whether there are any.
fn without_jobs(objects: &mut Value) -> bool {
    let items = objects.get_mut("items").and_then(Value::as_array_mut);
    let mut are_any = false;
    for item in items.into_iter().flatten() {
        let owners = item.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
        for owner in owners.into_iter().flatten().filter(|owner| owner["kind"] == "Job") {
            owner["kind"] = json!("ReplicaSet");
            owner["apiVersion"] = json!("apps/v1");
            are_any = true;
        }
    }
    are_any
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_of_jobs_become_others_and_what_has_none_stays() {
        let pod =
            |kind: &str| json!({"kind": "Pod", "metadata": {"ownerReferences": [{"apiVersion": "x", "kind": kind}]}});
        let mut objects = json!({"items": [pod("Job"), pod("StatefulSet"), {"kind": "Node", "metadata": {}}]});
        assert!(without_jobs(&mut objects));
        assert_eq!(objects["items"][0]["metadata"]["ownerReferences"][0]["kind"], "ReplicaSet");
        assert_eq!(objects["items"][1], pod("StatefulSet"));
        assert!(!without_jobs(&mut objects), "nothing is left");
    }
}
