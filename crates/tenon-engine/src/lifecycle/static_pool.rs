//! Pools with a fixed number of nodes: what comes next for one of them, more nodes or fewer?

use super::static_victims::{self, Sparing, StaticNode};

/// Claims of a pool that wait for a size and a host at the same time. Where no host has room, more of them would only
/// be more to look at, again and again.
pub const WAITING_MOST: u32 = 10;

/// Nodes that are given away in one step; the rest go in the next ones.
pub const REMOVED_AT_ONCE: u32 = 50;

/// What a pool of fixed size has, and what is being made for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StaticCounts {
    /// Nodes that stay.
    pub active: u32,
    /// Nodes that are to be replaced.
    pub pending_disruption: u32,
    /// Nodes that go.
    pub deleting: u32,
    /// Nodes that somebody is about to make.
    pub reserved: u32,
}

impl StaticCounts {
    /// All that the limit of a pool counts.
    pub fn taken(&self) -> u32 {
        let all = [self.active, self.pending_disruption, self.deleting, self.reserved];
        all.into_iter().fold(0, u32::saturating_add)
    }

    /// Sets so many nodes aside for whoever is about to make them: as many as are wanted and the limit leaves. Without a
    /// limit that is all of them.
    pub fn reserve(&mut self, limit: Option<u32>, wanted: u32) -> u32 {
        let granted = limit.map_or(wanted, |limit| wanted.min(limit.saturating_sub(self.taken())));
        self.reserved = self.reserved.saturating_add(granted);
        granted
    }

    /// One of them was made, or could not be.
    pub fn release(&mut self) {
        self.reserved = self.reserved.saturating_sub(1);
    }

    /// How many are missing for the pool to have its number. Nodes that are to be replaced count: whoever replaces them
    /// makes the new ones, and a pool that made them too would have to give some away again.
    pub fn wanted(&self, replicas: u32) -> u32 {
        replicas.saturating_sub(self.active.saturating_add(self.pending_disruption))
    }

    /// How many nodes that stay are more than the pool should have.
    pub fn excess(&self, replicas: u32) -> u32 {
        self.active.saturating_sub(replicas)
    }
}

/// What is known of a pool of fixed size.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StaticPool {
    /// How many nodes it should have.
    pub replicas: u32,
    /// How many it may have at most, those that go included.
    pub limit: Option<u32>,
    /// Whether nodes can be made from it. Nodes are given away in any case.
    pub is_ready: bool,
    /// All its nodes, from the claim on.
    pub nodes: Vec<StaticNode>,
}

/// What a node's place in its pool is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Standing {
    /// It stays.
    #[default]
    Active,
    /// It is to be replaced.
    PendingDisruption,
    /// It goes.
    Deleting,
}

/// What comes next for a pool of fixed size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StaticStep {
    /// Nothing: it has its number.
    Settled,
    /// Nothing: nodes are missing, and none can be made from it now.
    NotReady,
    /// Make so many nodes.
    Make(u32),
    /// Nothing: nodes are missing, and its limit leaves no room for them.
    AtLimit {
        /// The limit.
        limit: u32,
        /// How many there are, those that go included.
        taken: u32,
        /// How many are missing.
        missing: u32,
    },
    /// Nothing: nodes are missing, and enough claims wait for a size and a host already.
    AwaitRoom {
        /// How many wait.
        waiting: u32,
        /// How many are missing besides.
        missing: u32,
    },
    /// Give these away, in this order.
    Remove(Vec<String>),
    /// Nothing: there are too many, and what is left is not ours to give away.
    NotOurs {
        /// How many there are too many.
        excess: u32,
    },
}

impl StaticPool {
    /// What the pool has.
    pub fn counts(&self) -> StaticCounts {
        let mut counts = StaticCounts::default();
        for node in &self.nodes {
            match node.standing {
                Standing::Active => counts.active += 1,
                Standing::PendingDisruption => counts.pending_disruption += 1,
                Standing::Deleting => counts.deleting += 1,
            }
        }
        counts
    }

    /// What comes next.
    pub fn next_step(&self) -> StaticStep {
        let counts = self.counts();
        match (counts.excess(self.replicas), counts.wanted(self.replicas)) {
            (0, 0) => StaticStep::Settled,
            (0, missing) => self.growing(counts, missing),
            (excess, _) => self.shrinking(excess),
        }
    }

    fn growing(&self, mut counts: StaticCounts, missing: u32) -> StaticStep {
        if !self.is_ready {
            return StaticStep::NotReady;
        }
        let (limit, taken) = (self.limit.unwrap_or(u32::MAX), counts.taken());
        let granted = counts.reserve(self.limit, missing);
        if granted == 0 {
            return StaticStep::AtLimit { limit, taken, missing };
        }
        let is_waiting = |node: &&StaticNode| node.standing == Standing::Active && node.is_unplanned();
        let waiting = u32::try_from(self.nodes.iter().filter(is_waiting).count()).unwrap_or(u32::MAX);
        match granted.min(WAITING_MOST.saturating_sub(waiting)) {
            0 => StaticStep::AwaitRoom { waiting, missing },
            count => StaticStep::Make(count),
        }
    }

    fn shrinking(&self, excess: u32) -> StaticStep {
        let standing = self.nodes.iter().filter(|node| node.standing == Standing::Active);
        let ours = standing.filter(|node| node.sparing != Sparing::NotOurs);
        let count = usize::try_from(excess.min(REMOVED_AT_ONCE)).unwrap_or(usize::MAX);
        match static_victims::victims(ours, count) {
            names if names.is_empty() => StaticStep::NotOurs { excess },
            names => StaticStep::Remove(names),
        }
    }
}

#[cfg(test)]
#[path = "static_pool_tests.rs"]
mod tests;
