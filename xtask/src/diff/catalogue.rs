//! The instance types of a scenario.

use serde_json::{Map, Value, json};

use super::dice::Dice;
use super::vocabulary::{ARCH, CAPACITY_TYPE, CPU, FAMILIES, FAMILY, OS, RESERVATION, SIZES, ZONE, ZONES, written};

/// One size that can be had.
#[derive(Debug, Clone)]
pub(super) struct InstanceType {
    pub(super) name: String,
    pub(super) family: &'static str,
    pub(super) arch: &'static str,
    pub(super) cpu: u64,
    pub(super) memory_gi: u64,
    pub(super) pods: u64,
    pub(super) gpus: u64,
    /// How its requirements call its architecture.
    arch_label: &'static str,
    has_overhead: bool,
    says_requirements: bool,
    offerings: Vec<Offering>,
}

#[derive(Debug, Clone)]
struct Offering {
    zone: &'static str,
    capacity_type: &'static str,
    /// In ten-thousandths, so that the text of a price is the price.
    price: u64,
    is_available: bool,
    reservation: Option<(u64, u64)>,
}

/// A handful of sizes, each with a name of its own.
pub(super) fn generate(dice: &mut Dice) -> Vec<InstanceType> {
    let count = dice.between(3, 12);
    let has_reservations = dice.chance(25);
    (0..count).map(|index| instance_type(dice, index, has_reservations)).collect()
}

fn instance_type(dice: &mut Dice, index: u64, has_reservations: bool) -> InstanceType {
    let family = *dice.pick(&FAMILIES);
    let cpu = *dice.pick(&SIZES);
    let per_cpu = match family {
        "c" => 2,
        "m" => 4,
        _ => 8,
    };
    let mut made = InstanceType {
        name: format!("{family}{cpu}-{index}"),
        family,
        arch: if dice.chance(80) { "amd64" } else { "arm64" },
        cpu,
        memory_gi: cpu * per_cpu,
        pods: *dice.pick(&[8, 20, 30, 60, 110]),
        gpus: if dice.chance(20) { dice.between(1, 4) } else { 0 },
        arch_label: written(dice, ARCH),
        has_overhead: dice.chance(60),
        says_requirements: dice.chance(80),
        offerings: Vec::new(),
    };
    for zone in dice.some(&ZONES, 1) {
        for capacity_type in dice.some(&["on-demand", "spot"], 1) {
            let offering = offering(dice, &made, zone, capacity_type);
            made.offerings.push(offering);
        }
    }
    if has_reservations && dice.chance(40) {
        let mut reserved = offering(dice, &made, ZONES[0], "reserved");
        reserved.price = dice.between(1, 20);
        reserved.reservation = Some((dice.below(2), dice.below(4)));
        made.offerings.push(reserved);
    }
    made
}

fn offering(dice: &mut Dice, of: &InstanceType, zone: &'static str, capacity_type: &'static str) -> Offering {
    let full = of.cpu * 250 + of.memory_gi * 40 + of.gpus * 3000;
    let share = if capacity_type == "spot" { dice.between(30, 60) } else { dice.between(95, 110) };
    let is_available = dice.chance(92);
    Offering { zone, capacity_type, price: full * share / 100 + dice.below(40), is_available, reservation: None }
}

impl InstanceType {
    /// Its element of the file.
    pub(super) fn to_json(&self) -> Value {
        let offerings: Vec<Value> = self.offerings.iter().map(Offering::to_json).collect();
        let mut entry = Map::new();
        entry.insert("name".to_owned(), json!(self.name));
        entry.insert("capacity".to_owned(), self.capacity());
        entry.insert("offerings".to_owned(), json!(offerings));
        if self.has_overhead {
            entry.insert(
                "overhead".to_owned(),
                json!({
                    "KubeReserved": {"cpu": "80m", "memory": "200Mi"},
                    "SystemReserved": {"cpu": "20m"},
                    "EvictionThreshold": {"memory": "100Mi"},
                }),
            );
        }
        if self.says_requirements {
            entry.insert("requirements".to_owned(), self.requirements());
        }
        Value::Object(entry)
    }

    fn requirements(&self) -> Value {
        let mut all = vec![
            json!({"key": self.arch_label, "operator": "In", "values": [self.arch]}),
            json!({"key": OS, "operator": "In", "values": ["linux"]}),
            json!({"key": FAMILY, "operator": "In", "values": [self.family]}),
            json!({"key": CPU, "operator": "In", "values": [self.cpu.to_string()]}),
            json!({"key": ZONE, "operator": "In", "values": self.values(|offering| Some(offering.zone.to_owned()))}),
            json!({"key": CAPACITY_TYPE, "operator": "In",
                "values": self.values(|offering| Some(offering.capacity_type.to_owned()))}),
        ];
        let ids = self.values(|offering| offering.reservation.map(|(id, _)| format!("res-{id}")));
        all.push(if ids.is_empty() {
            json!({"key": RESERVATION, "operator": "DoesNotExist"})
        } else {
            json!({"key": RESERVATION, "operator": "In", "values": ids})
        });
        json!(all)
    }

    fn values(&self, of: impl Fn(&Offering) -> Option<String>) -> Vec<String> {
        let mut all: Vec<String> = self.offerings.iter().filter_map(of).collect();
        all.sort();
        all.dedup();
        all
    }

    /// What a machine of this size has.
    pub(super) fn capacity(&self) -> Value {
        let memory = format!("{}Gi", self.memory_gi);
        let mut capacity = json!({"cpu": self.cpu.to_string(), "memory": memory, "pods": self.pods.to_string(), "ephemeral-storage": "50Gi"});
        if self.gpus > 0 {
            capacity["example.com/gpu"] = json!(self.gpus.to_string());
        }
        capacity
    }

    /// What pods may use of it.
    pub(super) fn allocatable(&self) -> Value {
        let mut allocatable = self.capacity();
        if self.has_overhead {
            allocatable["cpu"] = json!(format!("{}m", self.cpu * 1000 - 100));
            allocatable["memory"] = json!(format!("{}Mi", self.memory_gi * 1024 - 300));
        }
        allocatable
    }

    /// Where a machine of this size might stand, and how it might be paid.
    pub(super) fn some_place(&self, dice: &mut Dice) -> (&'static str, &'static str) {
        let offering = dice.pick(&self.offerings);
        (offering.zone, offering.capacity_type)
    }
}

impl Offering {
    fn to_json(&self) -> Value {
        let mut requirements = vec![
            json!({"key": ZONE, "operator": "In", "values": [self.zone]}),
            json!({"key": CAPACITY_TYPE, "operator": "In", "values": [self.capacity_type]}),
        ];
        #[expect(clippy::cast_precision_loss, reason = "prices are far below 2^52")]
        let price = self.price as f64 / 10_000.0;
        let mut entry = Map::new();
        if let Some((id, capacity)) = self.reservation {
            requirements.push(json!({"key": RESERVATION, "operator": "In", "values": [format!("res-{id}")]}));
            entry.insert("reservationCapacity".to_owned(), json!(capacity));
        } else {
            requirements.push(json!({"key": RESERVATION, "operator": "DoesNotExist"}));
        }
        entry.insert("requirements".to_owned(), json!(requirements));
        entry.insert("price".to_owned(), json!(price));
        if !self.is_available {
            entry.insert("available".to_owned(), json!(false));
        }
        Value::Object(entry)
    }
}
