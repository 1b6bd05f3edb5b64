//! Makes a VM that the Go provider created ours: first our line in its description, then the launch record on its NodeClaim.
//!
//! Each is one pass, and each pass reads all marks again. Whoever dies between them leaves a VM that bears our line and a
//! NodeClaim that still exists: nobody collects it, and the next pass goes on. The line goes in with the digest of the
//! configuration that was judged, so it never lands on another VM.

use std::time::Duration;

use kube::ResourceExt;
use tenon_api::condition_reasons::{self, ADOPTED, ConditionReason};
use tenon_api::{ConditionStatus, NodeClaim, event_reasons, names};
use tenon_engine::adoption::{AdoptionRefusal, AdoptionStep, Mark, next_step};
use tenon_model::{LaunchRecord, LaunchStep, VmId};

use super::adoption_marks::{AdoptionLook, Claimed, FoundVm, Sighting, look};
use super::gather::{Observed, condition};
use super::launch::write_record;
use super::outcome::Outcome;
use super::seed_file::attached_by_id;
use super::{ClaimError, termination};
use crate::context::Context;
use crate::events::Event;
use crate::status::Verdict;

/// What an operator, a migration or a backup has to end is looked at this often. A Node that joins wakes us.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// A silent region, or a VM between two hosts, is asked again after this long.
const LOOK_SOON: Duration = Duration::from_secs(15);

/// One pass for a NodeClaim that has a VM and no launch record.
pub(crate) async fn pass(context: &Context, observed: &Observed) -> Result<Outcome, ClaimError> {
    let Observed { claim, node, .. } = observed;
    let claimed = Claimed { claim, node: node.as_deref() };
    match look(&context.regions, &context.owner(claim), claimed).await? {
        AdoptionLook::NotNow(why) => {
            tracing::debug!(claim = claim.name_any(), reason = why, "cannot judge VM of NodeClaim yet; retrying");
            Ok(Outcome::after(LOOK_SOON))
        }
        AdoptionLook::NotConfigured(why) => Ok(refused(observed, &condition_reasons::REGION_NOT_CONFIGURED, &why)),
        AdoptionLook::Seen(sighting) => {
            let Sighting { marks, vm } = *sighting;
            match (next_step(&marks), vm) {
                (Ok(AdoptionStep::MarkVm), Some(vm)) => mark(context, claim, (marks.vmid, &vm)).await,
                (Ok(AdoptionStep::Record), Some(vm)) => record(context, claim, (marks.vmid, &vm)).await,
                (Ok(_), None) => Ok(Outcome::after(LOOK_SOON)),
                // Nothing is left that could be destroyed.
                (Err(AdoptionRefusal::NoVm { .. }), _) if observed.state.deleting_since.is_some() => {
                    termination::release_without_vm(context, observed, None).await
                }
                (Err(refusal), _) => Ok(refused(observed, reason_of(&refusal), &refusal.to_string())),
            }
        }
    }
}

/// Adds our line below what the Go provider wrote, which it and the host daemon go on reading.
async fn mark(context: &Context, claim: &NodeClaim, (vmid, vm): (VmId, &FoundVm)) -> Result<Outcome, ClaimError> {
    let Ok(pve) = context.region(&vm.place.region) else { return Ok(Outcome::after(LOOK_SOON)) };
    let Some(digest) = vm.config.digest() else { return Ok(Outcome::after(LOOK_AGAIN)) };
    let description = format!("{}\n{}", vm.config.description().trim_end(), context.owner(claim).mark(vmid));
    let keys = [("description", description), ("digest", digest.to_owned())];
    pve.configure_vm(&vm.place.host, vmid, &keys).await?;
    tracing::info!(claim = claim.name_any(), %vmid, host = %vm.place.host, "marked VM of another controller for adoption");
    Ok(Outcome::again())
}

/// The record that a launch of ours would have left. What the template was is not known, and nothing asks any more.
async fn record(context: &Context, claim: &NodeClaim, (vmid, vm): (VmId, &FoundVm)) -> Result<Outcome, ClaimError> {
    let seed = attached_by_id(&vm.config, vmid);
    let record = LaunchRecord {
        step: LaunchStep::Launched,
        uuid: vm.config.uuid(),
        seed_storage: seed.and_then(|volume| Some(volume.split_once(':')?.0.to_owned())),
        ..LaunchRecord::new(vm.place.clone(), vmid, vmid, context.clock.seconds())
    };
    let outcome = write_record(context, claim, &record).await?;
    if outcome.claim.is_none() {
        return Ok(outcome);
    }
    let note = format!("Adopted VM {vmid} on host {}", vm.place.host);
    Ok(outcome.with_condition(&ADOPTED, Verdict::holds(&ADOPTED)).with_event(Event::new(&event_reasons::ADOPTED, note)))
}

/// Says once why a VM is left alone; the condition keeps it. Whoever waits for the NodeClaim to go is told what to do.
fn refused(observed: &Observed, reason: &'static ConditionReason, why: &str) -> Outcome {
    let claim = &observed.claim;
    let message = format!("Not adopted: {why}");
    let is_news = condition(claim, &ADOPTED).is_none_or(|told| told.message != message);
    let mut outcome = Outcome::after(LOOK_AGAIN).with_condition(&ADOPTED, Verdict::fails(reason, message.clone()));
    if is_news {
        outcome.events.push(Event::new(&event_reasons::NOT_ADOPTED, message));
    }
    if observed.state.deleting_since.is_some() {
        let note = format!(
            "Cannot delete NodeClaim {}: its VM was not created by Tenon, and is not adopted: {why}. To delete the NodeClaim \
             without touching any VM, set annotation {}=true on it",
            claim.name_any(),
            names::ANNOTATION_SKIP_VM_DELETION
        );
        outcome.events.push(Event::new(&event_reasons::FAILED_TERMINATION, note));
    }
    outcome
}

fn reason_of(refusal: &AdoptionRefusal) -> &'static ConditionReason {
    match refusal {
        AdoptionRefusal::NoNode { .. } => &condition_reasons::NODE_NOT_FOUND,
        AdoptionRefusal::OtherProviderId { .. } => &condition_reasons::NODE_MISMATCH,
        AdoptionRefusal::NoVm { .. } => &condition_reasons::VM_NOT_FOUND,
        AdoptionRefusal::OtherKind { .. } | AdoptionRefusal::OtherOwner(_) => &condition_reasons::OTHER_OWNER,
        AdoptionRefusal::Unreadable(_) => &condition_reasons::VM_UNREADABLE,
        AdoptionRefusal::Moved { .. } => &condition_reasons::VM_MOVED,
        AdoptionRefusal::Locked { .. } => &condition_reasons::VM_LOCKED,
        AdoptionRefusal::Mark { mark, .. } => match mark {
            Mark::Name => &condition_reasons::VM_NAME_MISMATCH,
            Mark::Serial => &condition_reasons::VM_SERIAL_MISMATCH,
            Mark::Description => &condition_reasons::VM_DESCRIPTION_MISMATCH,
            Mark::Uuid => &condition_reasons::VM_UUID_MISMATCH,
        },
    }
}

/// A controller that died right after the record was written left the condition as it was.
pub(crate) fn confirmed(observed: &Observed, outcome: Outcome) -> Outcome {
    match condition(&observed.claim, &ADOPTED) {
        Some(told) if told.status != ConditionStatus::True => {
            outcome.with_condition(&ADOPTED, Verdict::holds(&ADOPTED))
        }
        Some(_) | None => outcome,
    }
}
