//! What the rules that strike a call do to it, taken together.

use std::time::Duration;

use super::rule::FaultEffect;

/// What becomes of the answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AnswerFault {
    Refused(u16, String),
    FailedAfter(u16, String),
    SilentBefore,
    SilentAfter,
    Dropped,
    Cut,
    Unauthorized,
    /// Somebody holds the file locks of the VMs the call names.
    Locked,
}

/// How a task goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TaskFault {
    Fails(String),
    FailsAfter(String),
    Dies,
    Stalls,
}

/// Everything that happens to one task.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TaskLot {
    pub(crate) fault: Option<TaskFault>,
    pub(crate) warning: Option<String>,
    /// How many times as long everything takes.
    pub(crate) slower: Option<f64>,
    /// Every storage is full for it.
    pub(crate) full: bool,
}

/// Everything that happens to one call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Strike {
    pub(crate) answer: Option<AnswerFault>,
    pub(crate) task: TaskLot,
    pub(crate) wrong_digest: bool,
    pub(crate) stale: Option<Duration>,
}

impl Strike {
    /// Whether an effect can still come on top. A call has one outcome, be it its answer's or its task's.
    pub(crate) fn has_room_for(&self, effect: &FaultEffect) -> bool {
        match effect {
            FaultEffect::SlowStorage { .. } => self.task.slower.is_none(),
            FaultEffect::FullStorage => !self.task.full,
            FaultEffect::WrongDigest => !self.wrong_digest,
            FaultEffect::StaleListing { .. } => self.stale.is_none(),
            FaultEffect::TaskWarns { .. } => self.task.warning.is_none(),
            _ => self.answer.is_none() && self.task.fault.is_none(),
        }
    }

    pub(crate) fn add(&mut self, effect: &FaultEffect) {
        match effect {
            FaultEffect::Refuse { status, text } => self.answer = Some(AnswerFault::Refused(*status, text.clone())),
            FaultEffect::FailAfter { status, text } => {
                self.answer = Some(AnswerFault::FailedAfter(*status, text.clone()));
            }
            FaultEffect::TimeoutBefore => self.answer = Some(AnswerFault::SilentBefore),
            FaultEffect::TimeoutAfter => self.answer = Some(AnswerFault::SilentAfter),
            FaultEffect::DropReply => self.answer = Some(AnswerFault::Dropped),
            FaultEffect::CutBody => self.answer = Some(AnswerFault::Cut),
            FaultEffect::TokenRevoked => self.answer = Some(AnswerFault::Unauthorized),
            FaultEffect::LockTimeout => self.answer = Some(AnswerFault::Locked),
            FaultEffect::TaskFails { text, after_effect: false } => {
                self.task.fault = Some(TaskFault::Fails(text.clone()));
            }
            FaultEffect::TaskFails { text, after_effect: true } => {
                self.task.fault = Some(TaskFault::FailsAfter(text.clone()));
            }
            FaultEffect::TaskDies => self.task.fault = Some(TaskFault::Dies),
            FaultEffect::TaskStalls => self.task.fault = Some(TaskFault::Stalls),
            FaultEffect::TaskWarns { text } => self.task.warning = Some(text.clone()),
            FaultEffect::SlowStorage { factor } => self.task.slower = Some(*factor),
            FaultEffect::FullStorage => self.task.full = true,
            FaultEffect::WrongDigest => self.wrong_digest = true,
            FaultEffect::StaleListing { age } => self.stale = Some(*age),
        }
    }
}
