//! The DaemonSets of a scenario.

use serde_json::{Value, json};

use super::dice::Dice;
use super::pods::{port, resources, tolerations};
use super::vocabulary::Vocabulary;

/// A DaemonSet, with the spec its pods are made from.
#[derive(Debug, Clone)]
pub(super) struct Daemon {
    name: String,
    spec: Value,
}

pub(super) fn generate(dice: &mut Dice, words: &Vocabulary) -> Vec<Daemon> {
    let count = dice.below(4);
    (0..count).map(|index| Daemon { name: format!("daemon-{index}"), spec: spec(dice, words) }).collect()
}

fn spec(dice: &mut Dice, words: &Vocabulary) -> Value {
    let mut container =
        json!({"name": "main", "resources": resources(dice, &["50m", "100m", "300m"], &["50Mi", "100Mi", "400Mi"])});
    if dice.chance(15) {
        container["ports"] = json!([port(dice)]);
    }
    // A device that many sizes lack; on a node without it, the daemon counts all the same.
    if dice.chance(4) {
        container["resources"]["limits"]["example.com/gpu"] = json!("1");
    }
    let mut spec = json!({"containers": [container]});
    let tolerations = if dice.chance(40) { vec![json!({"operator": "Exists"})] } else { tolerations(dice) };
    if !tolerations.is_empty() {
        spec["tolerations"] = json!(tolerations);
    }
    let mut used = Vec::new();
    if dice.chance(15)
        && let Some(key) = words.free_key(dice, &used)
    {
        spec["nodeSelector"] = json!({key.name.clone(): dice.pick(&key.values)});
        used.push(key.name);
    } else if dice.chance(8) {
        spec["nodeSelector"] = json!({"karpenter.sh/initialized": "true"});
    }
    // One term: of several, Karpenter loses some while it walks the types.
    if dice.chance(20) {
        let expressions = words.expressions(dice, 2, &mut used);
        if !expressions.is_empty() {
            spec["affinity"] = required(&json!({"matchExpressions": expressions}));
        }
    }
    spec
}

fn required(term: &Value) -> Value {
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}})
}

impl Daemon {
    /// The object.
    pub(super) fn to_json(&self) -> Value {
        let labels = json!({"daemon": self.name});
        json!({
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": self.name, "namespace": "kube-system"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": self.spec},
            },
        })
    }

    /// Its pod on a node, tied to the node as the DaemonSet's controller does it. It may be from before a change of the
    /// DaemonSet, or of one that is gone.
    pub(super) fn pod_on(&self, dice: &mut Dice, words: &Vocabulary, node: &str) -> Value {
        let mut spec = if dice.chance(12) { spec(dice, words) } else { self.spec.clone() };
        if dice.chance(12) {
            spec["containers"][0]["resources"] = resources(dice, &["20m", "600m"], &["20Mi", "800Mi"]);
        }
        spec["nodeName"] = json!(node);
        spec["affinity"] =
            required(&json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}));
        let owner = if dice.chance(6) { "gone" } else { &self.name };
        let mut metadata = json!({
            "name": format!("{}-{node}", self.name),
            "namespace": "kube-system",
            "labels": {"daemon": self.name},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": owner,
                "uid": format!("kube-system/{owner}"), "controller": true, "blockOwnerDeletion": true}],
        });
        if dice.chance(40) {
            metadata["creationTimestamp"] = json!(format!("2026-01-01T00:00:{:02}Z", dice.below(60)));
        }
        let status = json!({"phase": "Running"});
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status})
    }
}
