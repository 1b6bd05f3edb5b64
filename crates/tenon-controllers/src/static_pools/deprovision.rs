//! Gives away the nodes that a pool of fixed size has too many of: their claims are deleted, and leave as any other does.

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::Api;
use tenon_api::{NodeClaim, NodePool};

use crate::context::Context;
use crate::events::Saying;
use crate::writes;

/// How this half is called in metrics.
const CONTROLLER: &str = "static.deprovisioning";

/// Deletes these claims; which half failed, if one did. One that cannot be deleted does not keep the others.
pub(super) async fn remove(
    context: &Context,
    pool: &NodePool,
    (claims, victims): (&[Arc<NodeClaim>], &[String]),
) -> Result<(), &'static str> {
    let api: Api<NodeClaim> = Api::all(context.workload.clone());
    let (name, replicas) = (pool.name_any(), pool.spec.replicas.unwrap_or_default());
    let mut outcome = Ok(());
    for victim in victims {
        let Some(claim) = claims.iter().find(|claim| claim.name_any() == *victim) else { continue };
        let told = format!("NodePool {name} has more nodes than its spec.replicas of {replicas}");
        context.events.say(claim.as_ref(), &Saying::normal("DisruptionTerminating", told)).await;
        if let Err(error) = writes::delete(&api, claim.as_ref()).await {
            tracing::warn!(claim = victim, pool = name, %error, "a NodeClaim could not be deleted");
            outcome = Err(CONTROLLER);
        }
    }
    outcome
}
