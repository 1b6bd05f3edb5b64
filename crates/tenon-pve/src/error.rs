//! What is known after a call that did not succeed: that it never left, that it may have happened, or that Proxmox said
//! no and why.
//!
//! Callers decide by [`Cause`]: what was not sent may be sent again, what may be done must be looked for first, what was
//! refused has a kind. Proxmox's own words are kept, never parsed a second time.

use crate::refusal::{Refusal, RefusalKind};
use crate::transport::TransportError;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A call that failed: what it was meant to do, and what is known about it.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action}")]
pub struct Error {
    action: String,
    #[source]
    cause: Box<Cause>,
}

/// What is known about a failed call.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The request never reached Proxmox. Sending it again is safe.
    #[error("{}", not_sent(.0))]
    NotSent(#[source] TransportError),
    /// The request was sent, and nothing certain came back. Look before sending it again.
    #[error("outcome unknown")]
    MaybeDone(#[source] Doubtful),
    /// Proxmox answered no.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Why the outcome of a call is unknown.
#[derive(Debug, thiserror::Error)]
pub enum Doubtful {
    /// The connection broke, or no answer came in time.
    #[error("no reply received")]
    Lost(#[source] TransportError),
    /// Proxmox could not reach the host the call was for.
    #[error("the Proxmox endpoint cannot reach the host ({status} {words})")]
    HostDown {
        /// 595 or 596.
        status: u16,
        /// Proxmox's words.
        words: String,
    },
    /// Success, but in a shape this client does not know.
    #[error("cannot read the reply: {0}")]
    Unreadable(String),
    /// The worker of a task died without saying how it ended.
    #[error("task {0} ended without a result")]
    WorkerDied(String),
    /// A task did not end in the time it was given; it still runs.
    #[error("task {0} is still running")]
    StillRunning(String),
}

fn not_sent(why: &TransportError) -> &'static str {
    match why {
        TransportError::Withheld(_) => "request not sent",
        _ => "cannot reach any Proxmox endpoint",
    }
}

impl Error {
    pub(crate) fn new(action: impl Into<String>, cause: Cause) -> Error {
        Error { action: action.into(), cause: Box::new(cause) }
    }

    /// What was tried and everything that is known of its failure, on one line.
    pub fn full_message(&self) -> String {
        tenon_model::full_message(self)
    }

    /// What is known about the call.
    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// What Proxmox refused, if it did.
    pub fn refusal(&self) -> Option<&Refusal> {
        match &*self.cause {
            Cause::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Whether Proxmox said that the thing is not there.
    pub fn is_not_found(&self) -> bool {
        self.refusal().is_some_and(|refusal| refusal.kind == RefusalKind::NotFound)
    }

    /// Whether the request certainly had no effect.
    pub fn is_not_sent(&self) -> bool {
        matches!(*self.cause, Cause::NotSent(_))
    }

    /// Whether the VM the call was for is not on that host: gone, or moved.
    pub fn is_vm_absent(&self) -> bool {
        self.refusal().is_some_and(Refusal::is_vm_absent)
    }

    /// The same refusal, with the right that is missing.
    pub(crate) fn refused_for(self, path: &str, privilege: &str) -> Error {
        let words = format!("Permission check failed ({path}, {privilege})");
        Error::new(self.action, Cause::Refused(Refusal::new(403, &words, std::collections::BTreeMap::new())))
    }

    /// The same for a call that had to come before another one: whatever is open about it, the other was not sent.
    pub(crate) fn before_another(self) -> Error {
        let cause = match *self.cause {
            cause @ Cause::MaybeDone(_) => Cause::NotSent(TransportError::Withheld(Box::new(cause))),
            cause => cause,
        };
        Error::new(self.action, cause)
    }

    /// The same error with every text passed through `hide`, which takes secrets out.
    pub(crate) fn redacted(mut self, hide: &dyn Fn(&str) -> String) -> Error {
        self.action = hide(&self.action);
        match &mut *self.cause {
            Cause::NotSent(error) | Cause::MaybeDone(Doubtful::Lost(error)) => error.redact(hide),
            Cause::MaybeDone(Doubtful::HostDown { words, .. } | Doubtful::Unreadable(words)) => *words = hide(words),
            Cause::MaybeDone(Doubtful::WorkerDied(_) | Doubtful::StillRunning(_)) => {}
            Cause::Refused(refusal) => refusal.redact(hide),
        }
        self
    }
}
