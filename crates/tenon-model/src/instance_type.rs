//! Sizes of VMs: what each has, what of it pods can have, and what it counts as.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{CatalogType, Offering};
use crate::labels::{ARCH, CAPACITY_TYPE, INSTANCE_FAMILY, INSTANCE_TYPE, OS, REGION, ZONE};
use crate::place::Place;
use crate::price::Price;
use crate::quantity::Quantity;
use crate::requirement::{Operator, Requirement};
use crate::resources::{CPU, EPHEMERAL_STORAGE, HUGE_PAGES, MEMORY, PODS, Resources};

/// How a node is paid for. On one's own metal this is a way to group nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CapacityType {
    /// The usual kind.
    #[default]
    OnDemand,
    /// May be taken away, and costs half.
    Spot,
    /// Set aside beforehand.
    Reserved,
}

impl CapacityType {
    /// The value of its label.
    pub fn as_str(self) -> &'static str {
        match self {
            CapacityType::OnDemand => "on-demand",
            CapacityType::Spot => "spot",
            CapacityType::Reserved => "reserved",
        }
    }
}

/// What of a VM's resources pods cannot have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overhead {
    /// For the kubelet and the container runtime.
    pub kube_reserved: Resources,
    /// For the rest of the system.
    pub system_reserved: Resources,
    /// What must stay free, or pods are evicted.
    pub eviction_threshold: Resources,
}

/// A size of VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceType {
    /// Its name, which is a label value.
    pub name: String,
    /// What the VM has.
    pub capacity: Resources,
    /// What of it pods cannot have.
    pub overhead: Overhead,
    /// How it is paid for.
    pub capacity_type: CapacityType,
    /// How many volumes of a CSI driver it attaches; a driver that is not named is not limited.
    pub volume_attachment_limits: BTreeMap<String, u32>,
}

/// Cores of the built-in sizes.
const CORES: [i64; 5] = [1, 2, 4, 8, 16];

/// GiB of memory for each core, and the letter for it.
const FACTORS: [(i64, char); 4] = [(2, 'c'), (3, 't'), (4, 's'), (8, 'm')];

/// GiB of disk of every built-in size.
const STORAGE_GIB: i64 = 30;

const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;

impl InstanceType {
    /// The sizes there are if nobody brings a list: 1 to 16 cores, with 2, 3, 4 or 8 GiB for each.
    pub fn built_in() -> Vec<InstanceType> {
        let sizes = CORES.iter().flat_map(|cores| FACTORS.iter().map(move |factor| (*cores, *factor)));
        sizes.map(|(cores, (factor, letter))| InstanceType::sized(cores, cores * factor, letter)).collect()
    }

    fn sized(cores: i64, memory_gib: i64, letter: char) -> InstanceType {
        let pods = match memory_gib {
            ..=1 => 32,
            2 => 64,
            _ => 110,
        };
        let capacity = Resources::default()
            .with(CPU, Quantity::whole(cores))
            .with(MEMORY, Quantity::whole(memory_gib * GIB))
            .with(PODS, Quantity::whole(pods))
            .with(EPHEMERAL_STORAGE, Quantity::whole(STORAGE_GIB * GIB));
        InstanceType {
            name: format!("{letter}1.{cores}VCPU-{memory_gib}GB"),
            capacity,
            overhead: Overhead::for_size(cores, memory_gib),
            capacity_type: CapacityType::OnDemand,
            volume_attachment_limits: BTreeMap::new(),
        }
    }

    /// What pods can have: what is there, less what is kept back. Huge pages are set aside from the memory, and only
    /// pods that name them get them.
    pub fn allocatable(&self) -> Resources {
        let Overhead { kube_reserved, system_reserved, eviction_threshold } = &self.overhead;
        let kept_back = |resource: &str| -> Quantity {
            [kube_reserved, system_reserved, eviction_threshold].map(|kept| kept.get(resource)).into_iter().sum()
        };
        let left = |(resource, amount): (&str, Quantity)| (resource.to_owned(), amount - kept_back(resource));
        let left: Resources = self.capacity.iter().map(left).collect();
        let pages =
            left.iter().filter(|(resource, _)| resource.starts_with(HUGE_PAGES)).map(|(_, amount)| amount).sum();
        let free = |(resource, amount): (&str, Quantity)| {
            let amount = if resource == MEMORY { amount - pages } else { amount };
            (resource.to_owned(), amount.at_least_zero())
        };
        left.iter().map(free).collect()
    }

    /// What it counts as when sizes are compared: 0.025 for a core, 0.001 for a gigabyte, half for spot.
    pub fn price(&self) -> Price {
        let cores = f64::from(i32::try_from(self.capacity.get(CPU).milli_value()).unwrap_or(i32::MAX)) / 1e3;
        // Exact below 8 PiB, which no machine has.
        #[expect(clippy::cast_precision_loss, reason = "a price may be a millionth off")]
        let gigabytes = self.capacity.get(MEMORY).value() as f64 / 1e9;
        let full = 0.025 * cores + 0.001 * gigabytes;
        Price::new(if self.capacity_type == CapacityType::Spot { full / 2.0 } else { full })
    }

    /// The size as it can be had on these machines.
    pub fn offered_at(&self, places: &[Place]) -> CatalogType {
        let way = |place: &Place| Offering {
            requirements: [
                (REGION, place.region.as_str()),
                (ZONE, place.host.as_str()),
                (CAPACITY_TYPE, self.capacity_type.as_str()),
            ]
            .into_iter()
            .map(|(label, value)| (label.to_owned(), Requirement::is(value)))
            .collect(),
            price: self.price(),
            available: true,
            place: Some(place.clone()),
            ..Offering::default()
        };
        let one_of = |values: BTreeSet<&str>| Requirement::new(Operator::In, values.into_iter().map(str::to_owned));
        // Templates for another architecture would bring a field to say so.
        let facts = [
            (INSTANCE_TYPE, Some(Requirement::is(&self.name))),
            (INSTANCE_FAMILY, Some(Requirement::is(self.family()))),
            (CAPACITY_TYPE, Some(Requirement::is(self.capacity_type.as_str()))),
            (ARCH, Some(Requirement::is("amd64"))),
            (OS, Some(Requirement::is("linux"))),
            (REGION, one_of(places.iter().map(|place| place.region.as_str()).collect())),
            (ZONE, one_of(places.iter().map(|place| place.host.as_str()).collect())),
        ];
        CatalogType {
            name: self.name.clone(),
            requirements: facts.into_iter().filter_map(|(label, fact)| Some((label.to_owned(), fact?))).collect(),
            capacity: self.capacity.clone(),
            overhead: self.overhead.clone(),
            offerings: places.iter().map(way).collect(),
            volume_attachment_limits: self.volume_attachment_limits.clone(),
        }
    }

    /// The part of the name before the first dot.
    pub fn family(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }
}

impl Overhead {
    /// What a VM of this size keeps back for its kubelet and its system.
    fn for_size(cores: i64, memory_gib: i64) -> Overhead {
        let kube_cpu_milli = match cores {
            ..1 => 10,
            1 => 20,
            2 | 3 => 50,
            _ => 100,
        };
        let kube_memory_mib = match memory_gib {
            ..1 => 128,
            1 => 192,
            2 | 3 => 256,
            _ => 384,
        };
        let memory = |mib: i64| Quantity::whole(mib * MIB);
        Overhead {
            kube_reserved: Resources::default()
                .with(CPU, Quantity::milli(kube_cpu_milli))
                .with(MEMORY, memory(kube_memory_mib)),
            system_reserved: Resources::default().with(CPU, Quantity::milli(10)).with(MEMORY, memory(64)),
            eviction_threshold: Resources::default().with(MEMORY, memory(100)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built_in(name: &str) -> InstanceType {
        InstanceType::built_in().into_iter().find(|size| size.name == name).unwrap()
    }

    #[test]
    fn there_are_twenty_built_in_sizes_with_the_reference_names() {
        let names: Vec<String> = InstanceType::built_in().into_iter().map(|size| size.name).collect();
        assert_eq!(names.len(), 20);
        for name in ["c1.1VCPU-2GB", "t1.1VCPU-3GB", "s1.4VCPU-16GB", "m1.16VCPU-128GB"] {
            assert!(names.iter().any(|known| known == name), "{name} is not in {names:?}");
        }
    }

    #[test]
    fn pods_get_what_kubelet_and_system_leave_them() {
        let small = built_in("c1.1VCPU-2GB");
        assert_eq!(small.allocatable().get(CPU), Quantity::milli(970));
        assert_eq!(small.allocatable().get(MEMORY), Quantity::whole((2048 - 256 - 64 - 100) * MIB));
        assert_eq!(small.allocatable().get(PODS), Quantity::whole(64));
        let large = built_in("s1.4VCPU-16GB");
        assert_eq!(large.allocatable().get(CPU), Quantity::milli(3890));
        assert_eq!(large.allocatable().get(PODS), Quantity::whole(110));
        assert_eq!(large.family(), "s1");
    }

    #[test]
    fn huge_pages_are_taken_from_the_memory() {
        let amounts = |texts: &[(&str, &str)]| -> Resources {
            texts.iter().map(|(resource, amount)| (*resource, amount.parse().unwrap())).collect()
        };
        let sized = |pages: &str| InstanceType {
            capacity: amounts(&[(CPU, "4"), (MEMORY, "4Gi"), ("hugepages-2Mi", pages)]),
            overhead: Overhead {
                kube_reserved: amounts(&[(CPU, "100m"), (MEMORY, "10Mi"), ("example.com/gpu", "1")]),
                ..Overhead::default()
            },
            ..built_in("c1.1VCPU-2GB")
        };
        let left = sized("1Gi").allocatable();
        assert_eq!(left, amounts(&[(CPU, "3900m"), (MEMORY, "3062Mi"), ("hugepages-2Mi", "1Gi")]));
        assert_eq!(left.get(MEMORY).to_string(), "3062Mi");
        assert!(!left.names("example.com/gpu"), "what is not there is not kept back");
        assert_eq!(sized("4Gi").allocatable().get(MEMORY), Quantity::ZERO);
    }

    #[test]
    fn a_larger_size_counts_as_more_and_spot_as_half() {
        // 0.025 x 1 + 0.001 x 2.147483648
        let small = built_in("c1.1VCPU-2GB");
        assert!((small.price().value() - 0.027_147_483_648).abs() < 1e-12);
        let spot = InstanceType { capacity_type: CapacityType::Spot, ..small.clone() };
        assert_eq!(spot.price(), Price::new(small.price().value() / 2.0));
        assert!(built_in("t1.1VCPU-3GB").price() > small.price());
    }
}
