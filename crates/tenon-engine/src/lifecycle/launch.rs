//! What comes next in the launch of a VM: one change at most, chosen from what was written down and what is seen now.
//!
//! A lost reply, a crash between two lines and a second pass all end here: nothing is sent again before it was looked
//! for, and what is not proven to be ours is left alone.

use tenon_model::{LaunchLimits, LaunchRecord, LaunchStep, Leftover, Seconds};

pub use super::launch_clone::clone_in_full;
use super::launch_clone::clone_step;

/// A step may be begun this often before the claim goes back to planning.
pub(crate) const ATTEMPTS: u32 = 3;

/// A request that was sent is carried out within this time or not at all. Until then an id that is in use may be in use by
/// our own clone, even if no task of ours is found.
const IN_FLIGHT_S: i64 = 60;

/// What is seen of the VM under the recorded id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedVm {
    /// There is none.
    Absent,
    /// It is being made, or was left half-made, and may be ours; or it is ours and something holds it.
    Locked(String),
    /// The id is in use, and the API token may not read by whom. With rights on a resource pool this is what our own clone
    /// looks like until it joins the pool.
    Hidden,
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
    /// None is recorded, but Proxmox knows one that clones into the recorded id: its UPID.
    Found(String),
    /// It runs.
    Running,
    /// It ended well.
    Done,
    /// It ended with these words; whether another try may help.
    Failed(Failure),
    /// Its worker died, or nobody knows it any more: what it had done must be looked for.
    Lost,
    /// The host that runs it does not answer.
    Unreachable,
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
    /// The VM was not in the state the step assumes, perhaps because the step was done already: look again.
    OtherState(String),
    /// The storage of the template cannot make linked clones.
    NoLinkedClone(String),
    /// It will not work here, whatever we do: a full storage, a missing bridge.
    Hopeless(String),
}

/// What a pass of a launch does: make the change of the recorded step, or conclude without one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is used at once")]
pub enum LaunchDecision {
    /// Make the change of the recorded step; what comes of it is a result too.
    Perform(LaunchStep),
    /// Make no change.
    Conclude(LaunchResult),
}

/// What comes of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time, and it is moved once")]
pub enum LaunchResult {
    /// Write this record; then pass again.
    Record(LaunchRecord),
    /// Pass again later.
    Wait(AwaitedEnd),
    /// Choose another VM id and start again.
    Relaunch {
        /// Why.
        why: String,
        /// What is left under the old id.
        leftover: Leftover,
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
    /// Whoever has the id, which the API token cannot read.
    HiddenVm,
}

/// When a launch is looked at, and how long it may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchTime {
    /// Now.
    pub now: Seconds,
    /// How long it may take.
    pub limits: LaunchLimits,
    /// Since when it is seen to stand still. A task that ran for an hour, and a controller that was away for one, do not count
    /// against a launch whose host does not answer for a moment.
    pub blocked_since: Seconds,
}

impl LaunchTime {
    /// Whether nothing went forward for too long. A task that runs has a limit of its own.
    pub fn is_stalled(&self, record: &LaunchRecord) -> bool {
        self.now.since(record.last_progress_at.max(self.blocked_since)) > self.limits.stalled_s
    }

    fn is_task_overdue(&self, record: &LaunchRecord) -> bool {
        self.now.since(record.last_progress_at) > self.limits.task_s
    }

    pub(crate) fn may_be_in_flight(&self, record: &LaunchRecord) -> bool {
        self.now.since(record.last_progress_at) <= IN_FLIGHT_S
    }
}

impl From<LaunchResult> for LaunchDecision {
    fn from(result: LaunchResult) -> LaunchDecision {
        LaunchDecision::Conclude(result)
    }
}

/// Decides what a pass of a launch does.
pub fn next_step(record: &LaunchRecord, vm: &ObservedVm, task: &ObservedTask, time: &LaunchTime) -> LaunchDecision {
    let is_stalled = time.is_stalled(record);
    let (vmid, host) = (record.vmid, record.host());
    let result = match (task, vm) {
        _ if record.step == LaunchStep::Launched => LaunchResult::Launched,
        (ObservedTask::Running, _) if time.is_task_overdue(record) => {
            LaunchResult::GiveUp(format!("{} did not end within {}", task_words(record), words_of(time.limits.task_s)))
        }
        // The task's own host answers for it; a VM that cannot be seen yet is no reason to doubt it.
        (ObservedTask::Running, _) => LaunchResult::Wait(AwaitedEnd::Task),
        (_, ObservedVm::Unreachable) if is_stalled => LaunchResult::GiveUp(no_answer(record, time)),
        (_, ObservedVm::Unreachable) => LaunchResult::Wait(AwaitedEnd::Host),
        _ if record.step == LaunchStep::Clone => return clone_step(record, vm, task, time),
        (_, ObservedVm::Absent) => LaunchResult::GiveUp(format!("VM {vmid} was removed during its launch")),
        (_, ObservedVm::Foreign(why)) => {
            LaunchResult::Refuse(format!("VM {vmid} on host {host} does not belong to this NodeClaim: {why}"))
        }
        (_, ObservedVm::Hidden) => LaunchResult::Refuse(format!(
            "the API token cannot read VM {vmid} any more; put it back into its resource pool, or grant VM.Audit"
        )),
        (_, ObservedVm::Locked(lock)) if is_stalled => LaunchResult::GiveUp(format!(
            "VM {vmid} was locked (lock: {lock}) for more than {}",
            words_of(time.limits.stalled_s)
        )),
        (_, ObservedVm::Locked(lock)) => LaunchResult::Wait(AwaitedEnd::Lock(lock.clone())),
        (_, ObservedVm::Ours { uuid }) => return later_step(record, uuid.as_deref(), task, time.now),
    };
    result.into()
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
        (_, ObservedTask::Failed(Failure::IdTaken)) => LaunchResult::Refuse(format!("VM {vmid} exists twice")),
        (_, ObservedTask::Failed(failure)) => try_again(record, failure.words()),
        (_, ObservedTask::Lost) => try_again(record, "the worker of the task died"),
        (step, _) => return LaunchDecision::Perform(step),
    };
    result.into()
}

impl Failure {
    /// Proxmox's words.
    fn words(&self) -> &str {
        match self {
            Failure::IdTaken => "the VM ID is in use by another VM",
            Failure::Busy(words)
            | Failure::Passing(words)
            | Failure::OtherState(words)
            | Failure::NoLinkedClone(words)
            | Failure::Hopeless(words) => words,
        }
    }
}

/// The same step once more, if it was not begun too often.
pub fn try_again(record: &LaunchRecord, why: &str) -> LaunchResult {
    if record.attempt < ATTEMPTS {
        LaunchResult::Record(record.begun_again())
    } else {
        LaunchResult::GiveUp(format!("{why} ({} attempts)", record.attempt))
    }
}

pub(crate) fn no_answer(record: &LaunchRecord, time: &LaunchTime) -> String {
    format!("host {} did not answer for {}", record.host(), words_of(time.limits.stalled_s))
}

fn task_words(record: &LaunchRecord) -> String {
    let kind = record.upid.iter().find_map(|upid| upid.split(':').nth(5)).unwrap_or("of the launch");
    format!("task {kind} on host {}", record.host())
}

/// Seconds as a person says them.
pub fn words_of(seconds: i64) -> String {
    if seconds >= 60 && seconds % 60 == 0 { format!("{} min", seconds / 60) } else { format!("{seconds} s") }
}
