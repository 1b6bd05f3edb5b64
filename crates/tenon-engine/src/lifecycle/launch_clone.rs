//! The first step of a launch: is the clone there, under way, lost, or to be made?
//!
//! Until the clone is done nothing of it can be proven, and with rights on a resource pool only it cannot even be seen.

use tenon_model::{LaunchRecord, LaunchStep, Leftover};

use super::launch::{
    ATTEMPTS, AwaitedEnd, Failure, LaunchDecision, LaunchResult, LaunchTime, ObservedTask, ObservedVm, no_answer,
    try_again,
};

/// The first step, in which nothing of ours may be there yet.
pub(crate) fn clone_step(
    record: &LaunchRecord,
    vm: &ObservedVm,
    task: &ObservedTask,
    time: &LaunchTime,
) -> LaunchDecision {
    let result = match (task, vm) {
        // Whatever became of the task: what it was to create is there, and it is ours. That comes first: a call of ours
        // that was thought lost may have landed late and won, and then this one was refused because the id is in use.
        (_, ObservedVm::Ours { .. }) => LaunchResult::Record(record.advanced(time.now)),
        (_, ObservedVm::Foreign(_)) => relaunch(record, "the VM ID is in use by another VM", Leftover::Nothing),
        // Its reply was lost. From here on it is followed as if it had come.
        (ObservedTask::Found(upid), _) => LaunchResult::Record(LaunchRecord {
            upid: Some(upid.clone()),
            last_progress_at: time.now,
            ..record.clone()
        }),
        (_, ObservedVm::Locked(lock)) => locked_clone(record, lock, task, time),
        (_, ObservedVm::Hidden) => hidden_clone(record, task, time),
        // The clone may go on while its host cannot be asked: it is not sent again.
        (ObservedTask::Unreachable, _) if time.is_stalled(record) => LaunchResult::GiveUp(no_answer(record, time)),
        (ObservedTask::Unreachable, _) | (_, ObservedVm::Unreachable) => LaunchResult::Wait(AwaitedEnd::Host),
        (ObservedTask::Failed(failure), _) => clone_failed(record, failure),
        (ObservedTask::Done | ObservedTask::Lost, ObservedVm::Absent) => {
            try_again(record, "the clone task ended, but the VM does not exist")
        }
        (_, ObservedVm::Absent) => return LaunchDecision::Perform(LaunchStep::Clone),
    };
    result.into()
}

/// Something is being cloned into the id, or was.
fn locked_clone(record: &LaunchRecord, lock: &str, task: &ObservedTask, time: &LaunchTime) -> LaunchResult {
    match task {
        // A clone that was interrupted stays locked, and an API token can neither unlock nor destroy it.
        ObservedTask::Lost => {
            relaunch(record, &format!("the clone was interrupted (lock: {lock})"), Leftover::IncompleteClone)
        }
        _ if !time.is_stalled(record) => LaunchResult::Wait(AwaitedEnd::Lock(lock.to_owned())),
        // The clone may go on while its host cannot be asked: it is not made twice.
        ObservedTask::Unreachable => LaunchResult::GiveUp(no_answer(record, time)),
        ObservedTask::Done => {
            LaunchResult::GiveUp(format!("VM {} is locked (lock: {lock}) after its clone task ended", record.vmid))
        }
        ObservedTask::Failed(failure) if *failure != Failure::IdTaken => {
            let why = format!("the clone failed and is still locked (lock: {lock})");
            relaunch(record, &why, Leftover::IncompleteClone)
        }
        // No task of ours clones into the id: whoever does has nothing to do with us.
        _ => relaunch(record, &format!("another clone holds the VM ID (lock: {lock})"), Leftover::Nothing),
    }
}

/// Something has the id, and the API token may not read what.
fn hidden_clone(record: &LaunchRecord, task: &ObservedTask, time: &LaunchTime) -> LaunchResult {
    let taken = "the VM ID is in use by a VM that this API token cannot read";
    match task {
        ObservedTask::Lost => relaunch(record, "the clone was interrupted", Leftover::IncompleteClone),
        ObservedTask::Failed(Failure::IdTaken) => relaunch(record, taken, Leftover::Nothing),
        // No task of ours clones into it, and no request of ours is on its way any more.
        ObservedTask::None if !time.may_be_in_flight(record) || time.is_stalled(record) => {
            relaunch(record, taken, Leftover::Nothing)
        }
        _ if !time.is_stalled(record) => LaunchResult::Wait(AwaitedEnd::HiddenVm),
        ObservedTask::Done => LaunchResult::GiveUp(format!(
            "VM {} was cloned, but the API token cannot read it; grant the privileges of SECURITY.md on its resource pool",
            record.vmid
        )),
        ObservedTask::Unreachable => LaunchResult::GiveUp(no_answer(record, time)),
        _ => relaunch(record, taken, Leftover::IncompleteClone),
    }
}

/// Proxmox cleans up after a clone that failed, and nothing is there under the id.
fn clone_failed(record: &LaunchRecord, failure: &Failure) -> LaunchResult {
    match failure {
        Failure::IdTaken => relaunch(record, "the VM ID is in use by another VM", Leftover::Nothing),
        Failure::NoLinkedClone(why) => clone_in_full(record, why),
        Failure::Hopeless(why) => LaunchResult::GiveUp(why.clone()),
        Failure::Busy(why) | Failure::Passing(why) | Failure::OtherState(why) => try_again(record, why),
    }
}

/// The same clone once more, as a full copy.
pub fn clone_in_full(record: &LaunchRecord, why: &str) -> LaunchResult {
    if record.full_clone {
        return LaunchResult::GiveUp(why.to_owned());
    }
    LaunchResult::Record(LaunchRecord { full_clone: true, ..record.begun_again() })
}

fn relaunch(record: &LaunchRecord, why: &str, leftover: Leftover) -> LaunchResult {
    // Bounded: a host on which every clone ends like this is no host to go on with.
    if record.retired.len() < usize::try_from(ATTEMPTS).unwrap_or(usize::MAX) {
        LaunchResult::Relaunch { why: why.to_owned(), leftover }
    } else {
        LaunchResult::GiveUp(format!("{why}; {} other VM IDs were tried", record.retired.len()))
    }
}
