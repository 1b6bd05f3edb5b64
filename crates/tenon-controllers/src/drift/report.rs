//! How drift is reported: a condition of the claim, and an event when that is new.

use serde_json::json;
use tenon_api::drift::{DRIFTED, Drift, DriftStatus};
use tenon_api::{Condition, ConditionStatus, NodeClaim, event_reasons};

use super::writer::Writer;
use crate::context::Context;
use crate::events::Event;
use crate::status::{CLAIM_CONDITIONS, Verdict, stated, subject};

/// Makes the condition of a claim say what is true, and tells its owner if that is new.
pub(super) async fn report(context: &Context, writer: &mut Writer<'_>, claim: &NodeClaim, standing: &DriftStatus) {
    let present = claim.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let told = present.iter().find(|condition| condition.type_ == DRIFTED);
    let Some(conditions) = changed(context, claim, &present, standing) else { return };
    let is_written = writer.state(claim, json!(conditions)).await.is_some();
    let is_new = |drift: &Drift| told.is_none_or(|told| told.reason != drift.reason.as_str());
    if let DriftStatus::Drifted(drift) = standing
        && is_written
        && is_new(drift)
    {
        let note = format!("{}: {}", drift.reason, drift.message);
        context.events.publish(claim, &Event::new(&event_reasons::DRIFTED, note)).await;
    }
}

/// The conditions as they should be, if they are not.
fn changed(
    context: &Context,
    claim: &NodeClaim,
    present: &[Condition],
    standing: &DriftStatus,
) -> Option<Vec<Condition>> {
    let told = present.iter().find(|condition| condition.type_ == DRIFTED);
    match (standing, told) {
        (DriftStatus::AsBefore, _) | (DriftStatus::Current, None) => None,
        (DriftStatus::Current, Some(_)) => {
            Some(present.iter().filter(|condition| condition.type_ != DRIFTED).cloned().collect())
        }
        (DriftStatus::Drifted(drift), told) => {
            let Drift { reason, message } = drift;
            let generation = claim.metadata.generation;
            let stands = told.is_some_and(|told| {
                let is_said = told.status == ConditionStatus::True && told.observed_generation == generation;
                is_said && told.reason == reason.as_str() && told.message == *message
            });
            let verdict = Verdict::holds_because(reason.row(), message.clone());
            let subject = subject(&claim.metadata, &context.clock.time());
            (!stands).then(|| stated(CLAIM_CONDITIONS, Some(present), &subject, &[(DRIFTED, &verdict)]))
        }
    }
}
