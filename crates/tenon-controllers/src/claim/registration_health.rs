//! Whether the nodes of a pool launch and register: a condition of the pool, so that it outlives the claims that failed.

use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use serde_json::json;
use tenon_api::condition_reasons::{ConditionReason, NODE_REGISTRATION_HEALTHY};
use tenon_api::{NodeClaim, NodePool, names};

use super::ClaimError;
use crate::context::Context;
use crate::status::{Verdict, stated, subject};
use crate::writes;

/// A node of the pool registered.
pub(crate) async fn succeeded(context: &Context, claim: &NodeClaim) -> Result<(), ClaimError> {
    let Some(pool) = pool_of(context, claim) else { return Ok(()) };
    if context.memory.launched(&pool.uid().unwrap_or_default(), true) {
        write(context, &pool, &Verdict::holds(&NODE_REGISTRATION_HEALTHY)).await?;
    }
    Ok(())
}

/// A node of the pool did not launch or register; why.
pub(crate) async fn failed(
    context: &Context,
    claim: &NodeClaim,
    reason: &'static ConditionReason,
    message: &str,
) -> Result<(), ClaimError> {
    let Some(pool) = pool_of(context, claim) else { return Ok(()) };
    if !context.memory.launched(&pool.uid().unwrap_or_default(), false) {
        write(context, &pool, &Verdict::fails(reason, message)).await?;
    }
    Ok(())
}

fn pool_of(context: &Context, claim: &NodeClaim) -> Option<std::sync::Arc<NodePool>> {
    context.watched.pools.get(&ObjectRef::new(claim.labels().get(names::LABEL_NODEPOOL)?))
}

/// The condition does not keep a pool from being used.
async fn write(context: &Context, pool: &NodePool, verdict: &Verdict) -> Result<(), ClaimError> {
    let present = pool.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let condition = NODE_REGISTRATION_HEALTHY.name();
    let stands = present.iter().any(|found| found.type_ == condition && found.status == verdict.status());
    if stands {
        return Ok(());
    }
    let dependents = crate::status::POOL_CONDITIONS;
    let conditions =
        stated(dependents, Some(present), &subject(&pool.metadata, &context.clock.time()), &[(condition, verdict)]);
    let written = writes::merge_status(&context.workload, pool, &json!({ "conditions": conditions })).await;
    written.map(drop).map_err(|source| ClaimError::kube("write the status of the NodePool", source))
}
