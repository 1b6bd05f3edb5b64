//! What comes next in the life of a claim, from its first second until nothing is left of it.
//!
//! The launch itself has steps of its own ([`super::launch`]); here it is one of them.

use tenon_model::{LaunchRecord, LaunchStep, Seconds};

/// A VM that runs and does not join within this time never will, unless its class says otherwise.
pub const REGISTER_WITHIN_S: i64 = 15 * 60;

/// What is observed of a claim and of its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedClaim {
    /// Whether it has our finalizer: it is not removed before its VM is.
    pub has_finalizer: bool,
    /// Since when it is being deleted.
    pub deleting_since: Option<Seconds>,
    /// When it has become too old.
    pub expires_at: Option<Seconds>,
    /// What is written down of its launch.
    pub launch: ObservedLaunch,
    /// Its conditions.
    pub conditions: ClaimConditions,
    /// The node that bears its name.
    pub node: ObservedNode,
    /// Whether its first-boot data was deleted.
    pub seed_deleted: bool,
    /// Whether it is to be deleted without touching any VM, because its operator asked for that.
    pub skip_vm_deletion: bool,
    /// How long its VM has to join, from its start.
    pub register_within_s: i64,
}

impl ObservedClaim {
    /// Since when its VM runs without having joined: from the start of the VM, however long its launch took.
    fn joining_since(&self, record: &LaunchRecord) -> Seconds {
        self.conditions.waiting_since.max(record.last_progress_at)
    }

    /// Whether its VM should have joined by now.
    pub fn is_overdue(&self, record: &LaunchRecord, now: Seconds) -> bool {
        now.since(self.joining_since(record)) > self.register_within_s
    }
}

/// What is written down of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is moved once")]
pub enum ObservedLaunch {
    /// Nothing, and no VM either: nobody planned it.
    Unplanned,
    /// Nothing, but it has a VM: somebody else made that.
    Foreign,
    /// Something that cannot be read.
    Unreadable(String),
    /// This.
    Record(LaunchRecord),
}

/// Which conditions hold, and since when it waits for a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClaimConditions {
    /// Its VM runs.
    pub launched: bool,
    /// Its node is known.
    pub registered: bool,
    /// Its node takes pods.
    pub initialized: bool,
    /// Its pods have left.
    pub drained: bool,
    /// Its VM is to be started again.
    pub rebooting: bool,
    /// When it began to wait for its node.
    pub waiting_since: Seconds,
}

/// What is seen of the node that bears the claim's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedNode {
    /// There is none.
    Absent,
    /// It is another machine; why.
    Stranger(String),
    /// It is the claim's VM.
    Ours {
        /// Whether it is being deleted.
        deleting: bool,
        /// What keeps it from taking pods.
        obstacle: Option<Obstacle>,
    },
}

/// What keeps a node from being initialized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// It is not Ready.
    NotReady,
    /// A taint of `startupTaints` is still on it, as `key:effect`.
    StartupTaint(String),
    /// A taint that Kubernetes removes during start-up is still on it, as `key:effect`.
    EphemeralTaint(String),
    /// It does not report a resource that was requested.
    MissingResource(String),
}

/// The one thing to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimStep {
    /// Add our finalizer before anything is created for it.
    AddFinalizer,
    /// Change nothing, and say why.
    LeaveAlone(Unmanaged),
    /// Make the VM that another controller created ours, if it bears every mark of that.
    Adopt,
    /// Continue its launch.
    Launch(LaunchRecord),
    /// Set the condition Launched.
    ReportLaunched(LaunchRecord),
    /// Wait for its node; why it is not there.
    AwaitNode(Option<String>),
    /// Make the node its own.
    Register(LaunchRecord),
    /// Wait until the node takes pods.
    AwaitReadiness(Obstacle),
    /// Say that the node takes pods.
    Initialize,
    /// Continue to start its VM again.
    Reboot(LaunchRecord),
    /// Delete its first-boot data.
    DeleteSeed(LaunchRecord),
    /// Nothing is to be done; check again for incomplete clones.
    Settled(LaunchRecord),
    /// Delete it; why.
    Delete(DeletionCause),
    /// Delete its node.
    DeleteNode,
    /// Drain its node.
    Drain,
    /// Destroy its VM.
    Release(LaunchRecord),
    /// Delete it without touching any VM.
    ReleaseWithoutVm(Option<LaunchRecord>),
    /// Remove its finalizer: nothing of it is left, or was ever created.
    RemoveFinalizer,
}

/// Why nothing is done for a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unmanaged {
    /// Nobody planned it.
    Unplanned,
    /// Its record cannot be read.
    Unreadable(String),
    /// It is deleted but for the finalizer of another controller.
    Released,
}

/// Why a claim is deleted by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeletionCause {
    /// Its VM did not register in time.
    NotRegistered,
    /// Its node is being deleted, or was.
    NodeDeleted,
    /// It has become too old.
    Expired,
}

/// Decides the next step of a claim.
pub fn next_step(observed: &ObservedClaim, now: Seconds) -> ClaimStep {
    match (&observed.launch, observed.deleting_since) {
        (_, Some(_)) => way_back(observed),
        (_, None) if !observed.has_finalizer => ClaimStep::AddFinalizer,
        (ObservedLaunch::Record(_) | ObservedLaunch::Unplanned, None)
            if observed.expires_at.is_some_and(|at| at <= now) =>
        {
            ClaimStep::Delete(DeletionCause::Expired)
        }
        (ObservedLaunch::Unplanned, _) => ClaimStep::LeaveAlone(Unmanaged::Unplanned),
        (ObservedLaunch::Foreign, _) => ClaimStep::Adopt,
        (ObservedLaunch::Unreadable(why), _) => ClaimStep::LeaveAlone(Unmanaged::Unreadable(why.clone())),
        (ObservedLaunch::Record(record), _) if record.step != LaunchStep::Launched => ClaimStep::Launch(record.clone()),
        (ObservedLaunch::Record(record), _) => after_launch(observed, record, now),
    }
}

/// Its VM runs.
fn after_launch(observed: &ObservedClaim, record: &LaunchRecord, now: Seconds) -> ClaimStep {
    let is_late = observed.is_overdue(record, now);
    match &observed.node {
        _ if !observed.conditions.launched => ClaimStep::ReportLaunched(record.clone()),
        // While it is started again its node may be gone, and must not be initialized.
        _ if observed.conditions.rebooting => ClaimStep::Reboot(record.clone()),
        ObservedNode::Absent if observed.conditions.registered => ClaimStep::Delete(DeletionCause::NodeDeleted),
        ObservedNode::Absent | ObservedNode::Stranger(_) if is_late && !observed.conditions.registered => {
            ClaimStep::Delete(DeletionCause::NotRegistered)
        }
        ObservedNode::Absent => ClaimStep::AwaitNode(None),
        ObservedNode::Stranger(why) => ClaimStep::AwaitNode(Some(why.clone())),
        ObservedNode::Ours { deleting: true, .. } => ClaimStep::Delete(DeletionCause::NodeDeleted),
        ObservedNode::Ours { .. } if !observed.conditions.registered => ClaimStep::Register(record.clone()),
        ObservedNode::Ours { obstacle: Some(obstacle), .. } if !observed.conditions.initialized => {
            ClaimStep::AwaitReadiness(obstacle.clone())
        }
        ObservedNode::Ours { .. } if !observed.conditions.initialized => ClaimStep::Initialize,
        ObservedNode::Ours { .. } if !observed.seed_deleted => ClaimStep::DeleteSeed(record.clone()),
        ObservedNode::Ours { .. } => ClaimStep::Settled(record.clone()),
    }
}

/// It is being deleted: node first, pods next, VM last. A node that is not its VM is nobody's to delete.
fn way_back(observed: &ObservedClaim) -> ClaimStep {
    match (&observed.launch, &observed.node) {
        _ if !observed.has_finalizer => ClaimStep::LeaveAlone(Unmanaged::Released),
        // Its Node goes with it: another VM may get the id, and two Nodes must not claim one VM.
        (_, ObservedNode::Ours { deleting: false, .. }) if observed.skip_vm_deletion => ClaimStep::DeleteNode,
        (ObservedLaunch::Record(record), _) if observed.skip_vm_deletion => {
            ClaimStep::ReleaseWithoutVm(Some(record.clone()))
        }
        _ if observed.skip_vm_deletion => ClaimStep::ReleaseWithoutVm(None),
        (ObservedLaunch::Foreign, _) => ClaimStep::Adopt,
        (ObservedLaunch::Unreadable(why), _) => ClaimStep::LeaveAlone(Unmanaged::Unreadable(why.clone())),
        (ObservedLaunch::Unplanned, _) => ClaimStep::RemoveFinalizer,
        (_, ObservedNode::Ours { deleting: false, .. }) => ClaimStep::DeleteNode,
        (_, ObservedNode::Ours { deleting: true, .. }) if !observed.conditions.drained => ClaimStep::Drain,
        (ObservedLaunch::Record(record), _) => ClaimStep::Release(record.clone()),
    }
}
