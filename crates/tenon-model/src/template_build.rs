//! Where the VM template of one host stands, as it is written down before and after every change.
//!
//! As with a launch, the record is enough to go on after a crash at any point: id, UUID and storages are chosen and written
//! before anything is asked of Proxmox, the name of a task after Proxmox told it.

use crate::launch::Seconds;
use crate::place::Place;
use crate::vmid::VmId;

/// The change that is intended or under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TemplateStep {
    /// Delete an image of ours that is not what is asked for now. Then it is downloaded again.
    Discard,
    /// Get the image onto its storage.
    Download,
    /// Create a VM with a disk made from the image.
    Create,
    /// Give it what cannot be given with the creation.
    Configure,
    /// Make it a template.
    Convert,
    /// It is a template.
    Ready,
    /// Destroy the VM, if nothing needs it any more.
    Destroy,
    /// Delete the image, if we downloaded it and no other template is made from it. Then the record is gone.
    DeleteImage,
}

impl TemplateStep {
    /// The step that follows; nothing follows the last one, and a template stays one until somebody decides otherwise.
    pub fn next(self) -> TemplateStep {
        match self {
            TemplateStep::Discard => TemplateStep::Download,
            TemplateStep::Download => TemplateStep::Create,
            TemplateStep::Create => TemplateStep::Configure,
            TemplateStep::Configure => TemplateStep::Convert,
            TemplateStep::Convert | TemplateStep::Ready => TemplateStep::Ready,
            TemplateStep::Destroy | TemplateStep::DeleteImage => TemplateStep::DeleteImage,
        }
    }

    /// As it is written down and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            TemplateStep::Discard => "Discard",
            TemplateStep::Download => "Download",
            TemplateStep::Create => "Create",
            TemplateStep::Configure => "Configure",
            TemplateStep::Convert => "Convert",
            TemplateStep::Ready => "Ready",
            TemplateStep::Destroy => "Destroy",
            TemplateStep::DeleteImage => "DeleteImage",
        }
    }
}

/// One VM template that was begun and is not gone yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateBuild {
    /// Where it is made.
    pub place: Place,
    /// The id it is made under.
    pub vmid: VmId,
    /// What it is made from, as one number: the text behind `Hash: ` in its description.
    pub number: String,
    /// The storage of the image.
    pub image_storage: String,
    /// The file name of the image there.
    pub image_name: String,
    /// The storage of its disk.
    pub disk_storage: String,
    /// Whether other hosts have that storage too, so that one template serves them all.
    pub shared: bool,
    /// What is intended or under way.
    pub step: TemplateStep,
    /// How often this step failed.
    pub attempt: u32,
    /// The task of this step, once Proxmox named it.
    pub upid: Option<String>,
    /// Its SMBIOS UUID, which we chose.
    pub uuid: String,
    /// Our hash of the fields that are applied to it without making it anew, when they were applied last.
    pub in_place: Option<String>,
    /// When it was begun.
    pub started_at: Seconds,
    /// When something last went forward, or failed.
    pub last_progress_at: Seconds,
    /// Whether the image is there because we downloaded it. Only then we delete it. It says nothing about what is in the file.
    pub downloaded: bool,
    /// When this build wrote down that it has the image downloaded, if it did: the file that comes then is of its own order.
    pub ordered_at: Option<Seconds>,
    /// Whether that order had the certificate of the server checked.
    pub certified: bool,
    /// Whether another controller made it.
    pub adopted: bool,
    /// Whether it is not wanted any more.
    pub retired: bool,
    /// Since when its host is no member of its Proxmox cluster, as far as looks in between showed.
    pub host_gone_since: Option<Seconds>,
    /// The resource pool it is in because the object says so, or said so.
    pub pool: Option<String>,
    /// Linked clones of it and NodeClaims that are being launched from it, as counted last.
    pub clones: Option<u32>,
    /// Why the last try failed, or what is waited for, as one sentence.
    pub error: Option<String>,
    /// How much of the image is downloaded, in percent and steps of ten.
    pub progress: Option<u32>,
}

impl TemplateBuild {
    /// The same one step later.
    #[must_use]
    pub fn advanced(&self, now: Seconds) -> TemplateBuild {
        self.at(self.step.next(), now)
    }

    /// The same at another step, of which nothing was tried yet.
    #[must_use]
    pub fn at(&self, step: TemplateStep, now: Seconds) -> TemplateBuild {
        TemplateBuild {
            step,
            attempt: 0,
            upid: None,
            last_progress_at: now,
            error: None,
            progress: None,
            ..self.clone()
        }
    }

    /// The same after the step failed once more.
    #[must_use]
    pub fn failed(&self, why: String, now: Seconds) -> TemplateBuild {
        let attempt = self.attempt.saturating_add(1);
        TemplateBuild { attempt, upid: None, last_progress_at: now, error: Some(why), progress: None, ..self.clone() }
    }

    /// Where it is, as the status of a template says it.
    pub fn zone(&self) -> String {
        format!("{}/{}/{}", self.place.region, self.place.host, self.vmid)
    }
}
