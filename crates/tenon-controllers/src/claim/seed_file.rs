//! Where the first-boot data of a VM lies on its storage, and how it is deleted.
//!
//! The file is named by the uid of the NodeClaim: VM ids are unique in one Proxmox cluster only, and a storage may serve
//! several. Earlier versions named it by the VM id.

use std::time::Duration;

use tenon_model::{HostName, LaunchRecord, VmId};
use tenon_pve::{Advice, Client, Error, RefusalKind, VmConfig};

use super::desired_vm::Owner;
use super::release::SeedLeft;

/// The drive first-boot data is put into.
pub(crate) const DRIVE: &str = "ide2";

/// The tag by which the Go provider knows VMs that have a seed.
pub(crate) const SEED_TAG: &str = "go-proxmox+cloud-init";

/// A file is deleted within a second or two.
const TASK_WITHIN: Duration = Duration::from_secs(30);

/// Where a VM's seed lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedFile {
    /// The storage it lies on.
    pub storage: String,
    /// The file's name on its storage.
    pub name: String,
    /// The volume, as Proxmox names it.
    pub volume: String,
}

/// Where the seed of a VM lies, if it gets one.
pub fn seed_file(owner: &Owner, record: &LaunchRecord) -> Option<SeedFile> {
    let storage = record.seed_storage.as_ref()?;
    let name = seed_name(owner);
    Some(SeedFile { volume: format!("{storage}:iso/{name}"), name, storage: storage.clone() })
}

/// The seed in a VM's drive, if it is named by the VM's id as earlier versions did.
pub(crate) fn attached_by_id(config: &VmConfig, vmid: VmId) -> Option<String> {
    attached(config).filter(|volume| volume.ends_with(&format!(":iso/user-data-{vmid}.iso")))
}

/// The storage of the seed in a VM's drive, if it is the owner's.
pub(crate) fn attached_seed_storage(owner: &Owner, config: &VmConfig) -> Option<String> {
    let name = format!(":iso/{}", seed_name(owner));
    attached(config)?.strip_suffix(&name).map(str::to_owned)
}

fn seed_name(owner: &Owner) -> String {
    format!("user-data-{}.iso", owner.claim_uid)
}

/// The volume in a VM's drive.
pub(crate) fn attached(config: &VmConfig) -> Option<String> {
    config.get(DRIVE)?.split(',').next().map(str::to_owned)
}

/// Deletes a file; one that is not there is as good. Where its host does not answer, another that shares the storage is
/// asked. Whoever calls is not held up by what cannot be deleted.
pub(crate) async fn delete_file(pve: &Client, host: &HostName, volume: &str) -> Result<(), SeedLeft> {
    let mut outcome = delete_at(pve, host, volume).await;
    let is_unanswered = outcome.as_ref().is_err_and(|error| error.refusal().is_none());
    if is_unanswered && let Some(other) = sharing(pve, host, volume).await {
        outcome = delete_at(pve, &other, volume).await;
    }
    outcome.map_err(|error| {
        let is_denied = matches!(error.refusal().map(|told| &told.kind), Some(RefusalKind::Denied { .. }));
        let next = if is_denied {
            "; grant Datastore.Allocate on its storage, and delete the image"
        } else {
            "; delete the image if it stays"
        };
        let may_help = matches!(error.advice(), Advice::SendAgain | Advice::LookFirst | Advice::Wait);
        SeedLeft { volume: volume.to_owned(), why: format!("{}{next}", error.full_message()), may_help }
    })
}

async fn delete_at(pve: &Client, host: &HostName, volume: &str) -> Result<(), Error> {
    let task = pve.delete_volume(host, volume).await?;
    pve.await_task(&task, TASK_WITHIN).await.map(drop)
}

/// Another host that answers and sees the same storage.
async fn sharing(pve: &Client, host: &HostName, volume: &str) -> Option<HostName> {
    let resources = pve.resources().await.ok()?;
    let storage = volume.split(':').next()?;
    let is_up = |name: &HostName| {
        resources.hosts.iter().any(|row| row.host == *name && row.status.as_deref() == Some("online"))
    };
    let mut rows = resources.storages.iter().filter(|row| row.storage == storage && row.shared);
    rows.find(|row| row.host != *host && is_up(&row.host)).map(|row| row.host.clone())
}
