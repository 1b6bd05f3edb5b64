//! How long do pods have to leave a node that is repaired? As its policy says, or its NodeClaim if that is less.

use std::time::Duration;

use jiff::SignedDuration;
use kube::ResourceExt;
use serde_json::json;
use tenon_api::{NodeClaim, names};

use super::duration::parse_duration;
use crate::claim::{ClaimError, termination_deadline};
use crate::context::Context;
use crate::moments::after;
use crate::writes::{self, Written};

/// Who said how long pods have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BoundSource {
    /// The policy.
    Policy,
    /// `terminationGracePeriod` of the NodeClaim.
    NodeClaim,
    /// Nobody.
    None,
}

impl BoundSource {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            BoundSource::Policy => "policy",
            BoundSource::NodeClaim => "nodeclaim",
            BoundSource::None => "none",
        }
    }
}

/// The shorter of what the policy and the claim say.
pub(super) fn drain_bound(of_policy: Option<Duration>, claim: &NodeClaim) -> (Option<Duration>, BoundSource) {
    let of_claim = claim.spec.termination_grace_period.as_deref().and_then(|text| parse_duration(text).ok());
    // One that is negative is over already.
    let of_claim = of_claim.map(|grace| Duration::try_from(grace).unwrap_or_default());
    match (of_policy, of_claim) {
        (Some(policy), claim) if claim.is_none_or(|claim| policy <= claim) => (Some(policy), BoundSource::Policy),
        (_, Some(claim)) => (Some(claim), BoundSource::NodeClaim),
        (_, None) => (None, BoundSource::None),
    }
}

/// How a node is removed under a bound, as metrics have it; nothing where only its claim says.
pub(super) fn mode(of_policy: Option<Duration>, claim: &NodeClaim) -> Option<&'static str> {
    of_policy?;
    let (bound, _) = drain_bound(of_policy, claim);
    Some(if bound.is_some_and(|bound| bound.is_zero()) { "forceful" } else { "eventual" })
}

/// Writes by when pods must have left a claim that is about to be deleted, counted from now on. A time that is earlier stays. Whether
/// it may be deleted; if not, somebody else wrote first.
pub(super) async fn tighten(context: &Context, claim: &NodeClaim, of_policy: Duration) -> Result<bool, ClaimError> {
    let (bound, _) = drain_bound(Some(of_policy), claim);
    let span = SignedDuration::try_from(bound.unwrap_or(of_policy)).unwrap_or(SignedDuration::MAX);
    let by = after(context.clock.now(), span);
    if termination_deadline(claim).is_some_and(|written| written <= by) {
        return Ok(true);
    }
    let text = by.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_TERMINATION_TIMESTAMP: text } } });
    let written = writes::merge(&context.workload, claim, patch).await;
    let action = || format!("annotate NodeClaim {} with its termination time", claim.name_any());
    Ok(matches!(written.map_err(|source| ClaimError::kube(&action(), source))?, Written::Done(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(grace: Option<&str>) -> NodeClaim {
        let class = json!({ "group": "g", "kind": "k", "name": "n" });
        let spec = json!({ "requirements": [], "nodeClassRef": class, "terminationGracePeriod": grace });
        serde_json::from_value(json!({ "metadata": { "name": "a" }, "spec": spec })).unwrap()
    }

    #[test]
    fn j3_the_bound_is_the_shorter_of_policy_and_claim_and_of_nobody_there_is_none() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        for (policy, grace, expected, source, termination) in [
            (None, None, None, BoundSource::None, None),
            (None, Some("30s"), seconds(30), BoundSource::NodeClaim, None),
            (seconds(10), None, seconds(10), BoundSource::Policy, Some("eventual")),
            (seconds(10), Some("30s"), seconds(10), BoundSource::Policy, Some("eventual")),
            (seconds(60), Some("30s"), seconds(30), BoundSource::NodeClaim, Some("eventual")),
            (seconds(0), Some("30s"), seconds(0), BoundSource::Policy, Some("forceful")),
            (seconds(60), Some("0s"), seconds(0), BoundSource::NodeClaim, Some("forceful")),
        ] {
            let claim = claim(grace);
            assert_eq!(drain_bound(policy, &claim), (expected, source), "{policy:?} {grace:?}");
            assert_eq!(mode(policy, &claim), termination, "{policy:?} {grace:?}");
        }
    }
}
