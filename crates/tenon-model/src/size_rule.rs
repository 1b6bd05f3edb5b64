//! The rule that the built-in instance types follow: so many cores, so much memory for each core.

use std::collections::BTreeMap;

use crate::instance_type::{CapacityType, InstanceType, Overhead};
use crate::quantity::Quantity;
use crate::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resources};

const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;

/// Instance types for every number of cores with every amount of memory for each core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeRule {
    /// Numbers of cores.
    pub cores: Vec<i64>,
    /// GiB of memory for each core.
    pub memory_factors: Vec<i64>,
    /// GiB of disk; 0 says nothing of the disk.
    pub storage_gib: i64,
    /// What is kept back for whom.
    pub reserves: Reserves,
}

/// For whom something of a VM is kept back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reserves {
    /// For the kubelet and the container runtime.
    pub kubelet: bool,
    /// For the rest of the system.
    pub system: bool,
    /// What must stay free, or pods are evicted.
    pub eviction: bool,
}

impl Default for SizeRule {
    /// The rule of the built-in instance types.
    fn default() -> SizeRule {
        SizeRule {
            cores: vec![1, 2, 4, 8, 16],
            memory_factors: vec![2, 3, 4, 8],
            storage_gib: 30,
            reserves: Reserves { kubelet: true, system: true, eviction: true },
        }
    }
}

impl SizeRule {
    /// The instance types, by cores and then by memory.
    pub fn instance_types(&self) -> Vec<InstanceType> {
        let pairs = self.cores.iter().flat_map(|cores| self.memory_factors.iter().map(move |factor| (*cores, *factor)));
        pairs.map(|(cores, factor)| self.sized(cores, factor)).collect()
    }

    fn sized(&self, cores: i64, factor: i64) -> InstanceType {
        let memory_gib = cores * factor;
        let pods = match memory_gib {
            ..=1 => 32,
            2 => 64,
            _ => 110,
        };
        let mut capacity = Resources::default()
            .with(CPU, Quantity::whole(cores))
            .with(MEMORY, Quantity::whole(memory_gib * GIB))
            .with(PODS, Quantity::whole(pods));
        if self.storage_gib > 0 {
            capacity = capacity.with(EPHEMERAL_STORAGE, Quantity::bytes(self.storage_gib * GIB));
        }
        InstanceType {
            name: format!("{}1.{cores}VCPU-{memory_gib}GB", letter(factor)),
            capacity,
            overhead: self.reserves.of_size(cores, memory_gib),
            capacity_type: CapacityType::OnDemand,
            volume_attachment_limits: BTreeMap::new(),
            price: None,
        }
    }
}

/// The letter of a family, by the GiB of memory for each core.
fn letter(factor: i64) -> char {
    match factor {
        2 => 'c',
        3 => 't',
        4 => 's',
        8 => 'm',
        16 => 'x',
        _ => 'e',
    }
}

impl Reserves {
    /// What a VM of this size keeps back.
    fn of_size(self, cores: i64, memory_gib: i64) -> Overhead {
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
        let memory = |mib: i64| Quantity::bytes(mib * MIB);
        let both = |cpu_milli: i64, mib: i64| {
            Resources::default().with(CPU, Quantity::milli(cpu_milli)).with(MEMORY, memory(mib))
        };
        let kept = |is_kept: bool, amounts: Resources| if is_kept { amounts } else { Resources::default() };
        Overhead {
            kube_reserved: kept(self.kubelet, both(kube_cpu_milli, kube_memory_mib)),
            system_reserved: kept(self.system, both(10, 64)),
            eviction_threshold: kept(self.eviction, Resources::default().with(MEMORY, memory(100))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_twenty_built_in_instance_types_with_the_reference_names() {
        let names: Vec<String> = InstanceType::built_in().into_iter().map(|size| size.name).collect();
        assert_eq!(names.len(), 20);
        for name in ["c1.1VCPU-2GB", "t1.1VCPU-3GB", "s1.4VCPU-16GB", "m1.16VCPU-128GB"] {
            assert!(names.iter().any(|known| known == name), "{name} is not in {names:?}");
        }
    }

    #[test]
    fn a_family_is_named_by_its_memory_for_each_core() {
        let rule = SizeRule { cores: vec![2], memory_factors: vec![1, 16, 5], ..SizeRule::default() };
        let names: Vec<String> = rule.instance_types().into_iter().map(|size| size.name).collect();
        assert_eq!(names, ["e1.2VCPU-2GB", "x1.2VCPU-32GB", "e1.2VCPU-10GB"]);
    }

    #[test]
    fn the_kubelet_keeps_back_more_memory_of_a_larger_vm() {
        let rule = SizeRule { cores: vec![1, 4], memory_factors: vec![1, 2, 3, 4], ..SizeRule::default() };
        let kept = |size: &InstanceType| size.overhead.kube_reserved.get(MEMORY).to_string();
        let kept: Vec<String> = rule.instance_types().iter().map(kept).collect();
        assert_eq!(kept, ["192Mi", "256Mi", "256Mi", "384Mi", "384Mi", "384Mi", "384Mi", "384Mi"]);
    }

    #[test]
    fn nothing_is_kept_back_and_no_disk_named_unless_the_rule_says_so() {
        let bare = SizeRule { storage_gib: 0, reserves: Reserves::default(), ..SizeRule::default() };
        let size = bare.instance_types().remove(0);
        assert_eq!(size.overhead, Overhead::default());
        assert!(!size.capacity.names(EPHEMERAL_STORAGE));
        assert_eq!(size.capacity.get(PODS), Quantity::whole(64));
    }
}
