//! Destroys a VM of ours: stopped, destroyed and its seed deleted, each only after the proof was read again.

use std::time::Duration;

use tenon_engine::launch::{Failure, ObservedTask, ObservedVm};
use tenon_model::{LaunchRecord, LaunchStep};
use tenon_pve::{Client, Error, PowerState, ProvenVm, Shutdown, Stop, Upid};

use super::desired_vm::Owner;
use super::observe;
use super::seed_file::{attached_by_id, delete_file, seed_file};

/// The task that only asks the HA manager to stop a VM. It ends long before the VM does.
const HA_STOP: &str = "hastop";

/// A stop or destroy takes a second or two; past this the next pass looks again.
const TASK_WITHIN: Duration = Duration::from_secs(60);

/// What came of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReleasePass {
    /// Something was done; pass again.
    Again,
    /// Something is under way; look again later.
    Wait(String),
    /// Something holds the VM, or it was left half-made.
    Locked(String),
    /// A clone of ours may be left under the id, and the API token cannot read it.
    Hidden,
    /// The VM under our id is not proven to be ours: it stays, and this says why.
    Refuse(String),
    /// The API token may not read the VM under our id any more: it stays.
    Unreadable,
    /// The VM is gone; its seed could not be deleted.
    SeedLeft(SeedLeft),
    /// VM and seed are gone.
    Released,
}

/// A seed that could not be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedLeft {
    /// The volume.
    pub volume: String,
    /// Why.
    pub why: String,
    /// Whether another try may help.
    pub may_help: bool,
}

/// How a VM that runs is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerOff {
    /// At once: nothing in it is worth a shutdown.
    Stop,
    /// Its guest is asked first, and has so long.
    ShutDown(Duration),
}

/// One pass of a release. The VM is looked for on the host it was made on; its seed is removed when the VM is gone.
pub async fn release(pve: &Client, owner: &Owner, record: &LaunchRecord, how: PowerOff) -> Result<ReleasePass, Error> {
    let mut task = observe::task(pve, record).await?;
    if task == ObservedTask::Running {
        // Whatever it was making is not wanted any more, and a clone that is stopped cleans up after itself.
        return stop_task(pve, record).await;
    }
    let observed = observe::vm(pve, owner, record).await?;
    if let Some(upid) = observe::lost_clone_task(pve, record, &observed.vm).await? {
        let found = LaunchRecord { upid: Some(upid.to_string()), ..record.clone() };
        task = observe::task(pve, &found).await?;
        if task == ObservedTask::Running {
            return stop_task(pve, &found).await;
        }
    }
    let was_made = record.step > LaunchStep::Clone;
    match (observed.vm, observed.proven) {
        (ObservedVm::Ours { .. }, Some(vm)) => remove(pve, record, vm, how).await,
        (ObservedVm::Ours { .. }, None) => Ok(ReleasePass::Again),
        (ObservedVm::Absent, _) => delete_seed(pve, owner, record).await,
        (ObservedVm::Locked(lock), _) => Ok(ReleasePass::Locked(lock)),
        (ObservedVm::Unreachable, _) => Ok(ReleasePass::Wait(format!("host {} does not answer", record.host()))),
        // What has the id was there before our clone, or won the race for the id: ours never came to be.
        (ObservedVm::Foreign(_), _) if !was_made => delete_seed(pve, owner, record).await,
        (ObservedVm::Foreign(why), _) => {
            Ok(ReleasePass::Refuse(format!("VM {} does not belong to this NodeClaim: {why}", record.vmid)))
        }
        (ObservedVm::Hidden, _) if was_made => Ok(ReleasePass::Unreadable),
        (ObservedVm::Hidden, _) => match task {
            ObservedTask::None | ObservedTask::Failed(Failure::IdTaken) => delete_seed(pve, owner, record).await,
            _ => Ok(ReleasePass::Hidden),
        },
    }
}

async fn stop_task(pve: &Client, record: &LaunchRecord) -> Result<ReleasePass, Error> {
    if let Some(upid) = record.upid.as_ref().and_then(|upid| upid.parse().ok()) {
        pve.stop_task(&upid).await?;
    }
    Ok(ReleasePass::Wait(format!("a task of VM {} is being stopped", record.vmid)))
}

/// One change: stop it, or unprotect it, or delete a seed that is named by the id, or destroy it.
async fn remove(pve: &Client, record: &LaunchRecord, vm: ProvenVm, how: PowerOff) -> Result<ReleasePass, Error> {
    let status = pve.vm_status(vm.host(), vm.vmid()).await?;
    if status.power == PowerState::Running {
        return Ok(match power_off(pve, &vm, how).await? {
            PoweredOff::Done => ReleasePass::Again,
            PoweredOff::Requested => ReleasePass::Wait(format!("the HA manager is stopping VM {}", record.vmid)),
        });
    }
    // Before it is configured, a clone has the protection of its template; later, somebody set it on purpose.
    let is_protected = vm.config().get("protection").is_some_and(|value| value == "1");
    if is_protected && record.step <= LaunchStep::Configure {
        let digest = vm.config().digest().map(|digest| ("digest", digest.to_owned()));
        let keys: Vec<_> = [("protection", "0".to_owned())].into_iter().chain(digest).collect();
        pve.configure_vm(vm.host(), vm.vmid(), &keys).await?;
        return Ok(ReleasePass::Again);
    }
    if let Some(volume) = attached_by_id(vm.config(), vm.vmid()) {
        // Once the VM is gone nothing proves that this file was its own. Whatever comes of it, the VM goes.
        let _ = delete_file(pve, vm.host(), &volume).await;
    }
    let task = pve.destroy_proven(vm).await?;
    pve.await_task(&task, TASK_WITHIN).await?;
    Ok(ReleasePass::Again)
}

/// How far a VM is with ending.
enum PoweredOff {
    /// It ended.
    Done,
    /// The HA manager was asked to end it. Until it does, asking again changes nothing.
    Requested,
}

/// Ends a VM of ours. One task does both: it asks the guest, and stops the VM if the guest does not end in time. A shutdown
/// that fails all the same, because something else shuts the VM down, is overruled by a stop.
async fn power_off(pve: &Client, vm: &ProvenVm, how: PowerOff) -> Result<PoweredOff, Error> {
    if let PowerOff::ShutDown(within) = how {
        let timeout_s = u32::try_from(within.as_secs()).unwrap_or(u32::MAX);
        let task = pve.shutdown_proven(vm, Shutdown { timeout_s: Some(timeout_s), force: Some(true) }).await?;
        match pve.await_task(&task, within.saturating_add(TASK_WITHIN)).await {
            Err(error) if error.refusal().is_some() => {}
            ended => return ended.map(|_| powered_off(&task)),
        }
    }
    let overrule_shutdown = how != PowerOff::Stop;
    let task = pve.stop_proven_with(vm, Stop { overrule_shutdown, ..Stop::default() }).await?;
    pve.await_task(&task, TASK_WITHIN).await.map(|_| powered_off(&task))
}

fn powered_off(task: &Upid) -> PoweredOff {
    if task.kind() == HA_STOP { PoweredOff::Requested } else { PoweredOff::Done }
}

async fn delete_seed(pve: &Client, owner: &Owner, record: &LaunchRecord) -> Result<ReleasePass, Error> {
    let Some(seed) = seed_file(owner, record) else { return Ok(ReleasePass::Released) };
    Ok(match delete_file(pve, record.host(), &seed.volume).await {
        Ok(()) => ReleasePass::Released,
        Err(left) => ReleasePass::SeedLeft(left),
    })
}
