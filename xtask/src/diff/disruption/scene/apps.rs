//! What runs in the cluster, and what does it ask for?

use serde_json::{Value, json};

use super::super::super::dice::Dice;
use super::{CAPACITY, DEDICATED, HOST, ZONE};

/// What pods belong to; most to a ReplicaSet.
const OWNERS: [&str; 5] = ["ReplicaSet", "ReplicaSet", "ReplicaSet", "StatefulSet", "Job"];

/// Pods that are alike.
pub(super) struct App {
    pub(super) name: String,
    pub(super) cpu: u64,
    pub(super) memory: u64,
    pub(super) tolerates: bool,
    pub(super) keeps_apart: bool,
    pub(super) zone: Option<&'static str>,
    pub(super) capacity: Option<&'static str>,
    /// How many pods wait for a node.
    pub(super) pending: u64,
    spreads: bool,
    owner: &'static str,
    notes: Value,
    allowed: Option<u64>,
}

pub(super) fn generate(dice: &mut Dice, zones: &[&'static str]) -> Vec<App> {
    let count = dice.between(3, 7);
    let is_waited_for = dice.chance(25);
    (0..count).map(|index| app(dice, zones, (index, is_waited_for))).collect()
}

fn app(dice: &mut Dice, zones: &[&'static str], (index, is_waited_for): (u64, bool)) -> App {
    let notes = match dice.below(20) {
        0 => json!({"karpenter.sh/do-not-disrupt": "true"}),
        1 => json!({"controller.kubernetes.io/pod-deletion-cost": "-2147483647"}),
        2 => json!({"controller.kubernetes.io/pod-deletion-cost": "500000000"}),
        _ => json!({}),
    };
    App {
        name: format!("app-{index}"),
        cpu: *dice.pick(&[100, 250, 500, 500, 1000, 1500, 3000]),
        memory: *dice.pick(&[128, 256, 512, 1024, 2048, 4096]),
        tolerates: dice.chance(25),
        keeps_apart: dice.chance(12),
        zone: dice.chance(8).then(|| *dice.pick(zones)),
        capacity: dice.chance(8).then_some("on-demand"),
        pending: if is_waited_for && dice.chance(30) { dice.between(1, 2) } else { 0 },
        spreads: dice.chance(15),
        owner: OWNERS[usize::try_from(dice.below(OWNERS.len() as u64)).unwrap_or(0)],
        notes,
        allowed: dice.chance(20).then(|| *dice.pick(&[0, 1, 1, 1, 5])),
    }
}

impl App {
    /// One of its pods, on a node or waiting for one.
    pub(super) fn pod(&self, name: &str, node: Option<&str>) -> Value {
        let requests = json!({"cpu": format!("{}m", self.cpu), "memory": format!("{}Mi", self.memory)});
        let mut spec = json!({"containers": [{"name": "main", "resources": {"requests": requests}}]});
        let selector = json!({"matchLabels": {"app": self.name}});
        if self.tolerates {
            spec["tolerations"] = json!([{"key": DEDICATED, "operator": "Exists"}]);
        }
        if self.keeps_apart {
            let term = json!({"topologyKey": HOST, "labelSelector": selector});
            spec["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
        }
        if self.spreads {
            spec["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]);
        }
        for (label, value) in [(ZONE, self.zone), (CAPACITY, self.capacity)] {
            if let Some(value) = value {
                spec["nodeSelector"][label] = json!(value);
            }
        }
        let unschedulable = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
        let status = match node {
            Some(node) => {
                spec["nodeName"] = json!(node);
                json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
            }
            None => json!({"phase": "Pending", "conditions": [unschedulable]}),
        };
        json!({"apiVersion": "v1", "kind": "Pod", "spec": spec, "status": status, "metadata": {
            "name": name, "namespace": "default", "uid": name, "labels": {"app": self.name}, "annotations": self.notes,
            "ownerReferences": [owner(self.owner, &self.name)]}})
    }

    /// How many of its pods may be evicted.
    pub(super) fn budget(&self) -> Option<Value> {
        let allowed = self.allowed?;
        Some(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": self.name, "namespace": "default"},
            "spec": {"maxUnavailable": allowed, "selector": {"matchLabels": {"app": self.name}}},
            "status": {"disruptionsAllowed": allowed, "currentHealthy": 5, "desiredHealthy": 1, "expectedPods": 5}}))
    }
}

fn owner(kind: &str, name: &str) -> Value {
    let group = if kind == "Job" { "batch/v1" } else { "apps/v1" };
    json!({"apiVersion": group, "kind": kind, "name": name, "uid": name, "controller": true})
}

fn daemon_spec() -> Value {
    json!({"tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}}}]})
}

/// What runs on every node.
pub(super) fn daemon() -> Value {
    let labels = json!({"app": "agent"});
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "kube-system", "uid": "agent"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": daemon_spec()}}})
}

/// It on one node.
pub(super) fn daemon_on(node: &str) -> Value {
    let mut spec = daemon_spec();
    spec["nodeName"] = json!(node);
    let name = format!("agent-{node}");
    json!({"apiVersion": "v1", "kind": "Pod", "spec": spec, "status": {"phase": "Running"}, "metadata": {
        "name": name, "namespace": "kube-system", "uid": name, "labels": {"app": "agent"},
        "ownerReferences": [owner("DaemonSet", "agent")]}})
}
