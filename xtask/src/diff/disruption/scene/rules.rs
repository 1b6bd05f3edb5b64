//! Which NodePools are there, and how may their nodes be disrupted?

use serde_json::{Value, json};

use super::super::super::dice::Dice;
use super::{CAPACITY, DEDICATED};

/// A NodePool.
pub(super) struct Pool {
    pub(super) name: String,
    /// Its capacity types.
    pub(super) capacities: Vec<&'static str>,
    pub(super) is_tainted: bool,
    pub(super) is_static: bool,
    disruption: Value,
    weight: Option<u64>,
    is_limited: bool,
}

pub(super) fn generate(dice: &mut Dice) -> Vec<Pool> {
    let count = *dice.pick(&[1, 1, 2, 2, 3]);
    (0..count).map(|index| pool(dice, index)).collect()
}

fn pool(dice: &mut Dice, index: usize) -> Pool {
    let policies = [
        "WhenEmptyOrUnderutilized",
        "WhenEmptyOrUnderutilized",
        "WhenEmptyOrUnderutilized",
        "Balanced",
        "Balanced",
        "WhenEmpty",
    ];
    let policy = *dice.pick(&policies);
    let patience = *dice.pick(&["0s", "30s", "30s", "5m", "30m", "30m", "Never"]);
    let patience = if patience == "Never" && dice.chance(50) { "30s" } else { patience };
    let capacities: &[&'static str] = match dice.below(5) {
        0 => &["spot"],
        1 | 2 => &["on-demand"],
        _ => &["on-demand", "spot"],
    };
    Pool {
        name: format!("pool-{index}"),
        capacities: capacities.to_vec(),
        is_tainted: index > 0 && dice.chance(25),
        is_static: index > 0 && dice.chance(20),
        disruption: json!({"consolidationPolicy": policy, "consolidateAfter": patience, "budgets": budgets(dice)}),
        weight: dice.chance(30).then(|| dice.between(1, 50)),
        is_limited: dice.chance(8),
    }
}

fn budgets(dice: &mut Dice) -> Value {
    match dice.below(10) {
        0 => json!([{"nodes": "10%"}]),
        1 => json!([{"nodes": "1"}]),
        2 => json!([{"nodes": "50%"}, {"nodes": "0", "reasons": ["Drifted"]}]),
        3 => json!([{"nodes": "100%"}, {"nodes": "2", "reasons": ["Underutilized"]}]),
        4 => json!([{"nodes": "100%"}, {"nodes": "1", "reasons": ["Empty"]}]),
        // From 11:30 for an hour: now.
        5 => json!([{"nodes": "100%"}, {"nodes": "25%", "schedule": "30 11 * * *", "duration": "1h"}]),
        // Not now, and a scenario does not play until then.
        6 => json!([{"nodes": "100%"}, {"nodes": "0", "schedule": "0 3 * * *", "duration": "1h"}]),
        _ => json!([{"nodes": "100%"}]),
    }
}

impl Pool {
    /// With so many nodes.
    pub(super) fn to_json(&self, nodes: u64) -> Value {
        let mut template = json!({"nodeClassRef": class(), "expireAfter": "Never",
            "requirements": [{"key": CAPACITY, "operator": "In", "values": self.capacities}]});
        if self.is_tainted {
            template["taints"] = json!([taint()]);
        }
        let mut spec = json!({"template": {"spec": template}, "disruption": self.disruption});
        if let Some(weight) = self.weight.filter(|_| !self.is_static) {
            spec["weight"] = json!(weight);
        }
        if self.is_static {
            spec["replicas"] = json!(nodes);
            spec["limits"] = json!({"nodes": (nodes + 1).to_string()});
        } else if self.is_limited {
            spec["limits"] = json!({"cpu": "400"});
        }
        json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": self.name}, "spec": spec})
    }
}

pub(super) fn class() -> Value {
    json!({"group": "karpenter.proxmox.sh", "kind": "ProxmoxNodeClass", "name": "default"})
}

/// What keeps other pods away from a NodePool.
pub(super) fn taint() -> Value {
    json!({"key": DEDICATED, "value": "yes", "effect": "NoSchedule"})
}
