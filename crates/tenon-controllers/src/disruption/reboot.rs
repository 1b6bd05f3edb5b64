//! Hands a broken node over to be rebooted: how long its pods have to leave, then the condition that asks for it.
//!
//! Everything else is done by the NodeClaim's own pass. Both writes are refused if somebody else wrote first, and whoever dies between
//! them has only left an annotation that the next attempt writes again.

use std::time::Duration;

use kube::ResourceExt;
use kube::api::Api;
use serde_json::json;
use tenon_api::condition_reasons::{self, DISRUPTION_REASON, REBOOTING};
use tenon_api::{NodeClaim, names};
use tenon_engine::disruption::Command;
use tenon_model::GoDuration;

use super::labels::condition_reason;
use super::repair_bound::{drain_bound, mode};
use crate::claim::{ClaimError, count_disrupted, is_true};
use crate::context::Context;
use crate::node_health::{Repaired, count_repaired};
use crate::status::{CLAIM_CONDITIONS, Verdict, stated, subject};
use crate::writes::{self, Written};

/// The reason under which metrics count a node that is repaired.
const UNHEALTHY: &str = "unhealthy";

/// A reboot that is wanted.
pub(super) struct Wanted {
    /// The NodeClaim.
    pub(super) claim: String,
    /// How long pods have to leave, as whoever wants it says.
    pub(super) bound: Option<Duration>,
    /// What is wrong with the node.
    pub(super) why: String,
}

/// Asks for the reboot that a command is. The claim if it was asked for.
pub(super) async fn commit(context: &Context, command: &Command) -> Result<Option<NodeClaim>, ClaimError> {
    let (Some(repair), Some(removed)) = (&command.repair, command.removed.first()) else { return Ok(None) };
    let why = repair.driver.to_string();
    let wanted = Wanted { claim: removed.claim.clone(), bound: repair.drain_bound, why };
    let Some(claim) = request(context, &wanted).await? else { return Ok(None) };
    let mode = mode(repair.drain_bound, &claim);
    count_repaired(context, &claim, Repaired { condition: &repair.driver.condition, mode });
    count_disrupted(context, &claim, UNHEALTHY);
    Ok(Some(claim))
}

/// Asks for a reboot. Nothing if the claim is gone, goes, or is rebooted already, or if somebody else wrote first.
pub(super) async fn request(context: &Context, wanted: &Wanted) -> Result<Option<NodeClaim>, ClaimError> {
    let name = &wanted.claim;
    let api: Api<NodeClaim> = Api::all(context.workload.clone());
    let found = api.get_opt(name).await;
    let found = found.map_err(|source| ClaimError::kube(&format!("read NodeClaim {name}"), source))?;
    let is_free = |claim: &NodeClaim| claim.metadata.deletion_timestamp.is_none() && !is_true(claim, &REBOOTING);
    let Some(claim) = found.filter(is_free) else { return Ok(None) };
    let Some(claim) = write_bound(context, claim, wanted.bound).await? else { return Ok(None) };
    ask(context, &claim, &wanted.why).await
}

/// Writes how long pods have to leave, or removes what stands there of an earlier reboot.
async fn write_bound(
    context: &Context,
    claim: NodeClaim,
    bound: Option<Duration>,
) -> Result<Option<NodeClaim>, ClaimError> {
    let (bound, _) = drain_bound(bound, &claim);
    let nanos = |bound: Duration| i64::try_from(bound.as_nanos()).unwrap_or(i64::MAX);
    let text = bound.map(|bound| GoDuration::from_nanos(nanos(bound)).to_string());
    if claim.annotations().get(names::ANNOTATION_REBOOT_GRACE_PERIOD) == text.as_ref() {
        return Ok(Some(claim));
    }
    let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_REBOOT_GRACE_PERIOD: text } } });
    let written = writes::merge(&context.workload, &claim, patch).await;
    let action = || format!("write the drain bound of NodeClaim {}", claim.name_any());
    Ok(match written.map_err(|source| ClaimError::kube(&action(), source))? {
        Written::Done(claim) => Some(*claim),
        Written::Outdated => None,
    })
}

/// Sets both conditions in one write.
async fn ask(context: &Context, claim: &NodeClaim, why: &str) -> Result<Option<NodeClaim>, ClaimError> {
    let name = claim.name_any();
    let unhealthy = tenon_model::DisruptionReason::Unhealthy;
    let why = format!("Node {name} is unhealthy ({why})");
    let going = Verdict::holds_because(condition_reason(unhealthy), why.clone());
    let wanted = Verdict::holds_because(&condition_reasons::REBOOT_REQUESTED, format!("Rebooting: {why}"));
    let present = claim.status.as_ref().and_then(|status| status.conditions.as_deref());
    let subject = subject(&claim.metadata, &context.clock.time());
    let verdicts = [(DISRUPTION_REASON.name(), &going), (REBOOTING.name(), &wanted)];
    let conditions = stated(CLAIM_CONDITIONS, present, &subject, &verdicts);
    let written = writes::merge_status(&context.workload, claim, &json!({ "conditions": conditions })).await;
    let action = || format!("ask for a reboot of NodeClaim {name}");
    Ok(match written.map_err(|source| ClaimError::kube(&action(), source))? {
        Written::Done(claim) => Some(*claim),
        Written::Outdated => None,
    })
}
