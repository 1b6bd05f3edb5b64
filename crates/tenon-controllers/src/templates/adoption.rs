//! Which VM templates that another controller made for a ProxmoxTemplate become ours?
//!
//! Those that its status names, that bear its name, are templates, and say in their description, as that controller writes
//! it, what they are made from. Everything else is left alone.

use tenon_api::ProxmoxTemplateSpec;
use tenon_model::{Place, Seconds, TemplateBuild, TemplateStep, VmId};
use tenon_pve::{OwnerMark, TemplateMark, VmConfig};

/// How a template of the reference says what it is made from.
const HASH: &str = "Hash: ";

/// What is known of a VM that the status of a template names.
pub(super) struct Candidate<'a> {
    /// The name of the ProxmoxTemplate.
    pub(super) name: &'a str,
    pub(super) place: &'a Place,
    pub(super) vmid: VmId,
    pub(super) config: &'a VmConfig,
}

/// What is believed of a VM that was adopted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Adopted {
    /// What it is made from.
    number: String,
    uuid: String,
}

/// What is made of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Adoption {
    /// It is ours from now on.
    Adopt(Adopted),
    /// It was ours before, and is on its way out.
    Ours,
    /// It is left alone; why.
    Refuse(String),
}

/// Judges a VM.
pub(super) fn judge(candidate: &Candidate<'_>) -> Adoption {
    let Candidate { name, config, .. } = candidate;
    let description = config.description();
    if TemplateMark::find_in(description).is_some() {
        return Adoption::Ours;
    }
    if OwnerMark::find_in(description).is_some() {
        return Adoption::Refuse("its description says that it is the VM of a NodeClaim".to_owned());
    }
    if let Some(lock) = config.lock() {
        return Adoption::Refuse(format!("it is locked (lock: {lock})"));
    }
    if !config.is_template() {
        return Adoption::Refuse("it is not a template".to_owned());
    }
    let its_name = config.get("name").unwrap_or_default();
    if its_name != *name {
        return Adoption::Refuse(format!("its name is {its_name}, not {name}"));
    }
    let told = description.split_once(HASH).map(|(_, rest)| rest);
    let number: String = told.into_iter().flat_map(|rest| rest.chars().take_while(char::is_ascii_digit)).collect();
    if number.is_empty() {
        return Adoption::Refuse("its description has no `Hash:` with a number".to_owned());
    }
    match config.uuid() {
        Some(uuid) => Adoption::Adopt(Adopted { number, uuid }),
        None => Adoption::Refuse("its configuration has no SMBIOS UUID".to_owned()),
    }
}

/// The record of a VM that was adopted. Its image is taken for the one the object names, and is never deleted: we did not
/// download it.
pub(super) fn record(
    candidate: &Candidate<'_>,
    adopted: Adopted,
    spec: &ProxmoxTemplateSpec,
    now: Seconds,
) -> TemplateBuild {
    let Adopted { number, uuid } = adopted;
    let disk = candidate.config.boot_disk().and_then(|(_, drive)| drive.storage().map(str::to_owned));
    let first = spec.storage_ids.first().cloned().unwrap_or_default();
    TemplateBuild {
        place: candidate.place.clone(),
        vmid: candidate.vmid,
        number,
        image_storage: first.clone(),
        image_name: tenon_api::template_image::image_id(&spec.source_image).unwrap_or_default(),
        disk_storage: disk.unwrap_or(first),
        shared: false,
        step: TemplateStep::Ready,
        attempt: 0,
        upid: None,
        uuid,
        in_place: None,
        started_at: now,
        last_progress_at: now,
        downloaded: false,
        adopted: true,
        retired: false,
        clones: None,
        error: None,
        progress: None,
    }
}
