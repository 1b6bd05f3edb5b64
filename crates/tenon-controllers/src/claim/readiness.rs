//! What keeps a registered node from being initialized, and who is to remove it: we do, where there is no cloud controller
//! manager.

use std::time::Duration;

use k8s_openapi::api::core::v1::Taint;
use kube::ResourceExt;
use serde_json::json;
use tenon_api::condition_reasons::{self, INITIALIZED};
use tenon_api::kube_objects::Node;
use tenon_api::names;
use tenon_engine::claim::Obstacle;

use super::ClaimError;
use super::gather::Observed;
use super::outcome::Outcome;
use crate::context::Context;
use crate::settings::CloudControllerManager;
use crate::status::Verdict;
use crate::writes::{self, Written};

/// A node's own changes wake us; this is in case one was missed.
const LOOK_LATER: Duration = Duration::from_secs(30);

/// Waits until the node takes pods.
pub(crate) async fn await_readiness(
    context: &Context,
    observed: &Observed,
    obstacle: &Obstacle,
) -> Result<Outcome, ClaimError> {
    let node = observed.our_node().filter(|node| is_uninitialized(node));
    match node.filter(|_| context.settings.ccm == CloudControllerManager::None) {
        Some(node) => remove_taint(context, node).await,
        None => Ok(awaited(observed, obstacle)),
    }
}

/// A node that registered while a cloud controller manager was still expected.
async fn remove_taint(context: &Context, node: &Node) -> Result<Outcome, ClaimError> {
    let left: Vec<&Taint> = taints(node).filter(|taint| taint.key != names::TAINT_UNINITIALIZED).collect();
    let written = writes::merge(&context.workload, node, json!({ "spec": { "taints": left } })).await;
    Ok(match written.map_err(|source| ClaimError::kube("remove the uninitialized taint of the Node", source))? {
        Written::Done(_) => {
            tracing::info!(node = node.name_any(), taint = names::TAINT_UNINITIALIZED, "removed taint of Node");
            Outcome::again()
        }
        Written::Outdated => Outcome::outdated(),
    })
}

fn taints(node: &Node) -> impl Iterator<Item = &Taint> {
    node.spec.iter().flat_map(|spec| spec.taints.iter().flatten())
}

fn is_uninitialized(node: &Node) -> bool {
    taints(node).any(|taint| taint.key == names::TAINT_UNINITIALIZED)
}

/// Says what keeps the node from being initialized.
pub(super) fn awaited(observed: &Observed, obstacle: &Obstacle) -> Outcome {
    let node = observed.claim.name_any();
    let uninitialized = format!("{}:NoSchedule", names::TAINT_UNINITIALIZED);
    let ccm = "a cloud controller manager must remove it; if there is none, start Tenon with --ccm=none";
    let (reason, message) = match obstacle {
        // Often the one is why of the other: what makes a node ready may not tolerate the taint.
        Obstacle::NotReady if observed.our_node().is_some_and(|node| is_uninitialized(node)) => (
            &condition_reasons::NODE_NOT_READY,
            format!("Node {node} is not Ready, and taint {uninitialized} is still on it: {ccm}"),
        ),
        Obstacle::NotReady => (&condition_reasons::NODE_NOT_READY, format!("Node {node} is not Ready")),
        Obstacle::StartupTaint(taint) => {
            (&condition_reasons::STARTUP_TAINTS_EXIST, format!("Startup taint {taint} is still on Node {node}"))
        }
        Obstacle::EphemeralTaint(taint) if *taint == uninitialized => {
            (&condition_reasons::KNOWN_EPHEMERAL_TAINTS_EXIST, format!("Taint {taint} is still on Node {node}: {ccm}"))
        }
        Obstacle::EphemeralTaint(taint) => {
            (&condition_reasons::KNOWN_EPHEMERAL_TAINTS_EXIST, format!("Taint {taint} is still on Node {node}"))
        }
        Obstacle::MissingResource(resource) => (
            &condition_reasons::RESOURCE_NOT_REGISTERED,
            format!("Node {node} does not report resource {resource} yet"),
        ),
    };
    Outcome::after(LOOK_LATER).with_condition(&INITIALIZED, Verdict::unknown(reason, message))
}
