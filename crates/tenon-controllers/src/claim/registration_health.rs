//! Whether the nodes of a pool launch and register: a condition of the pool, so that it outlives the claims that failed.

use kube::ResourceExt;
use kube::api::Api;
use serde_json::json;
use tenon_api::condition_reasons::{self, ConditionReason, LAUNCHED, NODE_REGISTRATION_HEALTHY, condition_reason};
use tenon_api::{ConditionStatus, NodeClaim, NodePool, names};
use tenon_engine::registration_health::RegistrationHealth;

use super::ClaimError;
use super::gather::condition as claim_condition;
use crate::context::Context;
use crate::registration_book::condition;
use crate::status::{Verdict, stated, subject};
use crate::writes::{self, Written};

/// Others write the same status. So often it is tried again; the next ending says the same.
const TRIES: usize = 5;

/// A node of the pool registered.
pub(crate) async fn succeeded(context: &Context, claim: &NodeClaim) -> Result<(), ClaimError> {
    let ending = Ending { is_registered: true, verdict: Verdict::holds(&NODE_REGISTRATION_HEALTHY) };
    note(context, claim, &ending).await
}

/// A node of the pool did not launch or register; why.
pub(crate) async fn failed(
    context: &Context,
    claim: &NodeClaim,
    reason: &'static ConditionReason,
    message: &str,
) -> Result<(), ClaimError> {
    let ending = Ending { is_registered: false, verdict: Verdict::fails(reason, message) };
    note(context, claim, &ending).await
}

/// Why a launch failed, in the word that its condition had last: what kept it from going on says more than that it failed.
pub(crate) fn launch_reason(claim: &NodeClaim) -> &'static ConditionReason {
    let named = claim_condition(claim, &LAUNCHED).and_then(|launched| condition_reason(&launched.reason));
    let is_for_pools =
        |reason: &&ConditionReason| reason.uses().contains(&(NODE_REGISTRATION_HEALTHY.name(), ConditionStatus::False));
    named.filter(is_for_pools).unwrap_or(&condition_reasons::LAUNCH_FAILED)
}

/// How a node ended, and what is said of its pool if that makes the difference.
struct Ending {
    is_registered: bool,
    verdict: Verdict,
}

/// Judges the pool with one more ending, says so if that is news, and only then counts it: a pass that fails in between is
/// repeated.
async fn note(context: &Context, claim: &NodeClaim, ending: &Ending) -> Result<(), ClaimError> {
    let book = &context.memory.registrations;
    let _turn = book.turn().await;
    let claim_uid = claim.uid().unwrap_or_default();
    if !book.is_uncounted(&claim_uid) {
        return Ok(());
    }
    for _ in 0..TRIES {
        let Some(pool) = pool_of(context, claim).await? else { return Ok(()) };
        let uid = pool.uid().unwrap_or_default();
        book.seed(&uid, &pool);
        let is_decided = match book.health_with(&uid, ending.is_registered) {
            RegistrationHealth::Healthy => ending.is_registered,
            RegistrationHealth::Unhealthy => !ending.is_registered,
            RegistrationHealth::Unknown => false,
        };
        if !is_decided || write(context, &pool, &ending.verdict).await? {
            book.add(&uid, ending.is_registered);
            book.count(&claim_uid);
            return Ok(());
        }
    }
    tracing::debug!(
        claim = claim.name_any(),
        "status of NodePool changes too often; NodeRegistrationHealthy not written"
    );
    Ok(())
}

/// The pool a claim was made from, as it is now. Another that has its name by now is not judged by it.
async fn pool_of(context: &Context, claim: &NodeClaim) -> Result<Option<NodePool>, ClaimError> {
    let Some(name) = claim.labels().get(names::LABEL_NODEPOOL) else { return Ok(None) };
    let pools: Api<NodePool> = Api::all(context.workload.clone());
    let pool = pools.get_opt(name).await.map_err(|source| ClaimError::kube("read the NodePool", source))?;
    let is_owner =
        |pool: &NodePool| claim.owner_references().iter().any(|owner| Some(&owner.uid) == pool.uid().as_ref());
    Ok(pool.filter(is_owner))
}

/// Whether the condition says so now. It does not keep a pool from being used.
async fn write(context: &Context, pool: &NodePool, verdict: &Verdict) -> Result<bool, ClaimError> {
    let stands = condition(pool).is_some_and(|found| {
        let is_current = found.observed_generation == pool.metadata.generation;
        found.status == verdict.status() && (is_current || found.status == ConditionStatus::False)
    });
    if stands {
        return Ok(true);
    }
    let present = pool.status.as_ref().and_then(|status| status.conditions.as_deref());
    let (dependents, said) = (crate::status::POOL_CONDITIONS, [(NODE_REGISTRATION_HEALTHY.name(), verdict)]);
    let conditions = stated(dependents, present, &subject(&pool.metadata, &context.clock.time()), &said);
    let written = writes::merge_status(&context.workload, pool, &json!({ "conditions": conditions })).await;
    let written = written.map_err(|source| ClaimError::kube("write the status of the NodePool", source))?;
    Ok(matches!(written, Written::Done(_)))
}
