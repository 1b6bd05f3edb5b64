//! What does everything inside one running VM share?

use std::future::Future;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::access::ApiAccess;
use super::capacity::Hardware;
use super::disk::Disk;
use super::fault::Fate;
use super::huge_pages::HugePages;
use super::journal::Journal;
use super::settings::GuestConfig;
use super::trouble::Trouble;
use crate::vm::Vm;

/// One VM from power on to power off.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// As it was when its power came on.
    pub(crate) vm: Vm,
    pub(crate) config: Arc<GuestConfig>,
    pub(crate) journal: Arc<Journal>,
    /// What goes wrong in it.
    pub(crate) fate: Fate,
}

impl Machine {
    pub(crate) fn say(&self, line: impl Into<String>) {
        self.journal.say(self.vm.vmid, line.into());
    }

    /// The SMBIOS uuid as the guest's kernel shows it.
    pub(crate) fn uuid(&self) -> Option<String> {
        self.vm.uuid().map(|uuid| uuid.to_ascii_lowercase())
    }

    pub(crate) fn hardware(&self) -> Hardware {
        let (vm, memory_bytes) = (&self.vm, self.vm.memory_bytes());
        let huge_pages = self.disk(|disk| HugePages::of(disk)).within(memory_bytes);
        Hardware { cpus: vm.cpus(), memory_bytes, disk_bytes: vm.boot_disk_bytes(), huge_pages }
    }

    /// Looks at or changes the VM's disk.
    pub(crate) fn disk<R>(&self, act: impl FnOnce(&mut Disk) -> R) -> R {
        let image = || Disk::from_image(&self.vm.name().to_ascii_lowercase());
        self.journal.disk(&disk_key(&self.vm), image, act)
    }

    /// An id of 32 hexadecimal digits that is the same for the same VM and purpose.
    pub(crate) fn derived_id(&self, purpose: &str) -> String {
        let sum = Sha256::digest(format!("{purpose} {}", disk_key(&self.vm)));
        sum.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    pub(crate) fn client(&self, access: &ApiAccess) -> Result<kube::Client, Trouble> {
        let server = self.config.guest_api.as_ref().unwrap_or(&access.server).clone();
        let access = ApiAccess { server, ..access.clone() };
        self.config.connect.connect(&access).map_err(|source| Trouble::Connect { server: access.server, source })
    }

    /// One request, within its time.
    pub(crate) async fn ask<T>(
        &self,
        action: &'static str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Trouble> {
        let after = self.config.request_timeout;
        if self.fate.is_cut_off() {
            tokio::time::sleep(after).await;
            return Err(Trouble::Silence { action, after });
        }
        match tokio::time::timeout(after, request).await {
            Ok(answer) => answer.map_err(|source| Trouble::Refused { action, source: Box::new(source) }),
            Err(_) => Err(Trouble::Silence { action, after }),
        }
    }

    /// Tries until it works, with growing pauses; the VM's power ends it otherwise.
    pub(crate) async fn insist<T, F>(&self, mut attempt: impl FnMut() -> F) -> T
    where
        F: Future<Output = Result<T, Trouble>>,
    {
        let mut pause = self.config.retry_first;
        loop {
            match attempt().await {
                Ok(value) => return value,
                Err(trouble) => self.say(trouble.story()),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(self.config.retry_most);
        }
    }
}

/// By what the disk of a VM is known.
pub(crate) fn disk_key(vm: &Vm) -> String {
    vm.uuid().map_or_else(|| format!("vm-{}", vm.vmid), |uuid| uuid.to_ascii_lowercase())
}
