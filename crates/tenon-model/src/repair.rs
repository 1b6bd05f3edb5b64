//! Which conditions of a Node mean that it is broken, and how long is each tolerated?
//!
//! The policies are those of Karpenter's Proxmox provider. Both replace the node; none restarts its VM, and none bounds the drain.

use std::fmt;
use std::time::Duration;

use crate::timestamp::Timestamp;

/// A condition with which a Node is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepairPolicy {
    /// The type of the condition.
    pub condition: &'static str,
    /// The status with which it is broken.
    pub status: &'static str,
    /// How long the condition must have that status before the node is replaced.
    pub toleration: Duration,
}

/// A kubelet that restarts, or a switch that is replaced, is back within this time.
const TOLERATION: Duration = Duration::from_secs(15 * 60);

/// The kubelet says that the node cannot run pods; or nobody has heard of the kubelet.
pub const REPAIR_POLICIES: [RepairPolicy; 2] = [
    RepairPolicy { condition: "Ready", status: "False", toleration: TOLERATION },
    RepairPolicy { condition: "Ready", status: "Unknown", toleration: TOLERATION },
];

/// A condition of a Node that means that it is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unhealthy {
    /// What is said of such a condition.
    pub policy: RepairPolicy,
    /// Since when the condition has this status.
    pub since: Timestamp,
}

impl Unhealthy {
    /// What a condition means, if a policy is about it.
    pub fn of(condition: &str, status: &str, since: Timestamp) -> Option<Unhealthy> {
        let mut policies = REPAIR_POLICIES.into_iter();
        let policy = policies.find(|policy| policy.condition == condition && policy.status == status)?;
        Some(Unhealthy { policy, since })
    }

    /// Until when it is tolerated. A Node that was created later has its time from then on.
    pub fn tolerated_until(&self, node_created: Option<Timestamp>) -> Timestamp {
        node_created.map_or(self.since, |created| self.since.max(created)).after(self.policy.toleration)
    }
}

impl fmt::Display for Unhealthy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "condition {}={} since {}", self.policy.condition, self.policy.status, self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Seconds;

    #[test]
    fn only_a_node_that_is_not_ready_is_broken_and_only_after_a_quarter_of_an_hour() {
        let since = Timestamp::from(Seconds(1000));
        for status in ["False", "Unknown"] {
            let found = Unhealthy::of("Ready", status, since).unwrap();
            assert_eq!(found.tolerated_until(None).seconds(), Seconds(1900));
            assert_eq!(found.tolerated_until(Some(Timestamp::from(Seconds(500)))).seconds(), Seconds(1900));
            assert_eq!(found.tolerated_until(Some(Timestamp::from(Seconds(2000)))).seconds(), Seconds(2900));
            assert_eq!(found.to_string(), format!("condition Ready={status} since 1970-01-01T00:16:40Z"));
        }
        for (condition, status) in [("Ready", "True"), ("MemoryPressure", "True"), ("ready", "False")] {
            assert_eq!(Unhealthy::of(condition, status, since), None);
        }
    }
}
