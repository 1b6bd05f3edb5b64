//! What to do after a failed call: the one place that decides it, from what is known about the call.
//!
//! A caller that knows more than the error may know better; `docs/dev/pve-errors.md` has a line for each situation.

use crate::error::{Cause, Error};
use crate::refusal::{Refusal, RefusalKind};

/// What to do after a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Nothing happened: the same call may go out again.
    SendAgain,
    /// It may have happened, in part or in whole: look first, then the same call may work.
    LookFirst,
    /// Nothing happened, and the same call will work later.
    Wait,
    /// The id or name is taken: take another one, and leave the one that was refused alone.
    ChooseAnother,
    /// The storage is full: make room on it, or choose another one.
    FreeSpace,
    /// Something is not there, or not in the state the call assumed: read what is there and plan anew. The same call would
    /// fail again.
    PlanAgain,
    /// No repetition helps: say what an operator must change.
    AskOperator,
}

impl Error {
    /// What a caller that knows no more than this error does next.
    pub fn advice(&self) -> Advice {
        match self.cause() {
            Cause::NotSent(_) => Advice::SendAgain,
            Cause::MaybeDone(_) => Advice::LookFirst,
            Cause::Refused(refusal) => refusal.advice(),
        }
    }
}

impl Refusal {
    /// What a caller that knows no more than this refusal does next.
    pub fn advice(&self) -> Advice {
        match self.kind {
            // A task that lost quorum on its way has done its part outside the cluster: grown an image, deleted disks.
            RefusalKind::NoQuorum if self.status == 200 => Advice::LookFirst,
            RefusalKind::Locked(_) | RefusalKind::NoQuorum => Advice::Wait,
            RefusalKind::AlreadyExists => Advice::ChooseAnother,
            RefusalKind::NoSpace => Advice::FreeSpace,
            RefusalKind::Changed | RefusalKind::TaskFailed | RefusalKind::Other => Advice::LookFirst,
            RefusalKind::NotFound | RefusalKind::WrongState | RefusalKind::NoLinkedClones => Advice::PlanAgain,
            RefusalKind::Denied { .. }
            | RefusalKind::Unauthorized
            | RefusalKind::RootOnly(_)
            | RefusalKind::BadParameter(_)
            | RefusalKind::Protected => Advice::AskOperator,
        }
    }
}
