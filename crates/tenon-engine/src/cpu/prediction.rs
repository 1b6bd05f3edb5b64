//! Which NUMA nodes does a host have, if nobody says so? Guessed from its CPU model, as the reference does. A model that nobody
//! knows has one NUMA node for each socket.

use tenon_model::{CpuSet, NumaCell};

use super::layout::Layout;

/// What Proxmox says of the CPUs of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuFacts {
    /// Logical CPUs.
    pub cpus: u32,
    /// Cores of all sockets; 0 if that is not known.
    pub cores: u32,
    /// Sockets; 0 if that is not known.
    pub sockets: u32,
    /// The model, such as `AMD EPYC 7763 64-Core Processor`.
    pub model: String,
    /// Memory.
    pub memory_bytes: u64,
}

/// The layout that the model of a CPU suggests.
pub(super) fn predict(facts: &CpuFacts, threads: Option<u32>) -> Layout {
    let sockets = facts.sockets.max(1);
    let cores = if facts.cores == 0 { facts.cpus } else { facts.cores };
    let threads = threads.unwrap_or_else(|| facts.cpus / cores.max(1)).max(1);
    let is_even = facts.cpus.is_multiple_of(threads);
    // Cores of two kinds: only the number of CPUs is certain.
    let (threads, cores) = if is_even { (threads, facts.cpus / threads) } else { (1, facts.cpus) };
    let model = Model::of(&facts.model);
    let caches = model.caches(cores, sockets);
    let wanted = model.nodes_per_socket() * sockets;
    // NUMA nodes without CPUs are none.
    let nodes = if wanted <= cores { wanted } else { 1 };
    let first = |number: u32| u32::try_from(u64::from(cores) * u64::from(number) / u64::from(nodes)).unwrap_or(0);
    let cell = |node: u32| {
        let own = first(node)..first(node + 1);
        let siblings = (0..threads).flat_map(|thread| own.clone().map(move |core| core + thread * cores));
        (node, NumaCell { cpus: siblings.collect::<CpuSet>(), memory_bytes: facts.memory_bytes / u64::from(nodes) })
    };
    Layout { sockets, threads, caches, cells: (0..nodes).map(cell).collect() }
}

/// What a model name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Model {
    /// The second and the last digit of its number.
    Epyc(u32, u32),
    Intel,
    Other,
}

impl Model {
    fn of(name: &str) -> Model {
        if let Some((_, rest)) = name.split_once("AMD EPYC ") {
            let number: Vec<u32> = rest.trim_start().chars().map_while(|letter| letter.to_digit(10)).collect();
            if let [_, second, _, last] = number[..] {
                return Model::Epyc(second, last);
            }
        }
        if name.contains("Intel") { Model::Intel } else { Model::Other }
    }

    /// The series says how many cores share a cache, the generation how many NUMA nodes a socket usually has.
    fn nodes_per_socket(self) -> u32 {
        match self {
            Model::Epyc(_, 1 | 2 | 4 | 5) => 4,
            _ => 1,
        }
    }

    fn caches(self, cores: u32, sockets: u32) -> u32 {
        let share = match self {
            Model::Epyc(2 | 3, _) => 4,
            Model::Epyc(4, _) => 6,
            Model::Epyc(5..=8, _) => 8,
            Model::Intel => return sockets,
            Model::Epyc(..) | Model::Other => return 0,
        };
        ((cores / sockets) / share).max(1) * sockets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predicted(model: &str, cpus: u32, cores: u32, sockets: u32) -> Layout {
        let facts = CpuFacts { cpus, cores, sockets, model: model.to_owned(), memory_bytes: 256 << 30 };
        predict(&facts, None)
    }

    fn cells(layout: &Layout) -> Vec<String> {
        layout.cells.values().map(|cell| cell.cpus.to_string()).collect()
    }

    #[test]
    fn an_epyc_has_numa_nodes_by_generation_and_caches_by_series() {
        let rome = predicted("AMD EPYC 7502 32-Core Processor", 128, 64, 2);
        assert_eq!((rome.cells.len(), rome.threads, rome.caches), (8, 2, 8));
        assert_eq!(cells(&rome)[1], "8-15,72-79");
        assert_eq!(rome.cells[&0].memory_bytes, 32 << 30);
        let milan = predicted("AMD EPYC 7763 64-Core Processor", 128, 64, 1);
        assert_eq!((milan.cells.len(), milan.caches, cells(&milan)), (1, 8, vec!["0-127".to_owned()]));
        let genoa = predicted("AMD EPYC 9354P 32-Core Processor", 64, 32, 1);
        assert_eq!((genoa.cells.len(), genoa.caches), (4, 8));
    }

    #[test]
    fn a_socket_of_any_other_model_is_one_numa_node() {
        let xeon = predicted("Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz", 80, 40, 2);
        assert_eq!((xeon.caches, cells(&xeon)), (2, vec!["0-19,40-59".to_owned(), "20-39,60-79".to_owned()]));
        for model in [
            "AMD Ryzen 9 5950X 16-Core Processor",
            "QEMU Virtual CPU version 2.5+",
            "Neoverse-N1",
            "",
            "AMD EPYC-Milan",
        ] {
            let layout = predicted(model, 8, 8, 2);
            assert_eq!((layout.caches, cells(&layout)), (0, vec!["0-3".to_owned(), "4-7".to_owned()]), "{model}");
        }
    }

    #[test]
    fn cores_of_two_kinds_are_counted_by_their_cpus() {
        let hybrid = predicted("12th Gen Intel(R) Core(TM) i7-12700H", 20, 14, 1);
        assert_eq!((hybrid.threads, cells(&hybrid)), (1, vec!["0-19".to_owned()]));
    }

    #[test]
    fn what_proxmox_does_not_say_is_one_socket_without_siblings() {
        let unknown = predicted("", 6, 0, 0);
        assert_eq!((unknown.sockets, unknown.threads, cells(&unknown)), (1, 1, vec!["0-5".to_owned()]));
        // A small VM that says it is a large CPU.
        assert_eq!(cells(&predicted("AMD EPYC 7502 32-Core Processor", 2, 2, 1)), ["0-1"]);
        assert_eq!(predicted("", 0, 0, 0).cpus().count(), 0);
    }
}
