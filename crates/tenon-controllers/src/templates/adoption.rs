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
    /// The line that a VM template of ours under this id has in its description.
    pub(super) mark: &'a TemplateMark,
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
    /// It cannot be adopted now; why. It is looked at again.
    Wait(String),
    /// It is left alone; why.
    Refuse(String),
}

/// Judges a VM.
pub(super) fn judge(candidate: &Candidate<'_>) -> Adoption {
    let Candidate { name, config, .. } = candidate;
    let description = config.description();
    if let Some(adoption) = marked(description, candidate.mark) {
        return adoption;
    }
    // A VM that is being made or destroyed shows a lock and nothing else.
    if let Some(lock) = config.lock().filter(|_| config.uuid().is_none()) {
        return Adoption::Wait(locked(lock));
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
    match (config.uuid(), config.lock()) {
        (Some(_), Some(lock)) => Adoption::Wait(locked(lock)),
        (Some(uuid), None) => Adoption::Adopt(Adopted { number, uuid }),
        (None, _) => Adoption::Refuse("its configuration has no SMBIOS UUID".to_owned()),
    }
}

/// What a line of an owner in the description means; nothing if there is none. Whatever looks like one counts: what cannot be
/// read may be somebody's.
fn marked(description: &str, ours: &TemplateMark) -> Option<Adoption> {
    if !OwnerMark::is_in(description) {
        return None;
    }
    let why = match (TemplateMark::find_in(description), OwnerMark::count_in(description)) {
        (Some(mark), 1) if mark == *ours => return Some(Adoption::Ours),
        (Some(mark), 1) if mark.cluster != ours.cluster => {
            format!("its description names a ProxmoxTemplate of another cluster ({}) as its owner", mark.cluster)
        }
        (Some(mark), 1) if mark.template != ours.template => {
            format!("its description names another ProxmoxTemplate (uid {}) as its owner", mark.template)
        }
        (Some(mark), 1) => format!("its description is that of VM {}: it is a copy", mark.vmid),
        (None, 1) if OwnerMark::find_in(description).is_some() => {
            "its description says that it is the VM of a NodeClaim".to_owned()
        }
        (_, 1) => "its description has a line tenon.dev/owner that cannot be read".to_owned(),
        (_, count) => format!("its description has {count} lines tenon.dev/owner"),
    };
    Some(Adoption::Refuse(why))
}

fn locked(lock: &str) -> String {
    format!("it is locked (lock: {lock}); it is looked at again when the lock is gone")
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
        ordered_at: None,
        certified: false,
        adopted: true,
        retired: false,
        host_gone_since: None,
        pool: None,
        clones: None,
        error: None,
        progress: None,
    }
}
