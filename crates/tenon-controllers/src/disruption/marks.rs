//! The marks of a NodeClaim that is disrupted: the command in an annotation, the taint of its Node, the condition
//! `DisruptionReason`. Set in this order, and removed in the opposite one, so that the command is the last that is forgotten.

use std::sync::Arc;
use tenon_api::kube_objects::Node;

use kube::ResourceExt;
use serde_json::json;
use tenon_api::condition_reasons::DISRUPTION_REASON;
use tenon_api::{DisruptionRecord, NodeClaim, names};

use super::labels::{condition_reason, state_of};
use super::taint::{has_disrupted_taint, is_disrupted_taint_left, taint_disrupted, untaint_disrupted};
use crate::claim::{ClaimError, is_true};
use crate::context::Context;
use crate::status::{CLAIM_CONDITIONS, Verdict, stated, subject};
use crate::writes::{self, Written};

/// Writes the command on a claim. One that somebody else changed meanwhile is looked at again.
pub(super) async fn record(context: &Context, claim: &NodeClaim, record: &DisruptionRecord) -> Result<(), ClaimError> {
    let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_DISRUPTION: record.write() } } });
    let written = writes::merge(&context.workload, claim, patch).await;
    let action = || format!("write the disruption command of NodeClaim {}", claim.name_any());
    written.map(drop).map_err(|source| ClaimError::kube(&action(), source))
}

/// Notes on a replacement that the nodes it came for stay. Whether it says so; if not, it is looked at again.
pub(super) async fn note_surplus(
    context: &Context,
    claim: &NodeClaim,
    record: &DisruptionRecord,
) -> Result<bool, ClaimError> {
    if claim.annotations().contains_key(names::ANNOTATION_SURPLUS) {
        return Ok(true);
    }
    let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_SURPLUS: record.id } } });
    let written = writes::merge(&context.workload, claim, patch).await;
    let action = || format!("write annotation {} of NodeClaim {}", names::ANNOTATION_SURPLUS, claim.name_any());
    Ok(matches!(written.map_err(|source| ClaimError::kube(&action(), source))?, Written::Done(_)))
}

/// Keeps new pods off the node, and says why it goes.
pub(super) async fn mark(
    context: &Context,
    (claim, node): (&NodeClaim, Option<&Arc<Node>>),
    record: &DisruptionRecord,
) -> Result<(), ClaimError> {
    if let Some(node) = node.filter(|node| !has_disrupted_taint(node))
        && !taint_disrupted(context, node).await?
    {
        return Ok(());
    }
    if is_true(claim, &DISRUPTION_REASON) {
        return Ok(());
    }
    let name = claim.name_any();
    let verdict = Verdict::holds_because(condition_reason(record.reason), format!("Node {name} {}", state_of(record)));
    let present = claim.status.as_ref().and_then(|status| status.conditions.as_deref());
    let subject = subject(&claim.metadata, &context.clock.time());
    let conditions = stated(CLAIM_CONDITIONS, present, &subject, &[(DISRUPTION_REASON.name(), &verdict)]);
    let written = writes::merge_status(&context.workload, claim, &json!({ "conditions": conditions })).await;
    let action = || format!("write condition {} of NodeClaim {name}", DISRUPTION_REASON.name());
    written.map(drop).map_err(|source| ClaimError::kube(&action(), source))
}

/// Whether any mark is left on a claim or its node.
pub(super) fn is_marked(claim: &NodeClaim, node: Option<&Node>) -> bool {
    let is_recorded = claim.annotations().contains_key(names::ANNOTATION_DISRUPTION);
    is_recorded || has_condition(claim) || node.is_some_and(is_disrupted_taint_left)
}

fn has_condition(claim: &NodeClaim) -> bool {
    let mut conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == DISRUPTION_REASON.name())
}

/// Removes all marks. Whether none is left; if not, somebody else was faster, and it is looked at again.
pub(super) async fn unmark(context: &Context, claim: &NodeClaim, node: Option<&Node>) -> Result<bool, ClaimError> {
    if let Some(node) = node.filter(|node| is_disrupted_taint_left(node))
        && !untaint_disrupted(context, node).await?
    {
        return Ok(false);
    }
    let mut claim = claim.clone();
    if has_condition(&claim) {
        let present = claim.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
        let rest: Vec<_> =
            present.into_iter().filter(|condition| condition.type_ != DISRUPTION_REASON.name()).collect();
        let written = writes::merge_status(&context.workload, &claim, &json!({ "conditions": rest })).await;
        let action = || format!("remove condition {} of NodeClaim {}", DISRUPTION_REASON.name(), claim.name_any());
        match written.map_err(|source| ClaimError::kube(&action(), source))? {
            Written::Done(written) => claim = *written,
            Written::Outdated => return Ok(false),
        }
    }
    if !claim.annotations().contains_key(names::ANNOTATION_DISRUPTION) {
        return Ok(true);
    }
    let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_DISRUPTION: null } } });
    let written = writes::merge(&context.workload, &claim, patch).await;
    let action = || format!("remove the disruption command of NodeClaim {}", claim.name_any());
    Ok(matches!(written.map_err(|source| ClaimError::kube(&action(), source))?, Written::Done(_)))
}
