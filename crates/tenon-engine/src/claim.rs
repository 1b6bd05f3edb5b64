//! What comes next in the life of a claim, from its first second until nothing is left of it.
//!
//! The launch itself has steps of its own ([`crate::launch`]); here it is one of them.

use tenon_model::{LaunchRecord, LaunchStep, Seconds};

/// A VM that runs and does not join within this time never will.
pub const REGISTER_WITHIN_S: i64 = 15 * 60;

/// What is seen of a claim and of its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimSeen {
    /// Whether it is held until its VM is gone.
    pub has_finalizer: bool,
    /// Since when it is being deleted.
    pub deleting_since: Option<Seconds>,
    /// When it has become too old.
    pub expires_at: Option<Seconds>,
    /// What is written down of its launch.
    pub launch: LaunchSeen,
    /// What was said of it.
    pub said: Said,
    /// The node that bears its name.
    pub node: NodeSeen,
    /// Whether its first-boot data was taken away again.
    pub seed_retired: bool,
    /// Whether its operator takes care of what is left of its VM.
    pub let_go: bool,
}

/// What is written down of a launch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchSeen {
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
pub struct Said {
    /// Its VM runs.
    pub launched: bool,
    /// Its node is known.
    pub registered: bool,
    /// Its node takes pods.
    pub initialized: bool,
    /// Its pods have left.
    pub drained: bool,
    /// When it began to wait for its node.
    pub waiting_since: Seconds,
}

/// What is seen of the node that bears the claim's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeSeen {
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

/// What keeps a node from taking pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// As one word.
    pub reason: &'static str,
    /// As a sentence.
    pub message: String,
}

/// The one thing to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimStep {
    /// Hold it before anything is made for it.
    Hold,
    /// Change nothing, and say why.
    Leave(Leaving),
    /// Go on with its launch.
    Launch(LaunchRecord),
    /// Say that its VM runs.
    SayLaunched(LaunchRecord),
    /// Wait for its node; why it is not there.
    AwaitNode(Option<String>),
    /// Make the node its own.
    Register(LaunchRecord),
    /// Wait until the node takes pods.
    AwaitReadiness(Obstacle),
    /// Say that the node takes pods.
    Initialize,
    /// Take its first-boot data away.
    RetireSeed(LaunchRecord),
    /// Nothing is to be done; look again at the ids that were lost to half-made copies.
    Settled(LaunchRecord),
    /// Delete it; why.
    Delete(Ending),
    /// Delete its node.
    DeleteNode,
    /// Bring its pods to leave.
    Drain,
    /// Take its VM away.
    Release(LaunchRecord),
    /// Let it go: nothing of it is left, or was ever made.
    LetGo,
}

/// Why a claim is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaving {
    /// Nobody planned it.
    Unplanned,
    /// Its VM was made by somebody else.
    Foreign,
    /// Its record cannot be read.
    Unreadable(String),
    /// It is gone but for somebody else's finalizer.
    Released,
}

/// Why a claim is deleted by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Its VM never joined.
    NeverJoined,
    /// Its node is being deleted, or is gone.
    NodeGone,
    /// It has become too old.
    Expired,
}

/// Decides the next step of a claim.
pub fn next_step(seen: &ClaimSeen, now: Seconds) -> ClaimStep {
    match (&seen.launch, seen.deleting_since) {
        (_, Some(_)) => way_back(seen),
        (_, None) if !seen.has_finalizer => ClaimStep::Hold,
        (LaunchSeen::Record(_), None) if seen.expires_at.is_some_and(|at| at <= now) => {
            ClaimStep::Delete(Ending::Expired)
        }
        (LaunchSeen::Unplanned, _) => ClaimStep::Leave(Leaving::Unplanned),
        (LaunchSeen::Foreign, _) => ClaimStep::Leave(Leaving::Foreign),
        (LaunchSeen::Unreadable(why), _) => ClaimStep::Leave(Leaving::Unreadable(why.clone())),
        (LaunchSeen::Record(record), _) if record.step != LaunchStep::Launched => ClaimStep::Launch(record.clone()),
        (LaunchSeen::Record(record), _) => after_launch(seen, record, now),
    }
}

/// Its VM runs.
fn after_launch(seen: &ClaimSeen, record: &LaunchRecord, now: Seconds) -> ClaimStep {
    let is_late = now.since(seen.said.waiting_since) > REGISTER_WITHIN_S;
    match &seen.node {
        _ if !seen.said.launched => ClaimStep::SayLaunched(record.clone()),
        NodeSeen::Absent if seen.said.registered => ClaimStep::Delete(Ending::NodeGone),
        NodeSeen::Absent | NodeSeen::Stranger(_) if is_late && !seen.said.registered => {
            ClaimStep::Delete(Ending::NeverJoined)
        }
        NodeSeen::Absent => ClaimStep::AwaitNode(None),
        NodeSeen::Stranger(why) => ClaimStep::AwaitNode(Some(why.clone())),
        NodeSeen::Ours { deleting: true, .. } => ClaimStep::Delete(Ending::NodeGone),
        NodeSeen::Ours { .. } if !seen.said.registered => ClaimStep::Register(record.clone()),
        NodeSeen::Ours { obstacle: Some(obstacle), .. } if !seen.said.initialized => {
            ClaimStep::AwaitReadiness(obstacle.clone())
        }
        NodeSeen::Ours { .. } if !seen.said.initialized => ClaimStep::Initialize,
        NodeSeen::Ours { .. } if !seen.seed_retired => ClaimStep::RetireSeed(record.clone()),
        NodeSeen::Ours { .. } => ClaimStep::Settled(record.clone()),
    }
}

/// It is being deleted: node first, pods next, VM last. A node that is not its VM is nobody's to delete.
fn way_back(seen: &ClaimSeen) -> ClaimStep {
    match (&seen.launch, &seen.node) {
        _ if !seen.has_finalizer => ClaimStep::Leave(Leaving::Released),
        _ if seen.let_go => ClaimStep::LetGo,
        (LaunchSeen::Foreign, _) => ClaimStep::Leave(Leaving::Foreign),
        (LaunchSeen::Unreadable(why), _) => ClaimStep::Leave(Leaving::Unreadable(why.clone())),
        (LaunchSeen::Unplanned, _) => ClaimStep::LetGo,
        (_, NodeSeen::Ours { deleting: false, .. }) => ClaimStep::DeleteNode,
        (_, NodeSeen::Ours { deleting: true, .. }) if !seen.said.drained => ClaimStep::Drain,
        (LaunchSeen::Record(record), _) => ClaimStep::Release(record.clone()),
    }
}
