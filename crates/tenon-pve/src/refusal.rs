//! What Proxmox means when it says no.
//!
//! The meaning is in the words, not in the status: nearly everything is a 500. The words stand in the reason phrase and
//! are read here, once; `docs/dev/pve-errors.md` lists them with what callers do.

use std::collections::BTreeMap;
use std::fmt;

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
            // Proxmox breaks its lines inside these; an error is told on one.
            let words: Vec<&str> = words.split_whitespace().collect();
            write!(f, " {name}: {}", words.join(" "))?;
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
    /// The token or password is wrong, expired or revoked; Proxmox does not say which.
    Unauthorized,
    /// Only root may set this option.
    RootOnly(String),
    /// A parameter was refused and nothing was changed. Its name, or the first of several: all stand in the refusal.
    BadParameter(String),
    /// The cluster has no quorum.
    NoQuorum,
    /// Somebody set `protection` on the VM: it is not to be removed.
    Protected,
    /// The thing is in a state in which this cannot be done: running, stopped, a template, not empty, in use.
    WrongState,
    /// The storage of a template cannot make linked clones.
    NoLinkedClones,
    /// A task was accepted and failed for a reason none of the above describes.
    TaskFailed,
    /// Anything else.
    Other,
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

    /// Passes every text through `hide`, those the kind was read with as well.
    pub(crate) fn redact(&mut self, hide: &dyn Fn(&str) -> String) {
        self.words = hide(&self.words);
        self.fields.values_mut().for_each(|text| *text = hide(text));
        match &mut self.kind {
            RefusalKind::Locked(lock) => *lock = lock.as_deref().map(hide),
            RefusalKind::RootOnly(text) | RefusalKind::BadParameter(text) => *text = hide(text),
            RefusalKind::Denied { path, privileges } => {
                *path = path.as_deref().map(hide);
                privileges.iter_mut().for_each(|privilege| *privilege = hide(privilege));
            }
            _ => {}
        }
    }

    /// Whether the VM itself is not where it was looked for: gone, or moved to another host. A missing disk, pool or
    /// bridge is [`RefusalKind::NotFound`] too, and says nothing about the VM.
    pub fn is_vm_absent(&self) -> bool {
        let names_config = self.words.contains("/qemu-server/") && self.words.contains(".conf' does not exist");
        self.kind == RefusalKind::NotFound
            && (names_config || self.words.contains("unable to find configuration file for VM"))
    }
}

/// Reads a kind out of the words that told it.
type Reading = fn(&str) -> RefusalKind;

/// Words that tell a kind, in lower case, tried in order: a text may contain several (`no quorum` comes with a lock's
/// name, a right may be missing inside a task).
const SIGNS: &[(&str, Reading)] = &[
    ("permission check failed", denied),
    ("no quorum", |_| RefusalKind::NoQuorum),
    // Without quorum the cluster's file system is read-only, and a write fails on its temporary file.
    (".conf.tmp.", |_| RefusalKind::NoQuorum),
    ("protection mode enabled", |_| RefusalKind::Protected),
    ("only root can set '", |words| RefusalKind::RootOnly(quoted(words))),
    ("only root can ", |words| RefusalKind::RootOnly(after(words, " root can "))),
    ("vm is locked (", |words| RefusalKind::Locked(bracketed(words))),
    ("can't lock file", |_| RefusalKind::Locked(None)),
    ("got lock request timeout", |_| RefusalKind::Locked(None)),
    ("checksum mismatch (file change by other user?)", |_| RefusalKind::Changed),
    ("detected modified configuration", |_| RefusalKind::Changed),
    ("no space left on device", |_| RefusalKind::NoSpace),
    ("not enough free space", |_| RefusalKind::NoSpace),
    ("not enough space", |_| RefusalKind::NoSpace),
    ("insufficient free space", |_| RefusalKind::NoSpace),
    ("out of space", |_| RefusalKind::NoSpace),
    ("disk quota exceeded", |_| RefusalKind::NoSpace),
    ("' not allowed for linked clones", |words| RefusalKind::BadParameter(quoted(words))),
    ("invalid bootorder: ", |_| RefusalKind::BadParameter("boot".to_owned())),
    ("balloon value too large", |_| RefusalKind::BadParameter("balloon".to_owned())),
    ("ssh public key validation error", |_| RefusalKind::BadParameter("sshkeys".to_owned())),
    ("linked clone feature is not supported", |_| RefusalKind::NoLinkedClones),
    ("already exists", |_| RefusalKind::AlreadyExists),
    ("failed: file exists", |_| RefusalKind::AlreadyExists),
    ("refusing to override existing file", |_| RefusalKind::AlreadyExists),
    ("already a pool member", |_| RefusalKind::AlreadyExists),
    ("is running - destroy failed", |_| RefusalKind::WrongState),
    ("not running", |_| RefusalKind::WrongState),
    ("already running", |_| RefusalKind::WrongState),
    ("you can't convert a ", |_| RefusalKind::WrongState),
    ("you can't start a vm if it's a template", |_| RefusalKind::WrongState),
    ("is not empty", |_| RefusalKind::WrongState),
    ("is still in use by linked clone", |_| RefusalKind::WrongState),
    ("does not exist", |_| RefusalKind::NotFound),
    ("unable to find configuration file", |_| RefusalKind::NotFound),
    ("no such cluster node", |_| RefusalKind::NotFound),
    ("no such security group", |_| RefusalKind::NotFound),
    ("hostname lookup '", |_| RefusalKind::NotFound),
    ("is not available on node '", |_| RefusalKind::NotFound),
    ("is not a pool member", |_| RefusalKind::NotFound),
    ("no rule at position", |_| RefusalKind::NotFound),
    ("failed - no format", |_| RefusalKind::NotFound),
];

/// Refused parameters that were well formed: what they name is not there. Any other is a mistake of the caller.
const ABSENT_FIELDS: [&str; 4] = ["no such task", "interface does not exist", "No such storage", "no such ipset"];

fn classify(status: u16, words: &str, fields: &BTreeMap<String, String>) -> RefusalKind {
    match status {
        401 => return RefusalKind::Unauthorized,
        400 => return of_fields(fields),
        403 => return denied(words),
        _ => {}
    }
    let lower = words.to_lowercase();
    let sign = SIGNS.iter().find(|(sign, _)| lower.contains(sign));
    sign.map_or(RefusalKind::Other, |(_, kind)| kind(words))
}

fn of_fields(fields: &BTreeMap<String, String>) -> RefusalKind {
    let says = |sign: &str| fields.iter().find(|(_, text)| text.contains(sign)).map(|(name, _)| name.clone());
    if let Some(option) = says("Only root may use") {
        return RefusalKind::RootOnly(option);
    }
    if ABSENT_FIELDS.iter().any(|sign| says(sign).is_some()) {
        return RefusalKind::NotFound;
    }
    if says("already exists").is_some() {
        return RefusalKind::AlreadyExists;
    }
    RefusalKind::BadParameter(fields.keys().next().cloned().unwrap_or_default())
}

/// `Permission check failed (/vms/9000, VM.Clone|VM.Audit)`, or the name of a pool that is not there.
fn denied(words: &str) -> RefusalKind {
    let inside = bracketed(words).unwrap_or_default();
    if inside.ends_with("does not exist") {
        return RefusalKind::NotFound;
    }
    let (path, privileges) = inside.split_once(", ").unwrap_or_default();
    let privileges = privileges.split('|').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    RefusalKind::Denied { path: (!path.is_empty()).then(|| path.to_owned()), privileges }
}

fn bracketed(words: &str) -> Option<String> {
    let (_, rest) = words.split_once('(')?;
    Some(rest.rsplit_once(')')?.0.to_owned())
}

fn quoted(words: &str) -> String {
    words.split('\'').nth(1).unwrap_or_default().to_owned()
}

/// What follows `sign`, to the end of the sentence.
fn after(words: &str, sign: &str) -> String {
    let rest = words.split_once(sign).map_or("", |(_, rest)| rest);
    rest.split('.').next().unwrap_or_default().to_owned()
}
