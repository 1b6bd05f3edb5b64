//! What is there to count about requests and tasks? Who counts is told of each; paths are told without names and ids, of
//! which there is no end.

use std::fmt;
use std::time::Duration;

use http::Method;

use crate::error::{Cause, Doubtful, Error};
use crate::transport::TransportError;
use crate::upid::Upid;

/// Is told of every request and every task.
pub trait Observer: fmt::Debug + Send + Sync {
    /// A request ended, after all its attempts.
    fn replied(&self, exchange: &Exchange<'_>);

    /// A request was answered with the name of a task.
    fn task_began(&self, task: &Upid);

    /// A task was seen to have ended.
    fn task_ended(&self, task: &Upid, end: TaskEnd);
}

/// A request and how it ended.
#[derive(Debug)]
pub struct Exchange<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Its path, with placeholders: `/nodes/{node}/qemu/{vmid}/config`.
    pub path: String,
    /// How long it took, with every attempt and the wait for its turn.
    pub took: Duration,
    /// Why it failed, in a word.
    pub error: Option<String>,
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskEnd {
    /// With success, or with warnings.
    Done,
    /// With an error, or without a result.
    Failed,
}

/// What stands behind these parts of a path is a name or an id.
const NAMED: [(&str, &str); 9] = [
    ("nodes", "{node}"),
    ("qemu", "{vmid}"),
    ("lxc", "{vmid}"),
    ("storage", "{storage}"),
    ("content", "{volume}"),
    ("tasks", "{upid}"),
    ("pools", "{poolid}"),
    ("groups", "{group}"),
    ("rules", "{pos}"),
];

/// A path without names, ids and parameters. A part that is not a plain word is an id wherever it stands.
pub(crate) fn template(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let (mut template, mut before) = (String::new(), "");
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let placeholder = NAMED.iter().find(|(word, _)| *word == before).map(|(_, placeholder)| *placeholder);
        let is_word = part.chars().all(|letter| letter.is_ascii_lowercase() || "-_".contains(letter));
        template.push('/');
        template.push_str(placeholder.unwrap_or(if is_word { part } else { "{id}" }));
        // Behind a name comes a word, even if something has the name of a word.
        before = if placeholder.is_some() { "" } else { part };
    }
    template
}

/// Why a request failed, as one of a few words.
pub(crate) fn word(error: &Error) -> String {
    let transport = |error: &TransportError| match error {
        TransportError::Connect(_) => "Connect",
        TransportError::Withheld(_) => "Withheld",
        TransportError::Broken(_) => "Broken",
        TransportError::TimedOut(_) => "TimedOut",
    };
    match error.cause() {
        Cause::NotSent(error) | Cause::MaybeDone(Doubtful::Lost(error)) => transport(error).to_owned(),
        Cause::MaybeDone(Doubtful::HostDown { .. }) => "HostDown".to_owned(),
        Cause::MaybeDone(_) => "Unreadable".to_owned(),
        Cause::Refused(refusal) => {
            // What is in the kind besides its name is not for counting.
            let kind = format!("{:?}", refusal.kind);
            kind.split(|letter: char| !letter.is_ascii_alphanumeric()).next().unwrap_or_default().to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_told_without_names_and_ids() {
        for (path, expected) in [
            ("/version", "/version"),
            ("/cluster/resources?type=vm", "/cluster/resources"),
            ("/cluster/ha/status/manager_status", "/cluster/ha/status/manager_status"),
            ("/nodes/pve1/qemu/20003/config", "/nodes/{node}/qemu/{vmid}/config"),
            ("/nodes/qemu/qemu/100/status/start", "/nodes/{node}/qemu/{vmid}/status/start"),
            (
                "/nodes/pve1/storage/local/content/local%3Aiso%2Fa.iso",
                "/nodes/{node}/storage/{storage}/content/{volume}",
            ),
            ("/nodes/pve1/tasks/UPID%3Apve1%3A0/status", "/nodes/{node}/tasks/{upid}/status"),
            ("/nodes/pve1/qemu/7/firewall/rules/0", "/nodes/{node}/qemu/{vmid}/firewall/rules/{pos}"),
            ("/pools/tenants", "/pools/{poolid}"),
            ("/what/Ever1/x", "/what/{id}/x"),
        ] {
            assert_eq!(template(path), expected);
        }
    }
}
