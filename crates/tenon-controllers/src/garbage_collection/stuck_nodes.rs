//! Which Nodes are being deleted, but for our finalizer, though their NodeClaim is gone? They are drained and let go.

use std::sync::Arc;
use tenon_api::kube_objects::Node;

use kube::ResourceExt;
use serde_json::json;
use tenon_api::{NodeClaim, names};

use super::{Failure, attempt};
use crate::claim::{ClaimError, drain_orphan};
use crate::context::Context;
use crate::metrics::Removed;
use crate::writes;

/// Removes our finalizer from a node that is being deleted and has no claim any more, once its pods have left.
pub(super) async fn free_nodes(context: &Context, claims: &[NodeClaim], failures: &mut Vec<Failure>) {
    let has_claim = |node: &Node| claims.iter().any(|claim| claim.name_any() == node.name_any());
    for node in stuck_nodes(context).into_iter().filter(|node| !has_claim(node)) {
        let why = attempt(free_node(context, &node), "").await;
        failures.extend(why.map(|why| Failure { object: format!("Node {}", node.name_any()), why }));
    }
}

/// Nodes of ours that are being deleted, and have our finalizer.
pub(super) fn stuck_nodes(context: &Context) -> Vec<Arc<Node>> {
    context.watched.nodes.state_filter(|node| {
        node.metadata.deletion_timestamp.is_some()
            && node.finalizers().iter().any(|name| name == names::FINALIZER)
            && node.labels().contains_key(names::LABEL_NODECLASS)
    })
}

async fn free_node(context: &Context, node: &Arc<Node>) -> Result<(), ClaimError> {
    if !drain_orphan(context, node).await? {
        return Ok(());
    }
    let rest: Vec<&String> = node.finalizers().iter().filter(|name| *name != names::FINALIZER).collect();
    let patch = json!({ "metadata": { "finalizers": rest } });
    let written = writes::merge(&context.workload, node.as_ref(), patch).await;
    written.map_err(|source| ClaimError::kube("remove the finalizer of the Node", source))?;
    context.metrics.orphans_removed.get_or_create(&Removed { kind: "node" }).inc();
    tracing::info!(node = node.name_any(), "removed finalizer of Node without NodeClaim");
    Ok(())
}
