//! What comes next in the launch of a VM: one change at most, chosen from what was written down and what is seen now.
//!
//! A lost reply, a crash between two lines and a second pass all end here: nothing is sent again before it was looked
//! for, and what is not proven to be ours is left alone.

use tenon_model::{LaunchRecord, LaunchStep, Seconds, VmId};

/// A step may be begun this often before the claim goes back to planning.
const ATTEMPTS: u32 = 3;

/// Without any progress for this long a launch has failed. A full copy of a large disk reports progress by its task.
const STALLED_AFTER_S: i64 = 600;

/// What is seen of the VM under the recorded id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VmSeen {
    /// There is none.
    Absent,
    /// It is being made, or was left half-made; whose it is cannot be read.
    Locked(String),
    /// It is proven to be ours.
    Ours {
        /// Its SMBIOS uuid.
        uuid: Option<String>,
    },
    /// It is somebody else's; why we think so.
    Foreign(String),
    /// Its host cannot be reached.
    Unreachable,
}

/// What is seen of the recorded task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskSeen {
    /// No task is recorded.
    None,
    /// It runs.
    Running,
    /// It ended well.
    Done,
    /// It ended with these words; whether another try may help.
    Failed(Failure),
    /// Its worker died, or nobody knows it any more: what it had done must be looked for.
    Lost,
}

/// How a task failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Somebody else has the id.
    IdTaken,
    /// Something held the VM; it will let go.
    Busy(String),
    /// It may work another time.
    Passing(String),
    /// It will not work here, whatever we do: a full storage, a missing bridge.
    Hopeless(String),
}

/// The one thing to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchAction {
    /// Write down this record; then look again.
    Record(LaunchRecord),
    /// Make the change of the recorded step.
    Perform(LaunchStep),
    /// Look again later.
    Wait(Waiting),
    /// Choose another id and begin anew; the old id is kept in `retired` if something of ours may be left under it.
    Relaunch {
        /// Why.
        why: String,
        /// The id to keep in mind, for a husk that only an operator can free.
        husk: Option<VmId>,
    },
    /// Give the claim back to planning.
    GiveUp(String),
    /// The VM under our id is not ours: change nothing and say so.
    Refuse(String),
    /// The VM runs.
    Launched,
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    /// The recorded task.
    Task,
    /// Whoever holds the VM.
    Lock(String),
    /// The host.
    Host,
}

/// Decides the next step of a launch.
pub fn next_step(record: &LaunchRecord, vm: &VmSeen, task: &TaskSeen, now: Seconds) -> LaunchAction {
    if record.step == LaunchStep::Launched {
        return LaunchAction::Launched;
    }
    let is_stalled = now.since(record.last_progress_at) > STALLED_AFTER_S;
    match (task, vm) {
        // The task's own host answers for it; a VM that cannot be seen yet is no reason to doubt it.
        (TaskSeen::Running, _) => LaunchAction::Wait(Waiting::Task),
        (_, VmSeen::Unreachable) if is_stalled => {
            LaunchAction::GiveUp(format!("host {} did not answer", record.host()))
        }
        (_, VmSeen::Unreachable) => LaunchAction::Wait(Waiting::Host),
        _ if record.step == LaunchStep::Clone => clone_step(record, vm, task, now),
        (_, VmSeen::Absent) => LaunchAction::GiveUp(format!("vm {} was removed while it was made", record.vmid)),
        (_, VmSeen::Foreign(why)) => LaunchAction::Refuse(format!("vm {} is not ours: {why}", record.vmid)),
        (_, VmSeen::Locked(lock)) if is_stalled => {
            LaunchAction::GiveUp(format!("vm {} was held by `{lock}` for too long", record.vmid))
        }
        (_, VmSeen::Locked(lock)) => LaunchAction::Wait(Waiting::Lock(lock.clone())),
        (_, VmSeen::Ours { uuid }) => later_step(record, uuid.as_deref(), task, now),
    }
}

/// The first step, in which nothing of ours may be there yet.
fn clone_step(record: &LaunchRecord, vm: &VmSeen, task: &TaskSeen, now: Seconds) -> LaunchAction {
    match (task, vm) {
        // Whatever became of the task: what it was to make is there, and it is ours. That comes first: a call of ours that
        // was thought lost may have landed late and won, and then this one was told that the id is taken.
        (_, VmSeen::Ours { .. }) => LaunchAction::Record(record.advanced(now)),
        (_, VmSeen::Foreign(_)) => relaunch(record, "the id was taken meanwhile", None),
        (TaskSeen::Failed(_), VmSeen::Locked(lock)) if now.since(record.last_progress_at) <= STALLED_AFTER_S => {
            LaunchAction::Wait(Waiting::Lock(lock.clone()))
        }
        (TaskSeen::Failed(_), VmSeen::Locked(lock)) => {
            relaunch(record, &format!("the id is held by a copy that does not end ({lock})"), Some(record.vmid))
        }
        (TaskSeen::Failed(failure), _) => clone_failed(record, failure),
        // The copy that nobody makes any more stays locked, and a token can neither unlock nor remove it.
        (TaskSeen::Lost, VmSeen::Locked(lock)) => {
            relaunch(record, &format!("the copy was cut short and left locked ({lock})"), Some(record.vmid))
        }
        (TaskSeen::Done | TaskSeen::None | TaskSeen::Running, VmSeen::Locked(lock)) => {
            if now.since(record.last_progress_at) > STALLED_AFTER_S {
                relaunch(record, &format!("the copy has been locked ({lock}) without a task"), Some(record.vmid))
            } else {
                LaunchAction::Wait(Waiting::Lock(lock.clone()))
            }
        }
        (TaskSeen::Done | TaskSeen::Lost, VmSeen::Absent) => try_again(record, "the copy is not there"),
        (_, VmSeen::Absent) => LaunchAction::Perform(LaunchStep::Clone),
        (_, VmSeen::Unreachable) => LaunchAction::Wait(Waiting::Host),
    }
}

/// Proxmox cleans up after a copy that failed, and nothing is there under the id.
fn clone_failed(record: &LaunchRecord, failure: &Failure) -> LaunchAction {
    match failure {
        Failure::IdTaken => relaunch(record, "the id was taken meanwhile", None),
        Failure::Hopeless(why) => LaunchAction::GiveUp(why.clone()),
        Failure::Busy(why) | Failure::Passing(why) => try_again(record, why),
    }
}

/// A step on a VM that is proven to be ours. Each can be made twice without harm.
fn later_step(record: &LaunchRecord, uuid: Option<&str>, task: &TaskSeen, now: Seconds) -> LaunchAction {
    match (record.step, task) {
        (LaunchStep::Identify, _) => match uuid {
            Some(uuid) => LaunchAction::Record(LaunchRecord { uuid: Some(uuid.to_owned()), ..record.advanced(now) }),
            None => LaunchAction::GiveUp(format!("vm {} has no SMBIOS uuid; does its template have one?", record.vmid)),
        },
        (_, TaskSeen::Done) => LaunchAction::Record(record.advanced(now)),
        (_, TaskSeen::Failed(Failure::Hopeless(why))) => LaunchAction::GiveUp(why.clone()),
        (_, TaskSeen::Failed(Failure::Busy(why) | Failure::Passing(why))) => try_again(record, why),
        (_, TaskSeen::Failed(Failure::IdTaken)) => LaunchAction::Refuse(format!("vm {} exists twice", record.vmid)),
        (step, TaskSeen::None | TaskSeen::Lost | TaskSeen::Running) => LaunchAction::Perform(step),
    }
}

fn try_again(record: &LaunchRecord, why: &str) -> LaunchAction {
    if record.attempt < ATTEMPTS {
        LaunchAction::Record(record.begun_again())
    } else {
        LaunchAction::GiveUp(format!("{why} ({} attempts)", record.attempt))
    }
}

fn relaunch(record: &LaunchRecord, why: &str, husk: Option<VmId>) -> LaunchAction {
    // Bounded: a host on which every copy ends half-made is no host to go on with.
    if record.retired.len() < usize::try_from(ATTEMPTS).unwrap_or(usize::MAX) {
        LaunchAction::Relaunch { why: why.to_owned(), husk }
    } else {
        LaunchAction::GiveUp(format!("{why}; {} ids are lost to half-made copies already", record.retired.len()))
    }
}
