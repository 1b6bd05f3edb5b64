//! Whether a VM that the Go provider created for a NodeClaim becomes ours, or what speaks against it.
//!
//! Every mark must hold: the providerID names the VM, and name, SMBIOS serial, description and SMBIOS UUID say whose VM it is.
//! One mark alone is worth little, because VM IDs are given again and VMs are copied.

use std::fmt;

use tenon_model::{HostName, VmId};

/// How an operator gets rid of a NodeClaim whose VM is none of ours. Deleting it alone would wait for somebody to release the VM.
const GIVE_UP: &str = "set annotation tenon.dev/skip-vm-deletion=true on the NodeClaim and delete it (its VM stays)";

/// What is known of a NodeClaim without launch record, and of the VM that its providerID names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptionMarks {
    /// The name of the NodeClaim.
    pub claim: String,
    /// The ProxmoxNodeClass it names.
    pub class: String,
    /// The providerID of the NodeClaim.
    pub provider_id: String,
    /// The VM that the providerID names.
    pub vmid: VmId,
    /// The zone label of the NodeClaim.
    pub zone: Option<String>,
    /// The Node of the NodeClaim's name.
    pub node: Option<NodeMarks>,
    /// The VM.
    pub vm: SeenVm,
}

/// What a Node says about its machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeMarks {
    /// Its providerID, or nothing.
    pub provider_id: String,
    /// The UUID that its kubelet reports, or nothing.
    pub system_uuid: String,
}

/// What Proxmox shows under the VM ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeenVm {
    /// Nothing.
    Absent,
    /// No VM: a template, or a container.
    OtherKind(&'static str),
    /// Something that the API token may not read.
    Unreadable(HostName),
    /// A VM.
    Vm(VmMarks),
}

/// What a VM says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmMarks {
    /// The host it is on.
    pub host: HostName,
    /// Its name.
    pub name: String,
    /// Its serial number, decoded.
    pub serial: String,
    /// Its description.
    pub description: String,
    /// Its SMBIOS UUID, or nothing.
    pub uuid: String,
    /// What holds it.
    pub lock: Option<String>,
    /// Whom the owner line in its description names.
    pub owner: VmOwner,
}

/// Whom the owner line in the description of a VM names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VmOwner {
    /// There is none.
    Nobody,
    /// This NodeClaim: an adoption began.
    ThisClaim,
    /// Another NodeClaim, or another cluster.
    Other,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdoptionStep {
    /// Write our owner line into the description. From then on no other cluster adopts the VM.
    MarkVm,
    /// Write the launch record into the NodeClaim, which makes the VM ours.
    Record,
}

/// What speaks against an adoption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdoptionRefusal {
    /// The NodeClaim has no Node.
    NoNode {
        /// The NodeClaim.
        claim: String,
    },
    /// The Node has another providerID.
    OtherProviderId {
        /// The Node.
        node: String,
        /// What it has.
        found: String,
        /// What the NodeClaim has.
        expected: String,
    },
    /// Nothing has the VM ID.
    NoVm {
        /// The VM ID.
        vmid: VmId,
        /// The NodeClaim.
        claim: String,
    },
    /// What has the VM ID is no VM.
    OtherKind {
        /// The VM ID.
        vmid: VmId,
        /// What it is.
        kind: &'static str,
    },
    /// The API token may not read the VM.
    Unreadable(Site),
    /// The VM is on another host than the zone label says.
    Moved {
        /// The VM.
        vm: Site,
        /// The zone label.
        zone: String,
    },
    /// Something holds the VM.
    Locked {
        /// The VM.
        vm: Site,
        /// The lock.
        lock: String,
    },
    /// A mark of the VM is not what it should be.
    Mark {
        /// The VM.
        vm: Site,
        /// Which.
        mark: Mark,
        /// What it is.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// Another NodeClaim owns the VM.
    OtherOwner(Site),
}

/// A VM and its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The VM.
    pub vmid: VmId,
    /// Its host.
    pub host: HostName,
}

/// A mark that the Go provider leaves on its VMs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Its name.
    Name,
    /// The serial number of its SMBIOS.
    Serial,
    /// The first line of its description.
    Description,
    /// The UUID of its SMBIOS.
    Uuid,
}

/// Decides. The order is that in which an operator can use the answer: what is not there at all first.
pub fn next_step(marks: &AdoptionMarks) -> Result<AdoptionStep, AdoptionRefusal> {
    let node = marks.node.as_ref().ok_or_else(|| AdoptionRefusal::NoNode { claim: marks.claim.clone() })?;
    if node.provider_id != marks.provider_id {
        let (node, found) = (marks.claim.clone(), node.provider_id.clone());
        return Err(AdoptionRefusal::OtherProviderId { node, found, expected: marks.provider_id.clone() });
    }
    let vmid = marks.vmid;
    let vm = match &marks.vm {
        SeenVm::Absent => return Err(AdoptionRefusal::NoVm { vmid, claim: marks.claim.clone() }),
        SeenVm::OtherKind(kind) => return Err(AdoptionRefusal::OtherKind { vmid, kind }),
        SeenVm::Unreadable(host) => return Err(AdoptionRefusal::Unreadable(Site { vmid, host: host.clone() })),
        SeenVm::Vm(vm) => vm,
    };
    let site = Site { vmid, host: vm.host.clone() };
    let zone = marks.zone.clone().unwrap_or_default();
    if zone != vm.host.as_str() {
        return Err(AdoptionRefusal::Moved { vm: site, zone });
    }
    if let Some((mark, found, expected)) = wrong_mark(marks, vm, node) {
        return Err(AdoptionRefusal::Mark { vm: site, mark, found, expected });
    }
    match (vm.owner, &vm.lock) {
        (VmOwner::Other, _) => Err(AdoptionRefusal::OtherOwner(site)),
        // Reading is enough for the record; a lock refuses writes.
        (VmOwner::ThisClaim, _) => Ok(AdoptionStep::Record),
        (VmOwner::Nobody, Some(lock)) => Err(AdoptionRefusal::Locked { vm: site, lock: lock.clone() }),
        (VmOwner::Nobody, None) => Ok(AdoptionStep::MarkVm),
    }
}

/// The first mark that is not what the Go provider writes, with what it is and should be.
fn wrong_mark(marks: &AdoptionMarks, vm: &VmMarks, node: &NodeMarks) -> Option<(Mark, String, String)> {
    let serial = format!("h={};i={}", marks.claim, marks.vmid);
    let begins = format!("Karpenter managed instance, class={}", marks.class);
    let line = vm.description.lines().next().unwrap_or_default().trim_end();
    let is_described = line.strip_prefix(&begins).is_some_and(|rest| rest.is_empty() || rest.starts_with(','));
    let is_machine = !vm.uuid.is_empty() && vm.uuid.eq_ignore_ascii_case(&node.system_uuid);
    if vm.name != marks.claim {
        return Some((Mark::Name, vm.name.clone(), marks.claim.clone()));
    }
    if vm.serial != serial {
        return Some((Mark::Serial, vm.serial.clone(), serial));
    }
    if !is_described {
        return Some((Mark::Description, line.to_owned(), begins));
    }
    (!is_machine).then(|| (Mark::Uuid, vm.uuid.clone(), node.system_uuid.clone()))
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VM {} on host {}", self.vmid, self.host)
    }
}

impl fmt::Display for AdoptionRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AdoptionRefusal::NoNode { claim } => write!(
                f,
                "there is no Node {claim}, so nothing says which machine the VM is; wait until the Node joins, or \
                 {GIVE_UP}"
            ),
            AdoptionRefusal::OtherProviderId { node, found, expected } => write!(
                f,
                "Node {node} has providerID \"{found}\", but the NodeClaim has {expected}; find out which machine joined as \
                 Node {node}"
            ),
            AdoptionRefusal::NoVm { vmid, claim } => {
                write!(f, "VM {vmid} does not exist; delete NodeClaim {claim}, and Node {claim} if it stays")
            }
            AdoptionRefusal::OtherKind { vmid, kind } => {
                write!(f, "VM ID {vmid} is a {kind}; find out what became of the VM")
            }
            AdoptionRefusal::Unreadable(vm) => {
                write!(f, "the API token cannot read {vm}; grant VM.Audit and VM.Config.Options on the VM")
            }
            AdoptionRefusal::Moved { vm, zone } => write!(
                f,
                "{vm} has moved: the zone label of the NodeClaim says \"{zone}\"; migrate the VM back to that host, or \
                 {GIVE_UP}"
            ),
            AdoptionRefusal::Locked { vm, lock } => {
                write!(f, "{vm} is locked (lock: {lock}); the next try follows when the lock is released")
            }
            AdoptionRefusal::Mark { vm, mark, found, expected } => mark.refused(f, vm, [found, expected]),
            AdoptionRefusal::OtherOwner(vm) => write!(
                f,
                "the description of {vm} names another owner (line tenon.dev/owner); if the VM was copied or restored from that \
                 owner's VM, remove the line"
            ),
        }
    }
}

impl Mark {
    fn refused(self, f: &mut fmt::Formatter<'_>, vm: &Site, [found, expected]: [&str; 2]) -> fmt::Result {
        match self {
            Mark::Name => {
                write!(f, "{vm} has name \"{found}\", expected {expected}; rename the VM if it is the Node's")
            }
            Mark::Serial => write!(
                f,
                "{vm} has SMBIOS serial \"{found}\", expected {expected}: the VM was created for something else; \
                 {GIVE_UP}"
            ),
            Mark::Description => write!(
                f,
                "the description of {vm} begins with \"{found}\", expected \"{expected}\"; restore the first line of the \
                 description if the VM is the Node's"
            ),
            Mark::Uuid => write!(
                f,
                "{vm} has SMBIOS UUID \"{found}\", but the Node reports {expected}: the Node runs on another machine; \
                 {GIVE_UP}"
            ),
        }
    }
}
