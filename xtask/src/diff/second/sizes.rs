//! Machines that can be bought: families of one ratio of memory to cores, and where they are sold.

use std::slice;

use serde_json::{Map, Value, json};

use super::super::dice::Dice;
use super::{ARCH, CAPACITY, CORES, FAMILY, OS, TYPE, ZONE, storage};

/// A family: its name, architecture, GiB per core, numbers of cores, and price of a core in 1/10000.
type Family = (&'static str, &'static str, u64, &'static [u64], u64);

const FAMILIES: [Family; 7] = [
    ("m", "amd64", 4, &[2, 4, 8, 16], 480),
    ("c", "amd64", 2, &[2, 4, 8, 16, 32], 420),
    ("mg", "arm64", 4, &[1, 2, 4, 8], 380),
    ("t", "amd64", 2, &[1, 2], 260),
    ("r", "amd64", 8, &[2, 4, 8], 630),
    ("pi", "arm64", 2, &[4], 90),
    ("gpu", "amd64", 4, &[4, 8], 1900),
];

const ZONES: [[&str; 4]; 3] = [
    ["rack-a", "rack-b", "rack-c", "rack-d"],
    ["cellar", "attic", "garage", "office"],
    ["eu-1a", "eu-1b", "eu-1c", "eu-1d"],
];

/// What is held back on every machine of a size, in millicores and MiB.
#[derive(Clone, Copy, Default)]
struct Reserved {
    kube_cpu: u64,
    kube_memory: u64,
    system_memory: u64,
    eviction: u64,
}

/// A place and a way to buy a size; the price is in 1/10000.
#[derive(Clone)]
pub(super) struct Offer {
    pub(super) zone: String,
    pub(super) capacity: &'static str,
    price: u64,
    pub(super) available: bool,
}

/// One instance type; memory is in GiB.
#[derive(Clone)]
pub(super) struct Size {
    pub(super) name: String,
    pub(super) family: &'static str,
    pub(super) arch: &'static str,
    pub(super) cores: u64,
    memory: u64,
    pub(super) gpus: u64,
    pub(super) pods: u64,
    reserved: Reserved,
    pub(super) offers: Vec<Offer>,
    attachments: Option<u64>,
}

/// The zones of the place: one to four of one naming scheme.
pub(super) fn zones(dice: &mut Dice) -> Vec<String> {
    let scheme = dice.pick(&ZONES);
    let count = usize::try_from(*dice.pick(&[1, 2, 3, 3, 3, 4])).unwrap_or(1);
    scheme.iter().take(count).map(ToString::to_string).collect()
}

/// Three to twelve sizes.
pub(super) fn generate(dice: &mut Dice, zones: &[String]) -> Vec<Size> {
    let spot = dice.chance(70);
    let limited = dice.chance(12);
    let base = usize::try_from(dice.below(3)).unwrap_or(0);
    let mut chosen: Vec<(Family, u64)> = Vec::new();
    for (index, family) in FAMILIES.iter().enumerate() {
        if index == base || dice.chance(30) {
            chosen.extend(dice.some(family.3, 2).iter().map(|cores| (*family, *cores)));
        }
    }
    if chosen.len() < 3 {
        chosen.push((("x", "amd64", 4, &[], 520), 12));
    }
    while chosen.len() > 12 {
        let index = usize::try_from(dice.below(chosen.len() as u64)).unwrap_or(0);
        chosen.remove(index);
    }
    let reserved = if dice.chance(60) {
        Reserved {
            kube_cpu: dice.between(4, 16) * 10,
            kube_memory: dice.between(1, 5) * 100,
            system_memory: dice.below(2) * 128,
            eviction: dice.below(2) * 100,
        }
    } else {
        Reserved::default()
    };
    let mut sizes: Vec<Size> = chosen.iter().map(|(family, cores)| size(dice, family, *cores)).collect();
    for size in &mut sizes {
        size.reserved = reserved;
        size.attachments = limited.then(|| dice.between(2, 8));
        size.offers = offers(dice, zones, size.cores * price_of_core(size.family), spot);
    }
    sizes
}

fn price_of_core(family: &str) -> u64 {
    FAMILIES.iter().find(|known| known.0 == family).map_or(520, |known| known.4)
}

fn size(dice: &mut Dice, family: &Family, cores: u64) -> Size {
    let memory = family.2 * cores;
    Size {
        name: format!("{}-{cores}x{memory}", family.0),
        family: family.0,
        arch: family.1,
        cores,
        memory,
        gpus: if family.0 == "gpu" { cores / 4 } else { 0 },
        pods: *dice.pick(&[20, 58, 110, 110]),
        reserved: Reserved::default(),
        offers: Vec::new(),
        attachments: None,
    }
}

/// Where a size is sold: at least one offer that is available.
fn offers(dice: &mut Dice, zones: &[String], price: u64, spot: bool) -> Vec<Offer> {
    let mut offers = Vec::new();
    for zone in zones {
        if dice.chance(88) {
            let available = dice.chance(94);
            offers.push(Offer { zone: zone.clone(), capacity: "on-demand", price, available });
        }
        if spot && dice.chance(75) {
            let price = price * dice.between(28, 64) / 100;
            let available = dice.chance(90);
            offers.push(Offer { zone: zone.clone(), capacity: "spot", price, available });
        }
    }
    if !offers.iter().any(|offer| offer.available) {
        let zone = dice.pick(zones).clone();
        offers.retain(|offer| offer.zone != zone || offer.capacity != "on-demand");
        offers.push(Offer { zone, capacity: "on-demand", price, available: true });
    }
    offers
}

fn within(key: &str, values: &[String]) -> Value {
    json!({"key": key, "operator": "In", "values": values})
}

impl Offer {
    fn to_json(&self) -> Value {
        let price = f64::from(u32::try_from(self.price).unwrap_or(u32::MAX)) / 10_000.0;
        let requirements = [within(ZONE, slice::from_ref(&self.zone)), within(CAPACITY, &[self.capacity.to_owned()])];
        let mut offer = json!({"requirements": requirements, "price": price});
        if !self.available {
            offer["available"] = json!(false);
        }
        offer
    }
}

impl Size {
    pub(super) fn capacity(&self) -> Value {
        self.resources(self.cores * 1000, self.memory * 1024)
    }

    pub(super) fn allocatable(&self) -> Value {
        self.resources(self.free_cpu(), self.free_memory())
    }

    fn resources(&self, cpu: u64, memory: u64) -> Value {
        let cpu = if cpu.is_multiple_of(1000) { (cpu / 1000).to_string() } else { format!("{cpu}m") };
        let pods = self.pods.to_string();
        let mut all = json!({"cpu": cpu, "memory": format!("{memory}Mi"), "pods": pods, "ephemeral-storage": "100Gi"});
        if self.gpus > 0 {
            all["nvidia.com/gpu"] = json!(self.gpus.to_string());
        }
        all
    }

    /// Millicores for pods.
    pub(super) fn free_cpu(&self) -> u64 {
        self.cores * 1000 - self.reserved.kube_cpu
    }

    /// MiB for pods.
    pub(super) fn free_memory(&self) -> u64 {
        self.memory * 1024 - self.reserved.kube_memory - self.reserved.system_memory - self.reserved.eviction
    }

    /// The labels that a machine of this size carries wherever it is.
    pub(super) fn labels(&self) -> Map<String, Value> {
        let labels = [
            (ARCH, self.arch.to_owned()),
            (OS, "linux".to_owned()),
            (TYPE, self.name.clone()),
            (FAMILY, self.family.to_owned()),
            (CORES, self.cores.to_string()),
        ];
        labels.into_iter().map(|(key, value)| (key.to_owned(), Value::String(value))).collect()
    }

    /// The values that its available offers have.
    fn sold(&self, what: impl Fn(&Offer) -> String) -> Vec<String> {
        let mut values: Vec<String> = self.offers.iter().filter(|offer| offer.available).map(what).collect();
        values.sort();
        values.dedup();
        values
    }

    pub(super) fn to_json(&self) -> Value {
        let mut requirements: Vec<Value> =
            self.labels().iter().map(|(key, value)| json!({"key": key, "operator": "In", "values": [value]})).collect();
        requirements.push(within(ZONE, &self.sold(|offer| offer.zone.clone())));
        requirements.push(within(CAPACITY, &self.sold(|offer| offer.capacity.to_owned())));
        let mut size = json!({
            "name": self.name,
            "capacity": self.capacity(),
            "requirements": requirements,
            "offerings": self.offers.iter().map(Offer::to_json).collect::<Vec<_>>(),
        });
        let Reserved { kube_cpu, kube_memory, system_memory, eviction } = self.reserved;
        if kube_cpu > 0 {
            size["overhead"] = json!({
                "KubeReserved": {"cpu": format!("{kube_cpu}m"), "memory": format!("{kube_memory}Mi")},
                "SystemReserved": {"memory": format!("{system_memory}Mi")},
                "EvictionThreshold": {"memory": format!("{eviction}Mi")},
            });
        }
        if let Some(count) = self.attachments {
            size["volumeAttachmentLimits"] = json!({storage::DRIVER: count});
        }
        size
    }
}
