//! The NodePools of a scenario.

use serde_json::{Map, Value, json};

use super::dice::Dice;
use super::vocabulary::{CAPACITY_TYPE, FAMILY, INSTANCE_TYPE, Vocabulary, ZONE, written};

/// A pool, with what its nodes take over from it.
#[derive(Debug, Clone)]
pub(super) struct Pool {
    pub(super) name: String,
    pub(super) labels: Map<String, Value>,
    pub(super) taints: Vec<Value>,
    pub(super) startup_taints: Vec<Value>,
    requirements: Vec<Value>,
    weight: Option<u64>,
    limits: Map<String, Value>,
    limits_nodes: Option<NodeLimit>,
}

/// `limits.nodes` is either far away or reached: Karpenter does not count it down while it plans.
#[derive(Debug, Clone, Copy)]
enum NodeLimit {
    Reached,
    FarAway,
}

/// Taints that pools have and pods tolerate.
pub(super) const TAINTS: [(&str, &str); 3] = [("dedicated", "batch"), ("gpu", "true"), ("example.com/slow", "1")];

pub(super) fn generate(dice: &mut Dice, words: &Vocabulary) -> Vec<Pool> {
    let count = dice.between(1, 4);
    (0..count).map(|index| pool(dice, words, index)).collect()
}

fn pool(dice: &mut Dice, words: &Vocabulary, index: u64) -> Pool {
    let mut used = Vec::new();
    let mut made = Pool {
        name: format!("pool-{index}"),
        labels: Map::new(),
        taints: Vec::new(),
        startup_taints: Vec::new(),
        requirements: Vec::new(),
        weight: dice.chance(70).then(|| dice.between(1, 4) * 25),
        limits: Map::new(),
        limits_nodes: None,
    };
    for key in &words.custom {
        if dice.chance(50) {
            made.labels.insert(key.name.clone(), json!(dice.pick(&key.values)));
            used.push(key.name.clone());
        }
    }
    for _ in 0..dice.below(3) {
        if let Some(key) = words.free_key(dice, &used) {
            made.requirements.push(key.pool_expression(dice));
            used.push(key.name);
        }
    }
    if dice.chance(25) {
        made.requirements.extend(with_min_values(dice, words, &used));
    }
    made.add_taints(dice);
    made.add_limits(dice);
    made
}

/// A requirement that asks for several values to choose from.
fn with_min_values(dice: &mut Dice, words: &Vocabulary, used: &[String]) -> Option<Value> {
    let name = *dice.pick(&[INSTANCE_TYPE, FAMILY, ZONE, CAPACITY_TYPE]);
    let key = words.known.iter().find(|key| key.name == name && !used.contains(&key.name))?;
    let (name, least) = (written(dice, name), dice.between(1, 3));
    Some(if dice.chance(60) {
        json!({"key": name, "operator": "Exists", "minValues": least})
    } else {
        let least = least.min(key.values.len() as u64);
        json!({"key": name, "operator": "In", "values": key.values, "minValues": least})
    })
}

impl Pool {
    fn add_taints(&mut self, dice: &mut Dice) {
        for (key, value) in TAINTS {
            if dice.chance(9) {
                let effect = *dice.pick(&["NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"]);
                self.taints.push(json!({"key": key, "value": value, "effect": effect}));
            }
        }
        if dice.chance(20) {
            self.startup_taints.push(json!({"key": "example.com/starting", "effect": "NoSchedule"}));
        }
    }

    fn add_limits(&mut self, dice: &mut Dice) {
        if dice.chance(20) {
            self.limits.insert("cpu".to_owned(), json!(dice.between(8, 150).to_string()));
        }
        if dice.chance(10) {
            self.limits.insert("memory".to_owned(), json!(format!("{}Gi", dice.between(16, 600))));
        }
        self.limits_nodes = match dice.below(25) {
            0 => Some(NodeLimit::Reached),
            1 => Some(NodeLimit::FarAway),
            _ => None,
        };
    }

    /// The object. `nodes` is how many nodes of the pool stay.
    pub(super) fn to_json(&self, nodes: usize) -> Value {
        let mut limits = self.limits.clone();
        match self.limits_nodes {
            Some(NodeLimit::Reached) => limits.insert("nodes".to_owned(), json!(nodes.to_string())),
            Some(NodeLimit::FarAway) => limits.insert("nodes".to_owned(), json!("1000")),
            None => None,
        };
        let mut template = json!({
            "nodeClassRef": class(),
            "requirements": self.requirements,
        });
        if !self.taints.is_empty() {
            template["taints"] = json!(self.taints);
        }
        if !self.startup_taints.is_empty() {
            template["startupTaints"] = json!(self.startup_taints);
        }
        let mut spec = json!({"template": {"metadata": {"labels": self.labels}, "spec": template}});
        if let Some(weight) = self.weight {
            spec["weight"] = json!(weight);
        }
        if !limits.is_empty() {
            spec["limits"] = json!(limits);
        }
        json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": self.name}, "spec": spec})
    }
}

/// The class that every pool and claim refers to.
pub(super) fn class() -> Value {
    json!({"group": "karpenter.proxmox.sh", "kind": "ProxmoxNodeClass", "name": "default"})
}
