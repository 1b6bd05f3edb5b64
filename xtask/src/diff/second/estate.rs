//! The machines that exist: those of a pool, with their claims, and those that somebody set up by hand.

use serde_json::{Value, json};

use super::super::dice::Dice;
use super::claims::{self, Birth, Stage};
use super::daemons::Daemon;
use super::pools::{self, Pool};
use super::sizes::{Offer, Size};
use super::{CAPACITY, HOST, LANE, POOL, Place, TIER, ZONE, storage, uid};

/// A machine, with the room that is left on it.
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) zone: Option<String>,
    /// Whether pods can already run on it.
    pub(super) open: bool,
    pub(super) cpu: u64,
    pub(super) memory: u64,
    pub(super) pods: u64,
    /// The apps that run on it.
    pub(super) apps: Vec<String>,
    pub(super) objects: Vec<Value>,
}

impl Machine {
    fn bare(name: &str, size: &Size) -> Machine {
        Machine {
            name: name.to_owned(),
            zone: None,
            open: true,
            cpu: size.free_cpu(),
            memory: size.free_memory(),
            pods: size.pods,
            apps: Vec::new(),
            objects: Vec::new(),
        }
    }
}

/// None to eight machines.
pub(super) fn generate(dice: &mut Dice, place: &Place, daemons: &[Daemon]) -> Vec<Machine> {
    let count = if dice.chance(25) { 0 } else { dice.between(1, 8) };
    let by_hand = *dice.pick(&[0, 20, 50, 100]);
    let mut machines = Vec::new();
    for number in 0..count {
        let pool = dice.pick(&place.pools);
        let fitting: Vec<(&Size, &Offer)> = place
            .sizes
            .iter()
            .flat_map(|size| size.offers.iter().map(move |offer| (size, offer)))
            .filter(|(size, offer)| pool.takes(size, offer))
            .collect();
        let machine = if fitting.is_empty() || dice.chance(by_hand) {
            unmanaged(dice, place, number, daemons)
        } else {
            let (size, offer) = *dice.pick(&fitting);
            managed(dice, pool, &Slot { size, offer, number }, daemons)
        };
        machines.push(machine);
    }
    machines
}

/// A machine with nothing on it but its daemons.
fn machine(dice: &mut Dice, name: &str, size: &Size, daemons: &[&Daemon]) -> Machine {
    let mut machine = Machine::bare(name, size);
    for daemon in daemons {
        if dice.chance(75) && machine.cpu > daemon.needs.0 && machine.memory > daemon.needs.1 {
            machine.cpu -= daemon.needs.0;
            machine.memory -= daemon.needs.1;
            machine.pods -= 1;
            let pod = daemon.pod(dice, name);
            machine.objects.push(pod);
        }
    }
    if dice.chance(50) {
        let limit = dice.between(1, 6);
        machine.objects.push(storage::node_limit(name, limit));
    }
    machine
}

/// A machine that no pool made.
fn unmanaged(dice: &mut Dice, place: &Place, number: u64, daemons: &[Daemon]) -> Machine {
    let size = dice.pick(&place.sizes);
    let name = format!("{}-{number}", dice.pick(&["nuc", "tower", "vm"]));
    let mut labels = size.labels();
    labels.insert(HOST.to_owned(), json!(name));
    let zone = dice.chance(80).then(|| dice.pick(&place.zones).clone());
    if let Some(zone) = &zone {
        labels.insert(ZONE.to_owned(), json!(zone));
    }
    if dice.chance(30) {
        labels.insert(CAPACITY.to_owned(), json!("on-demand"));
    }
    if dice.chance(20) {
        labels.insert(TIER.to_owned(), json!(dice.pick(&pools::TIERS)));
    }
    let mut spec = json!({});
    if dice.chance(15) {
        spec["taints"] = json!([{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]);
    } else if dice.chance(6) {
        spec["unschedulable"] = json!(true);
        spec["taints"] = json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]);
    }
    if dice.chance(50) {
        spec["providerID"] = json!(format!("metal://{name}"));
    }
    let tainted = spec.get("taints").is_some();
    let running: Vec<&Daemon> = daemons.iter().filter(|daemon| daemon.runs(tainted)).collect();
    let mut machine = machine(dice, &name, size, &running);
    machine.zone = zone;
    let uid = uid(dice);
    machine.objects.push(claims::node(size, &uid, &labels, &spec));
    machine
}

/// What was bought for a pool, and the number of the machine.
struct Slot<'a> {
    size: &'a Size,
    offer: &'a Offer,
    number: u64,
}

/// A machine of a pool: a claim, and mostly a node.
fn managed(dice: &mut Dice, pool: &Pool, slot: &Slot<'_>, daemons: &[Daemon]) -> Machine {
    let Slot { size, offer, number } = *slot;
    let stage = Stage::roll(dice);
    let claim = format!("{}-{:05x}{number}", pool.name, dice.below(1 << 20));
    let name = if stage == Stage::Launched { claim.clone() } else { format!("node-{number}") };
    let mut labels = size.labels();
    labels.extend(pool.labels.clone());
    labels.insert(ZONE.to_owned(), json!(offer.zone));
    labels.insert(CAPACITY.to_owned(), json!(offer.capacity));
    labels.insert(POOL.to_owned(), json!(pool.name));
    if !pool.lanes.is_empty() {
        labels.insert(LANE.to_owned(), json!(dice.pick(&pool.lanes)));
    }
    let birth = Birth { pool, size, labels, stage, id: format!("kwok://{claim}"), claim, node: name };
    let here = stage == Stage::Initialized;
    let tainted = !pool.taints.is_empty();
    let running: Vec<&Daemon> = daemons.iter().filter(|daemon| here && daemon.runs(tainted)).collect();
    let mut machine = if stage == Stage::Launched {
        Machine::bare(&birth.node, size)
    } else {
        machine(dice, &birth.node, size, &running)
    };
    machine.zone = Some(offer.zone.clone());
    machine.open = here;
    machine.objects.extend(birth.objects(dice));
    machine
}
