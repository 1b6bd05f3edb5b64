//! What is left of a host for VMs that are bound to CPUs? Whoever is bound takes its own, everybody else only counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_model::{CellRoom, CpuRoom, CpuSet, HostSettings, NumaCell, Pinning};

use super::layout::Layout;
use super::usable::RESERVED_MEMORY;

/// A guest of a host, or one that is about to be made there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bound {
    /// How many CPUs it has.
    pub vcpus: u64,
    /// CPUs of the host it is bound to; none if it runs anywhere.
    pub cpus: CpuSet,
    /// Memory it is bound to, by NUMA node of the host, in MiB.
    pub memory_mib: BTreeMap<u32, u64>,
}

impl Bound {
    /// A VM that is bound to what was planned for it.
    pub fn to(pinning: &Pinning) -> Bound {
        let cpus = pinning.cpus();
        let memory_mib = pinning.cells.iter().map(|cell| (cell.node, cell.memory_mib)).collect();
        Bound { vcpus: cpus.count(), cpus, memory_mib }
    }

    /// A guest that runs anywhere.
    pub fn to_nothing(vcpus: u64) -> Bound {
        Bound { vcpus, ..Bound::default() }
    }
}

/// What is left of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedRoom {
    /// CPUs and memory that nobody is bound to, by NUMA node.
    pub room: CpuRoom,
    /// CPUs that are neither bound nor counted. Less than none is possible.
    pub cpus: i64,
}

/// What these guests leave of a host. Two may be bound to the same CPU: it is taken once. A guest that is bound to CPUs which
/// the host does not have runs anywhere, for all we know, and counts.
pub fn room(layout: &Layout, settings: &HostSettings, guests: &[Bound]) -> PinnedRoom {
    let all = layout.cpus();
    let mut taken = settings.reserved_cpus.clone();
    let mut counted: u64 = 0;
    for guest in guests {
        let own = guest.cpus.shared_with(&all);
        if own.is_empty() {
            counted = counted.saturating_add(guest.vcpus);
        }
        taken = taken.with(&own);
    }
    let reserved_mib = settings.reserved_memory_bytes.unwrap_or(RESERVED_MEMORY).div_ceil(1 << 20);
    // The host keeps its own memory wherever it likes.
    let reserved_mib = reserved_mib.div_ceil(layout.cells.len().max(1) as u64);
    let topology = Arc::new(layout.topology());
    let socket_of = |node: u32| topology.threads.iter().find(|thread| thread.node == node).map_or(0, |of| of.socket);
    let mut seen = CpuSet::default();
    let cell = |(node, cell): (&u32, &NumaCell)| {
        let bound = guests.iter().filter_map(|guest| guest.memory_mib.get(node)).map(|mib| signed(*mib));
        let bound = bound.fold(signed(reserved_mib), i64::saturating_add);
        let cpus = cell.cpus.without(&seen).without(&taken);
        seen = seen.with(&cell.cpus);
        let memory_mib = signed(cell.memory_bytes >> 20).saturating_sub(bound);
        CellRoom { node: *node, socket: socket_of(*node), cpus, memory_mib }
    };
    let cells: Vec<CellRoom> = layout.cells.iter().map(cell).collect();
    let free: u64 = cells.iter().map(|cell| cell.cpus.count()).sum();
    PinnedRoom { room: CpuRoom { topology, cells }, cpus: signed(free).saturating_sub(signed(counted)) }
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        let cell = |cpus: &str| NumaCell { cpus: cpus.parse().unwrap(), memory_bytes: 8 << 30 };
        Layout { sockets: 1, threads: 1, caches: 0, cells: [(0, cell("0-3")), (1, cell("4-7"))].into() }
    }

    fn bound(cpus: &str, memory: &[(u32, u64)]) -> Bound {
        Bound { vcpus: 2, cpus: cpus.parse().unwrap(), memory_mib: memory.iter().copied().collect() }
    }

    fn left(guests: &[Bound]) -> (i64, Vec<(String, i64)>) {
        let found = room(&layout(), &HostSettings::default(), guests);
        let cells = found.room.cells.iter().map(|cell| (cell.cpus.to_string(), cell.memory_mib)).collect();
        (found.cpus, cells)
    }

    #[test]
    fn who_is_bound_takes_its_own_and_others_only_count() {
        // Half of the GiB that is kept back comes from each NUMA node.
        let empty = (8, vec![("0-3".to_owned(), 7680), ("4-7".to_owned(), 7680)]);
        assert_eq!(left(&[]), empty);
        let guests = [bound("0-1", &[(0, 4096)]), bound("1-2", &[(0, 4096)]), Bound::to_nothing(3)];
        assert_eq!(left(&guests), (2, vec![("3".to_owned(), -512), ("4-7".to_owned(), 7680)]));
    }

    #[test]
    fn a_guest_that_does_not_fit_is_subtracted_all_the_same() {
        // Bound to CPUs and a NUMA node that are not there, and with more CPUs than there are.
        let guests = [bound("64-65", &[(9, 4096)]), Bound::to_nothing(12)];
        assert_eq!(left(&guests).0, 8 - 2 - 12);
    }

    #[test]
    fn reserved_cpus_are_nobody_s() {
        let reserved_cpus = "0,7".parse().unwrap();
        let settings = HostSettings { reserved_cpus, reserved_memory_bytes: Some(0), ..HostSettings::default() };
        let found = room(&layout(), &settings, &[]);
        assert_eq!((found.cpus, found.room.cells[0].cpus.to_string()), (6, "1-3".to_owned()));
        assert_eq!(found.room.cells[1].memory_mib, 8192);
    }
}
