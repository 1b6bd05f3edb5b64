//! Why does a guest not join, or not get on with its work?

use std::time::Duration;

use super::access::ConnectError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("kubelet.service has no command")]
    NoCommand,
    #[error("kubelet.service has {0} commands, but systemd accepts one")]
    ManyCommands(usize),
    #[error("the kubelet command has no {0}")]
    NoFlag(&'static str),
    #[error("{path}, named by {named_by}, does not exist")]
    NoFile { path: String, named_by: &'static str },
    #[error("cannot read {flag} of the kubelet command: {why}")]
    Flag { flag: &'static str, why: String },
    #[error("the kubelet does not start: --node-labels sets {0}, which is reserved for Kubernetes")]
    ReservedLabel(String),
    #[error("cannot read {path}: {why}")]
    Unreadable { path: String, why: String },
    #[error("cannot create a client for {server}")]
    Connect { server: String, source: ConnectError },
    #[error("cannot {action}")]
    Refused { action: &'static str, source: Box<kube::Error> },
    #[error("cannot {action}: no reply within {} s", after.as_secs_f32())]
    Silence { action: &'static str, after: Duration },
    #[error("cannot {action}: cannot read the reply of the API server")]
    Shape { action: &'static str, source: serde_json::Error },
    #[error("certificate request {0} was denied or failed")]
    Denied(String),
    #[error("certificate request {name} was not signed within {} s", after.as_secs_f32())]
    Unsigned { name: String, after: Duration },
    #[error("cannot create a key or a certificate request")]
    Key(#[from] rcgen::Error),
}

/// Parsers quote what they could not read below their first line, and that may be a secret.
pub(crate) fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

impl Trouble {
    pub(crate) fn unreadable(path: &str, why: impl Into<String>) -> Self {
        Self::Unreadable { path: path.to_owned(), why: first_line(&why.into()) }
    }

    /// Whether the API said that the object is not there, or not the one that was meant.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.code(), Some(404 | 409))
    }

    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::Refused { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            _ => None,
        }
    }

    /// The error with all its causes, each said once.
    pub(crate) fn story(&self) -> String {
        // The client library prints the whole reply as a Rust value; the server's own words are enough.
        if let Self::Refused { source, .. } = self
            && let kube::Error::Api(status) = source.as_ref()
        {
            return format!("{self}: {}", tenon_api::status_message(status));
        }
        tenon_model::full_message(self)
    }
}
