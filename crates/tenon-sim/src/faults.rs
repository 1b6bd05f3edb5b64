//! What a test can have go wrong with the next matching call.

use crate::state::State;

/// One fault, used up by the first call it matches.
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

/// How a call goes wrong.
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

impl State {
    pub(crate) fn take_fault(&mut self, method: &str, path: &str) -> Option<FaultKind> {
        let hit = |f: &FaultSpec| f.method == method && path.contains(&f.path_contains);
        let at = self.faults.iter().position(hit)?;
        Some(self.faults.remove(at).kind)
    }
}
