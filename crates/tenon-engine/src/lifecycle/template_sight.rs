//! What is seen of a VM template, its task, its image and its users: what a decision about it is made from.

use tenon_model::Seconds;

/// What is seen of the VM under the recorded id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedTemplate {
    /// Nobody looked: nothing depends on it now.
    Unseen,
    /// There is none.
    Absent,
    /// Something is being created under the id, or was when its worker died: it has a lock and nothing else.
    Creating,
    /// It is ours and something holds it.
    Locked(String),
    /// It is proven to be ours.
    Ours {
        /// Whether it is a template.
        is_template: bool,
        /// Whether it has all that its object says.
        is_as_described: bool,
    },
    /// It may be ours, and may be not; what is known of it.
    Disputed(String),
    /// It is somebody else's; why we think so.
    Foreign(String),
    /// The id is in use, and the API token may not read by whom.
    Hidden,
    /// Its host cannot be reached.
    Unreachable,
}

/// What is seen of the task of the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateTask {
    /// No task is recorded, and none of ours was found.
    None,
    /// None is recorded, but Proxmox knows one of ours that does this step: its UPID.
    Found(String),
    /// It runs; how much of a download is done, in percent.
    Running(Option<u32>),
    /// It ended well.
    Done,
    /// It ended otherwise.
    Failed(BuildFailure),
    /// Its worker died, or nobody knows it any more: what it had done must be looked for.
    Lost,
    /// The host that runs it does not answer.
    Unreachable,
}

/// How a step failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildFailure {
    /// Somebody else has the id.
    IdTaken,
    /// The image is not on its storage any more.
    ImageMissing(String),
    /// Another file has the name of the image.
    ImageNameTaken(String),
    /// It failed with these words.
    Other(String),
}

impl BuildFailure {
    /// What happened, as a fragment.
    pub fn words(&self) -> &str {
        match self {
            BuildFailure::IdTaken => "the VM ID is in use by another VM",
            BuildFailure::ImageMissing(words) | BuildFailure::ImageNameTaken(words) | BuildFailure::Other(words) => {
                words
            }
        }
    }
}

/// What is seen of the image on its storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedImage {
    /// Nobody looked.
    Unseen,
    /// It is there.
    Present(PresentImage),
    /// It is not.
    Absent,
    /// Another host is loading it onto the same storage.
    LoadedBy(String),
    /// It could not be looked for; why.
    Unknown(String),
}

/// A file that has the name of the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresentImage {
    /// Whether another build had it downloaded.
    pub is_ours: bool,
    /// Whether the certificate of its server was checked then.
    pub is_certified: bool,
    /// When that was ordered.
    pub ordered_at: Option<Seconds>,
    /// The VM whose disk is being made from it right now.
    pub imported_by: Option<String>,
}

/// What still needs a template that is to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateUsers {
    /// Nobody looked.
    Unseen,
    /// Nothing.
    None,
    /// These: how many, and as a sentence.
    Some {
        /// How many.
        count: u32,
        /// Who, and what to do.
        words: String,
    },
    /// It could not be found out; why.
    Unknown(String),
}

/// Everything that is seen of one build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildSight {
    /// The VM.
    pub vm: ObservedTemplate,
    /// The task.
    pub task: TemplateTask,
    /// The image.
    pub image: ObservedImage,
    /// Who needs it.
    pub users: TemplateUsers,
    /// Whether another build that is not at its end is made from the same image.
    pub image_is_needed: bool,
    /// The incomplete file that a download left which was interrupted.
    pub leftover: Option<String>,
    /// Whether it is a template some of whose disks are no base images yet.
    pub is_half_converted: bool,
    /// Linked clones of a template that serves, if somebody counted.
    pub clones: Option<u32>,
}

impl Default for BuildSight {
    fn default() -> BuildSight {
        BuildSight {
            vm: ObservedTemplate::Unseen,
            task: TemplateTask::None,
            image: ObservedImage::Unseen,
            users: TemplateUsers::Unseen,
            image_is_needed: false,
            leftover: None,
            is_half_converted: false,
            clones: None,
        }
    }
}
