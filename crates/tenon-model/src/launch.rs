//! Where the launch of a VM stands, as it is written down before and after every change.
//!
//! The record is enough to go on after a crash at any point: what was intended is written before the call, what Proxmox
//! named the task after it.

use crate::assignment::CardAddresses;
use crate::host::HostName;
use crate::host_cpus::Pinning;
use crate::place::Place;
use crate::vmid::VmId;

/// Seconds since the epoch. Decisions are handed the time; they never ask for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seconds(pub i64);

impl Seconds {
    /// How long after `earlier` this is; nothing if it is not after.
    pub fn since(self, earlier: Seconds) -> i64 {
        self.0.saturating_sub(earlier.0).max(0)
    }
}

/// The change that is intended or under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LaunchStep {
    /// Copy the template.
    Clone,
    /// Write down who the copy is.
    Identify,
    /// Set identity and size.
    Configure,
    /// Grow the disk.
    Resize,
    /// Put the seed on a storage.
    UploadSeed,
    /// Put the seed into the VM's drive, and set what it boots from.
    AttachSeed,
    /// Put its cards into security groups.
    Firewall,
    /// Start it.
    Start,
    /// All of it is done.
    Launched,
}

impl LaunchStep {
    /// The step that follows. A VM that is launched stays so.
    pub fn next(self) -> LaunchStep {
        match self {
            LaunchStep::Clone => LaunchStep::Identify,
            LaunchStep::Identify => LaunchStep::Configure,
            LaunchStep::Configure => LaunchStep::Resize,
            LaunchStep::Resize => LaunchStep::UploadSeed,
            LaunchStep::UploadSeed => LaunchStep::AttachSeed,
            LaunchStep::AttachSeed => LaunchStep::Firewall,
            LaunchStep::Firewall => LaunchStep::Start,
            LaunchStep::Start | LaunchStep::Launched => LaunchStep::Launched,
        }
    }
}

/// The launch of one VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchRecord {
    /// Where the VM is made.
    pub place: Place,
    /// The id it is made under.
    pub vmid: VmId,
    /// The template it is copied from, which lies on the same host.
    pub template: VmId,
    /// The storage its first-boot data is put on, if it gets any.
    pub seed_storage: Option<String>,
    /// The addresses its cards were given; none for cards that ask for theirs.
    pub addresses: Vec<CardAddresses>,
    /// The CPUs and the memory it is bound to, if it is.
    pub pinning: Option<Pinning>,
    /// Whether the template is copied in full because its storage cannot make linked clones.
    pub full_clone: bool,
    /// What is intended or under way.
    pub step: LaunchStep,
    /// How often this step was begun, from 1.
    pub attempt: u32,
    /// The task of this step, once Proxmox named it.
    pub upid: Option<String>,
    /// The VM's SMBIOS uuid, once it was read.
    pub uuid: Option<String>,
    /// When the launch began.
    pub started_at: Seconds,
    /// When something last went forward.
    pub last_progress_at: Seconds,
    /// Ids this launch was begun under before: none of them is used again for it.
    pub retired: Vec<VmId>,
    /// Those of them under which an incomplete clone of ours was left that we may not remove.
    pub incomplete: Vec<VmId>,
}

/// What a launch left under an id it does not use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leftover {
    /// Nothing of ours.
    Nothing,
    /// A clone that was interrupted, which an API token can neither unlock nor destroy.
    IncompleteClone,
}

/// How long a launch may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaunchLimits {
    /// Seconds without progress after which a launch has failed.
    pub stalled_s: i64,
    /// Seconds a single Proxmox task may run.
    pub task_s: i64,
}

impl Default for LaunchLimits {
    fn default() -> LaunchLimits {
        // Karpenter's five minutes; half an hour is a full copy of 100 GiB at 60 MiB/s.
        LaunchLimits { stalled_s: 300, task_s: 1800 }
    }
}

impl LaunchRecord {
    /// The launch of a VM that is only intended yet.
    pub fn new(place: Place, vmid: VmId, template: VmId, now: Seconds) -> LaunchRecord {
        LaunchRecord {
            place,
            vmid,
            template,
            seed_storage: None,
            addresses: Vec::new(),
            pinning: None,
            full_clone: false,
            step: LaunchStep::Clone,
            attempt: 1,
            upid: None,
            uuid: None,
            started_at: now,
            last_progress_at: now,
            retired: Vec::new(),
            incomplete: Vec::new(),
        }
    }

    /// The record with the next step intended.
    #[must_use]
    pub fn advanced(&self, now: Seconds) -> LaunchRecord {
        LaunchRecord { step: self.step.next(), attempt: 1, upid: None, last_progress_at: now, ..self.clone() }
    }

    /// The record with the same step intended once more.
    #[must_use]
    pub fn begun_again(&self) -> LaunchRecord {
        LaunchRecord { attempt: self.attempt.saturating_add(1), upid: None, ..self.clone() }
    }

    /// The record of the same launch under another id. The old one is not used again, and is kept in mind if an incomplete
    /// clone is left under it.
    #[must_use]
    pub fn moved_to(&self, vmid: VmId, leftover: Leftover, now: Seconds) -> LaunchRecord {
        let (mut retired, mut incomplete) = (self.retired.clone(), self.incomplete.clone());
        retired.push(self.vmid);
        incomplete.extend(Some(self.vmid).filter(|_| leftover == Leftover::IncompleteClone));
        LaunchRecord {
            vmid,
            step: LaunchStep::Clone,
            attempt: 1,
            upid: None,
            uuid: None,
            last_progress_at: now,
            retired,
            incomplete,
            ..self.clone()
        }
    }

    /// The host the VM was made on.
    pub fn host(&self) -> &HostName {
        &self.place.host
    }
}
