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
pub enum ObservedVm {
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
pub enum ObservedTask {
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

/// What a pass of a launch does: make the change of the recorded step, or conclude without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchDecision {
    /// Make the change of the recorded step; what comes of it is a result too.
    Perform(LaunchStep),
    /// Make no change.
    Conclude(LaunchResult),
}

/// What comes of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchResult {
    /// Write this record; then pass again.
    Record(LaunchRecord),
    /// Pass again later.
    Wait(AwaitedEnd),
    /// Choose another VM id and start again; the old id is kept in `retired` if an incomplete clone may be left under it.
    Relaunch {
        /// Why.
        why: String,
        /// The id of an incomplete clone that only an operator can remove.
        incomplete: Option<VmId>,
    },
    /// Delete the claim: its pods are planned again.
    GiveUp(String),
    /// The VM under our id is not ours: change nothing and say so.
    Refuse(String),
    /// The VM runs.
    Launched,
}

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AwaitedEnd {
    /// The recorded task.
    Task,
    /// Whoever holds the VM's lock.
    Lock(String),
    /// The host does not answer.
    Host,
}

impl From<LaunchResult> for LaunchDecision {
    fn from(result: LaunchResult) -> LaunchDecision {
        LaunchDecision::Conclude(result)
    }
}

/// Decides what a pass of a launch does.
pub fn next_step(record: &LaunchRecord, vm: &ObservedVm, task: &ObservedTask, now: Seconds) -> LaunchDecision {
    let is_stalled = now.since(record.last_progress_at) > STALLED_AFTER_S;
    let (vmid, host) = (record.vmid, record.host());
    let result = match (task, vm) {
        _ if record.step == LaunchStep::Launched => LaunchResult::Launched,
        // The task's own host answers for it; a VM that cannot be seen yet is no reason to doubt it.
        (ObservedTask::Running, _) => LaunchResult::Wait(AwaitedEnd::Task),
        (_, ObservedVm::Unreachable) if is_stalled => LaunchResult::GiveUp(format!("host {host} did not answer")),
        (_, ObservedVm::Unreachable) => LaunchResult::Wait(AwaitedEnd::Host),
        _ if record.step == LaunchStep::Clone => return clone_step(record, vm, task, now),
        (_, ObservedVm::Absent) => LaunchResult::GiveUp(format!("VM {vmid} was removed during its launch")),
        (_, ObservedVm::Foreign(why)) => {
            LaunchResult::Refuse(format!("VM {vmid} on host {host} does not belong to this NodeClaim: {why}"))
        }
        (_, ObservedVm::Locked(lock)) if is_stalled => {
            LaunchResult::GiveUp(format!("VM {vmid} was locked (lock: {lock}) for more than {STALLED_AFTER_S}s"))
        }
        (_, ObservedVm::Locked(lock)) => LaunchResult::Wait(AwaitedEnd::Lock(lock.clone())),
        (_, ObservedVm::Ours { uuid }) => return later_step(record, uuid.as_deref(), task, now),
    };
    result.into()
}

/// The first step, in which nothing of ours may be there yet.
fn clone_step(record: &LaunchRecord, vm: &ObservedVm, task: &ObservedTask, now: Seconds) -> LaunchDecision {
    let is_stalled = now.since(record.last_progress_at) > STALLED_AFTER_S;
    let result = match (task, vm) {
        // Whatever became of the task: what it was to create is there, and it is ours. That comes first: a call of ours
        // that was thought lost may have landed late and won, and then this one was refused because the id is in use.
        (_, ObservedVm::Ours { .. }) => LaunchResult::Record(record.advanced(now)),
        (_, ObservedVm::Foreign(_)) => relaunch(record, "the VM ID is in use by another VM", None),
        (ObservedTask::Failed(_), ObservedVm::Locked(lock)) if !is_stalled => {
            LaunchResult::Wait(AwaitedEnd::Lock(lock.clone()))
        }
        (ObservedTask::Failed(_), ObservedVm::Locked(lock)) => relaunch(
            record,
            &format!("another clone holds the VM ID (lock: {lock}) and does not end"),
            Some(record.vmid),
        ),
        (ObservedTask::Failed(failure), _) => clone_failed(record, failure),
        // A clone that was interrupted stays locked, and an API token can neither unlock nor destroy it.
        (ObservedTask::Lost, ObservedVm::Locked(lock)) => {
            relaunch(record, &format!("the clone was interrupted (lock: {lock})"), Some(record.vmid))
        }
        (ObservedTask::Done | ObservedTask::None | ObservedTask::Running, ObservedVm::Locked(lock)) => {
            if is_stalled {
                relaunch(record, &format!("the clone is locked (lock: {lock}) without a task"), Some(record.vmid))
            } else {
                LaunchResult::Wait(AwaitedEnd::Lock(lock.clone()))
            }
        }
        (ObservedTask::Done | ObservedTask::Lost, ObservedVm::Absent) => {
            try_again(record, "the clone task ended, but the VM does not exist")
        }
        (_, ObservedVm::Absent) => return LaunchDecision::Perform(LaunchStep::Clone),
        (_, ObservedVm::Unreachable) => LaunchResult::Wait(AwaitedEnd::Host),
    };
    result.into()
}

/// Proxmox cleans up after a clone that failed, and nothing is there under the id.
fn clone_failed(record: &LaunchRecord, failure: &Failure) -> LaunchResult {
    match failure {
        Failure::IdTaken => relaunch(record, "the VM ID is in use by another VM", None),
        Failure::Hopeless(why) => LaunchResult::GiveUp(why.clone()),
        Failure::Busy(why) | Failure::Passing(why) => try_again(record, why),
    }
}

/// A step on a VM that is proven to be ours. Each can be made twice without harm.
fn later_step(record: &LaunchRecord, uuid: Option<&str>, task: &ObservedTask, now: Seconds) -> LaunchDecision {
    let vmid = record.vmid;
    let result = match (record.step, task) {
        (LaunchStep::Identify, _) => match uuid {
            Some(uuid) => LaunchResult::Record(LaunchRecord { uuid: Some(uuid.to_owned()), ..record.advanced(now) }),
            None => LaunchResult::GiveUp(format!(
                "VM {vmid} has no SMBIOS UUID; check that template {} has smbios1 with a uuid",
                record.template
            )),
        },
        (_, ObservedTask::Done) => LaunchResult::Record(record.advanced(now)),
        (_, ObservedTask::Failed(Failure::Hopeless(why))) => LaunchResult::GiveUp(why.clone()),
        (_, ObservedTask::Failed(Failure::Busy(why) | Failure::Passing(why))) => try_again(record, why),
        (_, ObservedTask::Failed(Failure::IdTaken)) => LaunchResult::Refuse(format!("VM {vmid} exists twice")),
        (step, ObservedTask::None | ObservedTask::Lost | ObservedTask::Running) => {
            return LaunchDecision::Perform(step);
        }
    };
    result.into()
}

fn try_again(record: &LaunchRecord, why: &str) -> LaunchResult {
    if record.attempt < ATTEMPTS {
        LaunchResult::Record(record.begun_again())
    } else {
        LaunchResult::GiveUp(format!("{why} ({} attempts)", record.attempt))
    }
}

fn relaunch(record: &LaunchRecord, why: &str, incomplete: Option<VmId>) -> LaunchResult {
    // Bounded: a host on which every clone ends incomplete is no host to go on with.
    if record.retired.len() < usize::try_from(ATTEMPTS).unwrap_or(usize::MAX) {
        LaunchResult::Relaunch { why: why.to_owned(), incomplete }
    } else {
        LaunchResult::GiveUp(format!("{why}; {} VM IDs hold incomplete clones already", record.retired.len()))
    }
}
