//! NodePools as a small team writes them: one for all, and some for a purpose.

use serde_json::{Map, Value, json};

use super::super::dice::Dice;
use super::sizes::{Offer, Size};
use super::{ARCH, CAPACITY, CORES, DEDICATED, FAMILY, LANE, OS, TIER, TYPE, ZONE, uid};

/// What a pool is for.
const PURPOSES: [&str; 6] = ["general", "batch", "web", "db", "edge", "gpu"];
/// The values of the label of tiers.
pub(super) const TIERS: [&str; 3] = ["web", "batch", "db"];
/// The values that a pool may leave open.
pub(super) const LANES: [&str; 3] = ["blue", "green", "grey"];

/// A pool, and what it takes.
pub(super) struct Pool {
    pub(super) name: String,
    pub(super) uid: String,
    weight: Option<u64>,
    /// The labels of its template.
    pub(super) labels: Map<String, Value>,
    pub(super) lanes: Vec<&'static str>,
    pub(super) taints: Vec<Value>,
    pub(super) startup: Vec<Value>,
    families: Option<Vec<String>>,
    zones: Option<Vec<String>>,
    capacity: Option<Vec<&'static str>>,
    arch: Option<&'static str>,
    more_cores_than: Option<u64>,
    least_types: Option<u64>,
    limits: Option<Value>,
}

/// One to four pools; with `soft`, a taint may be one that is only preferred.
pub(super) fn generate(dice: &mut Dice, zones: &[String], sizes: &[Size], soft: bool) -> Vec<Pool> {
    let count = usize::try_from(*dice.pick(&[1, 1, 2, 2, 3, 4])).unwrap_or(1);
    let mut purposes = PURPOSES.to_vec();
    let mut pools = Vec::new();
    for index in 0..count {
        let at = if index == 0 && dice.chance(85) { 0 } else { dice.below(purposes.len() as u64) };
        let purpose = purposes.remove(usize::try_from(at).unwrap_or(0));
        let mut pool = pool(dice, purpose, soft);
        narrow(dice, &mut pool, zones, sizes);
        pools.push(pool);
    }
    pools
}

fn pool(dice: &mut Dice, purpose: &str, soft: bool) -> Pool {
    let mut labels = Map::new();
    if TIERS.contains(&purpose) || dice.chance(10) {
        let tier = if TIERS.contains(&purpose) { purpose } else { *dice.pick(&TIERS) };
        labels.insert(TIER.to_owned(), json!(tier));
    }
    let mut taints = Vec::new();
    if purpose != "general" && dice.chance(50) {
        let effects: &[&str] = if soft { &["PreferNoSchedule"] } else { &["NoSchedule", "NoSchedule", "NoExecute"] };
        taints.push(json!({"key": DEDICATED, "value": purpose, "effect": dice.pick(effects)}));
    }
    let agent = json!({"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"});
    let lanes = if dice.chance(15) { dice.some(&LANES, 2) } else { Vec::new() };
    let limits = dice.chance(25).then(|| match dice.below(3) {
        0 => json!({"cpu": (dice.between(2, 16) * 4).to_string()}),
        1 => json!({"memory": format!("{}Gi", dice.between(2, 16) * 8)}),
        _ => json!({"cpu": (dice.between(2, 20) * 4).to_string(), "memory": format!("{}Gi", dice.between(3, 20) * 8)}),
    });
    Pool {
        name: purpose.to_owned(),
        uid: uid(dice),
        weight: dice.chance(55).then(|| dice.between(1, 100)),
        labels,
        lanes,
        taints,
        startup: if dice.chance(20) { vec![agent] } else { Vec::new() },
        families: None,
        zones: None,
        capacity: None,
        arch: None,
        more_cores_than: None,
        least_types: dice.chance(6).then(|| dice.between(2, 3)),
        limits,
    }
}

/// Gives the pool its requirements.
fn narrow(dice: &mut Dice, pool: &mut Pool, zones: &[String], sizes: &[Size]) {
    if pool.name == "gpu" && sizes.iter().any(|size| size.gpus > 0) {
        pool.families = Some(vec!["gpu".to_owned()]);
    } else if dice.chance(25) {
        let mut families: Vec<String> = sizes.iter().map(|size| size.family.to_owned()).collect();
        families.dedup();
        pool.families = Some(dice.some(&families, 1));
    }
    if dice.chance(25) {
        pool.zones = Some(dice.some(zones, 1));
    }
    pool.capacity = match dice.below(10) {
        0..4 => None,
        4..6 => Some(vec!["spot"]),
        6..8 => Some(vec!["on-demand"]),
        _ => Some(vec!["on-demand", "spot"]),
    };
    if dice.chance(35) {
        pool.arch = Some(dice.pick(sizes).arch);
    }
    if dice.chance(12) {
        pool.more_cores_than = Some(*dice.pick(&[1, 2, 3]));
    }
}

impl Pool {
    /// Whether a machine could be one of this pool.
    pub(super) fn takes(&self, size: &Size, offer: &Offer) -> bool {
        self.families.as_ref().is_none_or(|families| families.iter().any(|family| family == size.family))
            && self.zones.as_ref().is_none_or(|zones| zones.contains(&offer.zone))
            && self.capacity.as_ref().is_none_or(|ways| ways.contains(&offer.capacity))
            && self.arch.is_none_or(|arch| arch == size.arch)
            && self.more_cores_than.is_none_or(|cores| size.cores > cores)
    }

    fn requirements(&self) -> Vec<Value> {
        let mut all = vec![json!({"key": OS, "operator": "In", "values": ["linux"]})];
        let mut add = |key: &str, operator: &str, values: Value| {
            all.push(json!({"key": key, "operator": operator, "values": values}));
        };
        if let Some(families) = &self.families {
            add(FAMILY, "In", json!(families));
        }
        if let Some(zones) = &self.zones {
            add(ZONE, "In", json!(zones));
        }
        if let Some(ways) = &self.capacity {
            add(CAPACITY, "In", json!(ways));
        }
        if let Some(arch) = self.arch {
            add(ARCH, "In", json!([arch]));
        }
        if let Some(cores) = self.more_cores_than {
            add(CORES, "Gt", json!([cores.to_string()]));
        }
        if !self.lanes.is_empty() {
            add(LANE, "In", json!(self.lanes));
        }
        if let Some(least) = self.least_types {
            all.push(json!({"key": TYPE, "operator": "Exists", "minValues": least}));
        }
        all
    }

    pub(super) fn to_json(&self) -> Value {
        let mut template = json!({
            "metadata": {"labels": self.labels},
            "spec": {"nodeClassRef": class(), "requirements": self.requirements(), "expireAfter": "720h"},
        });
        if !self.taints.is_empty() {
            template["spec"]["taints"] = json!(self.taints);
        }
        if !self.startup.is_empty() {
            template["spec"]["startupTaints"] = json!(self.startup);
        }
        let mut spec = json!({
            "template": template,
            "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "1m"},
        });
        if let Some(weight) = self.weight {
            spec["weight"] = json!(weight);
        }
        if let Some(limits) = &self.limits {
            spec["limits"] = limits.clone();
        }
        json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": self.name, "uid": self.uid},
            "spec": spec,
        })
    }
}

/// The node class that all pools share.
pub(super) fn class() -> Value {
    json!({"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"})
}
