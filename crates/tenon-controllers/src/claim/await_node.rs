//! Waits for the node of a VM that runs, and notices when the VM does not run any more.

use std::time::Duration;

use jiff::SignedDuration;
use kube::ResourceExt;
use tenon_api::condition_reasons::{self, REGISTERED};
use tenon_api::{NodeClaim, event_reasons};
use tenon_engine::claim::ObservedLaunch;
use tenon_engine::launch::ObservedVm;
use tenon_model::{HostName, VmId};
use tenon_pve::PowerState;

use super::deletion::DeletionReason;
use super::gather::Observed;
use super::outcome::Outcome;
use super::{ClaimError, observe, registration_health};
use crate::context::Context;
use crate::events::Event;
use crate::status::Verdict;

/// A VM whose node did not join yet is looked at this often: somebody may stop or destroy it.
const LOOK_AT_VM: Duration = Duration::from_secs(15);

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
    let lost = if observed.state.conditions.registered { None } else { lost_vm(context, observed).await };
    match lost {
        None => {
            context.memory.vm_found(&name);
            Ok(still_awaited(observed, mismatch))
        }
        // A VM that reboots is stopped for a moment, and a listing may be a moment behind: one look is not enough.
        Some(lost) if now.duration_since(context.memory.vm_lost(&name, now)) >= LOST_AFTER => {
            lost.delete(context, &observed.claim).await
        }
        Some(_) => Ok(still_awaited(observed, mismatch).requeued(LOOK_AGAIN)),
    }
}

/// A VM that cannot join any more.
enum LostVm {
    Destroyed(VmId),
    Stopped(VmId, HostName),
}

/// Whether somebody destroyed or stopped the VM, or it switched itself off. Nothing else is known while Proxmox does not
/// answer, and the node may join all the same.
async fn lost_vm(context: &Context, observed: &Observed) -> Option<LostVm> {
    let ObservedLaunch::Record(record) = &observed.state.launch else { return None };
    let pve = context.region(&record.place.region).ok()?;
    let found = observe::vm(pve, &context.owner(&observed.claim), record).await.ok()?;
    match (found.vm, found.proven) {
        (ObservedVm::Absent, _) => Some(LostVm::Destroyed(record.vmid)),
        (ObservedVm::Ours { .. }, Some(vm)) => {
            let status = pve.vm_status(vm.host(), vm.vmid()).await.ok()?;
            (status.power == PowerState::Stopped).then(|| LostVm::Stopped(vm.vmid(), vm.host().clone()))
        }
        _ => None,
    }
}

impl LostVm {
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
            let message = format!("The VM runs; Node {} has not joined yet", observed.claim.name_any());
            let verdict = Verdict::unknown(&condition_reasons::NODE_NOT_FOUND, message);
            Outcome::after(LOOK_AT_VM).with_condition(&REGISTERED, verdict)
        }
        Some(why) => Outcome::after(LOOK_AT_VM)
            .with_condition(&REGISTERED, Verdict::unknown(&condition_reasons::NODE_MISMATCH, why))
            .with_event(Event::new(&event_reasons::NODE_MISMATCH, why)),
    }
}
