//! How do the CPUs of a host lie? Proxmox does not say. Of those who may know, an operator is believed first, the host itself
//! next, and the model of its CPU last.

use std::collections::{BTreeMap, BTreeSet};

use tenon_model::{CpuSet, CpuTopology, HostSettings, NumaCell, Thread};

use super::capacity_vm::CapacityVm;
use super::prediction::{CpuFacts, predict};

/// How the CPUs and the memory of a host lie.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layout {
    /// Sockets.
    pub sockets: u32,
    /// Threads of each core.
    pub threads: u32,
    /// Caches of the last level, of all sockets together; 0 if that is not known.
    pub caches: u32,
    /// NUMA nodes, by number.
    pub cells: BTreeMap<u32, NumaCell>,
}

/// Who says how the NUMA nodes of a host lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutSource {
    /// The file with node settings.
    Settings,
    /// The VM `node-capacity`, which the host describes itself by.
    CapacityVm,
    /// The model of its CPU: NUMA nodes are guessed.
    Prediction,
}

impl Layout {
    /// The layout of a host, and who says so. Whoever knows NUMA nodes knows all of them: nothing of a worse source is added.
    pub fn of(facts: &CpuFacts, settings: &HostSettings, vm: Option<&CapacityVm>) -> (Layout, LayoutSource) {
        let facts = CpuFacts { sockets: settings.sockets.unwrap_or(facts.sockets), ..facts.clone() };
        let mut layout = predict(&facts, settings.threads);
        layout.caches = settings.caches.unwrap_or(layout.caches);
        if !settings.cells.is_empty() {
            layout.cells.clone_from(&settings.cells);
            return (layout, LayoutSource::Settings);
        }
        if let Some(vm) = vm {
            layout.cells = vm.cells();
            return (layout, LayoutSource::CapacityVm);
        }
        (layout, LayoutSource::Prediction)
    }

    /// Its CPUs.
    pub fn cpus(&self) -> CpuSet {
        self.cells.values().fold(CpuSet::default(), |all, cell| all.with(&cell.cpus))
    }

    /// Its memory.
    pub fn memory_bytes(&self) -> u64 {
        self.cells.values().map(|cell| cell.memory_bytes).sum()
    }

    /// What each CPU is part of. The first threads of all cores are numbered first, socket by socket, and then their siblings
    /// in the same order, as Linux does.
    pub fn topology(&self) -> CpuTopology {
        let cpus: Vec<(u32, u32)> = self.numbered();
        let count = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
        let threads = self.threads.max(1);
        // What does not divide evenly, such as a CPU with cores of two kinds, has no siblings that could be told.
        let cores = if count.is_multiple_of(threads) { (count / threads).max(1) } else { count };
        let per_socket = (cores / self.sockets.max(1)).max(1);
        let per_cache = cores.checked_div(self.caches).unwrap_or(cores).max(1);
        let thread = |(cpu, node): (u32, u32)| {
            let core = if cpu < cores { cpu } else { cpu - cores };
            let core = if core < cores { core } else { cpu };
            let socket = (core / per_socket).min(self.sockets.max(1) - 1);
            Thread { cpu, core, cache: core / per_cache, node, socket }
        };
        CpuTopology { threads: cpus.into_iter().map(thread).collect(), has_caches: self.caches > 0 }
    }

    /// Each CPU once, with its NUMA node: the first that names it.
    fn numbered(&self) -> Vec<(u32, u32)> {
        let mut seen = BTreeSet::new();
        let all = self.cells.iter().flat_map(|(node, cell)| cell.cpus.iter().map(|cpu| (cpu, *node)));
        let mut cpus: Vec<(u32, u32)> = all.filter(|(cpu, _)| seen.insert(*cpu)).collect();
        cpus.sort_unstable();
        cpus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(cpus: u32, cores: u32, sockets: u32) -> CpuFacts {
        let model = "Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz".to_owned();
        CpuFacts { cpus, cores, sockets, model, memory_bytes: 64 << 30 }
    }

    fn cell(cpus: &str) -> NumaCell {
        NumaCell { cpus: cpus.parse().unwrap(), memory_bytes: 1 << 30 }
    }

    #[test]
    fn an_operator_is_believed_first_the_host_next_and_the_model_last() {
        let vm = CapacityVm::read("0-1,4-5,2-3,6-7", &[("0-3", "0", 1024), ("4-7", "3", 1024)]).unwrap();
        let settings = HostSettings { cells: [(7, cell("0-7"))].into(), ..HostSettings::default() };
        let nodes = |(layout, source): (Layout, LayoutSource)| (layout.cells.into_keys().collect::<Vec<_>>(), source);
        let facts = facts(8, 4, 2);
        assert_eq!(nodes(Layout::of(&facts, &settings, Some(&vm))), (vec![7], LayoutSource::Settings));
        let none = HostSettings::default();
        assert_eq!(nodes(Layout::of(&facts, &none, Some(&vm))), (vec![0, 3], LayoutSource::CapacityVm));
        assert_eq!(nodes(Layout::of(&facts, &none, None)), (vec![0, 1], LayoutSource::Prediction));
        let one = HostSettings { sockets: Some(1), ..HostSettings::default() };
        assert_eq!(nodes(Layout::of(&facts, &one, None)), (vec![0], LayoutSource::Prediction));
    }

    #[test]
    fn siblings_share_a_core_and_cores_lie_socket_by_socket() {
        let (layout, _) = Layout::of(&facts(16, 8, 2), &HostSettings::default(), None);
        let topology = layout.topology();
        let of = |cpu: usize| topology.threads[cpu];
        assert_eq!((of(0).core, of(8).core, of(15).core), (0, 0, 7));
        assert_eq!((of(3).socket, of(4).socket, of(11).socket, of(12).socket), (0, 1, 0, 1));
        assert_eq!((of(3).node, of(4).node, of(11).node, of(12).node), (0, 1, 0, 1));
        assert_eq!((topology.sockets(), topology.nodes(), topology.threads_per_core()), (2, 2, 2));
    }

    #[test]
    fn every_cpu_of_a_hybrid_machine_is_there() {
        let (layout, _) = Layout::of(&facts(20, 14, 1), &HostSettings::default(), None);
        assert_eq!((layout.cpus().count(), layout.topology().threads.len()), (20, 20));
        let cores: BTreeSet<u32> = layout.topology().threads.iter().map(|thread| thread.core).collect();
        assert_eq!(cores.len(), 20, "siblings cannot be told");
    }

    #[test]
    fn cpus_with_holes_in_their_numbers_are_all_there() {
        let settings = HostSettings { cells: [(0, cell("0-3,100-103"))].into(), ..HostSettings::default() };
        let (layout, _) = Layout::of(&facts(8, 4, 1), &settings, None);
        assert_eq!(layout.topology().threads.iter().map(|thread| thread.cpu).max(), Some(103));
    }
}
