//! What a handler says back: a reply, a refusal, or "wait for the file lock".
//!
//! The bytes on the wire are made in `http`; here is only what they must contain.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

/// The reason phrase of every schema error.
pub(crate) const BAD_PARAMETERS: &str = "Parameter verification failed.";

/// A call that was executed.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) data: Value,
    /// Task lists and logs carry a count beside the data.
    pub(crate) total: Option<usize>,
    /// How long the answer takes after the work was handed over.
    pub(crate) delay: Duration,
    pub(crate) upid: Option<String>,
    /// A file that must be fetched before the task it belongs to can go on.
    pub(crate) fetch: Option<Fetch>,
}

/// What a worker needs from the network.
#[derive(Clone, Debug)]
pub(crate) struct Fetch {
    pub(crate) upid: String,
    pub(crate) url: String,
    /// Whether the server must prove its name.
    pub(crate) verify: bool,
}

impl Reply {
    pub(crate) fn data(data: Value) -> Self {
        Self { data, total: None, delay: Duration::ZERO, upid: None, fetch: None }
    }

    pub(crate) fn null() -> Self {
        Self::data(Value::Null)
    }
}

/// How the body of a refusal looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `{"data":null,"message":…}` with a newline after the message.
    Json,
    /// The same without the newline: paths that do not exist.
    JsonBare,
    /// The reason again, as plain text.
    Plain,
    /// Plain text with a newline: errors raised inside the HTTP server.
    PlainLine,
    Empty,
}

/// A call that was not executed, or not completely.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) errors: BTreeMap<String, String>,
    pub(crate) shape: Shape,
    pub(crate) delay: Duration,
}

impl Refusal {
    pub(crate) fn new(status: u16, reason: impl Into<String>, shape: Shape) -> Self {
        Self { status, reason: reason.into(), errors: BTreeMap::new(), shape, delay: Duration::ZERO }
    }

    /// The 500 with which PVE says nearly everything.
    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        Self::new(500, reason, Shape::Json)
    }

    pub(crate) fn invalid(errors: BTreeMap<String, String>) -> Self {
        Self { errors, ..Self::new(400, BAD_PARAMETERS, Shape::Json) }
    }

    pub(crate) fn invalid_field(field: &str, text: impl Into<String>) -> Self {
        Self::invalid(BTreeMap::from([(field.to_string(), text.into())]))
    }

    pub(crate) fn not_implemented(method: &str, path: &str) -> Self {
        Self::new(501, format!("Method '{method} {path}' not implemented"), Shape::JsonBare)
    }

    pub(crate) fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

/// Why a handler did not reply.
#[derive(Debug)]
pub(crate) enum Halt {
    Refused(Refusal),
    /// Somebody holds this VM's file lock; the call may be tried again until the wait is over.
    Busy(u32),
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// What every handler returns.
pub(crate) type Answer = Result<Reply, Halt>;
