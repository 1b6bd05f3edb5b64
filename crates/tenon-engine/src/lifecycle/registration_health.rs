//! Do the nodes of a pool launch and register? Judged by how the last four ended.
//!
//! The answer is a condition of the pool. It keeps no pool from being used.

/// How many endings are remembered.
const REMEMBERED: usize = 4;

/// So many failures among them, half of all, and the pool is unhealthy.
const FAILURES: usize = 2;

/// What is known of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistrationHealth {
    /// Nothing.
    Unknown,
    /// Its nodes register.
    Healthy,
    /// Its nodes do not.
    Unhealthy,
}

/// How the last nodes of a pool ended, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegistrationHistory(Vec<bool>);

impl RegistrationHistory {
    /// What a condition says that is older than this controller: as much as it takes to say the same.
    pub fn seeded(told: RegistrationHealth) -> RegistrationHistory {
        match told {
            RegistrationHealth::Unknown => RegistrationHistory::default(),
            RegistrationHealth::Healthy => RegistrationHistory(vec![true]),
            RegistrationHealth::Unhealthy => RegistrationHistory(vec![false; FAILURES]),
        }
    }

    /// The history with one more: a node registered, or it did not.
    #[must_use]
    pub fn with(&self, is_registered: bool) -> RegistrationHistory {
        let kept = self.0.len().saturating_sub(REMEMBERED - 1);
        let last = self.0.iter().skip(kept).copied();
        RegistrationHistory(last.chain([is_registered]).collect())
    }

    /// What follows from it.
    pub fn health(&self) -> RegistrationHealth {
        match self.0.iter().filter(|is_registered| !**is_registered).count() {
            _ if self.0.is_empty() => RegistrationHealth::Unknown,
            FAILURES.. => RegistrationHealth::Unhealthy,
            _ => RegistrationHealth::Healthy,
        }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The condition of a pool, and what it was judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JudgedPool {
    /// The generation the condition was written for; `None` if there is no condition.
    pub condition: Option<i64>,
    /// The generation of the pool.
    pub generation: i64,
    /// The generation of its class that was last seen with it.
    pub class_seen: Option<i64>,
    /// The generation of its class.
    pub class_generation: i64,
}

impl JudgedPool {
    /// Whether what is known says nothing of the pool as it is now: nothing was ever said, or the pool or its class changed
    /// since.
    pub fn is_outdated(&self) -> bool {
        self.condition != Some(self.generation) || self.class_seen != Some(self.class_generation)
    }
}

#[cfg(test)]
mod tests {
    use super::RegistrationHealth::{Healthy, Unhealthy, Unknown};
    use super::*;

    fn health(ends: &[bool]) -> RegistrationHealth {
        ends.iter().fold(RegistrationHistory::default(), |history, end| history.with(*end)).health()
    }

    #[test]
    fn i4_health_a_pool_is_unhealthy_after_two_failures_of_its_last_four() {
        assert_eq!(health(&[]), Unknown);
        assert_eq!((health(&[true]), health(&[false])), (Healthy, Healthy), "one failure is no pattern");
        assert_eq!(health(&[false, false]), Unhealthy);
        assert_eq!(health(&[false, false, true, true]), Unhealthy);
        assert_eq!(health(&[false, false, true, true, true]), Healthy, "the oldest is forgotten");
        assert_eq!(health(&[true, true, true, false, true, false]), Unhealthy);
    }

    #[test]
    fn i4_health_trying_an_ending_changes_nothing() {
        let history = RegistrationHistory::default().with(false);
        assert_eq!(history.with(false).health(), Unhealthy);
        assert_eq!(history.health(), Healthy);
    }

    #[test]
    fn i4_health_a_history_is_seeded_from_the_condition_with_just_enough_to_say_the_same() {
        for told in [Unknown, Healthy, Unhealthy] {
            assert_eq!(RegistrationHistory::seeded(told).health(), told);
        }
        let ill = RegistrationHistory::seeded(Unhealthy);
        assert_eq!(ill.with(true).with(true).health(), Unhealthy);
        assert_eq!(ill.with(true).with(true).with(true).health(), Healthy);
        assert_eq!(RegistrationHistory::seeded(Healthy).with(false).health(), Healthy);
    }

    #[test]
    fn i4_health_is_reset_by_a_missing_condition_and_by_a_new_generation_of_pool_or_class() {
        let judged = JudgedPool { condition: Some(2), generation: 2, class_seen: Some(5), class_generation: 5 };
        assert!(!judged.is_outdated());
        assert!(JudgedPool { condition: None, ..judged }.is_outdated());
        assert!(JudgedPool { generation: 3, ..judged }.is_outdated());
        assert!(JudgedPool { class_generation: 6, ..judged }.is_outdated());
        assert!(JudgedPool { class_seen: None, ..judged }.is_outdated());
    }
}
