//! Which pods of a node that is drained are evicted now, which are deleted, and which are waited for?
//!
//! Pods leave in four groups, each only when the one before has left: what serves others stays longest.

use std::time::Duration;

use tenon_model::{DrainPod, PodKey, Timestamp};

/// A pod that is still there so long after it should have ended belongs to a kubelet that does not answer.
const STUCK_AFTER: Duration = Duration::from_secs(60);

/// A pod may have been bound just before the taint was seen, and shows up within this time.
const DRAINS_AT_LEAST: Duration = Duration::from_secs(5);

/// What is to be done with the pods of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DrainPlan {
    /// Pods to evict now.
    pub evict: Vec<PodKey>,
    /// Pods to delete, because they would not end by the deadline otherwise.
    pub delete: Vec<PodKey>,
    /// How many pods have not left yet, those above included.
    pub remaining: usize,
    /// The first pod that is not evicted because of `karpenter.sh/do-not-disrupt`.
    pub protected: Option<PodKey>,
}

/// What is done now, for all pods of a node. `deadline` is when the termination grace period of the NodeClaim ends.
pub fn plan_drain(pods: &[DrainPod], deadline: Option<Timestamp>, now: Timestamp) -> DrainPlan {
    let remaining: Vec<&DrainPod> = pods.iter().filter(|pod| !pod.is_terminal && is_drainable(pod, now)).collect();
    let is_due = |pod: &DrainPod| deadline.is_some_and(|deadline| is_due(pod, deadline, now));
    let (delete, graceful): (Vec<_>, Vec<_>) = remaining.iter().copied().partition(|pod| is_due(pod));
    let first = graceful.iter().map(|pod| group(pod)).min();
    let asked = graceful.into_iter().filter(|pod| Some(group(pod)) == first && pod.is_active());
    let (protected, evict): (Vec<_>, Vec<_>) = asked.partition(|pod| pod.has_do_not_disrupt);
    let keys = |pods: Vec<&DrainPod>| pods.into_iter().map(|pod| pod.key.clone()).collect();
    DrainPlan {
        evict: keys(evict),
        delete: keys(delete),
        remaining: remaining.len(),
        protected: protected.first().map(|pod| pod.key.clone()),
    }
}

/// Whether a pod leaves before its node is removed. Static pods and those that tolerate the taint of a drained node do not,
/// and those whose kubelet does not answer are not waited for.
pub fn is_drainable(pod: &DrainPod, now: Timestamp) -> bool {
    let is_stuck = pod.deleting_until.is_some_and(|due| now > due.after(STUCK_AFTER));
    !is_stuck && !pod.is_owned_by_node && !pod.tolerates_disrupted_taint
}

/// Whether a drain has gone on for long enough to have seen every pod.
pub fn has_seen_all_pods(begun: Timestamp, now: Timestamp) -> bool {
    begun.after(DRAINS_AT_LEAST) <= now
}

/// How many seconds a pod has to end if it is deleted now. It always has one.
pub fn grace_left_s(deadline: Option<Timestamp>, now: Timestamp) -> u32 {
    let left = deadline.map_or(1, |deadline| deadline.nanos_since(now) / 1_000_000_000);
    u32::try_from(left.max(1)).unwrap_or(u32::MAX)
}

/// Pods of a lower group leave first.
fn group(pod: &DrainPod) -> u8 {
    u8::from(pod.is_critical) * 2 + u8::from(pod.is_owned_by_daemon_set)
}

/// Whether a pod must be deleted now to have ended by the deadline.
fn is_due(pod: &DrainPod, deadline: Timestamp, now: Timestamp) -> bool {
    match pod.deleting_until {
        Some(due) => due > deadline,
        None => {
            let grace = u64::try_from(pod.grace_period_s).unwrap_or_default();
            now > deadline.before(Duration::from_secs(grace))
        }
    }
}
