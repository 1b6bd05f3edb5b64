//! Which of these CPUs does a VM get? Packed: whole sockets and NUMA nodes first, then whole caches, then whole cores, and what
//! is left over where the least is left already. Ties go by number, so the same question has the same answer.

use std::collections::{BTreeMap, BTreeSet};

use tenon_model::{CpuSet, CpuTopology, Thread};

/// Takes so many of the CPUs that are free; nothing if there are fewer.
pub(super) fn take(topology: &CpuTopology, free: &CpuSet, count: usize) -> Option<CpuSet> {
    let free: BTreeSet<u32> = topology.threads.iter().map(|thread| thread.cpu).filter(|cpu| free.has(*cpu)).collect();
    if free.len() < count {
        return None;
    }
    let mut taking = Taking { topology, free, taken: Vec::with_capacity(count), count };
    for part in taking.outward() {
        taking.take_whole(part);
    }
    if topology.has_caches {
        taking.take_whole(Part::Cache);
        taking.take_of_one_cache();
    }
    taking.take_whole(Part::Core);
    taking.take_threads();
    Some(taking.taken.into_iter().collect())
}

/// What CPUs are part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Socket,
    Node,
    Cache,
    Core,
}

impl Part {
    fn of(self, thread: &Thread) -> u32 {
        match self {
            Part::Socket => thread.socket,
            Part::Node => thread.node,
            Part::Cache => thread.cache,
            Part::Core => thread.core,
        }
    }
}

/// What is free of a cache.
#[derive(Debug, Default)]
struct OfCache {
    /// Cores of which every thread is free.
    whole: Vec<Vec<u32>>,
    /// Threads of the others.
    singles: Vec<u32>,
}

/// CPUs that are being taken.
struct Taking<'t> {
    topology: &'t CpuTopology,
    free: BTreeSet<u32>,
    taken: Vec<u32>,
    count: usize,
}

impl Taking<'_> {
    fn needed(&self) -> usize {
        self.count - self.taken.len()
    }

    /// The largest parts first: a NUMA node has several sockets, or a socket several NUMA nodes.
    fn outward(&self) -> [Part; 2] {
        if self.topology.sockets() >= self.topology.nodes() {
            [Part::Node, Part::Socket]
        } else {
            [Part::Socket, Part::Node]
        }
    }

    /// Free CPUs, those first that the least is left around: in the largest part, in the next, in the cache, in the core.
    fn in_order(&self) -> Vec<&Thread> {
        let [outer, inner] = self.outward();
        let mut parts = vec![outer, inner];
        parts.extend(self.topology.has_caches.then_some(Part::Cache));
        parts.push(Part::Core);
        let counts: Vec<(Part, BTreeMap<u32, usize>)> =
            parts.into_iter().map(|part| (part, self.counts(part, true))).collect();
        let mut free: Vec<&Thread> = self.free_threads().collect();
        let rank = |thread: &Thread| -> Vec<(usize, u32)> {
            let place = |(part, counts): &(Part, BTreeMap<u32, usize>)| {
                let number = part.of(thread);
                (counts.get(&number).copied().unwrap_or_default(), number)
            };
            counts.iter().map(place).collect()
        };
        free.sort_by_cached_key(|thread| (rank(thread), thread.cpu));
        free
    }

    fn free_threads(&self) -> impl Iterator<Item = &Thread> {
        self.topology.threads.iter().filter(|thread| self.free.contains(&thread.cpu))
    }

    /// How many CPUs each part has, or has left.
    fn counts(&self, part: Part, only_free: bool) -> BTreeMap<u32, usize> {
        let mut counts = BTreeMap::new();
        let counted = self.topology.threads.iter().filter(|thread| !only_free || self.free.contains(&thread.cpu));
        counted.for_each(|thread| *counts.entry(part.of(thread)).or_default() += 1);
        counts
    }

    /// Parts of which every CPU is free, in the order they are taken, with their CPUs.
    fn whole(&self, part: Part) -> Vec<Vec<u32>> {
        let (all, free) = (self.counts(part, false), self.counts(part, true));
        let mut order: Vec<u32> = Vec::new();
        let mut cpus: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for thread in self.in_order() {
            let number = part.of(thread);
            if all.get(&number) == free.get(&number) {
                let of_part = cpus.entry(number).or_default();
                if of_part.is_empty() {
                    order.push(number);
                }
                of_part.push(thread.cpu);
            }
        }
        order.into_iter().filter_map(|number| cpus.remove(&number)).collect()
    }

    fn take_whole(&mut self, part: Part) {
        for cpus in self.whole(part) {
            if cpus.len() <= self.needed() {
                self.take(&cpus);
            }
        }
    }

    /// Everything that is left to take, from the first cache that has enough whole cores. What is no whole core goes where a
    /// sibling is taken already, if there is such a place.
    fn take_of_one_cache(&mut self) {
        let per_core = self.topology.threads_per_core();
        let (cores, rest) = (self.needed() / per_core, self.needed() % per_core);
        if self.needed() == 0 {
            return;
        }
        let caches = self.by_cache();
        let chosen = caches.iter().find_map(|OfCache { whole, singles }| {
            let mut cpus: Vec<u32> = whole.iter().take(cores).flatten().copied().collect();
            let split = whole.get(cores).into_iter().flatten();
            cpus.extend(singles.iter().filter(|_| singles.len() >= rest).chain(split).take(rest));
            (whole.len() >= cores && cpus.len() == self.needed()).then_some(cpus)
        });
        self.take(&chosen.unwrap_or_default());
    }

    /// What is free of each cache, in the order they are taken.
    fn by_cache(&self) -> Vec<OfCache> {
        let part_of: BTreeMap<u32, &Thread> = self.topology.threads.iter().map(|thread| (thread.cpu, thread)).collect();
        let mut order: Vec<u32> = Vec::new();
        let mut caches: BTreeMap<u32, OfCache> = BTreeMap::new();
        for thread in self.in_order() {
            caches.entry(thread.cache).or_insert_with(|| {
                order.push(thread.cache);
                OfCache::default()
            });
        }
        let mut in_whole: BTreeSet<u32> = BTreeSet::new();
        for core in self.whole(Part::Core) {
            in_whole.extend(&core);
            let cache = core.first().and_then(|cpu| part_of.get(cpu)).map(|thread| thread.cache);
            if let Some(found) = cache.and_then(|cache| caches.get_mut(&cache)) {
                found.whole.push(core);
            }
        }
        for thread in self.in_order().into_iter().filter(|thread| !in_whole.contains(&thread.cpu)) {
            caches.entry(thread.cache).or_default().singles.push(thread.cpu);
        }
        order.into_iter().filter_map(|cache| caches.remove(&cache)).collect()
    }

    fn take_threads(&mut self) {
        let cpus: Vec<u32> = self.in_order().iter().map(|thread| thread.cpu).take(self.needed()).collect();
        self.take(&cpus);
    }

    fn take(&mut self, cpus: &[u32]) {
        for cpu in cpus {
            self.free.remove(cpu);
            self.taken.push(*cpu);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tenon_model::NumaCell;

    use super::super::layout::Layout;
    use super::*;

    /// Two sockets of one NUMA node each, with two caches of two cores of two threads: CPU 8 is the sibling of CPU 0.
    fn machine() -> CpuTopology {
        let cell = |cpus: &str| NumaCell { cpus: cpus.parse().unwrap(), memory_bytes: 0 };
        let cells = [(0, cell("0-3,8-11")), (1, cell("4-7,12-15"))].into();
        Layout { sockets: 2, threads: 2, caches: 4, cells }.topology()
    }

    fn taken(free: &str, count: usize) -> Option<String> {
        take(&machine(), &free.parse().unwrap(), count).map(|cpus| cpus.to_string())
    }

    fn assert_taken(free: &str, count: usize, expected: &str) {
        assert_eq!(taken(free, count).as_deref(), Some(expected), "{count} of {free}");
    }

    #[test]
    fn whole_nodes_then_caches_then_cores_then_threads() {
        assert_taken("0-15", 16, "0-15");
        assert_taken("0-15", 8, "0-3,8-11");
        assert_taken("0-15", 12, "0-5,8-13");
        assert_taken("0-15", 4, "0-1,8-9");
        assert_taken("0-15", 2, "0,8");
        assert_taken("0-15", 1, "0");
        assert_taken("0-15", 3, "0-1,8");
    }

    #[test]
    fn what_is_left_over_is_taken_where_the_least_is_left() {
        // Node 0 has a core less than node 1.
        assert_taken("1-7,9-15", 2, "1,9");
        // A thread whose sibling is taken goes before a whole core.
        assert_taken("0-7,9-15", 1, "0");
        assert_taken("0-7,9-15", 3, "0-1,9");
        // Node 0 has been touched, so the whole node is node 1.
        assert_taken("1-15", 8, "4-7,12-15");
        // No cache has four whole cores left: cores of both.
        assert_taken("1-2,9-10", 4, "1-2,9-10");
    }

    #[test]
    fn fewer_than_needed_are_none() {
        assert_eq!(taken("0-2", 4), None);
        assert_eq!(taken("64-80", 1), None, "this machine does not have them");
        assert_taken("0-15", 0, "");
    }

    proptest! {
        #[test]
        fn as_many_as_wanted_are_taken_of_what_is_free_and_always_the_same(
            free in prop::collection::btree_set(0_u32..16, 0..16), count in 0_usize..17, caches in 0_u32..3, threads in 1_u32..3,
        ) {
            let cell = NumaCell { cpus: (0..16).collect(), memory_bytes: 0 };
            let layout = Layout { sockets: 1, threads, caches: caches * 2, cells: [(0, cell)].into() };
            let (topology, free) = (layout.topology(), free.into_iter().collect::<CpuSet>());
            let found = take(&topology, &free, count);
            prop_assert_eq!(found.is_some(), free.count() >= count as u64);
            if let Some(found) = &found {
                prop_assert_eq!(found.count(), count as u64);
                prop_assert!(free.has_all(found));
            }
            prop_assert_eq!(found, take(&topology, &free, count));
        }
    }
}
