//! What else names a VM, and what becomes of that when the VM is stopped or destroyed: HA resources, backup and replication jobs.
//!
//! The calls that change these lists are not answered; operators of an estate change them.

use std::collections::{BTreeMap, BTreeSet};

use crate::estate::Estate;
use crate::state::State;
use crate::tasks::{Event, TaskOutcome};

/// What names VMs, besides pools, rights and firewalls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Related {
    /// VMs that the HA manager looks after.
    ha: BTreeSet<u32>,
    /// Backup jobs, and the VMs that each of them names.
    backups: BTreeMap<String, BTreeSet<u32>>,
    /// Replication jobs, as VM and number.
    replications: BTreeSet<(u32, u32)>,
}

impl Estate {
    /// A VM becomes a resource of the HA manager.
    pub fn add_ha_resource(&self, vmid: u32) {
        self.with(|state| state.related.ha.insert(vmid));
    }

    /// A backup job names this VM, too.
    pub fn add_to_backup_job(&self, job: &str, vmid: u32) {
        self.with(|state| state.related.backups.entry(job.into()).or_default().insert(vmid));
    }

    /// The disks of a VM are copied to another host now and then.
    pub fn add_replication(&self, vmid: u32) {
        self.with(|state| state.related.replications.insert((vmid, 0)));
    }

    /// Everything that names a VM: `ha vm:100`, `backup nightly`, `replication 100-0`.
    pub fn related(&self, vmid: u32) -> Vec<String> {
        self.with(|state| state.related.naming(vmid))
    }
}

impl Related {
    fn naming(&self, vmid: u32) -> Vec<String> {
        let ha = self.ha.get(&vmid).map(|vmid| format!("ha vm:{vmid}"));
        let backups =
            self.backups.iter().filter(|(_, vms)| vms.contains(&vmid)).map(|(job, _)| format!("backup {job}"));
        let replications = self.replications.iter().filter(|(id, _)| *id == vmid);
        ha.into_iter()
            .chain(backups)
            .chain(replications.map(|(id, number)| format!("replication {id}-{number}")))
            .collect()
    }

    /// Whether the HA manager looks after a VM: then it stops it, too.
    pub(crate) fn is_ha(&self, vmid: u32) -> bool {
        self.ha.contains(&vmid)
    }

    /// Why a VM cannot be destroyed without being taken off the lists. A backup job does not mind.
    pub(crate) fn forbids_destroy(&self, vmid: u32) -> Option<String> {
        if self.is_ha(vmid) {
            return Some(format!("unable to remove VM {vmid} - used in HA resources and purge parameter not set."));
        }
        let job = self.replications.iter().find(|(id, _)| *id == vmid)?;
        Some(format!("There is a replication job '{}-{}' for guest '{vmid}' - Please remove that first.", job.0, job.1))
    }

    pub(crate) fn purge(&mut self, vmid: u32) {
        self.ha.remove(&vmid);
        self.backups.values_mut().for_each(|vms| vms.retain(|named| *named != vmid));
        self.replications.retain(|(id, _)| *id != vmid);
    }
}

/// Asks the HA manager to stop a VM. The task ends when the manager has heard of it; the VM runs on for a while.
#[derive(Debug)]
pub(crate) struct HaStopJob {
    pub(crate) vmid: u32,
}

impl HaStopJob {
    pub(crate) fn step(&self, state: &mut State, upid: &str) -> TaskOutcome {
        state.log(upid, format!("Requesting HA stop for VM {}", self.vmid));
        let when = state.now + state.config.pace.ha_manager;
        state.tasks.schedule(when, Event::HaStops(self.vmid));
        TaskOutcome::Done
    }
}
