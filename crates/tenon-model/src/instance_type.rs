//! Sizes of VMs: what each has, what of it pods can have, and what it counts as.

use crate::quantity::Quantity;
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
            overhead: Overhead::for_cores(cores),
            capacity_type: CapacityType::OnDemand,
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

    /// What it counts as when sizes are compared, in millionths: a core 25,000, a gigabyte 1,000, half for spot.
    ///
    /// A whole number, so that equal sizes compare equal on every machine.
    pub fn price_micros(&self) -> i64 {
        let cores = self.capacity.get(CPU).milli_value().saturating_mul(25);
        let memory = self.capacity.get(MEMORY).value() / 1_000_000;
        let full = cores.saturating_add(memory);
        if self.capacity_type == CapacityType::Spot { full / 2 } else { full }
    }

    /// The part of the name before the first dot.
    pub fn family(&self) -> &str {
        self.name.split('.').next().unwrap_or_default()
    }
}

impl Overhead {
    /// What the reference keeps back for a VM of this size. Its memory ladder compares MiB with GiB and always ends at
    /// 384 MiB; nodes that already run were sized by that, so it stays.
    fn for_cores(cores: i64) -> Overhead {
        let kube_cpu_milli = match cores {
            ..1 => 10,
            1 => 20,
            2 | 3 => 50,
            _ => 100,
        };
        let memory = |mib: i64| Quantity::whole(mib * MIB);
        Overhead {
            kube_reserved: Resources::default().with(CPU, Quantity::milli(kube_cpu_milli)).with(MEMORY, memory(384)),
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
    fn pods_get_what_the_reference_leaves_them() {
        let small = built_in("c1.1VCPU-2GB");
        assert_eq!(small.allocatable().get(CPU), Quantity::milli(970));
        assert_eq!(small.allocatable().get(MEMORY), Quantity::whole((2048 - 384 - 64 - 100) * MIB));
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
        assert_eq!(small.price_micros(), 27_147);
        let spot = InstanceType { capacity_type: CapacityType::Spot, ..small.clone() };
        assert_eq!(spot.price_micros(), 13_573);
        assert!(built_in("t1.1VCPU-3GB").price_micros() > small.price_micros());
    }
}
