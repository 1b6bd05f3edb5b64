//! Termination: the node is deleted first, then drained, then the VM with all that belongs to it, and the claim last.

use std::time::Duration;
use tenon_api::kube_objects::Node;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::Api;
use kube::runtime::reflector::ObjectRef;
use serde_json::json;
use tenon_api::condition_reasons::{self, ConditionType, INSTANCE_TERMINATING};
use tenon_api::{ConditionStatus, NodeClaim, event_reasons, names};
use tenon_engine::claim::DeletionCause;
use tenon_engine::launch::{ObservedVm, words_of};
use tenon_model::{LaunchRecord, LaunchStep, Seconds, VmId};

use super::deletion::DeletionReason;
use super::gather::{Observed, is_true};
use super::launch_failure::incomplete_clone;
use super::observe::{self, VmObservation};
use super::outcome::Outcome;
use super::release::{PowerOff, ReleasePass, SeedLeft, release};
use super::seed_file::{attached, delete_file, seed_file};
use super::{ClaimError, drain, end_counts, late_node, registration_health, token};
use crate::context::Context;
use crate::disruption::{offline_host, parse_duration};
use crate::events::Event;
use crate::metrics::{DrainedNode, OfNode, Terminated};
use crate::moments::after;
use crate::status::Verdict;
use crate::writes::{self, Written};

/// What is under way ends soon.
const LOOK_SOON: Duration = Duration::from_secs(1);
/// What may take a while is looked at this often.
const LOOK_LATER: Duration = Duration::from_secs(5);
/// What an operator has to mend is looked at this often.
const LOOK_RARELY: Duration = Duration::from_secs(30);
/// A clone that is still locked this long after its claim was deleted was interrupted.
const INCOMPLETE_AFTER_S: i64 = 600;
/// A storage that does not answer is asked to delete a seed for this long; then the claim goes without it.
const SEED_AFTER_S: i64 = 600;
/// A lock that is held this long is worth an event.
const REPORT_AFTER_S: i64 = 30;

/// Deletes a claim whose node did not register, was deleted, or is too old.
pub(crate) async fn delete(
    context: &Context,
    observed: &Observed,
    cause: DeletionCause,
) -> Result<Outcome, ClaimError> {
    let claim = &observed.claim;
    let name = claim.name_any();
    match cause {
        DeletionCause::NodeDeleted => {
            let note = format!("Deleting NodeClaim {name} and its VM: Node {name} was deleted");
            let event = Event::new(&event_reasons::NODE_DELETED, note);
            Ok(Outcome::deleted(DeletionReason::NodeDeleted).with_event(event))
        }
        DeletionCause::Expired => {
            let note = format!("Deleting NodeClaim {name}: older than expireAfter {}", claim.spec.expire_after);
            Ok(Outcome::deleted(DeletionReason::Expired).with_event(Event::new(&event_reasons::EXPIRED, note)))
        }
        DeletionCause::NotRegistered => {
            let note = format!(
                "Node {name} did not register within {} of the start of its VM; {}",
                words_of(observed.state.register_within_s),
                late_node::last_diagnosis(claim)
            );
            registration_health::failed(context, claim, &condition_reasons::REGISTRATION_FAILED, &note).await?;
            let event = Event::new(&event_reasons::REGISTRATION_FAILED, note);
            Ok(Outcome::deleted(DeletionReason::RegistrationTimeout).with_event(event))
        }
    }
}

/// Writes down by when pods must have left, then deletes the node, which its finalizer holds.
pub(crate) async fn delete_node(context: &Context, observed: &Observed) -> Result<Outcome, ClaimError> {
    if let Some(outcome) = set_deadline(context, &observed.claim).await? {
        return Ok(outcome);
    }
    let Some(node) = observed.our_node() else { return Ok(Outcome::again()) };
    let api: Api<Node> = Api::all(context.workload.clone());
    writes::delete(&api, node.as_ref()).await.map_err(|source| ClaimError::kube("delete the Node", source))?;
    let reason = context.memory.deletion_reason(&observed.claim.name_any());
    let reason = reason.map_or_else(|| "its NodeClaim was deleted".to_owned(), |reason| reason.to_string());
    tracing::info!(claim = observed.claim.name_any(), node = node.name_any(), reason, "deleting and draining Node");
    // The store shows it in a moment, and wakes us then.
    Ok(Outcome::after(LOOK_SOON))
}

/// Drains the node. Whoever deleted it may have deleted the node only, so the deadline is written down here, too.
pub(crate) async fn drain_node(context: &Context, observed: &Observed) -> Result<Outcome, ClaimError> {
    if let Some(outcome) = set_deadline(context, &observed.claim).await? {
        return Ok(outcome);
    }
    let outcome = drain::pass(context, observed).await?;
    let is_drained = |(condition, verdict): &(&ConditionType, Verdict)| {
        condition.name() == condition_reasons::DRAINED.name() && verdict.status() == ConditionStatus::True
    };
    if outcome.conditions.iter().any(is_drained) {
        let nodepool = label(&observed.claim, names::LABEL_NODEPOOL);
        context.metrics.nodes_drained.get_or_create(&DrainedNode { nodepool }).inc();
    }
    Ok(outcome)
}

async fn set_deadline(context: &Context, claim: &NodeClaim) -> Result<Option<Outcome>, ClaimError> {
    let grace = claim.spec.termination_grace_period.as_deref().and_then(|text| parse_duration(text).ok());
    let (Some(grace), Some(since), None) = (grace, &claim.metadata.deletion_timestamp, deadline(claim)) else {
        return Ok(None);
    };
    let by = after(since.0, grace);
    let by = by.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_TERMINATION_TIMESTAMP: by } } });
    let written = writes::merge(&context.workload, claim, patch).await;
    let written =
        written.map_err(|source| ClaimError::kube("annotate the NodeClaim with its termination time", source))?;
    let event = Event::new(
        &event_reasons::TERMINATION_GRACE_PERIOD_EXPIRING,
        format!("All pods on Node {} are deleted by {by} (terminationGracePeriod)", claim.name_any()),
    );
    Ok(Some(match written {
        Written::Done(claim) => Outcome { claim: Some(claim), ..Outcome::again() }.with_event(event),
        Written::Outdated => Outcome::outdated(),
    }))
}

/// By when pods must have left, if there is a limit.
pub(crate) fn deadline(claim: &NodeClaim) -> Option<Timestamp> {
    claim.annotations().get(names::ANNOTATION_TERMINATION_TIMESTAMP)?.parse().ok()
}

/// Destroys the VM, and then deletes everything else.
pub(crate) async fn release_vm(
    context: &Context,
    observed: &Observed,
    record: &LaunchRecord,
) -> Result<Outcome, ClaimError> {
    let claim = &observed.claim;
    let pve = match context.region(&record.place.region) {
        Ok(pve) => pve,
        Err(why) => return Ok(refused(claim, &why)),
    };
    // Whatever keeps the VM, nobody joins with its token any more. A token that cannot be deleted does not keep the VM: it is
    // tried again at the end.
    let _ = token::delete(context, claim).await;
    match release(&pve, &context.owner(claim), record, power_off(context, claim)).await? {
        ReleasePass::Again => Ok(terminating(Duration::ZERO)),
        ReleasePass::Wait(_) if is_interrupted(context, observed, record) => abandon(context, observed, record).await,
        ReleasePass::Wait(why) => {
            let listing = context.regions.polled(&record.place.region).await;
            match listing.and_then(|listing| offline_host(&listing, record)) {
                Some(host) => Ok(waiting_for_host(claim, record, &host)),
                None => Ok(waiting(waited_s(context, observed, record), record, &why)),
            }
        }
        ReleasePass::Hidden if is_interrupted(context, observed, record) => abandon(context, observed, record).await,
        ReleasePass::Hidden => Ok(terminating(LOOK_LATER)),
        ReleasePass::Locked(lock) => locked(context, observed, record, &lock).await,
        ReleasePass::Refuse(why) => Ok(refused(claim, &why)),
        ReleasePass::Unreadable => Ok(unreadable(claim, record)),
        ReleasePass::SeedLeft(left) if left.may_help && waited_s(context, observed, record) <= SEED_AFTER_S => {
            Ok(terminating(LOOK_LATER).with_event(seed_left(&left)))
        }
        ReleasePass::SeedLeft(left) => {
            publish_on_pool(context, claim, &seed_left(&left)).await;
            finish(context, observed, Some(record)).await
        }
        ReleasePass::Released => finish(context, observed, Some(record)).await,
    }
}

/// A guest that was a node may have data to write; one that never joined has none.
fn power_off(context: &Context, claim: &NodeClaim) -> PowerOff {
    let within = context.settings.shutdown_within;
    if is_true(claim, &condition_reasons::REGISTERED) && !within.is_zero() {
        PowerOff::ShutDown(within)
    } else {
        PowerOff::Stop
    }
}

/// How long the VM is about to go already, counted from the last thing that went forward.
fn waited_s(context: &Context, observed: &Observed, record: &LaunchRecord) -> i64 {
    let since = observed.state.deleting_since.unwrap_or(Seconds(i64::MAX));
    context.clock.seconds().since(since.max(record.last_progress_at))
}

/// Whether a clone that cannot be read was interrupted: nothing of ours that runs takes this long to be stopped.
fn is_interrupted(context: &Context, observed: &Observed, record: &LaunchRecord) -> bool {
    record.step == LaunchStep::Clone && waited_s(context, observed, record) > INCOMPLETE_AFTER_S
}

/// Leaves an incomplete clone to its operator. Should its task end after all, its VM is an orphan and is collected.
async fn abandon(context: &Context, observed: &Observed, record: &LaunchRecord) -> Result<Outcome, ClaimError> {
    let event = incomplete_clone(record, record.vmid, "its NodeClaim was deleted");
    publish_on_pool(context, &observed.claim, &event).await;
    finish(context, observed, Some(record)).await
}

/// What is said about a seed that could not be deleted.
pub(crate) fn seed_left(left: &SeedLeft) -> Event {
    let note = format!("Cannot delete seed image {}: {}", left.volume, left.why);
    Event::new(&event_reasons::SEED_NOT_DELETED, note)
}

/// Deletes the claim without touching its VM, because its operator asked for that. Its seed goes, if no VM needs it to boot.
pub(crate) async fn release_without_vm(
    context: &Context,
    observed: &Observed,
    record: Option<&LaunchRecord>,
) -> Result<Outcome, ClaimError> {
    let owner = context.owner(&observed.claim);
    let site = record.and_then(|record| Some((context.region(&record.place.region).ok()?, record)));
    if let Some((pve, record)) = site
        && let Some(seed) = seed_file(&owner, record)
    {
        // The VM is its operator's now: an image in its drive stays there, or the VM would not start again.
        let is_loose = match observe::vm(&pve, &owner, record).await {
            Ok(VmObservation { proven: Some(vm), .. }) => attached(vm.config()).as_ref() != Some(&seed.volume),
            Ok(VmObservation { vm: ObservedVm::Absent | ObservedVm::Foreign(_), .. }) => true,
            Ok(_) | Err(_) => false,
        };
        let why = format!(
            "it may be in the drive of VM {}, which is left alone; eject the image before you delete it",
            record.vmid
        );
        let left = SeedLeft { volume: seed.volume.clone(), why, may_help: false };
        let deleted = if is_loose { delete_file(&pve, record.host(), &seed.volume).await } else { Err(left) };
        if let Err(left) = deleted {
            publish_on_pool(context, &observed.claim, &seed_left(&left)).await;
        }
    }
    finish(context, observed, record).await
}

fn terminating(wait: Duration) -> Outcome {
    Outcome::after(wait).with_condition(&INSTANCE_TERMINATING, Verdict::holds(&INSTANCE_TERMINATING))
}

/// Something is under way, or a host does not answer. Soon it is said what, and looked at less often.
fn waiting(waited_s: i64, record: &LaunchRecord, why: &str) -> Outcome {
    if waited_s <= REPORT_AFTER_S {
        return terminating(LOOK_SOON);
    }
    let note = format!("Cannot destroy VM {} on host {} yet: {why}; retrying", record.vmid, record.host());
    terminating(LOOK_RARELY).with_event(Event::new(&event_reasons::FAILED_TERMINATION, note))
}

/// The host of the VM is off: nothing is done until it is back, or is no part of its cluster any more.
fn waiting_for_host(claim: &NodeClaim, record: &LaunchRecord, host: &str) -> Outcome {
    let message = format!(
        "Cannot destroy VM {} of NodeClaim {}: host {host} is offline; the VM is destroyed when the host is back. If the host \
         is gone for good, remove it from the Proxmox cluster",
        record.vmid,
        claim.name_any()
    );
    Outcome::after(LOOK_RARELY)
        .with_condition(
            &INSTANCE_TERMINATING,
            Verdict::holds_because(&condition_reasons::HOST_OFFLINE, message.clone()),
        )
        .with_event(Event::new(&event_reasons::FAILED_TERMINATION, message))
}

/// The API token may not read the VM any more: it may be ours still.
fn unreadable(claim: &NodeClaim, record: &LaunchRecord) -> Outcome {
    let message = format!(
        "Cannot delete NodeClaim {}: the API token cannot read VM {} any more; put the VM back into its resource pool, or \
         grant VM.Audit on it. No VM was changed",
        claim.name_any(),
        record.vmid
    );
    Outcome::after(LOOK_RARELY)
        .with_condition(&INSTANCE_TERMINATING, Verdict::fails(&condition_reasons::NOT_PROVEN_OURS, message.clone()))
        .with_event(Event::new(&event_reasons::FAILED_TERMINATION, message))
}

/// The VM under our id is not proven to be ours.
fn refused(claim: &NodeClaim, why: &str) -> Outcome {
    let message = format!(
        "Cannot delete NodeClaim {}: {why}; no VM was changed. If its own VM no longer exists, set annotation {}=true on \
         the NodeClaim",
        claim.name_any(),
        names::ANNOTATION_SKIP_VM_DELETION
    );
    Outcome::after(LOOK_RARELY)
        .with_condition(&INSTANCE_TERMINATING, Verdict::fails(&condition_reasons::NOT_PROVEN_OURS, message.clone()))
        .with_event(Event::new(&event_reasons::FAILED_TERMINATION, message))
}

/// A task holds the VM's lock; or none does any more, and it is an incomplete clone that only an operator can remove.
async fn locked(
    context: &Context,
    observed: &Observed,
    record: &LaunchRecord,
    lock: &str,
) -> Result<Outcome, ClaimError> {
    let waited = waited_s(context, observed, record);
    if matches!(lock, "clone" | "create") && waited > INCOMPLETE_AFTER_S {
        let why = format!("lock: {lock}; its NodeClaim was deleted");
        publish_on_pool(context, &observed.claim, &incomplete_clone(record, record.vmid, &why)).await;
        return finish(context, observed, Some(record)).await;
    }
    let outcome = Outcome::after(LOOK_SOON);
    if waited <= REPORT_AFTER_S {
        return Ok(outcome);
    }
    let note = format!(
        "Cannot destroy VM {} on host {} yet: it is locked (lock: {lock}); waiting until the lock is released",
        record.vmid,
        record.host()
    );
    Ok(outcome.with_event(Event::new(&event_reasons::FAILED_TERMINATION, note)))
}

/// The VM is destroyed, was never created, or is left to its operator: deletes token, node and claim, in this order. Each may
/// be deleted already.
pub(crate) async fn finish(
    context: &Context,
    observed: &Observed,
    record: Option<&LaunchRecord>,
) -> Result<Outcome, ClaimError> {
    let claim = &observed.claim;
    token::delete(context, claim).await?;
    if let Some(record) = record {
        report_incomplete_clones(context, claim, record).await;
        let ids: Vec<VmId> = record.retired.iter().copied().chain([record.vmid]).collect();
        context.ids.free(&record.place.region, &ids, context.clock.seconds()).await;
    }
    let of_node = OfNode { nodepool: label(claim, names::LABEL_NODEPOOL), zone: label(claim, names::LABEL_ZONE) };
    if let Some(node) = observed.our_node() {
        if !remove_finalizer(context, node.as_ref()).await? {
            return Ok(Outcome::outdated());
        }
        context.metrics.nodes_terminated.get_or_create(&of_node).inc();
        end_counts::node(context, node);
    }
    if !remove_finalizer(context, claim).await? {
        return Ok(Outcome::outdated());
    }
    let OfNode { nodepool, zone } = of_node;
    let capacity_type = label(claim, names::LABEL_CAPACITY_TYPE);
    end_counts::claim(context, claim, &nodepool);
    context.metrics.claims_terminated.get_or_create(&Terminated { nodepool, capacity_type, zone }).inc();
    context.memory.forget(&claim.name_any());
    match record {
        Some(record) if observed.state.skip_vm_deletion => {
            tracing::info!(claim = claim.name_any(), vmid = %record.vmid, "deleted NodeClaim; left its VM alone");
        }
        Some(record) => {
            tracing::info!(claim = claim.name_any(), vmid = %record.vmid, "deleted VM, seed image and NodeClaim");
        }
        None => tracing::info!(claim = claim.name_any(), "deleted NodeClaim without a VM"),
    }
    // Nothing is left to write on.
    Ok(Outcome::default())
}

/// Reports incomplete clones that are still there. One that cannot be read is reported too: nobody will later.
async fn report_incomplete_clones(context: &Context, claim: &NodeClaim, record: &LaunchRecord) {
    let Ok(pve) = context.region(&record.place.region) else { return };
    for vmid in &record.incomplete {
        if observe::is_incomplete_clone(&pve, &context.owner(claim), record, *vmid).await.unwrap_or(true) {
            let event = incomplete_clone(record, *vmid, "its NodeClaim was deleted");
            publish_on_pool(context, claim, &event).await;
        }
    }
}

/// Takes our finalizer off an object; whether it is off.
async fn remove_finalizer<K>(context: &Context, object: &K) -> Result<bool, ClaimError>
where
    K: kube::Resource<DynamicType = ()> + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let rest: Vec<&String> = object.finalizers().iter().filter(|name| *name != names::FINALIZER).collect();
    if rest.len() == object.finalizers().len() {
        return Ok(true);
    }
    let patch = json!({ "metadata": { "finalizers": rest } });
    let written = writes::merge(&context.workload, object, patch).await;
    let failed = |source| ClaimError::kube(&format!("remove the finalizer of the {}", K::kind(&())), source);
    Ok(matches!(written.map_err(failed)?, Written::Done(_)))
}

fn label(claim: &NodeClaim, name: &str) -> String {
    claim.labels().get(name).cloned().unwrap_or_default()
}

/// Publishes an event on the pool, because the claim is about to be deleted.
async fn publish_on_pool(context: &Context, claim: &NodeClaim, event: &Event) {
    let pool =
        claim.labels().get(names::LABEL_NODEPOOL).and_then(|name| context.watched.pools.get(&ObjectRef::new(name)));
    match pool {
        Some(pool) => context.events.publish(pool.as_ref(), event).await,
        None => tracing::warn!(claim = claim.name_any(), reason = event.reason.name(), "{}", event.note),
    }
}
