//! Pools with a fixed number of nodes: how many more may be made now.

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
    /// Sets so many nodes aside for whoever is about to make them: as many as are wanted and the limit leaves. Without a
    /// limit that is all of them.
    pub fn reserve(&mut self, limit: Option<u32>, wanted: u32) -> u32 {
        let taken = [self.active, self.pending_disruption, self.deleting, self.reserved];
        let taken = taken.into_iter().fold(0_u32, u32::saturating_add);
        let granted = limit.map_or(wanted, |limit| wanted.min(limit.saturating_sub(taken)));
        self.reserved = self.reserved.saturating_add(granted);
        granted
    }

    /// One of them was made, or could not be.
    pub fn release(&mut self) {
        self.reserved = self.reserved.saturating_sub(1);
    }

    /// How many are wanted for the pool to have its number: none while those that stay and those that are to be replaced
    /// are enough.
    pub fn wanted(&self, replicas: u32) -> u32 {
        let is_enough = self.active.saturating_add(self.pending_disruption) >= replicas;
        if is_enough { 0 } else { replicas.saturating_sub(self.active) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_set_aside_than_the_limit_leaves() {
        let mut counts = StaticCounts { active: 3, deleting: 1, ..StaticCounts::default() };
        assert_eq!(counts.reserve(Some(5), 3), 1);
        assert_eq!(counts.reserve(Some(5), 3), 0);
        counts.release();
        assert_eq!(counts.reserve(Some(5), 3), 1);
        assert_eq!(counts.reserve(Some(2), 1), 0, "a limit below what is there leaves nothing");
        assert_eq!(StaticCounts::default().reserve(None, 7), 7);
    }

    #[test]
    fn what_is_released_twice_is_not_owed() {
        let mut counts = StaticCounts::default();
        counts.release();
        assert_eq!((counts.reserve(Some(1), 2), counts.reserved), (1, 1));
    }

    #[test]
    fn a_pool_with_its_number_wants_no_more_even_if_some_are_to_be_replaced() {
        let counts = StaticCounts { active: 2, pending_disruption: 1, ..StaticCounts::default() };
        assert_eq!((counts.wanted(3), counts.wanted(5), counts.wanted(0)), (0, 3, 0));
    }
}
