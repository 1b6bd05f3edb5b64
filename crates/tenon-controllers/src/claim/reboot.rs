//! Starts the VM of a NodeClaim again, as its condition Rebooting asks. What comes next is decided by `tenon_engine::reboot`.
//!
//! Every step can be taken twice, and which one is next is seen from NodeClaim, Node and Proxmox alone: only the time of the first
//! request to Proxmox is remembered.

use std::time::Duration;

use jiff::SignedDuration;
use kube::ResourceExt;
use serde_json::json;
use tenon_api::condition_reasons::{self, INITIALIZED, REBOOTING};
use tenon_api::kube_objects::Node;
use tenon_api::pod_predicates::pod_key;
use tenon_api::{ConditionStatus, NodeClaim, drain_pod, event_reasons, names, timestamp};
use tenon_engine::drain::plan_drain;
use tenon_engine::reboot::{
    DrainBound, ObservedReboot, RebootPhase, RebootResult, RebootStep, RebootingNode, next_step,
};
use tenon_model::{GoDuration, LaunchRecord, Timestamp};

use super::ClaimError;
use super::deletion::DeletionReason;
use super::drain::{is_ready, pods_on};
use super::evict::{self, Removal};
use super::gather::{Observed, condition};
use super::outcome::Outcome;
use super::reboot_call::{Called, call};
use super::reboot_fence::{fence, hide, is_fenced, lift_fence};
use super::termination::deadline;
use crate::context::Context;
use crate::disruption::model_time;
use crate::events::Event;
use crate::metrics::Rebooted;
use crate::moments::after;
use crate::status::Verdict;
use crate::writes::{self, Written};

/// How often a reboot is looked at while nothing wakes us. As in Karpenter.
const CHECK_EVERY: Duration = Duration::from_secs(15);

/// Pods leave, and tasks of Proxmox end, at their own pace.
const CHECK_SOON: Duration = Duration::from_secs(2);

/// The same about one reboot is said again after this long. As in Karpenter.
const REPEAT_AFTER: SignedDuration = SignedDuration::from_mins(30);

/// Whether a claim waits for a reboot, or for its end after one that failed.
pub(super) fn is_rebooting(claim: &NodeClaim) -> bool {
    is_wanted(claim) || is_given_up(claim)
}

fn is_wanted(claim: &NodeClaim) -> bool {
    condition(claim, &REBOOTING).is_some_and(|found| found.status == ConditionStatus::True)
}

/// Whether the reboot failed and the claim, which goes then, is not being deleted yet. One that could not be begun leaves no boot ID.
fn is_given_up(claim: &NodeClaim) -> bool {
    let failed = |found: &tenon_api::Condition| {
        found.status == ConditionStatus::False && found.reason == condition_reasons::REBOOT_FAILED.name()
    };
    condition(claim, &REBOOTING).is_some_and(failed) && boot_id_before(claim).is_some()
}

fn boot_id_before(claim: &NodeClaim) -> Option<&String> {
    claim.annotations().get(names::ANNOTATION_REBOOT_PRE_BOOT_ID)
}

/// One pass of a reboot.
pub(crate) async fn pass(context: &Context, observed: &Observed, record: &LaunchRecord) -> Result<Outcome, ClaimError> {
    let now = model_time(context.clock.now());
    let Some(mut seen) = look(context, observed) else { return Ok(Outcome::deleted(DeletionReason::RebootFailed)) };
    let node = observed.our_node();
    if let (true, Some(found), Some(node)) = (seen.is_draining(now), seen.node.as_mut(), node) {
        found.pods_left = ask_pods_to_leave(context, observed, node).await?;
    }
    match (next_step(&seen, now), node) {
        (RebootStep::Fence, Some(node)) => fence(context, node).await,
        (RebootStep::HideFromPods, Some(node)) => hide(context, node).await,
        (RebootStep::LiftFence, Some(node)) => {
            let note = format!("Node {} was rebooted; waiting until it is Ready", node.name_any());
            let event = Event::new(&event_reasons::REBOOT_OBSERVED, note).repeat_after(REPEAT_AFTER);
            Ok(lift_fence(context, node).await?.with_event(event))
        }
        (RebootStep::RecordBootId, Some(node)) => record_boot_id(context, observed, node).await,
        (RebootStep::Call, _) => ask_proxmox(context, observed, (record, &seen)).await,
        (RebootStep::SayIssued, _) => Ok(issued(observed)),
        (RebootStep::Succeed, node) => succeed(context, observed, (&seen, node.map(AsRef::as_ref))).await,
        (RebootStep::Fail(result), _) => fail(context, observed, (&seen, GivenUp { result, why: None })).await,
        (RebootStep::Drain, _) => Ok(Outcome::after(CHECK_SOON)),
        _ => Ok(Outcome::after(CHECK_EVERY)),
    }
}

/// What is true of the reboot; nothing if it failed and only the claim is left.
fn look(context: &Context, observed: &Observed) -> Option<ObservedReboot> {
    let claim = &observed.claim;
    let wanted = condition(claim, &REBOOTING).filter(|found| found.status == ConditionStatus::True)?;
    let is_issued = wanted.reason == condition_reasons::REBOOT_ISSUED.name();
    let away = condition(claim, &INITIALIZED).filter(|found| found.reason == condition_reasons::REBOOTING_NODE.name());
    let rebooting = |node: &Node| RebootingNode {
        boot_id: boot_id(node).unwrap_or_default(),
        is_ready: is_ready(node),
        is_fenced: is_fenced(node),
        is_initialized: node.labels().get(names::LABEL_INITIALIZED).is_some_and(|value| value == "true"),
        pods_left: 0,
    };
    Some(ObservedReboot {
        phase: if is_issued { RebootPhase::Issued } else { RebootPhase::Requested },
        requested_at: timestamp(&wanted.last_transition_time),
        bound: drain_bound(claim),
        boot_id_before: boot_id_before(claim).cloned(),
        called_at: context.memory.reboots.called_at(&claim.uid().unwrap_or_default()),
        away_since: away.map(|found| timestamp(&found.last_transition_time)),
        node: observed.our_node().map(|node| rebooting(node)),
    })
}

fn boot_id(node: &Node) -> Option<String> {
    Some(node.status.as_ref()?.node_info.as_ref()?.boot_id.clone())
}

/// How long pods have to leave, as whoever asked for the reboot wrote it.
fn drain_bound(claim: &NodeClaim) -> DrainBound {
    let Some(text) = claim.annotations().get(names::ANNOTATION_REBOOT_GRACE_PERIOD) else { return DrainBound::None };
    let nanos = text.parse::<GoDuration>().ok().and_then(|duration| u64::try_from(duration.as_nanos()).ok());
    nanos.map_or(DrainBound::Invalid, |nanos| DrainBound::Within(Duration::from_nanos(nanos)))
}

/// Evicts pods in the order of a drain, and deletes none. How many have not left.
async fn ask_pods_to_leave(context: &Context, observed: &Observed, node: &Node) -> Result<usize, ClaimError> {
    let now = model_time(context.clock.now());
    let pods = pods_on(context, node).await?;
    let drain_pods: Vec<_> = pods.iter().map(|pod| drain_pod(pod, now)).collect();
    let plan = plan_drain(&drain_pods, None, now);
    let removal = Removal::for_reboot(observed.claim.name_any());
    for key in plan.evict.iter().filter(|key| context.memory.evictions.wait(key).is_none()) {
        let Some(pod) = pods.iter().find(|pod| **pod_key(pod) == *key) else { continue };
        if let Some(refused) = evict::evict_pod(context, pod, &removal).await? {
            context.events.publish(node, &refused.event).await;
        }
    }
    Ok(plan.remaining)
}

async fn record_boot_id(context: &Context, observed: &Observed, node: &Node) -> Result<Outcome, ClaimError> {
    let annotations = json!({ names::ANNOTATION_REBOOT_PRE_BOOT_ID: boot_id(node) });
    let patch = json!({ "metadata": { "annotations": annotations } });
    let written = writes::merge(&context.workload, &observed.claim, patch).await;
    Ok(match written.map_err(|source| ClaimError::kube("write down the boot ID of the Node", source))? {
        Written::Done(_) => Outcome::again(),
        Written::Outdated => Outcome::outdated(),
    })
}

async fn ask_proxmox(
    context: &Context,
    observed: &Observed,
    (record, seen): (&LaunchRecord, &ObservedReboot),
) -> Result<Outcome, ClaimError> {
    let uid = observed.claim.uid().unwrap_or_default();
    context.memory.reboots.call(&uid, model_time(context.clock.now()));
    Ok(match call(context, observed, (record, seen.requested_at)).await? {
        Called::Waiting => Outcome::after(CHECK_SOON),
        Called::Done => issued(observed),
        Called::Impossible(why) => {
            fail(context, observed, (seen, GivenUp { result: RebootResult::ProviderError, why: Some(why) })).await?
        }
    })
}

/// Says that Proxmox did it, and that the node takes no pods until it is back. When it was asked for stays.
fn issued(observed: &Observed) -> Outcome {
    let message = condition(&observed.claim, &REBOOTING).map(|found| found.message.clone()).unwrap_or_default();
    let note = format!("Node {} is being rebooted", observed.claim.name_any());
    Outcome::again()
        .with_condition(&REBOOTING, Verdict::holds_because(&condition_reasons::REBOOT_ISSUED, message))
        .with_condition(&INITIALIZED, Verdict::unknown(&condition_reasons::REBOOTING_NODE, note))
}

/// The node is back: the record of its boot ID goes, and the claim is initialized like a new one.
async fn succeed(
    context: &Context,
    observed: &Observed,
    (seen, node): (&ObservedReboot, Option<&Node>),
) -> Result<Outcome, ClaimError> {
    let name = observed.claim.name_any();
    if let Some(node) = node.filter(|node| is_fenced(node)) {
        return lift_fence(context, node).await;
    }
    let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_REBOOT_PRE_BOOT_ID: null } } });
    let written = writes::merge(&context.workload, &observed.claim, patch).await;
    let written = written.map_err(|source| ClaimError::kube("remove the boot ID from the NodeClaim", source))?;
    let Written::Done(claim) = written else { return Ok(Outcome::outdated()) };
    // If it was removed before, it was counted then.
    if seen.boot_id_before.is_some() {
        count(context, seen, RebootResult::Succeeded);
    }
    context.memory.reboots.forget(&observed.claim.uid().unwrap_or_default());
    tracing::info!(claim = name, "rebooted Node");
    let verdict = Verdict::fails(&condition_reasons::REBOOT_SUCCEEDED, format!("Node {name} was rebooted"));
    Ok(Outcome { claim: Some(claim), ..Outcome::again() }.with_condition(&REBOOTING, verdict))
}

/// How a reboot ended that failed, and why if that is not always the same.
struct GivenUp {
    result: RebootResult,
    why: Option<String>,
}

/// The reboot is given up. If it could not be begun the node stays; otherwise its claim goes.
async fn fail(
    context: &Context,
    observed: &Observed,
    (seen, given_up): (&ObservedReboot, GivenUp),
) -> Result<Outcome, ClaimError> {
    // In the same pass, which would otherwise begin with the fence again. Both can be done twice.
    if let Some(node) = observed.our_node().filter(|node| is_fenced(node)) {
        lift_fence(context, node).await?;
    }
    let result = given_up.result;
    let is_kept = result == RebootResult::InvalidRequest;
    let boot_id = seen.boot_id_before.as_ref().filter(|_| !is_kept);
    let mut annotations = json!({ names::ANNOTATION_REBOOT_PRE_BOOT_ID: boot_id });
    if let Some(by) = tightened(context, observed, seen).filter(|_| !is_kept) {
        annotations[names::ANNOTATION_TERMINATION_TIMESTAMP] = json!(by);
    }
    let patch = json!({ "metadata": { "annotations": annotations } });
    let written = writes::merge(&context.workload, &observed.claim, patch).await;
    let written = written.map_err(|source| ClaimError::kube("annotate the NodeClaim", source))?;
    let Written::Done(claim) = written else { return Ok(Outcome::outdated()) };
    count(context, seen, result);
    context.memory.reboots.forget(&observed.claim.uid().unwrap_or_default());
    let note = failure(&observed.claim.name_any(), given_up);
    tracing::warn!(claim = observed.claim.name_any(), result = result.as_str(), "{note}");
    let event = Event::new(&event_reasons::REBOOT_FAILED, note.clone()).repeat_after(REPEAT_AFTER);
    let outcome = if is_kept { Outcome::again() } else { Outcome::deleted(DeletionReason::RebootFailed) };
    Ok(Outcome { claim: Some(claim), ..outcome }
        .with_condition(&REBOOTING, Verdict::fails(&condition_reasons::REBOOT_FAILED, note))
        .with_event(event))
}

fn failure(node: &str, GivenUp { result, why }: GivenUp) -> String {
    let why = why.unwrap_or_else(|| match result {
        RebootResult::InvalidRequest => format!(
            "annotation {} is not a duration of zero or more; correct or remove it",
            names::ANNOTATION_REBOOT_GRACE_PERIOD
        ),
        RebootResult::RecoveryTimeout => "the Node was not Ready with a new boot ID in time".to_owned(),
        RebootResult::ProviderError | RebootResult::Succeeded => "Proxmox did not reboot the VM in time".to_owned(),
    });
    let then = if result == RebootResult::InvalidRequest { "" } else { "; deleting the NodeClaim" };
    format!("Cannot reboot Node {node}: {why}{then}")
}

/// By when pods must have left a node that is given up, if that is earlier than what is written.
fn tightened(context: &Context, observed: &Observed, seen: &ObservedReboot) -> Option<String> {
    let DrainBound::Within(bound) = seen.bound else { return None };
    let by = after(context.clock.now(), SignedDuration::try_from(bound).unwrap_or(SignedDuration::MAX));
    let is_earlier = deadline(&observed.claim).is_none_or(|written| by < written);
    is_earlier.then(|| by.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

#[expect(clippy::cast_precision_loss, reason = "seconds of a day are exact enough")]
fn count(context: &Context, seen: &ObservedReboot, result: RebootResult) {
    let now = model_time(context.clock.now());
    let seconds = |since: Timestamp| now.nanos_since(since).max(0) as f64 / 1e9;
    let of = Rebooted { result: result.as_str() };
    context.metrics.reboots.get_or_create(&of).inc();
    context.metrics.reboot_duration.get_or_create(&of).observe(seconds(seen.requested_at));
    if let (RebootResult::Succeeded, Some(away_since)) = (result, seen.away_since) {
        context.metrics.reboot_recovery.get_or_create(&()).observe(seconds(away_since));
    }
}
