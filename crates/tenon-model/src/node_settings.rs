//! What does an operator say of the hosts: how their CPUs lie, and what of them no VM gets?

use std::collections::BTreeMap;

use crate::cpu_set::CpuSet;
use crate::place::Place;

/// Stands for every host of a region that has no entry of its own.
const ANY_HOST: &str = "*";

/// A NUMA node of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NumaCell {
    /// Its CPUs.
    pub cpus: CpuSet,
    /// Its memory.
    pub memory_bytes: u64,
}

/// What an operator says of a host. What is unset is found out otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostSettings {
    /// Sockets.
    pub sockets: Option<u32>,
    /// Threads of each core.
    pub threads: Option<u32>,
    /// Caches of the last level, of all sockets together.
    pub caches: Option<u32>,
    /// NUMA nodes, by number. Where there are any, they are all there are.
    pub cells: BTreeMap<u32, NumaCell>,
    /// CPUs that no VM gets.
    pub reserved_cpus: CpuSet,
    /// Memory that no VM gets; unset: what is kept back by default.
    pub reserved_memory_bytes: Option<u64>,
}

/// What an operator says of hosts, by region and by name of the host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeSettings {
    /// A host may be called `*`.
    pub regions: BTreeMap<String, BTreeMap<String, HostSettings>>,
}

impl NodeSettings {
    /// What is said of a host: by its own name, or else of every host of its region.
    pub fn of(&self, place: &Place) -> HostSettings {
        let hosts = self.regions.get(&place.region);
        let found = hosts.and_then(|hosts| hosts.get(place.host.as_str()).or_else(|| hosts.get(ANY_HOST)));
        found.cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_what_its_own_entry_says_and_only_without_one_what_is_said_of_all() {
        let with = |sockets| HostSettings { sockets: Some(sockets), ..HostSettings::default() };
        let hosts = [("*".to_owned(), with(1)), ("pve2".to_owned(), with(2))].into();
        let settings = NodeSettings { regions: [("lab".to_owned(), hosts)].into() };
        let sockets = |region: &str, host: &str| {
            settings.of(&Place { region: region.to_owned(), host: host.parse().unwrap() }).sockets
        };
        assert_eq!((sockets("lab", "pve1"), sockets("lab", "pve2"), sockets("far", "pve2")), (Some(1), Some(2), None));
    }
}
