//! How a VM is removed with its disks, and what keeps it.

use crate::changes::refuse_skiplock;
use crate::jobs::Job;
use crate::params::Call;
use crate::state::State;
use crate::storage::VolumeKey;
use crate::tasks::{NewTask, TaskOutcome};
use crate::wire::{Answer, Refusal};

pub(crate) fn destroy(state: &mut State, call: &Call) -> Answer {
    refuse_skiplock(call)?;
    let vmid = call.vmid();
    let vm = state.vm_on(call.node(), vmid)?;
    if vm.get("protection") == Some("1") {
        return Err(Refusal::failed(format!("can't remove VM {vmid} - protection mode enabled")).into());
    }
    if vm.running.is_some() {
        return Err(Refusal::failed(still_running(vmid)).into());
    }
    if let Some(why) = state.related.forbids_destroy(vmid).filter(|_| !call.flag("purge")) {
        return Err(Refusal::failed(why).into());
    }
    let (host, purge) = (call.node().to_string(), call.flag("purge"));
    let (unreferenced, skip) = (call.flag("destroy-unreferenced-disks"), call.flag("skiplock"));
    let job = DestroyJob { vmid, host, purge, unreferenced, skip, waited: false };
    let (id, job) = (vmid.to_string(), Job::Destroy(job));
    Ok(state.spawn(NewTask { node: call.node(), kind: "qmdestroy", id, user: &call.user, job }))
}

fn still_running(vmid: u32) -> String {
    format!("VM {vmid} is running - destroy failed")
}

#[derive(Debug)]
pub(crate) struct DestroyJob {
    pub(crate) vmid: u32,
    host: String,
    purge: bool,
    unreferenced: bool,
    /// Root steps over the config lock.
    skip: bool,
    waited: bool,
}

impl DestroyJob {
    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> TaskOutcome {
        let first = !std::mem::replace(&mut self.waited, true);
        match self.check(state) {
            Err(text) => TaskOutcome::Failed(text),
            Ok(_) if first => TaskOutcome::After(state.config.pace.destroy),
            Ok(disks) => self.remove(state, &disks, upid).map_or_else(TaskOutcome::Failed, |()| TaskOutcome::Done),
        }
    }

    /// The disks to remove, or what forbids it.
    fn check(&self, state: &mut State) -> Result<Vec<VolumeKey>, String> {
        let vm = state.vm_for_task(&self.host, self.vmid)?;
        // A VM suspended to disk may go in spite of its lock.
        if vm.lock() != Some("suspended") && !self.skip {
            vm.check_lock()?;
        }
        if vm.running.is_some() {
            return Err(still_running(self.vmid));
        }
        let keys = state.own_volumes(self.vmid, &self.host);
        match keys.iter().find(|key| state.has_clones(key)) {
            Some(base) => Err(format!("base volume '{}' is still in use by linked cloned", base.volid())),
            None => Ok(keys),
        }
    }

    fn remove(&self, state: &mut State, disks: &[VolumeKey], upid: &str) -> Result<(), String> {
        let quorate = state.is_quorate();
        for key in disks {
            // Without quorum the lock of a shared storage cannot be had; local disks are gone by then.
            if quorate || !key.host.is_empty() {
                state.volumes.remove(key);
            }
        }
        state.check_writable(&self.host, self.vmid)?;
        if self.unreferenced {
            let left = |key: &VolumeKey, owner: Option<u32>| {
                owner == Some(self.vmid) && (key.host.is_empty() || key.host == self.host)
            };
            state.volumes.retain(|key, volume| !left(key, volume.owner));
        }
        if self.purge {
            state.log(upid, format!("purging VM {} from related configurations..", self.vmid));
            state.related.purge(self.vmid);
        }
        state.drop_vm(self.vmid);
        Ok(())
    }
}
