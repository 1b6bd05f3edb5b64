//! Which labels a scenario speaks of, and the expressions made of them.

use serde_json::{Value, json};

use super::dice::Dice;

pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";
pub(crate) const CAPACITY_TYPE: &str = "karpenter.sh/capacity-type";
pub(crate) const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
pub(crate) const ARCH: &str = "kubernetes.io/arch";
pub(crate) const OS: &str = "kubernetes.io/os";
pub(crate) const POOL: &str = "karpenter.sh/nodepool";
/// Two keys that only the catalogue makes well known.
pub(super) const FAMILY: &str = "example.com/family";
pub(super) const CPU: &str = "example.com/cpu";
pub(super) const RESERVATION: &str = "example.com/reservation-id";

/// Old names of labels, with the new ones.
pub(super) const OLD_NAMES: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", ZONE),
    ("beta.kubernetes.io/instance-type", INSTANCE_TYPE),
    ("beta.kubernetes.io/arch", ARCH),
    ("beta.kubernetes.io/os", OS),
];

/// The new name of a label.
pub(super) fn canonical(name: &str) -> &str {
    OLD_NAMES.iter().find(|(old, _)| *old == name).map_or(name, |(_, new)| new)
}

/// A label by its new name, or now and then by its old one if it has one.
pub(super) fn written<'a>(dice: &mut Dice, name: &'a str) -> &'a str {
    match OLD_NAMES.iter().find(|(_, new)| *new == name) {
        Some((old, _)) if dice.chance(12) => old,
        _ => name,
    }
}

pub(super) const ZONES: [&str; 3] = ["zone-a", "zone-b", "zone-c"];
pub(super) const FAMILIES: [&str; 3] = ["c", "m", "r"];
pub(super) const SIZES: [u64; 5] = [1, 2, 4, 8, 16];

/// A label key with the values it may have.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) values: Vec<String>,
    /// Whether its values are numbers, for `Gt` and `Lt`.
    pub(super) is_numeric: bool,
    /// Whether pods may say `NotIn`. Then every node has the label: on a node without it, Karpenter takes the first
    /// such pod for a definition of the label, and later pods that want a value follow.
    pub(super) is_negated: bool,
}

/// The keys of one scenario.
#[derive(Debug, Clone)]
pub(super) struct Vocabulary {
    /// Labels that instance types decide.
    pub(super) known: Vec<Key>,
    /// Labels that only people write.
    pub(super) custom: Vec<Key>,
}

impl Vocabulary {
    pub(super) fn new(dice: &mut Dice, type_names: &[String]) -> Vocabulary {
        let key = |name: &str, values: &[&str], is_numeric: bool, is_negated: bool| Key {
            name: name.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            is_numeric,
            is_negated,
        };
        let mut known = vec![
            key(ZONE, &ZONES, false, true),
            key(ARCH, &["amd64", "arm64"], false, true),
            key(FAMILY, &FAMILIES, false, true),
            key(CAPACITY_TYPE, &["on-demand", "spot"], false, true),
            key(CPU, &SIZES.map(|size| size.to_string()).each_ref().map(String::as_str), true, true),
        ];
        let types = type_names.to_vec();
        known.push(Key { name: INSTANCE_TYPE.to_owned(), values: types, is_numeric: false, is_negated: true });
        let custom = vec![
            key("example.com/team", &["blue", "green", "red"], false, dice.chance(50)),
            key("tier", &["1", "2", "3", "4", "5"], true, dice.chance(50)),
            key("disk", &["hdd", "ssd"], false, dice.chance(50)),
        ];
        Vocabulary { known, custom }
    }

    /// A key that is not in `used`, mostly one that types decide.
    pub(super) fn free_key(&self, dice: &mut Dice, used: &[String]) -> Option<Key> {
        let list = if dice.chance(78) { &self.known } else { &self.custom };
        let key = dice.pick(list).clone();
        (!used.contains(&key.name)).then_some(key)
    }

    /// One of the keys in `used`.
    pub(super) fn used_key(&self, dice: &mut Dice, used: &[String]) -> Option<&Key> {
        let keys: Vec<&Key> = self.known.iter().chain(&self.custom).filter(|key| used.contains(&key.name)).collect();
        (!keys.is_empty()).then(|| *dice.pick(&keys))
    }

    /// Up to `most` expressions of a pod, each on a key of its own that is not in `used`. The keys are added to it.
    pub(super) fn expressions(&self, dice: &mut Dice, most: u64, used: &mut Vec<String>) -> Vec<Value> {
        let mut all = Vec::new();
        for _ in 0..dice.between(1, most) {
            if let Some(key) = self.free_key(dice, used) {
                all.extend(key.pod_expressions(dice));
                used.push(key.name);
            }
        }
        all
    }
}

impl Key {
    /// One expression, or a lower and an upper bound.
    pub(super) fn pod_expressions(&self, dice: &mut Dice) -> Vec<Value> {
        if self.is_numeric && dice.chance(50) {
            let low = dice.below(4);
            let lower = self.expression(dice, "Gt", &[low.to_string()]);
            let high = low + dice.between(2, 9);
            let upper = self.expression(dice, "Lt", &[high.to_string()]);
            return match dice.below(3) {
                0 => vec![lower],
                1 => vec![upper],
                _ => vec![lower, upper],
            };
        }
        let (one, some) = (vec![dice.pick(&self.values).clone()], dice.some(&self.values, 1));
        let (operator, values) = match dice.below(20) {
            0..=11 => ("In", some),
            12..=15 if self.is_negated => ("NotIn", one),
            19 => ("DoesNotExist", Vec::new()),
            16..=18 => ("Exists", Vec::new()),
            _ => ("In", one),
        };
        vec![self.expression(dice, operator, &values)]
    }

    /// One expression of a pool, which has more operators.
    pub(super) fn pool_expression(&self, dice: &mut Dice) -> Value {
        if self.is_numeric && dice.chance(60) {
            let operator = *dice.pick(&["Gt", "Lt", "Gte", "Lte"]);
            let bound = if operator.starts_with('G') { dice.below(4) } else { dice.between(4, 20) };
            return self.expression(dice, operator, &[bound.to_string()]);
        }
        let is_of_types = self.name.contains("kubernetes.io") || self.name.contains("karpenter.sh");
        let (operator, values) = match dice.below(12) {
            0..=7 => ("In", dice.some(&self.values, 1)),
            8..=9 => ("NotIn", vec![dice.pick(&self.values).clone()]),
            // A pool that rules out a label every type has could make no node.
            11 if !is_of_types => ("DoesNotExist", Vec::new()),
            _ => ("Exists", Vec::new()),
        };
        self.expression(dice, operator, &values)
    }

    fn expression(&self, dice: &mut Dice, operator: &str, values: &[String]) -> Value {
        let key = written(dice, &self.name);
        if values.is_empty() {
            json!({"key": key, "operator": operator})
        } else {
            json!({"key": key, "operator": operator, "values": values})
        }
    }
}
