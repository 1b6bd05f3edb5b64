//! Which nodes fell silent, and what becomes of them and of their pods?

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Taint;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use tenon_api::kube_objects::{Node, WirePod as Pod};

use super::board::Board;

/// A node whose lease was not renewed for so long is silent.
const SILENT_AFTER: SignedDuration = SignedDuration::from_secs(40);

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// Judges every node, and removes pods whose node is gone.
pub(crate) async fn keep(board: &Board) -> Result<(), kube::Error> {
    for node in &board.nodes {
        judge(board, node).await?;
    }
    let is_lost = |pod: &&Pod| {
        let node = pod.node_name().map(str::to_owned);
        node.is_some_and(|node| !board.nodes.iter().any(|known| known.name_any() == node))
    };
    for pod in board.pods.iter().filter(is_lost) {
        let api: Api<Pod> = Api::namespaced(board.client.clone(), &pod.namespace().unwrap_or_default());
        match api.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await {
            Err(kube::Error::Api(refusal)) if refusal.code == 404 => {}
            outcome => drop(outcome?),
        }
    }
    Ok(())
}

async fn judge(board: &Board, node: &Node) -> Result<(), kube::Error> {
    let told = ready(node);
    let silent = is_silent(&board.leases, node, board.now) && told != Some("Unknown");
    let api: Api<Node> = Api::all(board.client.clone());
    if silent && told.is_some() {
        let conditions: Vec<_> = node
            .status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten())
            .map(|condition| {
                let mut condition = condition.clone();
                condition.status = "Unknown".to_owned();
                condition.reason = Some("NodeStatusUnknown".to_owned());
                condition.message = Some("Kubelet stopped posting node status.".to_owned());
                condition.last_transition_time = Some(board.time());
                condition
            })
            .collect();
        let patch = json!({ "status": { "conditions": conditions } });
        api.patch_status(&node.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    }
    let wanted = match if silent { Some("Unknown") } else { told } {
        Some("True") => None,
        Some("Unknown") => Some(UNREACHABLE),
        _ => Some(NOT_READY),
    };
    taint(board, node, wanted).await
}

fn ready(node: &Node) -> Option<&str> {
    let mut conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.find(|told| told.type_ == "Ready").map(|told| told.status.as_str())
}

/// A node that never had a lease is not silent yet: it has just come.
pub(crate) fn is_silent(leases: &[Lease], node: &Node, now: Timestamp) -> bool {
    let lease = leases
        .iter()
        .find(|lease| lease.namespace().as_deref() == Some("kube-node-lease") && lease.name_any() == node.name_any());
    let renewed = lease.and_then(|lease| lease.spec.as_ref()?.renew_time.as_ref().map(|time| time.0));
    renewed.is_some_and(|renewed| now.duration_since(renewed) > SILENT_AFTER)
}

/// The one taint that says how the node is, or none.
async fn taint(board: &Board, node: &Node, wanted: Option<&str>) -> Result<(), kube::Error> {
    let present: Vec<Taint> = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten()).cloned().collect();
    let is_ours = |taint: &Taint| taint.key == NOT_READY || taint.key == UNREACHABLE;
    let mut taints: Vec<Taint> = present.iter().filter(|taint| !is_ours(taint)).cloned().collect();
    if let Some(key) = wanted {
        for effect in ["NoSchedule", "NoExecute"] {
            let known = present.iter().find(|taint| taint.key == key && taint.effect == effect).cloned();
            // Pods tolerate it for so long from then on.
            let time_added = (effect == "NoExecute").then(|| board.time());
            let fresh = || Taint { key: key.to_owned(), effect: effect.to_owned(), time_added, value: None };
            taints.push(known.unwrap_or_else(fresh));
        }
    }
    let same = taints.len() == present.len()
        && taints
            .iter()
            .all(|taint| present.iter().any(|known| known.key == taint.key && known.effect == taint.effect));
    if same {
        return Ok(());
    }
    let api: Api<Node> = Api::all(board.client.clone());
    let version = node.resource_version();
    let patch = json!({ "metadata": { "resourceVersion": version }, "spec": { "taints": taints } });
    match api.patch(&node.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
        // Somebody wrote first; the next look sees what.
        Err(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409) => Ok(()),
        outcome => outcome.map(drop),
    }
}
