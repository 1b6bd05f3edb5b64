//! What does a host say of itself? Its daemon writes it as the options of a VM that never runs, named `node-capacity`.

use std::collections::BTreeMap;

use tenon_model::{CpuSet, CpuSetError, NumaCell};

/// A NUMA node of the VM: the numbers of its CPUs, the host's NUMA node they stand for, and its memory in MiB.
pub type GuestCell<'a> = (&'a str, &'a str, u64);

/// The NUMA nodes of a host, as its VM `node-capacity` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapacityVm {
    cells: BTreeMap<u32, NumaCell>,
}

/// Why a VM `node-capacity` says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapacityVmError {
    /// A list of CPUs is none.
    #[error(transparent)]
    Cpus(#[from] CpuSetError),
    /// It has no NUMA nodes.
    #[error("it has no option numa0")]
    NoNodes,
    /// A NUMA node has a CPU that the VM is not bound to.
    #[error("option affinity has no CPU for CPU {0} of the VM")]
    NoCpu(u32),
    /// A NUMA node stands for several, or for none.
    #[error("`{0}` is not the number of one NUMA node of the host")]
    NotOneNode(String),
}

impl CapacityVm {
    /// Reads option `affinity`, which names the host's CPU of each CPU of the VM in turn, and the NUMA nodes.
    pub fn read(affinity: &str, nodes: &[GuestCell<'_>]) -> Result<CapacityVm, CapacityVmError> {
        let hosts = CpuSet::in_order(affinity)?;
        let mut cells: BTreeMap<u32, NumaCell> = BTreeMap::new();
        for (cpus, node, memory_mib) in nodes {
            let number = node.parse().map_err(|_| CapacityVmError::NotOneNode((*node).to_owned()))?;
            let of_host = |guest: u32| {
                let known = usize::try_from(guest).ok().and_then(|guest| hosts.get(guest));
                known.copied().ok_or(CapacityVmError::NoCpu(guest))
            };
            let cpus = cpus.parse::<CpuSet>()?.of_machine()?.iter().map(of_host).collect::<Result<CpuSet, _>>()?;
            let cell = cells.entry(number).or_default();
            cell.cpus = cell.cpus.with(&cpus);
            cell.memory_bytes = cell.memory_bytes.saturating_add(memory_mib.saturating_mul(1 << 20));
        }
        if cells.is_empty() { Err(CapacityVmError::NoNodes) } else { Ok(CapacityVm { cells }) }
    }

    pub(super) fn cells(&self) -> BTreeMap<u32, NumaCell> {
        self.cells.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_of_the_vm_stand_for_cpus_of_the_host() {
        let vm = CapacityVm::read("0-3,8-11,4-7,12-15", &[("0-7", "0", 2048), ("8-15", "1", 1024)]).unwrap();
        let cells = vm.cells();
        assert_eq!(cells[&0].cpus.to_string(), "0-3,8-11");
        assert_eq!(cells[&1].cpus.to_string(), "4-7,12-15");
        assert_eq!((cells[&0].memory_bytes, cells[&1].memory_bytes), (2 << 30, 1 << 30));
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let said = |affinity: &str, nodes: &[GuestCell<'_>]| CapacityVm::read(affinity, nodes).unwrap_err().to_string();
        assert_eq!(said("0-3", &[("0-7", "0", 1)]), "option affinity has no CPU for CPU 4 of the VM");
        assert_eq!(said("0-3", &[("0-3", "0-1", 1)]), "`0-1` is not the number of one NUMA node of the host");
        assert_eq!(said("0-3", &[]), "it has no option numa0");
        assert_eq!(said("", &[]), "`` is not a list of CPU numbers such as 0-3,8-11");
    }
}
