//! DaemonSets: the small programs that every machine runs.

use serde_json::{Value, json};

use super::super::dice::Dice;
use super::{ARCH, CAPACITY, DEDICATED, OS, Place, ZONE, uid};

const NAMES: [&str; 5] = ["node-exporter", "log-agent", "cilium", "csi-node", "backup-agent"];

/// A program on every machine.
pub(super) struct Daemon {
    name: &'static str,
    uid: String,
    spec: Value,
    /// Whether it also runs on tainted machines.
    tolerant: bool,
    /// Whether it runs only on some machines.
    choosy: bool,
    /// Millicores and MiB.
    pub(super) needs: (u64, u64),
}

/// None to three of them.
pub(super) fn generate(dice: &mut Dice, place: &Place) -> Vec<Daemon> {
    let mut names = NAMES.to_vec();
    let count = dice.below(4);
    let mut daemons = Vec::new();
    for _ in 0..count {
        let at = usize::try_from(dice.below(names.len() as u64)).unwrap_or(0);
        let name = names.remove(at);
        daemons.push(daemon(dice, place, name));
    }
    daemons
}

fn daemon(dice: &mut Dice, place: &Place, name: &'static str) -> Daemon {
    let needs = (dice.between(1, 20) * 10, dice.between(1, 16) * 16);
    let (cpu, memory) = (format!("{}m", needs.0), format!("{}Mi", needs.1));
    let mut container = json!({
        "name": name,
        "image": format!("registry.example/{name}:1"),
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    });
    if name == "node-exporter" && dice.chance(60) {
        container["ports"] = json!([{"containerPort": 9100, "hostPort": 9100, "protocol": "TCP"}]);
    }
    let tolerant = dice.chance(50);
    let mut spec = json!({"containers": [container]});
    if tolerant {
        spec["tolerations"] = json!([{"operator": "Exists"}]);
    } else if dice.chance(40) {
        spec["tolerations"] = json!([{"key": DEDICATED, "operator": "Exists", "effect": "NoSchedule"}]);
    }
    let choosy = dice.chance(35);
    if choosy {
        let term = json!({"matchExpressions": [expression(dice, place)]});
        spec["affinity"] =
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}});
    } else if dice.chance(25) {
        spec["nodeSelector"] = json!({OS: "linux"});
    }
    Daemon { name, uid: uid(dice), spec, tolerant, choosy, needs }
}

/// The one thing that a choosy daemon asks of a machine.
fn expression(dice: &mut Dice, place: &Place) -> Value {
    match dice.below(3) {
        0 => json!({"key": ARCH, "operator": "In", "values": [dice.pick(&["amd64", "arm64"])]}),
        1 => json!({"key": CAPACITY, "operator": dice.pick(&["In", "NotIn"]), "values": ["spot"]}),
        _ => json!({"key": ZONE, "operator": "In", "values": dice.some(&place.zones, 1)}),
    }
}

impl Daemon {
    /// Whether it surely runs on a machine, tainted or not.
    pub(super) fn runs(&self, tainted: bool) -> bool {
        !self.choosy && (self.tolerant || !tainted)
    }

    fn labels(&self) -> Value {
        json!({"app": self.name})
    }

    /// Its pod on a machine.
    pub(super) fn pod(&self, dice: &mut Dice, node: &str) -> Value {
        let owner = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "name": self.name, "uid": self.uid,
            "controller": true, "blockOwnerDeletion": true,
        });
        let mut spec = self.spec.clone();
        spec["nodeName"] = json!(node);
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": format!("{}-{node}", self.name), "namespace": "kube-system", "uid": uid(dice),
                "labels": self.labels(), "ownerReferences": [owner],
            },
            "spec": spec,
            "status": {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]},
        })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": self.name, "namespace": "kube-system", "uid": self.uid},
            "spec": {
                "selector": {"matchLabels": self.labels()},
                "template": {"metadata": {"labels": self.labels()}, "spec": self.spec},
            },
        })
    }
}
