//! Which instance types are there, and what do they cost where?

use serde_json::{Value, json};

use super::super::super::dice::Dice;
use super::{CAPACITY, ZONE};

/// An instance type.
pub(super) struct Size {
    pub(super) name: String,
    pub(super) cpu: u64,
    pub(super) memory: u64,
    pub(super) offerings: Vec<Offering>,
}

/// Where it can be had.
pub(super) struct Offering {
    pub(super) zone: &'static str,
    pub(super) capacity: &'static str,
    price: f64,
    is_available: bool,
}

pub(super) fn generate(dice: &mut Dice, zones: &[&'static str]) -> Vec<Size> {
    let mut all = Vec::new();
    for (cpu, per_core) in [(2, 4), (4, 4), (4, 8), (8, 4), (8, 2), (16, 4), (32, 4)] {
        if all.len() < 3 || dice.chance(75) {
            all.push(size(dice, (cpu, per_core), zones));
        }
    }
    all
}

fn size(dice: &mut Dice, (cpu, per_core): (u64, u64), zones: &[&'static str]) -> Size {
    // No two prices are alike by accident: a tie would be decided by chance.
    let thousandths = cpu * 20 + cpu * per_core * 3 + dice.below(17);
    let has_spot = dice.chance(70);
    let mut offerings = Vec::new();
    for zone in zones {
        // Now and then a zone costs more.
        let thousandths = if dice.chance(15) { thousandths + dice.between(1, 9) } else { thousandths };
        let price = |percent: u64| round(thousandths * percent);
        offerings.push(Offering { zone, capacity: "on-demand", price: price(100), is_available: !dice.chance(6) });
        if has_spot {
            offerings.push(Offering {
                zone,
                capacity: "spot",
                price: price(dice.between(30, 70)),
                is_available: !dice.chance(8),
            });
        }
    }
    Size { name: format!("c{cpu}-m{}", cpu * per_core), cpu, memory: cpu * per_core, offerings }
}

#[expect(clippy::cast_precision_loss, reason = "prices of a few hundred thousandths")]
fn round(hundred_thousandths: u64) -> f64 {
    hundred_thousandths as f64 / 100_000.0
}

impl Size {
    /// What its nodes have, and what of that pods may use.
    pub(super) fn resources(&self) -> (Value, Value) {
        let of =
            |cpu: u64, memory: u64| json!({"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi"), "pods": "60"});
        (of(self.cpu * 1000, self.memory * 1024), of(self.cpu * 1000 - 100, self.memory * 1024 - 512))
    }

    pub(super) fn to_json(&self) -> Value {
        let offerings = self.offerings.iter().map(|it| {
            json!({"price": it.price, "available": it.is_available, "requirements": [
                {"key": ZONE, "operator": "In", "values": [it.zone]},
                {"key": CAPACITY, "operator": "In", "values": [it.capacity]}]})
        });
        json!({"name": self.name, "capacity": self.resources().0,
            "overhead": {"KubeReserved": {"cpu": "100m", "memory": "512Mi"}}, "offerings": offerings.collect::<Vec<_>>()})
    }
}
