//! What is a VM bound to on a host, and is there enough for it?

use tenon_model::{CpuRoom, PinnedCell, Pinning};

use super::cells::{CellFree, cells_for};
use super::memory::{Share, split};
use super::take::take;

/// What a VM needs to be bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) cpus: u64,
    pub(crate) memory_mib: u64,
}

/// What is short where a VM cannot be bound, and how much of it there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unpinnable {
    Cpus(u64),
    MemoryMib(u64),
}

/// Whether a VM could be bound, if what another one is bound to were given back.
pub(crate) fn fits(room: &CpuRoom, need: Need, given_back: Option<&Pinning>) -> bool {
    cells_for(&free(room, given_back), need).is_some()
}

/// What a VM is bound to; nothing if there is not enough.
pub(crate) fn pin(room: &CpuRoom, need: Need) -> Option<Pinning> {
    let free = free(room, None);
    let chosen = cells_for(&free, need)?;
    let counts = packed(room, &chosen, need).unwrap_or_else(|| spread(room, &chosen, need));
    let shares: Vec<Share> =
        chosen.iter().zip(&counts).map(|(at, cpus)| Share { cpus: *cpus, memory_mib: free[*at].memory_mib }).collect();
    let memory = split(need.memory_mib, &shares)?;
    let cell = |((at, cpus), memory_mib): ((&usize, &u64), u64)| {
        let cell = room.cells.get(*at)?;
        let cpus = take(&room.topology, &cell.cpus, usize::try_from(*cpus).ok()?)?;
        Some(PinnedCell { node: cell.node, cpus, memory_mib })
    };
    let cells = chosen.iter().zip(&counts).zip(memory).map(cell).collect::<Option<_>>()?;
    Some(Pinning { cells })
}

/// Why a VM cannot be bound.
pub(crate) fn shortage(room: &CpuRoom, need: Need) -> Option<Unpinnable> {
    let free = free(room, None);
    if cells_for(&free, need).is_some() {
        return None;
    }
    let useful = || free.iter().filter(|cell| cell.cpus > 0 && cell.memory_mib > 0);
    let cpus: u64 = useful().map(|cell| cell.cpus).sum();
    if cpus < need.cpus {
        return Some(Unpinnable::Cpus(cpus));
    }
    let memory: u64 = useful().map(|cell| cell.memory_mib).sum();
    // There would be enough, but on more NUMA nodes than the VM can have: then a single one counts.
    let largest = useful().map(|cell| cell.memory_mib).max().unwrap_or_default();
    Some(Unpinnable::MemoryMib(if memory < need.memory_mib { memory } else { largest }))
}

fn free(room: &CpuRoom, given_back: Option<&Pinning>) -> Vec<CellFree> {
    let cell = |cell: &tenon_model::CellRoom| {
        let given_back = given_back.and_then(|pinning| pinning.cells.iter().find(|held| held.node == cell.node));
        let more = given_back.map_or(0, |held| held.memory_mib);
        CellFree {
            cpus: cell.cpus.count() + given_back.map_or(0, |held| held.cpus.count()),
            memory_mib: u64::try_from(cell.memory_mib.saturating_add_unsigned(more)).unwrap_or(0),
            socket: cell.socket,
        }
    };
    room.cells.iter().map(cell).collect()
}

/// How many CPUs of each NUMA node, if the VM takes those that are best taken together; nothing if one would have none.
fn packed(room: &CpuRoom, chosen: &[usize], need: Need) -> Option<Vec<u64>> {
    let cells: Vec<_> = chosen.iter().filter_map(|at| room.cells.get(*at)).collect();
    let free = cells.iter().fold(tenon_model::CpuSet::default(), |free, cell| free.with(&cell.cpus));
    let taken = take(&room.topology, &free, usize::try_from(need.cpus).ok()?)?;
    let counts: Vec<u64> = cells.iter().map(|cell| cell.cpus.shared_with(&taken).count()).collect();
    counts.iter().all(|count| *count > 0).then_some(counts)
}

/// How many CPUs of each NUMA node, if several are needed only for their memory: evenly.
fn spread(room: &CpuRoom, chosen: &[usize], need: Need) -> Vec<u64> {
    let free: Vec<u64> = chosen.iter().map(|at| room.cells.get(*at).map_or(0, |cell| cell.cpus.count())).collect();
    let mut given: Vec<u64> = vec![1; chosen.len()];
    let mut left = need.cpus.saturating_sub(given.len() as u64);
    while left > 0 {
        let open = (0..given.len()).filter(|at| given[*at] < free[*at]);
        let Some(at) = open.min_by_key(|at| (given[*at], *at)) else { break };
        given[at] += 1;
        left -= 1;
    }
    given
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tenon_model::{HostSettings, NumaCell};

    use super::super::layout::Layout;
    use super::super::room::{Bound, room};
    use super::*;

    fn cell((cpus, memory_mib): (&str, u64)) -> NumaCell {
        NumaCell { cpus: cpus.parse().unwrap(), memory_bytes: memory_mib << 20 }
    }

    /// Two sockets of one NUMA node with four cores of two threads each, and so much memory.
    fn machine(memory_mib: [u64; 2]) -> CpuRoom {
        let cells = [(0, cell(("0-3,8-11", memory_mib[0]))), (1, cell(("4-7,12-15", memory_mib[1])))].into();
        let layout = Layout { sockets: 2, threads: 2, caches: 0, cells };
        let settings = HostSettings { reserved_memory_bytes: Some(0), ..HostSettings::default() };
        room(&layout, &settings, &[]).room
    }

    fn pinned(room: &CpuRoom, cpus: u64, memory_mib: u64) -> Option<String> {
        let found = pin(room, Need { cpus, memory_mib })?;
        let cell = |cell: &PinnedCell| format!("{}: {} {}", cell.node, cell.cpus, cell.memory_mib);
        Some(found.cells.iter().map(cell).collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn a_vm_that_fits_on_one_numa_node_is_on_one() {
        let mut room = machine([8192, 8192]);
        assert_eq!(pinned(&room, 4, 4096).as_deref(), Some("0: 0-1,8-9 4096"));
        room.hold(&pin(&room, Need { cpus: 4, memory_mib: 4096 }).unwrap());
        assert_eq!(pinned(&room, 4, 4096).as_deref(), Some("0: 2-3,10-11 4096"));
        assert_eq!(pinned(&room, 4, 8000).as_deref(), Some("1: 4-5,12-13 8000"), "node 0 has too little memory left");
    }

    #[test]
    fn a_vm_that_is_too_large_for_one_has_its_memory_where_its_cpus_are() {
        let room = machine([8192, 8192]);
        assert_eq!(pinned(&room, 12, 12288).as_deref(), Some("0: 0-3,8-11 8192, 1: 4-5,12-13 4096"));
        assert_eq!(pinned(&room, 16, 16384).as_deref(), Some("0: 0-3,8-11 8192, 1: 4-7,12-15 8192"));
        assert_eq!(pinned(&room, 4, 10240).as_deref(), Some("0: 0,8 5120, 1: 4,12 5120"), "memory needs both");
        assert_eq!(pinned(&room, 16, 16385), None);
        assert_eq!(shortage(&room, Need { cpus: 16, memory_mib: 16385 }), Some(Unpinnable::MemoryMib(16384)));
        assert_eq!(shortage(&room, Need { cpus: 17, memory_mib: 1 }), Some(Unpinnable::Cpus(16)));
        assert_eq!(shortage(&room, Need { cpus: 1, memory_mib: 9000 }), Some(Unpinnable::MemoryMib(8192)));
    }

    #[test]
    fn what_a_vm_has_counts_for_what_it_becomes() {
        let mut room = machine([8192, 0]);
        let held = pin(&room, Need { cpus: 6, memory_mib: 6000 }).unwrap();
        room.hold(&held);
        let larger = Need { cpus: 8, memory_mib: 8000 };
        assert!(!fits(&room, larger, None) && fits(&room, larger, Some(&held)));
    }

    /// A VM comes, or the oldest one goes.
    #[derive(Debug, Clone)]
    enum Move {
        Come(u64, u64),
        Go,
    }

    fn moves() -> impl Strategy<Value = Vec<Move>> {
        let come = (1_u64..12, 1_u64..9000).prop_map(|(cpus, memory)| Move::Come(cpus, memory));
        prop::collection::vec(prop_oneof![3 => come, 1 => Just(Move::Go)], 1..20)
    }

    proptest! {
        #[test]
        fn every_vm_has_exactly_what_it_needs_and_nothing_of_another(
            moves in moves(), memory in prop::array::uniform2(0_u64..20_000), reserved in prop::collection::btree_set(0_u32..16, 0..6),
            caches in 0_u32..5,
        ) {
            let cells = [(0, cell(("0-3,8-11", memory[0]))), (1, cell(("4-7,12-15", memory[1])))].into();
            let layout = Layout { sockets: 2, threads: 2, caches, cells };
            let reserved_cpus: tenon_model::CpuSet = reserved.into_iter().collect();
            let settings = HostSettings { reserved_cpus, reserved_memory_bytes: Some(1 << 20), ..HostSettings::default() };
            let empty = room(&layout, &settings, &[]).room;
            let (mut left, mut held) = (empty.clone(), Vec::<Pinning>::new());
            for step in moves {
                let Move::Come(cpus, memory_mib) = step else {
                    if !held.is_empty() {
                        left.release(&held.remove(0));
                    }
                    continue;
                };
                let need = Need { cpus, memory_mib };
                let found = pin(&left, need);
                prop_assert_eq!(found.is_some(), fits(&left, need, None));
                prop_assert_eq!(found.is_none(), shortage(&left, need).is_some());
                prop_assert_eq!(&found, &pin(&left, need), "the same question has the same answer");
                let Some(found) = found else { continue };
                prop_assert_eq!((found.cpus().count(), found.memory_mib()), (cpus, memory_mib));
                prop_assert!(found.cells.iter().all(|cell| !cell.cpus.is_empty() && cell.memory_mib > 0));
                for cell in &found.cells {
                    let of_node = left.cells.iter().find(|room| room.node == cell.node).unwrap();
                    prop_assert!(of_node.cpus.has_all(&cell.cpus));
                    prop_assert!(of_node.memory_mib >= i64::try_from(cell.memory_mib).unwrap());
                }
                prop_assert!(held.iter().all(|other| other.cpus().shared_with(&found.cpus()).is_empty()));
                prop_assert!(settings.reserved_cpus.shared_with(&found.cpus()).is_empty());
                left.hold(&found);
                held.push(found);
                // A restart that knows only what VMs are bound to finds the same room.
                let bound: Vec<Bound> = held.iter().map(Bound::to).collect();
                prop_assert_eq!(&room(&layout, &settings, &bound).room, &left);
            }
            held.iter().for_each(|pinning| left.release(pinning));
            prop_assert_eq!(left, empty);
        }
    }
}
