//! What was just read of a VM that is being launched, so that it is not read again before every step.
//!
//! Nothing here is enough to stop or destroy a VM. A write to its configuration carries the digest of what was read, and is
//! refused if the VM is another one by now; growing its disk and starting it follow such a write within seconds.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenon_model::{HostName, LaunchRecord, LaunchStep, Seconds, VmId};
use tenon_pve::{ProvenVm, VmConfig};

/// What was read is used for this long. A launch takes a few seconds; one that hangs reads again.
const SEEN_FOR_S: i64 = 30;

/// A storage that was looked at has its folders for so long, unless we delete a file.
const LOOKED_FOR_S: i64 = 60;

/// More launches than are ever under way; what is forgotten is read again.
const MOST: usize = 10_000;

/// A VM that was proven to be ours not long ago.
#[derive(Debug, Clone)]
pub(crate) struct SeenVm {
    vm: ProvenVm,
    at: Seconds,
    /// Whether it was configured since: its digest is another one by now.
    is_changed: bool,
}

impl SeenVm {
    pub(crate) fn new(vm: ProvenVm, at: Seconds) -> SeenVm {
        SeenVm { vm, at, is_changed: false }
    }

    /// Whether it was configured in this launch, and not read since: nobody started it, and it has its template's rules.
    pub(crate) fn is_fresh_clone(&self) -> bool {
        self.is_changed
    }

    pub(crate) fn host(&self) -> &HostName {
        self.vm.host()
    }

    pub(crate) fn vmid(&self) -> VmId {
        self.vm.vmid()
    }

    pub(crate) fn config(&self) -> &VmConfig {
        self.vm.config()
    }

    /// Whether a step may go by it. Configuring needs the digest, rendering what was configured; a step that failed once
    /// looks again.
    fn serves(&self, record: &LaunchRecord, now: Seconds) -> bool {
        let by_step = match record.step {
            LaunchStep::Identify | LaunchStep::Configure | LaunchStep::UploadSeed | LaunchStep::AttachSeed => {
                !self.is_changed
            }
            LaunchStep::Resize | LaunchStep::Firewall | LaunchStep::Start => true,
            LaunchStep::Clone | LaunchStep::Launched => false,
        };
        by_step && record.attempt == 1 && self.vmid() == record.vmid && now.since(self.at) <= SEEN_FOR_S
    }
}

/// The VMs that are being launched, by the uid of their NodeClaim. May be lost at any time.
#[derive(Debug, Default)]
pub struct SeenVms {
    vms: Mutex<BTreeMap<String, SeenVm>>,
    /// When storages were last looked at, by host.
    storages: Mutex<BTreeMap<(HostName, String), Seconds>>,
}

impl SeenVms {
    /// What was read of a claim's VM, if the recorded step may go by it.
    pub(crate) fn recent(&self, claim_uid: &str, record: &LaunchRecord, now: Seconds) -> Option<SeenVm> {
        self.lock().get(claim_uid).filter(|seen| seen.serves(record, now)).cloned()
    }

    /// It was read now.
    pub(crate) fn read(&self, claim_uid: &str, vm: SeenVm) {
        let mut vms = self.lock();
        if vms.len() >= MOST {
            vms.clear();
        }
        vms.insert(claim_uid.to_owned(), vm);
    }

    /// It was configured.
    pub(crate) fn changed(&self, claim_uid: &str, now: Seconds) {
        if let Some(seen) = self.lock().get_mut(claim_uid) {
            (seen.is_changed, seen.at) = (true, now);
        }
    }

    /// Whether a storage has to be looked at before something is put on it: Proxmox deletes a folder with the last file in it,
    /// and makes it again when it looks at the storage.
    pub(crate) fn must_look(&self, host: &HostName, storage: &str, now: Seconds) -> bool {
        let mut storages = self.storages.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (host.clone(), storage.to_owned());
        let is_due = storages.get(&key).is_none_or(|at| now.since(*at) > LOOKED_FOR_S);
        if is_due {
            storages.insert(key, now);
        }
        is_due
    }

    /// A file was deleted, perhaps the last one.
    pub(crate) fn file_deleted(&self) {
        self.storages.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Nothing is known of it any more: it was launched, or something went wrong.
    pub(crate) fn forget(&self, claim_uid: &str) {
        self.lock().remove(claim_uid);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, SeenVm>> {
        self.vms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
