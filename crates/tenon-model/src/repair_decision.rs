//! What is done about a Node with these conditions at a time?
//!
//! Every policy that a condition meets counts once its toleration is over. The most disruptive action wins; the shortest drain that
//! any of them asks for bounds it; and of several nodes the one with the highest score goes first.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::repair::{RepairAction, RepairPolicy};
use crate::timestamp::Timestamp;

/// A node that waits for so long is as urgent as one of the next higher priority.
const NANOS_PER_RANK: i128 = 30 * 60 * 1_000_000_000;

/// A condition of a Node that means that it is broken, by one policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unhealthy {
    /// The type of the condition.
    pub condition: String,
    /// Its status.
    pub status: String,
    /// Its reason, which may be empty.
    pub reason: String,
    /// Since when the condition has this status.
    pub since: Timestamp,
    /// What is said of it.
    pub policy: Arc<RepairPolicy>,
    /// The place of the policy's priority among those of all policies, from 0.
    pub rank: u32,
    /// Whether no other policy is about its reason.
    pub is_fallback: bool,
}

impl Unhealthy {
    /// Until when it is tolerated. A Node that was created, or rebooted, later has its time from then on.
    pub fn tolerated_until(&self, began: Option<Timestamp>) -> Timestamp {
        began.map_or(self.since, |began| self.since.max(began)).after(self.policy.toleration)
    }
}

impl fmt::Display for Unhealthy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "condition {}={} since {}", self.condition, self.status, self.since)
    }
}

/// What is done about a broken Node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairDecision {
    /// What.
    pub action: RepairAction,
    /// The condition that it is done for.
    pub driver: Unhealthy,
    /// Since when the policy of that condition allows it.
    pub eligible_at: Timestamp,
    /// How long pods have to leave; none: as long as their NodeClaim says.
    pub drain_bound: Option<Duration>,
    /// How urgent it is, in nanoseconds of waiting: of two nodes, the one with more goes first.
    pub score: i128,
}

/// What a Node with these conditions is due for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepairVerdict {
    /// Nothing yet: the first of its policies acts then.
    Tolerated {
        /// The condition that is tolerated for the shortest time from now.
        unhealthy: Unhealthy,
        /// Until when.
        until: Timestamp,
    },
    /// This.
    Due(RepairDecision),
}

/// Judges the conditions of a Node that was created, or rebooted last, at `began`. Nothing if none of them says that it is broken.
pub fn judge_repair(faults: &[Unhealthy], began: Option<Timestamp>, now: Timestamp) -> Option<RepairVerdict> {
    let timed = faults.iter().map(|fault| (fault, fault.tolerated_until(began)));
    let due: Vec<(&Unhealthy, Timestamp)> = timed.clone().filter(|(_, at)| *at <= now).collect();
    let Some(action) = due.iter().map(|(fault, _)| fault.policy.action).max() else {
        let (unhealthy, until) = timed.min_by_key(|(fault, at)| (*at, &fault.condition, &fault.status))?;
        return Some(RepairVerdict::Tolerated { unhealthy: unhealthy.clone(), until });
    };
    let of_action = due.iter().filter(|(fault, _)| fault.policy.action == action);
    let (driver, eligible_at) =
        of_action.min_by_key(|(fault, at)| (-fault.policy.priority, *at, &fault.condition, &fault.reason))?;
    let score = |(fault, at): &(&Unhealthy, Timestamp)| {
        i128::from(fault.rank) * NANOS_PER_RANK + (now.as_nanos() - at.as_nanos())
    };
    Some(RepairVerdict::Due(RepairDecision {
        action,
        driver: (*driver).clone(),
        eligible_at: *eligible_at,
        drain_bound: due.iter().filter_map(|(fault, _)| fault.policy.grace_period).min(),
        score: due.iter().map(score).max().unwrap_or_default(),
    }))
}
