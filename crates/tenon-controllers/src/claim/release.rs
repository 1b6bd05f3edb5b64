//! The way back: a VM of ours is stopped, destroyed and its seed removed, each only after the proof was read again.

use std::time::Duration;

use tenon_engine::launch::{TaskSeen, VmSeen};
use tenon_model::LaunchRecord;
use tenon_pve::{Client, Error, PowerState};

use super::observe;
use super::order::{Owner, seed_file};

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
    if observe::task(pve, record).await? == TaskSeen::Running {
        return Ok(ReleasePass::Wait(format!("a task of vm {} still runs", record.vmid)));
    }
    let seen = observe::vm(pve, owner, record).await?;
    match (seen.vm, seen.proven) {
        (VmSeen::Ours { .. }, Some(vm)) => match pve.vm_status(vm.host(), vm.vmid()).await?.power {
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
        (VmSeen::Absent, _) => {
            if let Some(seed) = seed_file(record) {
                let task = pve.delete_volume(record.host(), &seed.volume).await?;
                pve.await_task(&task, TASK_WITHIN).await?;
            }
            Ok(ReleasePass::Released)
        }
        (VmSeen::Locked(lock), _) => Ok(ReleasePass::Locked(lock)),
        (VmSeen::Unreachable, _) => Ok(ReleasePass::Wait(format!("host {} does not answer", record.host()))),
        (VmSeen::Foreign(why), _) => Ok(ReleasePass::Refuse(format!("vm {} stays: {why}", record.vmid))),
        (VmSeen::Ours { .. }, None) => Ok(ReleasePass::Again),
    }
}
