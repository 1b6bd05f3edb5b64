//! What a Node bears while its VM is started again: a taint until it was, and no label of a node that takes pods.

use std::time::Duration;

use k8s_openapi::api::core::v1::Taint;
use kube::ResourceExt;
use serde_json::{Value, json};
use tenon_api::kube_objects::Node;
use tenon_api::names::{LABEL_INITIALIZED, TAINT_REBOOTING};

use super::ClaimError;
use super::outcome::Outcome;
use crate::context::Context;
use crate::writes;

/// What was written shows in the cache within this time.
const SHOWS_AFTER: Duration = Duration::from_millis(200);

fn taints(node: &Node) -> impl Iterator<Item = &Taint> {
    node.spec.iter().flat_map(|spec| spec.taints.iter().flatten())
}

/// Whether new pods are kept off the node until it was started again.
pub(super) fn is_fenced(node: &Node) -> bool {
    taints(node).any(|taint| taint.key == TAINT_REBOOTING)
}

/// Keeps new pods off the node.
pub(super) async fn fence(context: &Context, node: &Node) -> Result<Outcome, ClaimError> {
    let mut all: Vec<Taint> = taints(node).cloned().collect();
    all.push(Taint { key: TAINT_REBOOTING.to_owned(), effect: "NoSchedule".to_owned(), ..Taint::default() });
    write(context, node, json!({ "spec": { "taints": all } })).await
}

/// Lets new pods on the node again.
pub(super) async fn lift_fence(context: &Context, node: &Node) -> Result<Outcome, ClaimError> {
    let others: Vec<&Taint> = taints(node).filter(|taint| taint.key != TAINT_REBOOTING).collect();
    write(context, node, json!({ "spec": { "taints": others } })).await
}

/// Takes the label of a node that takes pods away.
pub(super) async fn hide(context: &Context, node: &Node) -> Result<Outcome, ClaimError> {
    write(context, node, json!({ "metadata": { "labels": { LABEL_INITIALIZED: null } } })).await
}

async fn write(context: &Context, node: &Node, patch: Value) -> Result<Outcome, ClaimError> {
    let written = writes::merge(&context.workload, node, patch).await;
    let action = || format!("mark Node {} for its reboot", node.name_any());
    written.map_err(|source| ClaimError::kube(&action(), source))?;
    Ok(Outcome::after(SHOWS_AFTER))
}
