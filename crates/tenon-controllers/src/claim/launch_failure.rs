//! How a launch ends without a VM: at once, or after it stood still for too long.

use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use tenon_api::{NodeClaim, condition_reasons, event_reasons, names};
use tenon_model::{LaunchRecord, LaunchStep, VmId};

use super::deletion::DeletionReason;
use super::outcome::Outcome;
use super::{ClaimError, bound_cpus, registration_health};
use crate::context::Context;
use crate::events::Event;
use crate::metrics::{Attempt, ProviderError};
use crate::provision::{LaunchSpot, record_of};
use crate::status::Verdict;

/// Why a launch ends without a VM.
pub(super) struct Failed {
    why: String,
    reason: DeletionReason,
}

impl Failed {
    pub(super) fn now(why: impl Into<String>) -> Failed {
        let why = bound_cpus::with_advice(why.into());
        Failed { why, reason: DeletionReason::InsufficientCapacity }
    }

    pub(super) fn timed_out(why: String) -> Failed {
        Failed { why, reason: DeletionReason::LaunchTimeout }
    }
}

/// The claim is deleted; the pods it was created for are planned again.
pub(super) async fn give_up(
    context: &Context,
    claim: &NodeClaim,
    record: &LaunchRecord,
    failed: &Failed,
) -> Result<Outcome, ClaimError> {
    let (host, why) = (record.host(), failed.why.trim_end_matches('.'));
    let message =
        format!("Cannot create a node on host {host}: {why}. Its pods are planned again, on other hosts first");
    let reason = match failed.reason {
        // What it waited for all the time.
        DeletionReason::LaunchTimeout => registration_health::launch_reason(claim),
        _ => &condition_reasons::LAUNCH_FAILED,
    };
    registration_health::failed(context, claim, reason, &message).await?;
    let pool = claim.labels().get(names::LABEL_NODEPOOL).map(String::as_str).unwrap_or_default();
    context.metrics.not_provided(Attempt::Create, ProviderError::InsufficientCapacity, pool);
    let verdict = Verdict::unknown(reason, message.clone());
    Ok(Outcome { pod_events: vec![Event::insufficient_capacity(message.clone())], ..Outcome::deleted(failed.reason) }
        .with_condition(&condition_reasons::LAUNCHED, verdict)
        .with_event(Event::new(&event_reasons::INSUFFICIENT_CAPACITY, message)))
}

/// Ends a launch that stands still for too long because every pass fails; nothing if it may still be retried.
pub(crate) async fn time_out(
    context: &Context,
    claim: &NodeClaim,
    error: &ClaimError,
) -> Option<Result<Outcome, ClaimError>> {
    let is_launching = |record: &LaunchRecord| record.step != LaunchStep::Launched;
    let record = record_of(claim).filter(is_launching).filter(|_| claim.metadata.deletion_timestamp.is_none())?;
    context.memory.blocked(&claim.name_any(), context.clock.now());
    if !context.launch_time(claim).is_stalled(&record) {
        return None;
    }
    let class = context.watched.classes.get(&ObjectRef::new(&claim.spec.node_class_ref.name));
    let why = error.full_message();
    if let (ClaimError::Pve(_), Some(class)) = (error, class) {
        context.memory.avoid(&LaunchSpot::of(&class, &record.place), &why, context.clock.now());
    }
    Some(give_up(context, claim, &record, &Failed::timed_out(why)).await)
}

/// What an operator is told about a clone that was interrupted.
pub(crate) fn incomplete_clone(record: &LaunchRecord, vmid: VmId, why: &str) -> Event {
    let host = record.host();
    let note = format!(
        "VM {vmid} on host {host} is an incomplete clone ({why}) and cannot be removed with an API token; on {host} run: qm \
         config {vmid}. If it shows lock: clone, run: qm unlock {vmid} && qm destroy {vmid} --purge \
         --destroy-unreferenced-disks 1"
    );
    Event::new(&event_reasons::INCOMPLETE_CLONE, note)
}
