//! How much of a Proxmox host VMs may have: what an operator decides for each cluster and host.

use std::collections::BTreeMap;

use crate::host::HostName;
use crate::quantity::Quantity;
use crate::resources::{CPU, MEMORY, Resources};

/// Memory that is kept for the host itself where nobody says otherwise: 1 GiB, as the reference does.
const MEMORY_RESERVE_BYTES: u64 = 1 << 30;

/// How much of a host VMs may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapacityRules {
    /// vCPUs for a hundred threads of the host: 100 gives each vCPU a thread of its own, 300 shares each by three.
    pub cpu_overcommit_percent: u32,
    /// Memory that is kept for the host itself. The rest is never given twice.
    pub memory_reserve_bytes: u64,
    /// Whether no VM of ours is created on it.
    pub excluded: bool,
}

impl Default for CapacityRules {
    fn default() -> CapacityRules {
        CapacityRules { cpu_overcommit_percent: 100, memory_reserve_bytes: MEMORY_RESERVE_BYTES, excluded: false }
    }
}

impl CapacityRules {
    /// What VMs may have of a host with so many threads and so much memory. Less than nothing is possible.
    pub fn usable(&self, threads: u64, memory_bytes: u64) -> Resources {
        let whole = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
        let milli = whole(threads).saturating_mul(10).saturating_mul(i64::from(self.cpu_overcommit_percent));
        let memory = whole(memory_bytes).saturating_sub(whole(self.memory_reserve_bytes));
        Resources::default().with(CPU, Quantity::milli(milli)).with(MEMORY, Quantity::whole(memory))
    }
}

/// The rules of one Proxmox cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegionCapacity {
    /// Those of every host that has none of its own.
    pub standard: CapacityRules,
    /// Those of single hosts.
    pub hosts: BTreeMap<HostName, CapacityRules>,
}

impl RegionCapacity {
    /// The rules of a host.
    pub fn of(&self, host: &HostName) -> CapacityRules {
        self.hosts.get(host).copied().unwrap_or(self.standard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn vms_may_have_every_thread_once_and_all_memory_but_one_gibibyte() {
        let usable = CapacityRules::default().usable(16, 64 * GIB);
        assert_eq!((usable.get(CPU), usable.get(MEMORY)), (Quantity::whole(16), Quantity::whole(63 << 30)));
    }

    #[test]
    fn threads_are_shared_as_far_as_the_operator_says_and_memory_is_not() {
        let rules = CapacityRules { cpu_overcommit_percent: 250, memory_reserve_bytes: 8 * GIB, excluded: false };
        let usable = rules.usable(10, 64 * GIB);
        assert_eq!((usable.get(CPU), usable.get(MEMORY)), (Quantity::whole(25), Quantity::whole(56 << 30)));
        assert_eq!(rules.usable(1, GIB).get(MEMORY), Quantity::whole(-(7 << 30)), "less than nothing is left");
    }

    #[test]
    fn a_host_with_rules_of_its_own_goes_by_them() {
        let own = CapacityRules { excluded: true, ..CapacityRules::default() };
        let rules = RegionCapacity { hosts: [("pve2".parse().unwrap(), own)].into(), ..RegionCapacity::default() };
        assert!(!rules.of(&"pve1".parse().unwrap()).excluded && rules.of(&"pve2".parse().unwrap()).excluded);
    }
}
