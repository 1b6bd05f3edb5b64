//! Destroys a VM of ours: stopped, destroyed and its seed deleted, each only after the proof was read again.

use std::time::Duration;

use tenon_engine::launch::{ObservedTask, ObservedVm};
use tenon_model::LaunchRecord;
use tenon_pve::{Client, Error, PowerState};

use super::desired_vm::{Owner, seed_file};
use super::observe;

/// A stop or destroy takes a second or two; past this the next pass looks again.
const TASK_WITHIN: Duration = Duration::from_secs(60);

/// What came of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReleasePass {
    /// Something was done; pass again.
    Again,
    /// Something is under way; look again later.
    Wait(String),
    /// Somebody holds the VM, or it was left half-made; whose it is cannot be read.
    Locked(String),
    /// The VM under our id is not proven to be ours: it stays, and this says why.
    Refuse(String),
    /// VM and seed are gone.
    Released,
}

/// One pass of a release. The VM is looked for on the host it was made on; its seed is removed when the VM is gone.
pub async fn release(pve: &Client, owner: &Owner, record: &LaunchRecord) -> Result<ReleasePass, Error> {
    // What is still being made cannot be read, and what is not there yet is not gone.
    if observe::task(pve, record).await? == ObservedTask::Running {
        return Ok(ReleasePass::Wait(format!("a task of VM {} is still running", record.vmid)));
    }
    let observed = observe::vm(pve, owner, record).await?;
    match (observed.vm, observed.proven) {
        (ObservedVm::Ours { .. }, Some(vm)) => match pve.vm_status(vm.host(), vm.vmid()).await?.power {
            PowerState::Running => {
                let task = pve.stop_proven(&vm).await?;
                pve.await_task(&task, TASK_WITHIN).await?;
                Ok(ReleasePass::Again)
            }
            PowerState::Stopped => {
                let task = pve.destroy_proven(vm).await?;
                pve.await_task(&task, TASK_WITHIN).await?;
                Ok(ReleasePass::Again)
            }
        },
        (ObservedVm::Absent, _) => {
            if let Some(seed) = seed_file(record) {
                let task = pve.delete_volume(record.host(), &seed.volume).await?;
                pve.await_task(&task, TASK_WITHIN).await?;
            }
            Ok(ReleasePass::Released)
        }
        (ObservedVm::Locked(lock), _) => Ok(ReleasePass::Locked(lock)),
        (ObservedVm::Unreachable, _) => Ok(ReleasePass::Wait(format!("host {} does not answer", record.host()))),
        (ObservedVm::Foreign(why), _) => {
            Ok(ReleasePass::Refuse(format!("VM {} does not belong to this NodeClaim: {why}", record.vmid)))
        }
        (ObservedVm::Ours { .. }, None) => Ok(ReleasePass::Again),
    }
}
