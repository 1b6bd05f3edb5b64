//! Deletes a claim for a reason of ours: remembered for messages, counted in the metric of disrupted claims.

use std::fmt;

use kube::ResourceExt;
use kube::api::Api;
use kube::runtime::reflector::ObjectRef;
use tenon_api::pod_predicates::{bound_to, is_reschedulable};
use tenon_api::{ConsolidationPolicy, NodeClaim, names};

use super::ClaimError;
use crate::context::Context;
use crate::disruption::parse_duration;
use crate::metrics::{Attempt, Disrupted, ProviderError};
use crate::writes;

/// Why we delete a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeletionReason {
    Drifted,
    Empty,
    Expired,
    InsufficientCapacity,
    LaunchTimeout,
    NodeClassNotReady,
    RegistrationTimeout,
    VmNotFound,
    VmStopped,
    Unhealthy,
    RebootFailed,
    NodeDeleted,
    TooManyReplicas,
    Underutilized,
}

impl DeletionReason {
    /// The label `reason` of the metric of disrupted claims, in the reference's words; nothing where it is not counted there.
    fn label(self) -> Option<&'static str> {
        match self {
            DeletionReason::Drifted => Some("drifted"),
            DeletionReason::Empty => Some("empty"),
            DeletionReason::Expired => Some("expired"),
            DeletionReason::InsufficientCapacity => Some("insufficient_capacity"),
            DeletionReason::LaunchTimeout => Some("launch_timeout"),
            DeletionReason::NodeClassNotReady => Some("nodeclass_not_ready"),
            DeletionReason::RegistrationTimeout => Some("registration_timeout"),
            DeletionReason::Underutilized => Some("underutilized"),
            DeletionReason::VmNotFound => Some("garbage_collected"),
            DeletionReason::VmStopped | DeletionReason::Unhealthy => Some("unhealthy"),
            // It was counted when the reboot was asked for.
            DeletionReason::NodeDeleted | DeletionReason::RebootFailed | DeletionReason::TooManyReplicas => None,
        }
    }
}

impl fmt::Display for DeletionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DeletionReason::Drifted => "drifted",
            DeletionReason::Empty => "empty",
            DeletionReason::Expired => "older than expireAfter",
            DeletionReason::InsufficientCapacity => "its VM could not be created",
            DeletionReason::LaunchTimeout => "its VM was not launched in time",
            DeletionReason::NodeClassNotReady => "its ProxmoxNodeClass is not Ready",
            DeletionReason::RegistrationTimeout => "did not register in time",
            DeletionReason::VmNotFound => "its VM no longer exists",
            DeletionReason::VmStopped => "its VM stopped before the Node joined",
            DeletionReason::Unhealthy => "unhealthy",
            DeletionReason::RebootFailed => "its VM could not be rebooted",
            DeletionReason::NodeDeleted => "the Node was deleted",
            DeletionReason::TooManyReplicas => "more Nodes than spec.replicas",
            DeletionReason::Underutilized => "underutilized",
        })
    }
}

/// Deletes a claim. The reason is remembered before: the claim's own pass may run before the answer is here.
pub(crate) async fn delete_claim(
    context: &Context,
    claim: &NodeClaim,
    reason: DeletionReason,
) -> Result<(), ClaimError> {
    let name = claim.name_any();
    context.memory.deleting(&name, reason);
    let api: Api<NodeClaim> = Api::all(context.workload.clone());
    if let Err(source) = writes::delete(&api, claim).await {
        context.memory.not_deleted(&name);
        return Err(ClaimError::kube(&format!("delete NodeClaim {name}"), source));
    }
    if reason == DeletionReason::NodeClassNotReady {
        let pool = claim.labels().get(names::LABEL_NODEPOOL).map(String::as_str).unwrap_or_default();
        context.metrics.not_provided(Attempt::Create, ProviderError::NodeClassNotReady, pool);
    }
    if let Some(label) = reason.label() {
        count_disrupted(context, claim, label);
    }
    Ok(())
}

/// How long pods have to leave: as long as they need, not at all, or until the termination grace period ends.
pub(crate) fn termination_mode(claim: &NodeClaim) -> &'static str {
    let grace = claim.spec.termination_grace_period.as_deref().map(parse_duration);
    match grace {
        None => "graceful",
        Some(Ok(grace)) if !grace.is_positive() => "forceful",
        Some(_) => "eventual",
    }
}

/// The policy of the claim's pool, in the reference's words, where consolidation deletes it.
fn consolidation_policy(context: &Context, claim: &NodeClaim, reason: &str) -> &'static str {
    let pool = claim.labels().get(names::LABEL_NODEPOOL).filter(|_| matches!(reason, "empty" | "underutilized"));
    let pool = pool.and_then(|name| context.watched.pools.get(&ObjectRef::new(name)));
    match pool.map(|pool| pool.spec.disruption.consolidation_policy) {
        None => "",
        Some(ConsolidationPolicy::WhenEmpty) => "when_empty",
        Some(ConsolidationPolicy::WhenEmptyOrUnderutilized) => "when_empty_or_underutilized",
        Some(ConsolidationPolicy::Balanced) => "balanced",
    }
}

/// A claim was disrupted, for a reason in the words of the reference.
pub(crate) fn count_disrupted(context: &Context, claim: &NodeClaim, reason: &str) {
    let label = |name: &str| claim.labels().get(name).cloned().unwrap_or_default();
    let mode = termination_mode(claim);
    let of = Disrupted {
        reason: reason.to_owned(),
        nodepool: label(names::LABEL_NODEPOOL),
        capacity_type: label(names::LABEL_CAPACITY_TYPE),
        consolidation_policy: consolidation_policy(context, claim, reason).to_owned(),
        termination_mode: mode.to_owned(),
    };
    context.metrics.claims_disrupted.get_or_create(&of).inc();
    let name = claim.name_any();
    let pods = context.watched.pods.state_filter(|pod| bound_to(pod) == Some(&name) && is_reschedulable(pod));
    context.metrics.pods_disrupted.get_or_create(&of).inc_by(pods.len());
}
