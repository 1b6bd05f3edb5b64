//! Which NUMA nodes is a VM put on? On one that has everything, if there is one; otherwise on as few as possible.

use super::pin::Need;

/// A VM has at most so many NUMA nodes: options `numa0` to `numa7`.
const CELLS_MAX: usize = 8;

/// What a NUMA node could give a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CellFree {
    pub(super) cpus: u64,
    pub(super) memory_mib: u64,
    pub(super) socket: u32,
}

impl CellFree {
    fn holds(&self, need: Need) -> bool {
        self.cpus >= need.cpus && self.memory_mib >= need.memory_mib
    }

    /// Proxmox wants a CPU in every NUMA node of a VM, and QEMU some memory.
    fn is_useful(&self) -> bool {
        self.cpus > 0 && self.memory_mib > 0
    }
}

/// The positions of the NUMA nodes, lowest first; nothing if no choice of them has enough. Of those that have everything the one
/// with the fewest CPUs left; of several, those on one socket.
pub(super) fn cells_for(cells: &[CellFree], need: Need) -> Option<Vec<usize>> {
    if need.cpus == 0 || need.memory_mib == 0 {
        return None;
    }
    let holding = cells.iter().enumerate().filter(|(_, cell)| cell.holds(need));
    if let Some((at, _)) = holding.min_by_key(|(at, cell)| (cell.cpus, cell.memory_mib, *at)) {
        return Some(vec![at]);
    }
    let useful: Vec<usize> = (0..cells.len()).filter(|at| cells[*at].is_useful()).collect();
    let all = |part: fn(&CellFree) -> u64| useful.iter().map(|at| part(&cells[*at])).sum::<u64>();
    if all(|cell| cell.cpus) < need.cpus || all(|cell| cell.memory_mib) < need.memory_mib {
        return None;
    }
    let most = [useful.len() as u64, CELLS_MAX as u64, need.cpus, need.memory_mib].into_iter().min().unwrap_or(0);
    let mut sockets: Vec<u32> = useful.iter().map(|at| cells[*at].socket).collect();
    sockets.sort_unstable();
    sockets.dedup();
    let of_socket = |socket: &u32| useful.iter().copied().filter(|at| cells[*at].socket == *socket).collect();
    let groups: Vec<Vec<usize>> =
        sockets.iter().filter(|_| sockets.len() > 1).map(of_socket).chain([useful.clone()]).collect();
    let choices: Vec<Choice<'_>> = groups.iter().map(|among| Choice::new(cells, among, need)).collect();
    let counts = 2..=usize::try_from(most).unwrap_or(CELLS_MAX);
    counts.into_iter().find_map(|count| choices.iter().find_map(|choice| choice.first(count)))
}

/// All choices among NUMA nodes, by what the rest of them can still give.
struct Choice<'c> {
    cells: &'c [CellFree],
    among: &'c [usize],
    need: Need,
    /// The most memory that so many of the nodes from a position on have together, if they have so many CPUs or more.
    most: Vec<Vec<Vec<Option<u64>>>>,
}

impl<'c> Choice<'c> {
    fn new(cells: &'c [CellFree], among: &'c [usize], need: Need) -> Choice<'c> {
        let wanted = usize::try_from(need.cpus).unwrap_or(usize::MAX).min(tenon_model::CPUS_MAX as usize);
        let mut most = vec![vec![vec![None; wanted + 1]; CELLS_MAX + 1]; among.len() + 1];
        most[among.len()][0][0] = Some(0);
        for from in (0..among.len()).rev() {
            let cell = cells[among[from]];
            for count in 0..=CELLS_MAX {
                for cpus in 0..=wanted {
                    let without = most[from + 1][count][cpus];
                    let left = cpus.saturating_sub(usize::try_from(cell.cpus).unwrap_or(usize::MAX));
                    let rest = count.checked_sub(1).and_then(|count| most[from + 1][count][left]);
                    let with = rest.map(|rest: u64| rest.saturating_add(cell.memory_mib));
                    most[from][count][cpus] = without.max(with);
                }
            }
        }
        Choice { cells, among, need, most }
    }

    /// The first choice of so many that has enough: by position, the lowest first.
    fn first(&self, count: usize) -> Option<Vec<usize>> {
        let (mut cpus, mut memory, mut left) = (usize::try_from(self.need.cpus).ok()?, self.need.memory_mib, count);
        let is_enough = |from: usize, left: usize, cpus: usize, memory: u64| {
            self.most[from][left].get(cpus).copied().flatten().is_some_and(|most| most >= memory)
        };
        if !is_enough(0, left, cpus, memory) {
            return None;
        }
        let mut found = Vec::with_capacity(count);
        for (from, at) in self.among.iter().enumerate().take_while(|_| count > 0) {
            let cell = self.cells[*at];
            let fewer = left.checked_sub(1)?;
            let rest = cpus.saturating_sub(usize::try_from(cell.cpus).unwrap_or(usize::MAX));
            let rest_memory = memory.saturating_sub(cell.memory_mib);
            if is_enough(from + 1, fewer, rest, rest_memory) {
                found.push(*at);
                (cpus, memory, left) = (rest, rest_memory, fewer);
            }
            if left == 0 {
                break;
            }
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cell((cpus, memory_mib, socket): (u64, u64, u32)) -> CellFree {
        CellFree { cpus, memory_mib, socket }
    }

    fn chosen(cells: &[(u64, u64, u32)], cpus: u64, memory_mib: u64) -> Option<Vec<usize>> {
        let cells: Vec<CellFree> = cells.iter().copied().map(cell).collect();
        cells_for(&cells, Need { cpus, memory_mib })
    }

    #[test]
    fn one_node_that_has_everything_is_taken_and_of_those_the_fullest() {
        assert_eq!(chosen(&[(8, 100, 0), (4, 100, 0), (2, 100, 0)], 4, 50), Some(vec![1]));
        assert_eq!(chosen(&[(8, 40, 0), (8, 100, 0)], 4, 50), Some(vec![1]), "the first has too little memory");
    }

    #[test]
    fn several_nodes_are_as_few_as_possible_and_on_one_socket_if_they_can() {
        assert_eq!(chosen(&[(4, 50, 0), (4, 50, 1), (4, 50, 1)], 8, 60), Some(vec![1, 2]));
        assert_eq!(chosen(&[(4, 50, 0), (4, 50, 0), (4, 50, 1)], 12, 60), Some(vec![0, 1, 2]));
        assert_eq!(chosen(&[(1, 90, 0), (6, 10, 0), (2, 80, 0)], 8, 90), Some(vec![1, 2]));
    }

    #[test]
    fn what_no_choice_has_is_not_there() {
        assert_eq!(chosen(&[(4, 50, 0), (4, 50, 0)], 9, 60), None);
        assert_eq!(chosen(&[(4, 50, 0), (4, 50, 0)], 4, 101), None);
        assert_eq!(chosen(&[(4, 50, 0), (0, 500, 0)], 4, 60), None, "memory beside no CPU cannot be bound");
        assert_eq!(chosen(&[(4, 50, 0), (4, 50, 0)], 1, 60), None, "one CPU is on one node");
        assert_eq!(chosen(&[], 1, 1), None);
    }

    proptest! {
        #[test]
        fn a_choice_is_found_whenever_there_is_one(
            cells in prop::collection::vec((0_u64..6, 0_u64..6, 0_u32..2), 0..7), cpus in 1_u64..16, memory in 1_u64..16,
        ) {
            let subsets = (1_u32..1 << cells.len()).map(|mask| (0..cells.len()).filter(|at| mask >> at & 1 == 1).collect::<Vec<_>>());
            let is_enough = |of: &Vec<usize>| {
                let sum = |part: fn(&(u64, u64, u32)) -> u64| of.iter().map(|at| part(&cells[*at])).sum::<u64>();
                let useful = of.iter().all(|at| cells[*at].0 > 0 && cells[*at].1 > 0);
                useful && of.len() as u64 <= cpus.min(memory) && sum(|cell| cell.0) >= cpus && sum(|cell| cell.1) >= memory
            };
            let fewest = subsets.filter(is_enough).map(|of| of.len()).min();
            let found = chosen(&cells, cpus, memory);
            prop_assert_eq!(found.as_ref().map(Vec::len), fewest);
            prop_assert!(found.is_none_or(|found| is_enough(&found)));
        }
    }
}
