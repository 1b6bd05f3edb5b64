//! Whether the nodes of a pool come up: said on the pool, so that it outlives the claims that failed.

use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use serde_json::json;
use tenon_api::{NodeClaim, NodePool, names};

use super::ClaimError;
use crate::context::Context;
use crate::status::{Verdict, stated, subject};
use crate::writes;

/// The condition. It does not keep a pool from being used.
const HEALTHY: &str = "NodeRegistrationHealthy";

/// A node of the pool came up.
pub(crate) async fn well(context: &Context, claim: &NodeClaim) -> Result<(), ClaimError> {
    let Some(pool) = pool_of(context, claim) else { return Ok(()) };
    if context.memory.launched(&pool.uid().unwrap_or_default(), true) {
        say(context, &pool, &Verdict::holds(HEALTHY)).await?;
    }
    Ok(())
}

/// A node of the pool did not come up; why.
pub(crate) async fn failed(context: &Context, claim: &NodeClaim, why: (&str, &str)) -> Result<(), ClaimError> {
    let Some(pool) = pool_of(context, claim) else { return Ok(()) };
    if !context.memory.launched(&pool.uid().unwrap_or_default(), false) {
        say(context, &pool, &Verdict::fails(why.0, why.1)).await?;
    }
    Ok(())
}

fn pool_of(context: &Context, claim: &NodeClaim) -> Option<std::sync::Arc<NodePool>> {
    context.watched.pools.get(&ObjectRef::new(claim.labels().get(names::LABEL_NODEPOOL)?))
}

async fn say(context: &Context, pool: &NodePool, verdict: &Verdict) -> Result<(), ClaimError> {
    let present = pool.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let stands = present.iter().any(|told| told.type_ == HEALTHY && told.status == verdict.status);
    if stands {
        return Ok(());
    }
    let dependents = crate::status::POOL_CONDITIONS;
    let conditions =
        stated(dependents, Some(present), &subject(&pool.metadata, &context.clock.time()), &[(HEALTHY, verdict)]);
    let written = writes::merge_status(&context.workload, pool, &json!({ "conditions": conditions })).await;
    written.map(drop).map_err(|source| ClaimError::kube("write the status of the pool", source))
}
