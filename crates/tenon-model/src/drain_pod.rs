//! What the engine must know of a pod to say when it leaves a node that is drained.

use crate::pod::PodKey;
use crate::timestamp::Timestamp;

/// A pod on a node that is drained.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DrainPod {
    /// Which.
    pub key: PodKey,
    /// Whether it ran to its end.
    pub is_terminal: bool,
    /// By when it should have ended, if it is being deleted.
    pub deleting_until: Option<Timestamp>,
    /// How long it may take to end, in seconds.
    pub grace_period_s: i64,
    /// Whether the node itself owns it: a mirror of a static pod.
    pub is_owned_by_node: bool,
    /// Whether a DaemonSet owns it.
    pub is_owned_by_daemon_set: bool,
    /// Whether its priority class is one of the two that are critical to the cluster.
    pub is_critical: bool,
    /// Whether it tolerates the taint of a node that is drained.
    pub tolerates_disrupted_taint: bool,
    /// Whether it asks now that its node be left alone.
    pub has_do_not_disrupt: bool,
}

impl DrainPod {
    /// Whether it has neither ended nor been asked to.
    pub fn is_active(&self) -> bool {
        !self.is_terminal && self.deleting_until.is_none()
    }
}
