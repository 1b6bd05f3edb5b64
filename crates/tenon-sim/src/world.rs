//! The values operators and watchers of an estate hand in and get back.

use std::collections::BTreeMap;
use std::time::Duration;

/// Why the world cannot be changed as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    /// There is no host of this name.
    #[error("host `{0}` does not exist")]
    UnknownHost(String),
    /// There is no storage of this id, or not on that host.
    #[error("storage `{0}` does not exist")]
    UnknownStorage(String),
    /// There is no VM of this id.
    #[error("VM {0} does not exist")]
    UnknownVm(u32),
    /// The id is taken.
    #[error("VM {0} already exists")]
    VmExists(u32),
    /// The disks do not fit.
    #[error("cannot create the disks: {0}")]
    Disks(String),
}

/// A template an operator has prepared.
#[derive(Clone, Debug)]
pub struct TemplateSpec {
    /// Host its config lies on.
    pub host: String,
    /// VM id.
    pub vmid: u32,
    /// Name.
    pub name: String,
    /// Tags, joined by semicolons; empty for none.
    pub tags: String,
    /// Storage of its disks.
    pub storage: String,
    /// Size of `scsi0`.
    pub disk_bytes: u64,
    /// Whether it has a cloud-init drive at `ide2`.
    pub cloudinit_drive: bool,
    /// Further config keys, which win over the usual ones.
    pub config: BTreeMap<String, String>,
}

impl Default for TemplateSpec {
    fn default() -> Self {
        Self {
            host: "pve1".into(),
            vmid: 9000,
            name: "template".into(),
            tags: String::new(),
            storage: "shared".into(),
            disk_bytes: 8 << 30,
            cloudinit_drive: true,
            config: BTreeMap::new(),
        }
    }
}

/// A disk image on a storage, as cloud images are.
#[derive(Clone, Debug)]
pub struct ImageSpec {
    /// Size of the disk inside.
    pub disk_bytes: u64,
    /// Length of the file.
    pub file_bytes: u64,
    /// Whether a system is installed on it, with a guest agent.
    pub bootable: bool,
}

/// A VM somebody else made.
#[derive(Clone, Debug)]
pub struct VmSpec {
    /// What it has in common with a template.
    pub base: TemplateSpec,
    /// Whether it runs.
    pub running: bool,
}

/// A VM as it is now, pending values not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmView {
    /// VM id.
    pub vmid: u32,
    /// Host its config lies on.
    pub host: String,
    /// Name, or `VM <id>`.
    pub name: String,
    /// Config keys and values.
    pub config: BTreeMap<String, String>,
    /// `running` or `stopped`.
    pub status: &'static str,
    /// Config lock.
    pub lock: Option<String>,
    /// Pool it belongs to.
    pub pool: Option<String>,
}

/// A volume on a storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeView {
    /// `storage:name`.
    pub volid: String,
    /// The host, when the storage is local.
    pub host: Option<String>,
    /// Content kind.
    pub content: String,
    /// Virtual size.
    pub bytes: u64,
    /// What it takes on the storage.
    pub used: u64,
    /// The VM it is named after.
    pub owner: Option<u32>,
    /// The base image it stands on.
    pub parent: Option<String>,
}

/// From when to when a worker ran, counted as the ledger counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpan {
    /// Its name, as the call that began it was told.
    pub upid: String,
    /// The host it ran on.
    pub host: String,
    /// What it worked on: of a clone, the id of the template.
    pub id: String,
    /// When it was asked for.
    pub began: Duration,
    /// When it ended, if it did.
    pub ended: Option<Duration>,
    /// What it ended with, if not with `OK`.
    pub failure: Option<String>,
}

/// What happened to a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerChange {
    /// QEMU runs.
    Started,
    /// QEMU is gone.
    Stopped,
}

/// A VM was started or stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PowerEvent {
    /// VM id.
    pub vmid: u32,
    /// SMBIOS uuid the guest was started with.
    pub uuid: Option<String>,
    /// Host it runs or ran on.
    pub host: String,
    /// Which of the two.
    pub change: PowerChange,
    /// The config at that moment.
    pub config: BTreeMap<String, String>,
}
