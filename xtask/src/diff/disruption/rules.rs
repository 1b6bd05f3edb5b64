//! Which rule of ours makes a run dearer than Karpenter's, move more pods, or do something else first? Proven by playing the scenario
//! again without what the rule is about: if that is right, the rule is the reason. The rules stand in `docs/reference/differences.md`.

use std::path::Path;

use serde_json::{Value, json};

use super::judge::judge;
use super::report::Run;
use super::{Folders, scene};
use crate::diff::programs::{Karpenter, Tenon};

/// A rule by its name in the documentation, and the objects without what it is about.
struct Rule {
    name: &'static str,
    without: fn(&mut Value) -> bool,
}

const RULES: [Rule; 1] = [Rule { name: "Cost of moving a pod of a Job", without: without_jobs }];

/// The two programs, and a place for files.
#[derive(Clone, Copy)]
pub(super) struct Players<'p> {
    pub(super) tenon: &'p Tenon,
    pub(super) karpenter: &'p Karpenter,
    pub(super) scratch: &'p Path,
}

impl Players<'_> {
    /// The rule that makes our run of a seed what it is, if there is one.
    pub(super) fn rule(self, seed: u64, theirs: &[Run]) -> anyhow::Result<Option<&'static str>> {
        for (number, rule) in RULES.iter().enumerate() {
            let mut scenario = scene::generate(seed);
            if !(rule.without)(&mut scenario.objects) {
                continue;
            }
            let folders = Folders::new(&self.scratch.join(format!("{seed}-{number}")))?;
            let folder = folders.scenarios.join(seed.to_string());
            scenario.write(&folder)?;
            self.tenon.play(&folder, &folders.ours_of(seed))?;
            self.karpenter.check_all(&folders)?;
            let (ours, checked) = (folders.our_run(seed)?, folders.checked_of(seed)?);
            if judge(&ours, theirs, checked.first()).faults.is_empty() {
                return Ok(Some(rule.name));
            }
        }
        Ok(None)
    }
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
