//! What becomes of pods whose node fell silent? They are not ready any more, and those that tolerate it no longer are deleted; a
//! ReplicaSet then makes others.

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Taint, Toleration};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use tenon_api::kube_objects::{Node, WirePod as Pod};

use super::board::{Board, has_ended, is_ready};

const NO_EXECUTE: &str = "NoExecute";

/// Goes through the pods of every node with a taint that ends them.
pub(crate) async fn keep(board: &Board) -> Result<(), kube::Error> {
    for node in &board.nodes {
        let taints: Vec<&Taint> = ending(node).collect();
        if taints.is_empty() {
            continue;
        }
        let here = |pod: &&Pod| pod.node_name() == Some(node.name_any().as_str()) && !has_ended(pod);
        for pod in board.pods.iter().filter(here) {
            if taints.iter().any(|taint| taint.key.ends_with("/unreachable")) && is_ready(pod) {
                report_not_ready(board, pod).await?;
            }
            if pod.metadata.deletion_timestamp.is_none() && taints.iter().any(|taint| is_over(board, taint, pod)) {
                delete(board, pod).await?;
            }
        }
    }
    Ok(())
}

/// Whether a node has a taint that ends pods.
pub(crate) fn is_ending(node: &Node) -> bool {
    ending(node).next().is_some()
}

fn ending(node: &Node) -> impl Iterator<Item = &Taint> {
    node.spec.iter().flat_map(|spec| spec.taints.iter().flatten()).filter(|taint| taint.effect == NO_EXECUTE)
}

/// Whether a pod tolerated a taint for as long as it wants to.
fn is_over(board: &Board, taint: &Taint, pod: &Pod) -> bool {
    let all = pod.spec.iter().flat_map(|spec| spec.tolerations.iter().flatten());
    let mut covering = all.filter(|toleration| covers(toleration, taint)).peekable();
    if covering.peek().is_none() {
        return true;
    }
    // Without seconds it is for ever; of several the shortest counts.
    let shortest = covering.filter_map(|toleration| toleration.toleration_seconds).min();
    let since = taint.time_added.as_ref().map(|time| board.now.duration_since(time.0));
    shortest.zip(since).is_some_and(|(seconds, since)| since >= SignedDuration::from_secs(seconds))
}

fn covers(toleration: &Toleration, taint: &Taint) -> bool {
    let (key, effect) = (toleration.key.as_deref().unwrap_or_default(), toleration.effect.as_deref());
    let is_value = match toleration.operator.as_deref() {
        Some("Exists") => true,
        _ => toleration.value.as_deref().unwrap_or_default() == taint.value.as_deref().unwrap_or_default(),
    };
    (key.is_empty() || key == taint.key)
        && effect.is_none_or(|effect| effect.is_empty() || effect == NO_EXECUTE)
        && is_value
}

async fn report_not_ready(board: &Board, pod: &Pod) -> Result<(), kube::Error> {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let written: Vec<_> = conditions
        .map(|told| {
            let mut told = told.clone();
            if told.type_ == "Ready" {
                told.status = "False".to_owned();
                told.last_transition_time = Some(board.time());
            }
            told
        })
        .collect();
    let api: Api<Pod> = Api::namespaced(board.client.clone(), &pod.namespace().unwrap_or_default());
    let patch = json!({ "status": { "conditions": written } });
    gone_is_fine(api.patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await.map(drop))
}

async fn delete(board: &Board, pod: &Pod) -> Result<(), kube::Error> {
    let api: Api<Pod> = Api::namespaced(board.client.clone(), &pod.namespace().unwrap_or_default());
    gone_is_fine(api.delete(&pod.name_any(), &DeleteParams::default()).await.map(drop))
}

/// Whoever came first did the same.
fn gone_is_fine(outcome: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match outcome {
        Err(kube::Error::Api(refusal)) if refusal.code == 404 => Ok(()),
        outcome => outcome,
    }
}
