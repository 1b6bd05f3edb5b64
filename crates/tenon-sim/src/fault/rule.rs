//! What a rule says: which calls it strikes, and what happens to them.

use std::time::Duration;

/// A fault for some calls. Rules are tried in the order they were added; see [`FaultEffect`] for which may meet.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultRule {
    /// What the rule is called where it is listed or refused; may be empty.
    pub name: String,
    /// Which calls it strikes.
    pub when: FaultMatch,
    /// What happens to them.
    pub effect: FaultEffect,
}

impl FaultRule {
    /// A rule without a name.
    pub fn new(when: FaultMatch, effect: FaultEffect) -> Self {
        Self { name: String::new(), when, effect }
    }
}

/// Which calls a rule strikes. Everything that is given must hold; the default strikes every call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultMatch {
    /// HTTP method, upper case.
    pub method: Option<String>,
    /// Pattern of the decoded path below `/api2/json`: `*` stands for anything but a slash, `**` for anything.
    pub path: Option<String>,
    /// The host in the path.
    pub host: Option<String>,
    /// A storage the call names, or one that a drive of the VM in its path is on.
    pub storage: Option<String>,
    /// The VM in the path, or the one a clone or create makes.
    pub vmid: Option<u32>,
    /// How often, among the calls for which all of the above holds.
    pub repeat: Repeat,
    /// Earliest time since the estate was made.
    pub from: Option<Duration>,
    /// First time since the estate was made at which it is over.
    pub until: Option<Duration>,
}

impl FaultMatch {
    /// Calls of a method and a path pattern.
    pub fn call(method: &str, path: &str) -> Self {
        Self { method: Some(method.into()), path: Some(path.into()), ..Self::default() }
    }

    /// The same, but only the `nth` such call, counted from one.
    #[must_use]
    pub fn nth(mut self, nth: u32) -> Self {
        self.repeat.nth = Some(nth);
        self
    }

    /// The same, but only so many times.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.repeat.times = Some(times);
        self
    }

    /// The same, but each time only with this probability.
    #[must_use]
    pub fn probability(mut self, probability: f64) -> Self {
        self.repeat.probability = Some(probability);
        self
    }
}

/// How often something that could strike does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Repeat {
    /// Only this one, counted from one.
    pub nth: Option<u32>,
    /// Only every so many, beginning with that one.
    pub every: Option<u32>,
    /// At most so many times.
    pub times: Option<u32>,
    /// Each time only with this probability, from 0 to 1, drawn from the seed of the estate.
    pub probability: Option<f64>,
}

/// What happens to a call.
///
/// A call has one outcome: of the rules that decide it, only the first that matches strikes, and the others do not count
/// the call. [`SlowStorage`](Self::SlowStorage), [`FullStorage`](Self::FullStorage), [`WrongDigest`](Self::WrongDigest),
/// [`StaleListing`](Self::StaleListing) and [`TaskWarns`](Self::TaskWarns) come on top of an outcome.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultEffect {
    /// Nothing is executed; this status and text come back.
    Refuse {
        /// HTTP status.
        status: u16,
        /// Reason phrase and message.
        text: String,
    },
    /// The call is executed, then this status and text come back.
    FailAfter {
        /// HTTP status.
        status: u16,
        /// Reason phrase and message.
        text: String,
    },
    /// Nothing is executed and nothing is ever answered; the connection stays open until the client gives up.
    TimeoutBefore,
    /// The call is executed, and nothing is ever answered.
    TimeoutAfter,
    /// The call is executed, then the connection is closed without an answer. See [`ReplyLost`].
    DropReply,
    /// The call is executed; the connection breaks in the middle of the body of the answer.
    CutBody,
    /// The token or ticket is refused, as if it had been revoked.
    TokenRevoked,
    /// Somebody else holds the file lock of the VM for longer than the call or its task waits.
    LockTimeout,
    /// The task the call starts ends with this text.
    TaskFails {
        /// Exit status.
        text: String,
        /// Whether it has done its work by then, or nothing.
        after_effect: bool,
    },
    /// The worker of the task the call starts dies after its first step: `unexpected status`.
    TaskDies,
    /// The task the call starts begins and never ends, until it is stopped or [released](crate::Estate::release_tasks).
    TaskStalls,
    /// The task the call starts succeeds with a warning.
    TaskWarns {
        /// The warning.
        text: String,
    },
    /// Everything the task the call starts does takes so many times as long.
    SlowStorage {
        /// How many times; at least 0.
        factor: f64,
    },
    /// The call and its task find every storage full.
    FullStorage,
    /// The digest the call gives does not match. Calls without one are not struck.
    WrongDigest,
    /// The call, a `GET`, sees VMs, pools and hosts as they were so long ago.
    StaleListing {
        /// How long.
        age: Duration,
    },
}

/// A fault that is used up by the first call it matches.
#[derive(Clone, Debug)]
pub struct FaultSpec {
    /// HTTP method, upper case.
    pub method: String,
    /// A part of the path below `/api2/json`.
    pub path_contains: String,
    /// What happens.
    pub kind: FaultKind,
}

impl FaultSpec {
    /// A fault for calls of this method whose path contains the text.
    pub fn new(method: &str, path_contains: &str, kind: FaultKind) -> Self {
        Self { method: method.into(), path_contains: path_contains.into(), kind }
    }
}

impl From<FaultSpec> for FaultRule {
    fn from(spec: FaultSpec) -> Self {
        let effect = match spec.kind {
            FaultKind::Refuse { status, text } => FaultEffect::Refuse { status, text },
            FaultKind::DropReply => FaultEffect::DropReply,
            FaultKind::TaskError(text) => FaultEffect::TaskFails { text, after_effect: false },
        };
        Self::new(FaultMatch::call(&spec.method, &format!("**{}**", spec.path_contains)).times(1), effect)
    }
}

/// How a single call goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// Nothing is executed; this status and text come back.
    Refuse {
        /// HTTP status.
        status: u16,
        /// Reason phrase and message.
        text: String,
    },
    /// The call is executed, but its reply never arrives. See [`ReplyLost`].
    DropReply,
    /// The worker the call starts ends with this text and has changed nothing.
    TaskError(String),
}

/// Marks a response that must not reach the client.
///
/// Over HTTPS the connection is closed instead. In memory the response is a 596 with an empty body, as PVE's
/// proxy answers when it lost a reply; a caller may look for this extension and raise a connection error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyLost;

/// Whether a text is of a pattern: `*` stands for anything but a slash, `**` for anything.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let Some(first) = pattern.chars().next() else { return text.is_empty() };
    if let Some(rest) = pattern.strip_prefix("**") {
        return text.char_indices().any(|(at, _)| glob(rest, &text[at..])) || glob(rest, "");
    }
    if first == '*' {
        let rest = &pattern[1..];
        let reach = text.find('/').unwrap_or(text.len());
        return text
            .char_indices()
            .map(|(at, _)| at)
            .chain([text.len()])
            .take_while(|at| *at <= reach)
            .any(|at| glob(rest, &text[at..]));
    }
    text.strip_prefix(first).is_some_and(|rest| glob(&pattern[first.len_utf8()..], rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stays_within_a_segment_and_two_do_not() {
        assert!(glob("/nodes/*/qemu/*/clone", "/nodes/pve1/qemu/9000/clone"));
        assert!(!glob("/nodes/*/clone", "/nodes/pve1/qemu/9000/clone"));
        assert!(glob("/nodes/**/clone", "/nodes/pve1/qemu/9000/clone"));
        assert!(glob("**/upload**", "/nodes/pve1/storage/s/upload"));
        assert!(glob("/nodes/*", "/nodes/pve1") && !glob("/nodes/*", "/nodes/pve1/status"));
        assert!(glob("web-*", "web-") && !glob("web-*", "we") && glob("", "") && !glob("", "x"));
    }
}
