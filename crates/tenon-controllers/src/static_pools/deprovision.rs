//! Deletes the claims that a static pool has too many of; their nodes are drained as any other.

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::Api;
use tenon_api::{NodeClaim, NodePool, event_reasons};

use crate::context::Context;
use crate::events::Event;
use crate::kube_error;
use crate::writes;

/// How this half is called in metrics.
const CONTROLLER: &str = "static.deprovisioning";

/// Deletes these claims; which half failed, if one did. One that cannot be deleted does not keep the others.
pub(super) async fn remove(
    context: &Context,
    pool: &NodePool,
    claims: &[Arc<NodeClaim>],
    victims: &[String],
) -> Result<(), &'static str> {
    let api: Api<NodeClaim> = Api::all(context.workload.clone());
    let (name, replicas) = (pool.name_any(), pool.spec.replicas.unwrap_or_default());
    let mut outcome = Ok(());
    for victim in victims {
        let Some(claim) = claims.iter().find(|claim| claim.name_any() == *victim) else { continue };
        let note =
            format!("Deleting NodeClaim {victim}: NodePool {name} has more Nodes than spec.replicas ({replicas})");
        context.events.publish(claim.as_ref(), &Event::new(&event_reasons::DISRUPTION_TERMINATING, note)).await;
        context.memory.deleting(victim, "spec.replicas");
        if let Err(error) = writes::delete(&api, claim.as_ref()).await {
            let error = kube_error::message(&error);
            tracing::warn!(claim = victim, pool = name, error, "cannot delete NodeClaim; retrying");
            outcome = Err(CONTROLLER);
        }
    }
    outcome
}
