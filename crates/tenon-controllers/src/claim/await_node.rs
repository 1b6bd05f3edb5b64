//! Waits for the node of a VM that runs, notices when the VM does not run any more, and says why a node is late.

use std::time::Duration;

use jiff::SignedDuration;
use kube::ResourceExt;
use tenon_api::condition_reasons::{self, ConditionReason, REGISTERED};
use tenon_api::{NodeClaim, event_reasons};
use tenon_engine::claim::ObservedLaunch;
use tenon_engine::launch::ObservedVm;
use tenon_model::{HostName, LaunchRecord, VmId};
use tenon_pve::PowerState;

use super::deletion::DeletionReason;
use super::gather::Observed;
use super::late_node::{LateNode, RunningVm};
use super::outcome::Outcome;
use super::{ClaimError, late_node, observe, registration_health};
use crate::context::Context;
use crate::events::Event;
use crate::status::Verdict;

/// A VM whose node did not join yet is looked at this often: somebody may stop or destroy it.
const LOOK_AT_VM: Duration = Duration::from_secs(15);

/// A listing shows that a VM was started up to ten seconds late, and may be that old itself.
const LISTED_AFTER_S: i64 = 20;

/// A VM that is not there, or stopped, is looked at again after this long …
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// … and is lost if it is so still.
const LOST_AFTER: SignedDuration = SignedDuration::from_secs(10);

/// Waits for the node, as long as its VM runs.
pub(crate) async fn await_node(
    context: &Context,
    observed: &Observed,
    mismatch: Option<&str>,
) -> Result<Outcome, ClaimError> {
    let (name, now) = (observed.claim.name_any(), context.clock.now());
    let seen = if observed.state.conditions.registered { SeenVm::Unknown } else { look(context, observed).await };
    let lost = match seen {
        SeenVm::Lost(lost) => lost,
        SeenVm::Running(_) | SeenVm::Unknown => {
            context.memory.vm_found(&name);
            return Ok(awaited(context, observed, mismatch, &seen).await);
        }
    };
    // A VM that reboots is stopped for a moment, and a listing may be a moment behind: one look is not enough.
    if now.duration_since(context.memory.vm_lost(&name, now)) >= LOST_AFTER {
        return lost.delete(context, &observed.claim).await;
    }
    let (reason, message) = lost.seen(&name);
    Ok(Outcome::after(LOOK_AGAIN).with_condition(&REGISTERED, Verdict::unknown(reason, message)))
}

/// The node is not there yet. Once it is late, it is found out why, now and then.
async fn awaited(context: &Context, observed: &Observed, mismatch: Option<&str>, seen: &SeenVm) -> Outcome {
    let (ObservedLaunch::Record(record), None) = (&observed.state.launch, mismatch) else {
        return still_awaited(observed, mismatch);
    };
    let (claim, now) = (&observed.claim, context.clock.now());
    let late_s = late_node::late_s(context, claim).filter(|_| !observed.state.conditions.registered);
    let Some(waited_s) = late_s else { return still_awaited(observed, None) };
    let Some(_turn) = context.memory.diagnoses.turn(&claim.name_any(), &record.place, now) else {
        return Outcome::after(LOOK_AT_VM);
    };
    let vm = if let SeenVm::Running(vm) = seen { Some(vm.as_ref()) } else { None };
    match late_node::examine(context, &LateNode { claim, record, waited_s, vm }).await {
        Some(diagnosis) => late_node::report(context, claim, diagnosis).requeued(LOOK_AT_VM),
        None => Outcome::after(LOOK_AT_VM),
    }
}

/// What is seen of a VM whose node is awaited.
enum SeenVm {
    Running(Box<RunningVm>),
    Lost(LostVm),
    /// Proxmox does not answer, or shows nothing that is proven to be ours. The node may join all the same.
    Unknown,
}

/// A VM that cannot join any more.
enum LostVm {
    Destroyed(VmId),
    Stopped(VmId, HostName),
}

/// Whether somebody destroyed or stopped the VM, or it switched itself off. The listing that everybody shares is asked first.
async fn look(context: &Context, observed: &Observed) -> SeenVm {
    let ObservedLaunch::Record(record) = &observed.state.launch else { return SeenVm::Unknown };
    let is_late = late_node::late_s(context, &observed.claim).is_some();
    if !is_late && seems_to_run(context, record).await {
        return SeenVm::Unknown;
    }
    let Ok(pve) = context.region(&record.place.region) else { return SeenVm::Unknown };
    let Ok(found) = observe::vm(&pve, &context.owner(&observed.claim), record).await else { return SeenVm::Unknown };
    match (found.vm, found.proven) {
        (ObservedVm::Absent, _) => SeenVm::Lost(LostVm::Destroyed(record.vmid)),
        (ObservedVm::Ours { .. }, Some(vm)) => match pve.vm_status(vm.host(), vm.vmid()).await {
            Ok(status) if status.power == PowerState::Stopped => {
                SeenVm::Lost(LostVm::Stopped(vm.vmid(), vm.host().clone()))
            }
            Ok(status) => SeenVm::Running(Box::new(RunningVm { vm, qemu: status.qemu })),
            Err(_) => SeenVm::Unknown,
        },
        _ => SeenVm::Unknown,
    }
}

/// Whether the listing shows the VM running, or the VM was started so lately that the listing cannot know yet.
async fn seems_to_run(context: &Context, record: &LaunchRecord) -> bool {
    if context.clock.seconds().since(record.last_progress_at) < LISTED_AFTER_S {
        return true;
    }
    let Some(listing) = context.regions.polled(&record.place.region).await else { return false };
    let row = listing.guests.iter().find(|guest| guest.id == record.vmid);
    row.is_some_and(|row| row.status.as_deref() == Some("running"))
}

impl LostVm {
    /// What is said at the first look.
    fn seen(&self, node: &str) -> (&'static ConditionReason, String) {
        match self {
            LostVm::Destroyed(vmid) => (
                &condition_reasons::VM_NOT_FOUND,
                format!("VM {vmid} no longer exists, and Node {node} has not joined"),
            ),
            LostVm::Stopped(vmid, host) => {
                let message = format!("VM {vmid} on host {host} is stopped, and Node {node} has not joined");
                (&condition_reasons::VM_STOPPED, message)
            }
        }
    }

    async fn delete(self, context: &Context, claim: &NodeClaim) -> Result<Outcome, ClaimError> {
        let name = claim.name_any();
        match self {
            LostVm::Destroyed(vmid) => {
                let note = format!("Deleting NodeClaim {name}: VM {vmid} was destroyed before Node {name} joined");
                let event = Event::new(&event_reasons::VM_NOT_FOUND, note);
                Ok(Outcome::deleted(DeletionReason::VmNotFound).with_event(event))
            }
            LostVm::Stopped(vmid, host) => {
                let note = format!(
                    "Deleting NodeClaim {name}: VM {vmid} on host {host} stopped before Node {name} joined; read the task \
                     log and the console of the VM"
                );
                registration_health::failed(context, claim, &condition_reasons::REGISTRATION_FAILED, &note).await?;
                let event = Event::new(&event_reasons::VM_STOPPED, note);
                Ok(Outcome::deleted(DeletionReason::VmStopped).with_event(event))
            }
        }
    }
}

pub(super) fn still_awaited(observed: &Observed, mismatch: Option<&str>) -> Outcome {
    match mismatch {
        None => {
            let message = late_node::not_joined_yet(&observed.claim.name_any());
            let verdict = Verdict::unknown(&condition_reasons::NODE_NOT_FOUND, message);
            Outcome::after(LOOK_AT_VM).with_condition(&REGISTERED, verdict)
        }
        Some(why) => Outcome::after(LOOK_AT_VM)
            .with_condition(&REGISTERED, Verdict::unknown(&condition_reasons::NODE_MISMATCH, why))
            .with_event(Event::new(&event_reasons::NODE_MISMATCH, why)),
    }
}
