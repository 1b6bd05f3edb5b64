//! Writes the condition `Consolidatable` of NodeClaims: true once `consolidateAfter` has passed without pod events.

use kube::ResourceExt;
use serde_json::json;
use tenon_api::{NodeClaim, condition_reasons};
use tenon_engine::disruption::Consolidatable;

use crate::claim::ClaimError;
use crate::context::Context;
use crate::status::{CLAIM_CONDITIONS, Verdict, stated, subject};
use crate::writes;

/// The condition of claims whose node had no pod events for as long as its NodePool wants.
const CONSOLIDATABLE: &str = condition_reasons::CONSOLIDATABLE.name();

/// Makes the condition say what is true.
pub(super) async fn write_consolidatable(
    context: &Context,
    claim: &NodeClaim,
    consolidatable: Consolidatable,
) -> Result<(), ClaimError> {
    let present = claim.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
    let is_present = present.iter().any(|condition| condition.type_ == CONSOLIDATABLE);
    let is_true = consolidatable == Consolidatable::True;
    if is_present == is_true {
        return Ok(());
    }
    let conditions = if is_true {
        let verdict = Verdict::holds(&condition_reasons::CONSOLIDATABLE);
        let subject = subject(&claim.metadata, &context.clock.time());
        stated(CLAIM_CONDITIONS, Some(&present), &subject, &[(CONSOLIDATABLE, &verdict)])
    } else {
        present.into_iter().filter(|condition| condition.type_ != CONSOLIDATABLE).collect()
    };
    let written = writes::merge_status(&context.workload, claim, &json!({ "conditions": conditions })).await;
    let action = || format!("write condition {CONSOLIDATABLE} of NodeClaim {}", claim.name_any());
    written.map(drop).map_err(|source| ClaimError::kube(&action(), source))
}
