//! What all nodes that are late have in common, looked at once for all of them: rights, certificate requests, and which node
//! runs on which machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use tenon_api::kube_objects::Node;
use tokio::sync::Mutex;

use super::requests::{self, Request};
use super::rights::{Reviewer, Rights};
use super::uses::JoinUses;
use crate::context::Context;
use crate::kube_error;
use crate::moments::after;

/// One look serves every claim for this long.
const KEPT: SignedDuration = SignedDuration::from_secs(10);

/// What was seen at one look.
pub(crate) struct Sight {
    pub(crate) rights: Rights,
    /// Requests for certificates by user name, or why they cannot be listed.
    pub(crate) requests: Result<BTreeMap<String, Vec<Request>>, String>,
    /// Names of nodes by the UUID of their machine, in lower case.
    pub(crate) nodes: BTreeMap<String, String>,
}

/// The last look.
pub(crate) struct Board {
    pub(crate) reviewer: Arc<Reviewer>,
    /// What the first-boot data of classes uses.
    pub(crate) uses: JoinUses,
    last: Mutex<Option<(Timestamp, Arc<Sight>)>>,
}

impl Board {
    pub(crate) fn new(reviewer: Arc<Reviewer>) -> Board {
        Board { reviewer, uses: JoinUses::default(), last: Mutex::default() }
    }

    /// What is seen now, or was a moment ago.
    pub(crate) async fn look(&self, context: &Context) -> Arc<Sight> {
        let now = context.clock.now();
        let mut last = self.last.lock().await;
        if let Some((seen, sight)) = &*last
            && after(*seen, KEPT) > now
        {
            return sight.clone();
        }
        let requests = requests::by_user(&context.workload).await;
        let sight = Arc::new(Sight {
            rights: self.reviewer.rights(now).await,
            requests: requests.map_err(|error| kube_error::message(&error)),
            nodes: context.watched.nodes.state().iter().filter_map(machine).collect(),
        });
        *last = Some((now, sight.clone()));
        sight
    }
}

fn machine(node: &Arc<Node>) -> Option<(String, String)> {
    let uuid = node.status.as_ref()?.node_info.as_ref()?.system_uuid.to_ascii_lowercase();
    (!uuid.is_empty()).then(|| (uuid, node.name_any()))
}
