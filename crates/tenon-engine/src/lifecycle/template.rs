//! What comes next for one VM template of a ProxmoxTemplate: one change at most, chosen from what was written down and what
//! is seen now. Its image is in `template_image`, removing one in `template_end`.
//!
//! As in a launch, nothing is sent again before it was looked for, and what is not proven to be ours is left alone.

use tenon_model::{Seconds, TemplateBuild, TemplateStep, VmId};

use super::template_end::{delete_image_step, destroy_step};
use super::template_image::{discard_step, download_step};
pub use super::template_sight::{
    BuildFailure, BuildSight, ObservedImage, ObservedTemplate, PresentImage, TemplateTask, TemplateUsers,
};

/// A request that was sent is carried out within this time or not at all: until then a VM that is not there may still come.
pub(crate) const IN_FLIGHT_S: i64 = 60;

/// A step that failed is tried again after this long, twice as long each time …
const RETRY_FIRST_S: i64 = 30;

/// … up to this: what is wrong is then something a person has to change, and every try may load a whole image.
const RETRY_MOST_S: i64 = 900;

/// What the object says, as far as a step depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuildOrder<'a> {
    /// Now.
    pub now: Seconds,
    /// Our hash of the fields that are applied in place.
    pub in_place: &'a str,
    /// Whether the image has a checksum to be compared with.
    pub has_checksum: bool,
    /// Whether the certificate of the server is to be checked.
    pub certifies: bool,
}

/// A change that a step makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateChange {
    /// Let Proxmox download the image, or compare the one that is there.
    Download,
    /// Create the VM from the image.
    Create,
    /// Write what its configuration lacks.
    Configure,
    /// Make it a template.
    Convert,
    /// Destroy it.
    Destroy,
    /// Delete the image.
    DeleteImage,
    /// Stop the task, which nobody needs any more.
    StopTask,
}

/// What a pass does about one build.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one for each build at a time, and it is used at once")]
pub enum TemplateDecision {
    /// Write this down; then look again.
    Record(TemplateBuild),
    /// Make this change.
    Perform(TemplateChange),
    /// Nothing to do now.
    Wait,
    /// Begin again under another id.
    Move {
        /// Why.
        why: String,
        /// What is left under the old id: it stays in the record until it is gone, with this sentence.
        leftover: Option<String>,
    },
    /// Nothing of it is left: forget it.
    Forget,
}

impl From<TemplateBuild> for TemplateDecision {
    fn from(build: TemplateBuild) -> TemplateDecision {
        TemplateDecision::Record(build)
    }
}

/// How long after its last failure a build is tried again.
pub fn retry_after_s(attempt: u32) -> i64 {
    let doublings = attempt.saturating_sub(1).min(16);
    (RETRY_FIRST_S << doublings).min(RETRY_MOST_S)
}

/// Whether a build waits after a failure. It need not even be looked at.
pub fn is_resting(build: &TemplateBuild, now: Seconds) -> bool {
    build.attempt > 0 && build.upid.is_none() && now.since(build.last_progress_at) < retry_after_s(build.attempt)
}

/// Decides what a pass does about a build.
pub fn next_template_step(build: &TemplateBuild, sight: &BuildSight, order: &BuildOrder<'_>) -> TemplateDecision {
    let now = order.now;
    match &sight.task {
        TemplateTask::Running(_) if build.retired && build.step == TemplateStep::Download => {
            return TemplateDecision::Perform(TemplateChange::StopTask);
        }
        TemplateTask::Running(progress) => return running(build, *progress),
        TemplateTask::Unreachable => return waiting(build, no_answer(build)),
        // It is known by the name of the file alone: what it leaves is compared when it has ended.
        TemplateTask::Found(_) if build.step == TemplateStep::Download && order.has_checksum && !build.retired => {
            return TemplateDecision::Wait;
        }
        TemplateTask::Found(upid) => {
            return TemplateBuild { upid: Some(upid.clone()), last_progress_at: now, ..build.clone() }.into();
        }
        TemplateTask::None | TemplateTask::Done | TemplateTask::Failed(_) | TemplateTask::Lost => {}
    }
    if build.retired && build.step < TemplateStep::Destroy {
        return build.at(TemplateStep::Destroy, now).into();
    }
    if is_resting(build, now) {
        return TemplateDecision::Wait;
    }
    match build.step {
        TemplateStep::Discard => discard_step(build, sight, now),
        TemplateStep::Download => download_step(build, sight, order),
        TemplateStep::Create => create_step(build, sight, now),
        TemplateStep::Configure => configure_step(build, sight, now),
        TemplateStep::Convert => convert_step(build, sight, order),
        TemplateStep::Ready => ready_step(build, sight, order),
        TemplateStep::Destroy => destroy_step(build, sight, now),
        TemplateStep::DeleteImage => delete_image_step(build, sight, now),
    }
}

/// Progress is written down in steps of ten, not for every line of a log.
fn running(build: &TemplateBuild, progress: Option<u32>) -> TemplateDecision {
    let tens = progress.map(|percent| percent.min(100) / 10 * 10);
    if tens.is_some() && tens > build.progress {
        return TemplateBuild { progress: tens, error: None, ..build.clone() }.into();
    }
    if build.error.as_ref() == Some(&no_answer(build)) {
        return TemplateBuild { error: None, ..build.clone() }.into();
    }
    TemplateDecision::Wait
}

/// The build with a sentence about what it waits for; a sentence that is there already is not written again.
pub(crate) fn waiting(build: &TemplateBuild, words: String) -> TemplateDecision {
    if build.error.as_ref() == Some(&words) {
        return TemplateDecision::Wait;
    }
    TemplateBuild { error: Some(words), ..build.clone() }.into()
}

fn create_step(build: &TemplateBuild, sight: &BuildSight, now: Seconds) -> TemplateDecision {
    let in_flight = now.since(build.last_progress_at) <= IN_FLIGHT_S;
    let vmid = build.vmid;
    match (&sight.vm, &sight.task) {
        // Whatever became of the task: what it was to create is there.
        (ObservedTemplate::Ours { .. }, _) => build.advanced(now).into(),
        (ObservedTemplate::Foreign(_) | ObservedTemplate::Disputed(_), _) => moved(taken(vmid)),
        (ObservedTemplate::Unreachable, _) => waiting(build, no_answer(build)),
        (ObservedTemplate::Locked(lock), _) => waiting(build, format!("VM {vmid} is locked (lock: {lock})")),
        // Somebody was faster: a VM of somebody else, or an earlier call of ours that was thought lost. It shows which.
        (ObservedTemplate::Creating | ObservedTemplate::Hidden, TemplateTask::Failed(BuildFailure::IdTaken)) => {
            TemplateBuild { upid: None, last_progress_at: now, ..build.clone() }.into()
        }
        (ObservedTemplate::Creating | ObservedTemplate::Hidden, TemplateTask::Lost | TemplateTask::Failed(_)) => {
            let why = format!("the creation of VM {vmid} was interrupted");
            TemplateDecision::Move { why, leftover: Some(incomplete(build)) }
        }
        // No task of ours creates it, and no request of ours is on its way any more. Should it turn out to be ours after all,
        // it is still written down.
        (ObservedTemplate::Creating, TemplateTask::None) if !in_flight => {
            TemplateDecision::Move { why: taken(vmid), leftover: Some(taken(vmid)) }
        }
        (ObservedTemplate::Hidden, TemplateTask::None) if !in_flight => moved(taken(vmid)),
        (ObservedTemplate::Hidden, TemplateTask::Done) => build
            .failed(
                format!("the API token cannot read VM {vmid}, which was created; grant VM.Audit on its resource pool"),
                now,
            )
            .into(),
        (ObservedTemplate::Creating | ObservedTemplate::Hidden | ObservedTemplate::Unseen, _) => TemplateDecision::Wait,
        (ObservedTemplate::Absent, TemplateTask::Failed(BuildFailure::ImageMissing(words))) => {
            let again = TemplateBuild { downloaded: false, ordered_at: None, ..build.at(TemplateStep::Download, now) };
            again.failed(words.clone(), now).into()
        }
        (ObservedTemplate::Absent, TemplateTask::Failed(failure)) => {
            build.failed(failure.words().to_owned(), now).into()
        }
        (ObservedTemplate::Absent, TemplateTask::Done | TemplateTask::Lost) => {
            build.failed(format!("the creation of VM {vmid} ended, but the VM does not exist"), now).into()
        }
        (ObservedTemplate::Absent, _) => TemplateDecision::Perform(TemplateChange::Create),
    }
}

fn configure_step(build: &TemplateBuild, sight: &BuildSight, now: Seconds) -> TemplateDecision {
    match &sight.vm {
        ObservedTemplate::Ours { is_as_described: true, .. } => build.advanced(now).into(),
        ObservedTemplate::Ours { .. } => TemplateDecision::Perform(TemplateChange::Configure),
        other => not_ours(build, other),
    }
}

fn convert_step(build: &TemplateBuild, sight: &BuildSight, order: &BuildOrder<'_>) -> TemplateDecision {
    match (&sight.vm, &sight.task) {
        // A conversion that died in the middle cannot be repeated. Nothing is cloned from it yet: another one is made.
        (ObservedTemplate::Ours { .. }, TemplateTask::Lost | TemplateTask::Failed(_)) if sight.is_half_converted => {
            let why = format!("the conversion of VM {} was interrupted; it is destroyed and made again", build.vmid);
            TemplateBuild { retired: true, error: Some(why), ..build.at(TemplateStep::Destroy, order.now) }.into()
        }
        (ObservedTemplate::Ours { is_template: true, .. }, _) => {
            TemplateBuild { in_place: Some(order.in_place.to_owned()), ..build.advanced(order.now) }.into()
        }
        (ObservedTemplate::Ours { .. }, TemplateTask::Failed(failure)) => {
            build.failed(failure.words().to_owned(), order.now).into()
        }
        (ObservedTemplate::Ours { .. }, TemplateTask::Done | TemplateTask::Lost) => {
            build.failed(format!("VM {} is not a template after its conversion ended", build.vmid), order.now).into()
        }
        (ObservedTemplate::Ours { .. }, _) => TemplateDecision::Perform(TemplateChange::Convert),
        (other, _) => not_ours(build, other),
    }
}

fn ready_step(build: &TemplateBuild, sight: &BuildSight, order: &BuildOrder<'_>) -> TemplateDecision {
    let in_place = Some(order.in_place.to_owned());
    match &sight.vm {
        ObservedTemplate::Unseen => TemplateDecision::Wait,
        ObservedTemplate::Ours { is_template: false, .. } => build.at(TemplateStep::Convert, order.now).into(),
        ObservedTemplate::Ours { is_as_described: false, .. } => TemplateDecision::Perform(TemplateChange::Configure),
        ObservedTemplate::Ours { .. } => {
            let clones = sight.clones.or(build.clones);
            if build.in_place == in_place && build.error.is_none() && build.clones == clones {
                return TemplateDecision::Wait;
            }
            TemplateBuild { in_place, clones, ..build.at(TemplateStep::Ready, order.now) }.into()
        }
        other => not_ours(build, other),
    }
}

/// A VM that was there and is not, or is not ours any more.
fn not_ours(build: &TemplateBuild, vm: &ObservedTemplate) -> TemplateDecision {
    let vmid = build.vmid;
    match vm {
        ObservedTemplate::Absent => moved(format!("VM {vmid} does not exist any more")),
        ObservedTemplate::Foreign(why) => moved(format!("VM {vmid} is another VM now: {why}")),
        ObservedTemplate::Disputed(why) => {
            waiting(build, format!("VM {vmid} is left alone: {why}; set smbios1 of the VM back, or delete the VM"))
        }
        ObservedTemplate::Locked(lock) => waiting(build, format!("VM {vmid} is locked (lock: {lock})")),
        ObservedTemplate::Creating => waiting(build, incomplete(build)),
        ObservedTemplate::Hidden => {
            waiting(build, format!("the API token cannot read VM {vmid} any more; grant VM.Audit on it"))
        }
        ObservedTemplate::Unreachable => waiting(build, no_answer(build)),
        ObservedTemplate::Unseen | ObservedTemplate::Ours { .. } => TemplateDecision::Wait,
    }
}

fn taken(vmid: VmId) -> String {
    format!("VM ID {vmid} is in use by another VM")
}

fn moved(why: String) -> TemplateDecision {
    TemplateDecision::Move { why, leftover: None }
}

pub(crate) fn no_answer(build: &TemplateBuild) -> String {
    format!("host {} does not answer", build.place.host)
}

/// What an operator is told about a VM whose creation was interrupted.
pub(crate) fn incomplete(build: &TemplateBuild) -> String {
    let (vmid, host) = (build.vmid, &build.place.host);
    format!(
        "VM {vmid} is incomplete and cannot be removed with an API token; on host {host} run: qm config {vmid}. If it shows \
         lock: create and no task runs for it, run: qm unlock {vmid} && qm destroy {vmid} --purge --destroy-unreferenced-disks 1"
    )
}
