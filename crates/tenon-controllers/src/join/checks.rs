//! Could a new node join at all? Looked at before any VM is made.

use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use tenon_api::ProxmoxNodeClass;
use tenon_api::condition_reasons::{BOOTSTRAP_BINDINGS_MISSING, JOIN_DATA_MISSING};

use super::board::Board;
use super::rights::{Reviewer, Rights};
use super::uses::JoinUses;
use crate::claim::{ClaimError, Joined, joined_cluster};
use crate::first_boot::NoFirstBoot;
use crate::kube_error;

/// What of all that a node joins with its first-boot data really uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JoinUse {
    /// The cluster CA, which all first-boot data is rendered with.
    pub(crate) ca: bool,
    /// The bootstrap token.
    pub(crate) token: bool,
    /// The address of the API server.
    pub(crate) server: bool,
}

impl JoinUse {
    /// The built-in user-data uses everything.
    pub(crate) const ALL: JoinUse = JoinUse { ca: true, token: true, server: true };
    /// An image that joins by itself uses nothing.
    pub(crate) const NONE: JoinUse = JoinUse { ca: false, token: false, server: false };
    /// The least that first-boot data uses.
    pub(crate) const LEAST: JoinUse = JoinUse { ca: true, ..JoinUse::NONE };
}

/// What is looked at.
#[derive(Clone)]
pub struct JoinChecks {
    inner: Option<Inner>,
}

#[derive(Clone)]
struct Inner {
    client: Client,
    reviewer: Arc<Reviewer>,
    uses: JoinUses,
    namespace: String,
    endpoint: Option<String>,
}

impl JoinChecks {
    /// Looks at nothing.
    pub fn none() -> JoinChecks {
        JoinChecks { inner: None }
    }

    /// Looks at a cluster: `namespace` has its CA, `endpoint` is where guests reach its API server, if that was said.
    pub fn new(client: &Client, namespace: &str, endpoint: Option<&str>) -> JoinChecks {
        let board = Board::new(Arc::new(Reviewer::new(client.clone(), true)));
        JoinChecks::with(client, &board, (namespace, endpoint))
    }

    pub(crate) fn with(client: &Client, board: &Board, (namespace, endpoint): (&str, Option<&str>)) -> JoinChecks {
        let (reviewer, uses) = (board.reviewer.clone(), board.uses.clone());
        let (client, namespace, endpoint) = (client.clone(), namespace.to_owned(), endpoint.map(str::to_owned));
        JoinChecks { inner: Some(Inner { client, reviewer, uses, namespace, endpoint }) }
    }

    /// What the first-boot data of a class was found to use is remembered for when a node of it does not come.
    pub(crate) fn note_use(&self, class: &ProxmoxNodeClass, used: JoinUse) {
        if let Some(Inner { uses, .. }) = &self.inner {
            uses.note(class, used);
        }
    }

    /// One look.
    pub(crate) async fn look(&self, now: Timestamp) -> Result<JoinLook, ClaimError> {
        let Some(Inner { client, reviewer, namespace, endpoint, .. }) = &self.inner else { return Ok(JoinLook(None)) };
        let joined = match joined_cluster(client, namespace, endpoint.as_deref()).await {
            Err(ClaimError::Kube { action, source }) if kube_error::is_forbidden(&source) => {
                Err(format!("cannot {action}: {}; grant the controller get on it", kube_error::message(&source)))
            }
            other => other?,
        };
        Ok(JoinLook(Some(ObservedJoin { joined, rights: reviewer.rights(now).await })))
    }
}

/// What was seen; nothing if nobody looked.
pub(crate) struct JoinLook(pub(crate) Option<ObservedJoin>);

/// What new nodes join with, and what they may do.
pub(crate) struct ObservedJoin {
    pub(crate) joined: Result<Joined, String>,
    pub(crate) rights: Rights,
}

impl JoinLook {
    /// Why nodes that use these cannot join, if they cannot.
    pub(crate) fn judge(&self, used: JoinUse) -> Result<(), NoFirstBoot> {
        let Some(ObservedJoin { joined, rights }) = &self.0 else { return Ok(()) };
        let missing = match joined {
            Err(why) if used.ca => Some(why),
            Ok(joined) if used.server && joined.api_server.is_empty() => Some(&joined.no_api_server),
            _ => None,
        };
        if let Some(why) = missing {
            let message = format!("Nodes cannot join: {why}");
            return Err(NoFirstBoot { reason: &JOIN_DATA_MISSING, message });
        }
        match rights.missing().filter(|_| used.token) {
            Some(why) => {
                let message = format!("Nodes cannot join: {why}");
                Err(NoFirstBoot { reason: &BOOTSTRAP_BINDINGS_MISSING, message })
            }
            None => Ok(()),
        }
    }

    /// Why it could not be asked what bootstrap tokens may do.
    pub(crate) fn unasked(&self) -> Option<&str> {
        self.0.as_ref()?.rights.unasked.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::super::rights::Right;
    use super::*;

    fn look(joined: Result<&str, &str>, request: Right) -> JoinLook {
        let joined = joined.map_err(str::to_owned).map(|server| Joined {
            api_server: server.to_owned(),
            no_api_server: "the address is unknown".to_owned(),
            ca_pem: "CA".to_owned(),
        });
        JoinLook(Some(ObservedJoin { joined, rights: Rights { request, approval: Right::Granted, unasked: None } }))
    }

    fn reason(look: &JoinLook, used: JoinUse) -> Option<&'static str> {
        look.judge(used).err().map(|no| no.reason.name())
    }

    #[test]
    fn what_first_boot_data_does_not_use_is_not_missed() {
        let unbound = look(Ok("https://api"), Right::Missing);
        assert_eq!(reason(&unbound, JoinUse::ALL), Some("BootstrapBindingsMissing"));
        assert_eq!(reason(&unbound, JoinUse::LEAST), None);
        let unknown = look(Ok(""), Right::Granted);
        assert_eq!(reason(&unknown, JoinUse::ALL), Some("JoinDataMissing"));
        assert_eq!(reason(&unknown, JoinUse::LEAST), None);
        assert_eq!(reason(&look(Err("no CA"), Right::Granted), JoinUse::LEAST), Some("JoinDataMissing"));
        assert_eq!(reason(&look(Err("no CA"), Right::Missing), JoinUse::NONE), None);
    }

    #[test]
    fn what_could_not_be_asked_blocks_nothing() {
        assert_eq!(reason(&look(Ok("https://api"), Right::Unknown), JoinUse::ALL), None);
        assert_eq!(reason(&JoinLook(None), JoinUse::ALL), None);
    }
}
