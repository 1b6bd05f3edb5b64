//! How the CPUs and the memory of a machine lie, what of them is left, and which of them a VM is bound to.

use std::sync::Arc;

use crate::cpu_set::CpuSet;

/// Whether VMs are bound to CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NodePolicy {
    /// They are not: CPUs and memory are only counted.
    #[default]
    Simple,
    /// Each VM has CPUs of its own, and memory of the NUMA nodes that these CPUs belong to.
    Static,
}

/// A logical CPU of a machine and what it is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thread {
    /// Its number.
    pub cpu: u32,
    /// The core; threads of one core share it.
    pub core: u32,
    /// The cache that its core shares with others.
    pub cache: u32,
    /// The NUMA node.
    pub node: u32,
    /// The socket.
    pub socket: u32,
}

/// How the CPUs of a machine lie.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuTopology {
    /// All CPUs, by number.
    pub threads: Vec<Thread>,
    /// Whether it is known which cores share a cache.
    pub has_caches: bool,
}

impl CpuTopology {
    /// How many sockets there are.
    pub fn sockets(&self) -> usize {
        self.count(|thread| thread.socket)
    }

    /// How many NUMA nodes have CPUs.
    pub fn nodes(&self) -> usize {
        self.count(|thread| thread.node)
    }

    /// How many threads a core has at most.
    pub fn threads_per_core(&self) -> usize {
        self.threads.len().div_ceil(self.count(|thread| thread.core).max(1)).max(1)
    }

    fn count(&self, part: impl Fn(&Thread) -> u32) -> usize {
        let mut parts: Vec<u32> = self.threads.iter().map(part).collect();
        parts.sort_unstable();
        parts.dedup();
        parts.len()
    }
}

/// What is left of a NUMA node of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellRoom {
    /// Its number.
    pub node: u32,
    /// The socket it belongs to; the first of several.
    pub socket: u32,
    /// CPUs that no VM is bound to and nobody reserved.
    pub cpus: CpuSet,
    /// Memory that is bound to no VM. Less than nothing is possible: machines were in use before we came.
    pub memory_mib: i64,
}

/// What is left of a machine for VMs that are bound to CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuRoom {
    /// How its CPUs lie.
    pub topology: Arc<CpuTopology>,
    /// Its NUMA nodes, by number.
    pub cells: Vec<CellRoom>,
}

impl CpuRoom {
    /// Takes what a VM is bound to.
    pub fn hold(&mut self, pinning: &Pinning) {
        for (cell, held) in self.with(pinning) {
            cell.cpus = cell.cpus.without(&held.cpus);
            cell.memory_mib = cell.memory_mib.saturating_sub(mib(held.memory_mib));
        }
    }

    /// Gives it back: what was held before is left again, and nothing else.
    pub fn release(&mut self, pinning: &Pinning) {
        for (cell, held) in self.with(pinning) {
            cell.cpus = cell.cpus.with(&held.cpus);
            cell.memory_mib = cell.memory_mib.saturating_add(mib(held.memory_mib));
        }
    }

    fn with<'p>(&mut self, pinning: &'p Pinning) -> impl Iterator<Item = (&mut CellRoom, &'p PinnedCell)> {
        self.cells.iter_mut().filter_map(|cell| {
            let held = pinning.cells.iter().find(|held| held.node == cell.node)?;
            Some((cell, held))
        })
    }
}

fn mib(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

/// What a VM is bound to on its host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pinning {
    /// By number of the NUMA node. A VM sees one NUMA node for each, in this order.
    pub cells: Vec<PinnedCell>,
}

/// What a VM is bound to of one NUMA node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedCell {
    /// The NUMA node of the host.
    pub node: u32,
    /// CPUs of the host.
    pub cpus: CpuSet,
    /// Memory.
    pub memory_mib: u64,
}

impl Pinning {
    /// All CPUs.
    pub fn cpus(&self) -> CpuSet {
        self.cells.iter().fold(CpuSet::default(), |all, cell| all.with(&cell.cpus))
    }

    /// All CPUs as a text, NUMA node by NUMA node: the first is that of the VM's first CPU.
    pub fn affinity(&self) -> String {
        let cells: Vec<String> = self.cells.iter().map(|cell| cell.cpus.to_string()).collect();
        cells.join(",")
    }

    /// All memory.
    pub fn memory_mib(&self) -> u64 {
        self.cells.iter().map(|cell| cell.memory_mib).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_is_there_again() {
        let cell = |node, cpus: &str| CellRoom { node, socket: 0, cpus: cpus.parse().unwrap(), memory_mib: 100 };
        let cells = vec![cell(0, "0-3"), cell(1, "4-7")];
        let before = CpuRoom { topology: Arc::default(), cells };
        let held = |node, cpus: &str| PinnedCell { node, cpus: cpus.parse().unwrap(), memory_mib: 70 };
        let pinning = Pinning { cells: vec![held(0, "1-2"), held(1, "4,7")] };
        let mut room = before.clone();
        room.hold(&pinning);
        assert_eq!((room.cells[0].cpus.to_string(), room.cells[1].cpus.to_string()), ("0,3".into(), "5-6".into()));
        assert_eq!(room.cells[1].memory_mib, 30);
        room.release(&pinning);
        assert_eq!(room, before);
        assert_eq!((pinning.affinity(), pinning.memory_mib()), ("1-2,4,7".to_owned(), 140));
        assert_eq!(pinning.cpus().count(), 4);
    }
}
