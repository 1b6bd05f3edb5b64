//! What is known after a call that did not succeed: that it never left, that it may have happened, or that Proxmox said
//! no and why.
//!
//! Callers decide by [`Cause`]: what was not sent may be sent again, what may be done must be looked for first, what was
//! refused has a kind. Proxmox's own words are kept, never parsed a second time.

use std::collections::BTreeMap;
use std::fmt;

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
    #[error("the outcome is unknown")]
    MaybeDone(#[source] Doubtful),
    /// Proxmox answered no.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Why the outcome of a call is unknown.
#[derive(Debug, thiserror::Error)]
pub enum Doubtful {
    /// The connection broke, or no answer came in time.
    #[error("the answer was lost")]
    Lost(#[source] TransportError),
    /// Proxmox could not reach the host the call was for.
    #[error("host is unreachable from the Proxmox endpoint ({status} {words})")]
    HostDown {
        /// 595 or 596.
        status: u16,
        /// Proxmox's words.
        words: String,
    },
    /// Success, but in a shape this client does not know.
    #[error("the answer was not understood: {0}")]
    Unreadable(String),
    /// The worker of a task died without saying how it ended.
    #[error("the task {0} ended without a result")]
    WorkerDied(String),
    /// A task did not end in the time it was given; it still runs.
    #[error("the task {0} still runs")]
    StillRunning(String),
}

/// Proxmox's no.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refusal {
    /// The HTTP status, or 200 for a task that was accepted and then failed.
    pub status: u16,
    /// What callers decide by.
    pub kind: RefusalKind,
    /// Proxmox's words.
    pub words: String,
    /// Refused parameters with Proxmox's words for each.
    pub fields: BTreeMap<String, String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)?;
        for (name, words) in &self.fields {
            write!(f, " {name}: {}", words.trim())?;
        }
        Ok(())
    }
}

/// What a refusal means to a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusalKind {
    /// The VM, volume, storage, host or task is not there, or not there any more, or on another host.
    NotFound,
    /// The id or file is taken.
    AlreadyExists,
    /// Another operation holds the VM: a config lock (named), or the file lock (`None`).
    Locked(Option<String>),
    /// A digest did not match: somebody changed the configuration.
    Changed,
    /// A storage is full.
    NoSpace,
    /// The token may not do this.
    Denied {
        /// The path rights are needed on, if Proxmox names it.
        path: Option<String>,
        /// Any one of these privileges would do.
        privileges: Vec<String>,
    },
    /// The token is wrong, expired or revoked; Proxmox does not say which.
    Unauthorized,
    /// Only root may set this option.
    RootOnly(String),
    /// Parameters were refused; nothing was changed.
    BadParameter,
    /// The cluster has no quorum.
    NoQuorum,
    /// Somebody set `protection` on the VM: it is not to be removed.
    Protected,
    /// The VM is running (or not running) and must not be for this.
    WrongState,
    /// A task was accepted and failed for a reason none of the above describes.
    TaskFailed,
    /// Anything else.
    Other,
}

fn not_sent(why: &TransportError) -> &'static str {
    match why {
        TransportError::Withheld(_) => "nothing was sent",
        _ => "no Proxmox endpoint could be reached",
    }
}

impl Error {
    pub(crate) fn new(action: impl Into<String>, cause: Cause) -> Error {
        Error { action: action.into(), cause: Box::new(cause) }
    }

    /// What was tried and everything that is known of its failure, on one line.
    pub fn told(&self) -> String {
        let mut words = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            words = format!("{words}: {cause}");
            source = cause.source();
        }
        words
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
}

impl Refusal {
    /// Reads the meaning out of a status and Proxmox's words.
    pub(crate) fn new(status: u16, words: &str, fields: BTreeMap<String, String>) -> Refusal {
        let words = words.trim().to_owned();
        let kind = classify(status, &words, &fields);
        Refusal { status, kind, words, fields }
    }

    /// A task that was accepted and ended with these words.
    pub(crate) fn of_task(words: &str) -> Refusal {
        let refusal = Refusal::new(200, words, BTreeMap::new());
        let kind = if refusal.kind == RefusalKind::Other { RefusalKind::TaskFailed } else { refusal.kind };
        Refusal { kind, ..refusal }
    }
}

/// Reads a kind out of the words that told it.
type Reading = fn(&str) -> RefusalKind;

/// Words that tell a kind, tried in order: a text may contain several (`no quorum` comes with a lock's name).
const SIGNS: &[(&str, Reading)] = &[
    ("no quorum", |_| RefusalKind::NoQuorum),
    // Without quorum the cluster's file system is read-only, and a write fails on its temporary file.
    (".conf.tmp.", |_| RefusalKind::NoQuorum),
    ("protection mode enabled", |_| RefusalKind::Protected),
    ("only root can set '", |words| RefusalKind::RootOnly(quoted(words).unwrap_or_default())),
    ("VM is locked (", |words| RefusalKind::Locked(bracketed(words))),
    ("can't lock file", |_| RefusalKind::Locked(None)),
    ("checksum mismatch (file change by other user?)", |_| RefusalKind::Changed),
    ("detected modified configuration", |_| RefusalKind::Changed),
    ("No space left on device", |_| RefusalKind::NoSpace),
    ("not enough free space", |_| RefusalKind::NoSpace),
    ("config file already exists", |_| RefusalKind::AlreadyExists),
    ("already exists", |_| RefusalKind::AlreadyExists),
    ("failed: File exists", |_| RefusalKind::AlreadyExists),
    ("refusing to override existing file", |_| RefusalKind::AlreadyExists),
    ("is running - destroy failed", |_| RefusalKind::WrongState),
    ("not running", |_| RefusalKind::WrongState),
    ("already running", |_| RefusalKind::WrongState),
    ("does not exist", |_| RefusalKind::NotFound),
    ("unable to find configuration file", |_| RefusalKind::NotFound),
    ("no such cluster node", |_| RefusalKind::NotFound),
    ("hostname lookup '", |_| RefusalKind::NotFound),
    ("failed - no format", |_| RefusalKind::NotFound),
];

fn classify(status: u16, words: &str, fields: &BTreeMap<String, String>) -> RefusalKind {
    match status {
        401 => return RefusalKind::Unauthorized,
        403 => return denied(words),
        400 if fields.values().any(|text| text.contains("Only root may use")) => {
            return RefusalKind::RootOnly(fields.keys().next().cloned().unwrap_or_default());
        }
        400 if fields.values().any(|text| text.contains("no such task")) => return RefusalKind::NotFound,
        400 if fields.values().any(|text| text.contains("already exists")) => return RefusalKind::AlreadyExists,
        400 => return RefusalKind::BadParameter,
        _ => {}
    }
    let sign = SIGNS.iter().find(|(sign, _)| words.contains(sign));
    sign.map_or(RefusalKind::Other, |(_, kind)| kind(words))
}

/// `Permission check failed (/vms/9000, VM.Clone|VM.Audit)`.
fn denied(words: &str) -> RefusalKind {
    let inside = bracketed(words).unwrap_or_default();
    let (path, privileges) = inside.split_once(", ").unwrap_or_default();
    let privileges = privileges.split('|').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    RefusalKind::Denied { path: (!path.is_empty()).then(|| path.to_owned()), privileges }
}

fn bracketed(words: &str) -> Option<String> {
    let (_, rest) = words.split_once('(')?;
    Some(rest.rsplit_once(')')?.0.to_owned())
}

fn quoted(words: &str) -> Option<String> {
    let (_, rest) = words.split_once('\'')?;
    Some(rest.split_once('\'')?.0.to_owned())
}
