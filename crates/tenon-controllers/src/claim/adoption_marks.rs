//! What a NodeClaim that another controller launched, its Node and its VM say about each other. Reads only; the controller and
//! `tenon adopt` ask the same way.

use kube::ResourceExt;
use tenon_api::kube_objects::Node;
use tenon_api::{NodeClaim, names};
use tenon_engine::adoption::{AdoptionMarks, NodeMarks, SeenVm, VmMarks, VmOwner};
use tenon_model::{Place, ProviderId, VmId};
use tenon_pve::{Client, Error, GuestKind, GuestRow, OwnerMark, RefusalKind, Smbios, VmConfig};

use super::desired_vm::Owner;
use crate::regions::Regions;

/// What a look came to.
#[derive(Debug)]
pub enum AdoptionLook {
    /// All that is known.
    Seen(Box<Sighting>),
    /// No Proxmox cluster is configured that could have the VM; why.
    NotConfigured(String),
    /// Proxmox did not answer, or shows two things at once; why.
    NotNow(String),
}

/// A NodeClaim beside its VM.
#[derive(Debug)]
pub struct Sighting {
    /// What speaks for and against an adoption.
    pub marks: AdoptionMarks,
    /// The VM and its configuration, if there is one that can be read.
    pub vm: Option<FoundVm>,
}

/// A VM that was read.
#[derive(Debug)]
pub struct FoundVm {
    /// Where it is.
    pub place: Place,
    /// Its configuration.
    pub config: VmConfig,
}

/// A NodeClaim and the Node of its name.
#[derive(Clone, Copy)]
pub struct Claimed<'a> {
    /// The NodeClaim.
    pub claim: &'a NodeClaim,
    /// The Node.
    pub node: Option<&'a Node>,
}

/// Looks at the VM that the providerID of a NodeClaim names.
pub async fn look(regions: &Regions, owner: &Owner, claimed: Claimed<'_>) -> Result<AdoptionLook, Error> {
    let Claimed { claim, node } = claimed;
    let text = claim.status.as_ref().and_then(|status| status.provider_id.clone()).unwrap_or_default();
    let id: ProviderId = match text.parse() {
        Ok(id) => id,
        Err(error) => return Ok(AdoptionLook::NotConfigured(error.to_string())),
    };
    let label = |name: &str| claim.labels().get(name).cloned();
    let region = id.region().map(str::to_owned).or_else(|| label(names::LABEL_REGION)).unwrap_or_default();
    let pve = match regions.client(&region) {
        Ok(pve) => pve,
        Err(why) => return Ok(AdoptionLook::NotConfigured(why)),
    };
    let Some(listing) = regions.polled(&region).await else {
        return Ok(AdoptionLook::NotNow(format!("region {region}: Proxmox API unavailable")));
    };
    let row = listing.guests.iter().find(|guest| guest.id == id.vmid());
    let (vm, found) = match row {
        None if pve.is_id_free(id.vmid()).await? => (SeenVm::Absent, None),
        None => return Ok(AdoptionLook::NotNow(format!("VM ID {} is in use, but in no listing", id.vmid()))),
        Some(row) if row.template => (SeenVm::OtherKind("template"), None),
        Some(row) if row.kind != GuestKind::Qemu => (SeenVm::OtherKind("container"), None),
        Some(row) => match read(&pve, row).await? {
            Read::Config(config) => {
                let place = Place { region, host: row.host.clone() };
                (SeenVm::Vm(marks_of(&config, row, owner)), Some(FoundVm { place, config }))
            }
            Read::Denied => (SeenVm::Unreadable(row.host.clone()), None),
            Read::Elsewhere => {
                return Ok(AdoptionLook::NotNow(format!("VM {} is not on host {} any more", row.id, row.host)));
            }
        },
    };
    let marks = AdoptionMarks {
        claim: claim.name_any(),
        class: claim.spec.node_class_ref.name.clone(),
        provider_id: text,
        vmid: id.vmid(),
        zone: label(names::LABEL_ZONE),
        node: node.map(node_marks),
        vm,
    };
    Ok(AdoptionLook::Seen(Box::new(Sighting { marks, vm: found })))
}

/// What came of reading a VM that was listed.
enum Read {
    Config(VmConfig),
    Denied,
    /// It left this host since it was listed.
    Elsewhere,
}

async fn read(pve: &Client, row: &GuestRow) -> Result<Read, Error> {
    match pve.vm_config(&row.host, row.id).await {
        Ok(config) => Ok(Read::Config(config)),
        Err(error) if error.is_not_found() => Ok(Read::Elsewhere),
        Err(error) if matches!(error.refusal().map(|told| &told.kind), Some(RefusalKind::Denied { .. })) => {
            Ok(Read::Denied)
        }
        Err(error) => Err(error),
    }
}

fn marks_of(config: &VmConfig, row: &GuestRow, owner: &Owner) -> VmMarks {
    let smbios: Smbios = config.option("smbios1").unwrap_or_default();
    VmMarks {
        host: row.host.clone(),
        name: config.name().unwrap_or_default().to_owned(),
        serial: smbios.text("serial").unwrap_or_default(),
        description: config.description().to_owned(),
        uuid: config.uuid().unwrap_or_default(),
        lock: config.lock().map(str::to_owned),
        owner: owner_of(config, owner, row.id),
    }
}

/// Two lines name two owners: then it is not clear whose the VM is.
fn owner_of(config: &VmConfig, owner: &Owner, vmid: VmId) -> VmOwner {
    match OwnerMark::find_in(config.description()) {
        Some(mark) if mark == owner.mark(vmid) => VmOwner::ThisClaim,
        None if !OwnerMark::is_in(config.description()) => VmOwner::Nobody,
        Some(_) | None => VmOwner::Other,
    }
}

fn node_marks(node: &Node) -> NodeMarks {
    let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
    NodeMarks {
        provider_id: node.spec.as_ref().and_then(|spec| spec.provider_id.clone()).unwrap_or_default(),
        system_uuid: info.map(|info| info.system_uuid.clone()).unwrap_or_default(),
    }
}
