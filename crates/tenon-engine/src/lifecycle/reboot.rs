//! What comes next for a NodeClaim whose VM is to be started again, until its node is back or given up?
//!
//! Pods are asked to leave, and none is deleted: those that stay are there again after the reboot. That the VM was started again is
//! known by the boot ID of its node, so a controller that dies in between finds out what was done.

use std::time::Duration;

use tenon_model::Timestamp;

/// A pod may have been bound just before the taint was seen, and shows up within this time.
const DRAINS_AT_LEAST: Duration = Duration::from_secs(5);

/// From the first request to Proxmox until it must have done it. As in Karpenter.
const CALLED_WITHIN: Duration = Duration::from_secs(5 * 60);

/// Until the node must be back. As in Karpenter.
const BACK_WITHIN: Duration = Duration::from_secs(20 * 60);

/// How far a reboot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebootPhase {
    /// It is wanted.
    Requested,
    /// Proxmox did it, or the node says so.
    Issued,
}

/// How long pods have to leave before the reboot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainBound {
    /// As long as they need.
    None,
    /// This long; zero means that they are not asked.
    Within(Duration),
    /// What is written cannot be read.
    Invalid,
}

/// What is observed of a reboot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedReboot {
    /// How far it is.
    pub phase: RebootPhase,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// How long pods have to leave.
    pub bound: DrainBound,
    /// The boot ID before the first request to Proxmox, once it was written down.
    pub boot_id_before: Option<String>,
    /// When Proxmox was first asked, as far as this process knows.
    pub called_at: Option<Timestamp>,
    /// Since when the claim says that its node takes no pods because of the reboot.
    pub away_since: Option<Timestamp>,
    /// Its node, if there is one.
    pub node: Option<RebootingNode>,
}

/// The node of a claim whose VM is started again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RebootingNode {
    /// Another one after each start.
    pub boot_id: String,
    /// Whether the kubelet says that it works.
    pub is_ready: bool,
    /// Whether the taint of a node that is started again is on it.
    pub is_fenced: bool,
    /// Whether its label says that it takes pods.
    pub is_initialized: bool,
    /// How many pods would have to leave; only looked at when it matters.
    pub pods_left: usize,
}

/// How a reboot ended, as metrics have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebootResult {
    /// The node is back.
    Succeeded,
    /// Proxmox did not do it.
    ProviderError,
    /// The node did not come back.
    RecoveryTimeout,
    /// What was asked for cannot be read.
    InvalidRequest,
}

impl RebootResult {
    /// Its name, as in Karpenter's metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            RebootResult::Succeeded => "succeeded",
            RebootResult::ProviderError => "provider_error",
            RebootResult::RecoveryTimeout => "recovery_timeout",
            RebootResult::InvalidRequest => "invalid_request",
        }
    }
}

/// The one thing to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebootStep {
    /// Keep new pods off the node.
    Fence,
    /// Ask pods to leave.
    Drain,
    /// Write down the boot ID.
    RecordBootId,
    /// Have Proxmox start the VM again, unless it is doing so.
    Call,
    /// Say that it was done.
    SayIssued,
    /// Take the label of a node that takes pods away.
    HideFromPods,
    /// Let new pods on the node again.
    LiftFence,
    /// The node is back.
    Succeed,
    /// It is given up.
    Fail(RebootResult),
    /// Look again later.
    Wait,
}

impl ObservedReboot {
    /// Whether it matters how many pods are left.
    pub fn is_draining(&self, now: Timestamp) -> bool {
        let is_fenced = self.node.as_ref().is_some_and(|node| node.is_fenced);
        self.phase == RebootPhase::Requested && self.boot_id_before.is_none() && is_fenced && !self.drain_is_over(now)
    }

    /// Whether pods had the time that they have.
    fn drain_is_over(&self, now: Timestamp) -> bool {
        match self.bound {
            DrainBound::None | DrainBound::Invalid => false,
            DrainBound::Within(Duration::ZERO) => true,
            DrainBound::Within(bound) => self.requested_at.after(bound.max(DRAINS_AT_LEAST)) <= now,
        }
    }

    fn has_booted(&self, node: &RebootingNode) -> bool {
        self.boot_id_before.as_ref().is_some_and(|before| !node.boot_id.is_empty() && *before != node.boot_id)
    }
}

/// Decides the next step of a reboot.
pub fn next_step(observed: &ObservedReboot, now: Timestamp) -> RebootStep {
    match observed.phase {
        RebootPhase::Requested => requested(observed, now),
        RebootPhase::Issued => issued(observed, now),
    }
}

fn requested(observed: &ObservedReboot, now: Timestamp) -> RebootStep {
    if observed.bound == DrainBound::Invalid {
        return RebootStep::Fail(RebootResult::InvalidRequest);
    }
    let is_late = now >= observed.called_at.unwrap_or(observed.requested_at).after(CALLED_WITHIN);
    let Some(node) = observed.node.as_ref().filter(|node| !node.boot_id.is_empty()) else {
        return if is_late { RebootStep::Fail(RebootResult::ProviderError) } else { RebootStep::Wait };
    };
    if observed.has_booted(node) {
        return RebootStep::SayIssued;
    }
    if observed.boot_id_before.is_some() && observed.called_at.is_some() && is_late {
        return RebootStep::Fail(RebootResult::ProviderError);
    }
    if !node.is_fenced {
        return RebootStep::Fence;
    }
    if observed.boot_id_before.is_some() {
        return RebootStep::Call;
    }
    let has_seen_all_pods = observed.requested_at.after(DRAINS_AT_LEAST) <= now;
    match observed.drain_is_over(now) {
        true => RebootStep::RecordBootId,
        false if node.pods_left == 0 && has_seen_all_pods => RebootStep::RecordBootId,
        false => RebootStep::Drain,
    }
}

fn issued(observed: &ObservedReboot, now: Timestamp) -> RebootStep {
    // What is recorded is taken away only once the node is back.
    if observed.boot_id_before.is_none() {
        return RebootStep::Succeed;
    }
    let Some(away_since) = observed.away_since else { return RebootStep::SayIssued };
    let late = match now >= away_since.after(BACK_WITHIN) {
        true => RebootStep::Fail(RebootResult::RecoveryTimeout),
        false => RebootStep::Wait,
    };
    let Some(node) = &observed.node else { return late };
    match (observed.has_booted(node), node.is_ready) {
        _ if node.is_initialized => RebootStep::HideFromPods,
        (true, _) if node.is_fenced => RebootStep::LiftFence,
        (true, true) => RebootStep::Succeed,
        _ => late,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_model::Seconds;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from(Seconds(seconds))
    }

    fn node(boot_id: &str) -> RebootingNode {
        RebootingNode { boot_id: boot_id.to_owned(), is_initialized: true, ..RebootingNode::default() }
    }

    fn fenced(boot_id: &str, pods_left: usize) -> RebootingNode {
        RebootingNode { is_fenced: true, pods_left, ..node(boot_id) }
    }

    /// Asked for at 0.
    fn wanted(bound: DrainBound, node: Option<RebootingNode>) -> ObservedReboot {
        ObservedReboot {
            phase: RebootPhase::Requested,
            requested_at: at(0),
            bound,
            boot_id_before: None,
            called_at: None,
            away_since: None,
            node,
        }
    }

    fn called(node: Option<RebootingNode>, called_at: Option<i64>) -> ObservedReboot {
        let before = Some("one".to_owned());
        ObservedReboot { boot_id_before: before, called_at: called_at.map(at), ..wanted(DrainBound::None, node) }
    }

    /// Away since 100.
    fn away(node: Option<RebootingNode>) -> ObservedReboot {
        ObservedReboot { phase: RebootPhase::Issued, away_since: Some(at(100)), ..called(node, Some(50)) }
    }

    fn minutes(count: u64) -> DrainBound {
        DrainBound::Within(Duration::from_secs(60 * count))
    }

    #[test]
    fn j4_new_pods_are_kept_off_first_and_a_bound_that_cannot_be_read_ends_it() {
        assert_eq!(next_step(&wanted(DrainBound::None, Some(node("one"))), at(0)), RebootStep::Fence);
        let invalid = wanted(DrainBound::Invalid, Some(node("one")));
        assert_eq!(next_step(&invalid, at(0)), RebootStep::Fail(RebootResult::InvalidRequest));
    }

    #[test]
    fn j4_pods_have_as_long_as_the_bound_says_and_five_seconds_at_least() {
        let step = |bound, pods, now| next_step(&wanted(bound, Some(fenced("one", pods))), at(now));
        for (bound, pods, now, expected) in [
            (DrainBound::None, 0, 4, RebootStep::Drain),
            (DrainBound::None, 0, 5, RebootStep::RecordBootId),
            (DrainBound::None, 1, 1_000_000, RebootStep::Drain),
            (minutes(1), 1, 59, RebootStep::Drain),
            (minutes(1), 1, 60, RebootStep::RecordBootId),
            (minutes(1), 0, 5, RebootStep::RecordBootId),
            (DrainBound::Within(Duration::from_secs(1)), 1, 4, RebootStep::Drain),
            (DrainBound::Within(Duration::from_secs(1)), 1, 5, RebootStep::RecordBootId),
            (minutes(0), 7, 0, RebootStep::RecordBootId),
        ] {
            assert_eq!(step(bound, pods, now), expected, "{bound:?} {pods} {now}");
        }
    }

    #[test]
    fn j4_proxmox_is_asked_for_five_minutes_from_the_first_time_and_again_after_a_restart() {
        let step = |called_at, now| next_step(&called(Some(fenced("one", 3)), called_at), at(now));
        assert_eq!(step(None, 10), RebootStep::Call);
        assert_eq!(step(Some(10), 309), RebootStep::Call);
        assert_eq!(step(Some(10), 310), RebootStep::Fail(RebootResult::ProviderError));
        assert_eq!(step(None, 100_000), RebootStep::Call, "this process has not asked yet");
        let unfenced = called(Some(node("one")), Some(10));
        assert_eq!(next_step(&unfenced, at(310)), RebootStep::Fail(RebootResult::ProviderError), "no fence comes back");
    }

    #[test]
    fn j4_a_node_that_booted_already_is_not_started_again() {
        assert_eq!(next_step(&called(Some(fenced("two", 0)), None), at(10)), RebootStep::SayIssued);
        assert_eq!(next_step(&called(Some(node("two")), Some(10)), at(900)), RebootStep::SayIssued);
    }

    #[test]
    fn j4_a_node_that_is_missing_is_waited_for_until_the_phase_is_over() {
        let step = |now| next_step(&wanted(DrainBound::None, None), at(now));
        assert_eq!((step(299), step(300)), (RebootStep::Wait, RebootStep::Fail(RebootResult::ProviderError)));
        let silent = wanted(DrainBound::None, Some(node("")));
        assert_eq!(next_step(&silent, at(1)), RebootStep::Wait, "nobody would see that it booted");
        let step = |now| next_step(&called(None, Some(100)), at(now));
        assert_eq!((step(399), step(400)), (RebootStep::Wait, RebootStep::Fail(RebootResult::ProviderError)));
        let step = |now| next_step(&away(None), at(now));
        assert_eq!((step(1299), step(1300)), (RebootStep::Wait, RebootStep::Fail(RebootResult::RecoveryTimeout)));
    }

    #[test]
    fn j4_a_node_is_back_when_it_booted_and_is_ready_and_takes_no_pods_by_label_before() {
        let hidden = |boot_id: &str, is_ready, is_fenced| RebootingNode {
            boot_id: boot_id.to_owned(),
            is_ready,
            is_fenced,
            ..RebootingNode::default()
        };
        let step = |node, now| next_step(&away(Some(node)), at(now));
        assert_eq!(step(fenced("one", 0), 100), RebootStep::HideFromPods);
        assert_eq!(step(hidden("one", true, true), 101), RebootStep::Wait, "it has not gone down yet");
        assert_eq!(step(hidden("two", false, true), 102), RebootStep::LiftFence);
        assert_eq!(step(hidden("two", false, false), 103), RebootStep::Wait);
        assert_eq!(step(hidden("two", true, false), 104), RebootStep::Succeed);
        assert_eq!(step(hidden("two", true, false), 9999), RebootStep::Succeed, "late, but back");
        assert_eq!(step(hidden("one", true, true), 1300), RebootStep::Fail(RebootResult::RecoveryTimeout));
        assert_eq!(step(hidden("two", false, false), 1300), RebootStep::Fail(RebootResult::RecoveryTimeout));
        let unsaid = ObservedReboot { away_since: None, ..away(Some(hidden("one", true, true))) };
        assert_eq!(next_step(&unsaid, at(101)), RebootStep::SayIssued);
        let cleaned = ObservedReboot { boot_id_before: None, ..away(Some(hidden("two", true, false))) };
        assert_eq!(next_step(&cleaned, at(101)), RebootStep::Succeed, "it died on its last step");
    }
}
