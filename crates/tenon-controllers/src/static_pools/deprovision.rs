//! Deletes the claims that a static pool has too many of; their nodes are drained as any other.

use std::sync::Arc;

use kube::ResourceExt;
use tenon_api::{NodeClaim, NodePool, event_reasons};

use crate::claim::{DeletionReason, delete_claim};
use crate::context::Context;
use crate::events::Event;

/// How this half is called in metrics.
const CONTROLLER: &str = "static.deprovisioning";

/// Deletes these claims; which half failed, if one did. One that cannot be deleted does not keep the others.
pub(super) async fn remove(
    context: &Context,
    pool: &NodePool,
    claims: &[Arc<NodeClaim>],
    victims: &[String],
) -> Result<(), &'static str> {
    let (name, replicas) = (pool.name_any(), pool.spec.replicas.unwrap_or_default());
    let mut outcome = Ok(());
    for victim in victims {
        let Some(claim) = claims.iter().find(|claim| claim.name_any() == *victim) else { continue };
        let note =
            format!("Deleting NodeClaim {victim}: NodePool {name} has more Nodes than spec.replicas ({replicas})");
        context.events.publish(claim.as_ref(), &Event::new(&event_reasons::DISRUPTION_TERMINATING, note)).await;
        if let Err(error) = delete_claim(context, claim, DeletionReason::TooManyReplicas).await {
            tracing::warn!(pool = name, error = error.full_message(), "cannot delete NodeClaim; retrying");
            outcome = Err(CONTROLLER);
        }
    }
    outcome
}
