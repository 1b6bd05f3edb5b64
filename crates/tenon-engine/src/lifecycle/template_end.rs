//! How a VM template goes: only when nothing needs it, only with proof, and its image after it.

use tenon_model::{Seconds, TemplateBuild};

use super::template::{
    BuildSight, IN_FLIGHT_S, ObservedTemplate, TemplateChange, TemplateDecision, TemplateTask, TemplateUsers,
    incomplete, no_answer, waiting,
};

/// A plan that was made just before a template was retired may still name it. By then its NodeClaims are written, and show.
const GRACE_S: i64 = 30;

/// The VM of a build that is not wanted any more.
pub(crate) fn destroy_step(build: &TemplateBuild, sight: &BuildSight, now: Seconds) -> TemplateDecision {
    let vmid = build.vmid;
    let is_settled = now.since(build.last_progress_at) > IN_FLIGHT_S;
    match (&sight.vm, &sight.task) {
        (ObservedTemplate::Absent, TemplateTask::Done) => build.advanced(now).into(),
        // A creation that was sent just before may still come.
        (ObservedTemplate::Absent, _) if is_settled => build.advanced(now).into(),
        (ObservedTemplate::Absent | ObservedTemplate::Unseen, _) => TemplateDecision::Wait,
        (_, TemplateTask::Failed(failure)) => build.failed(failure.words().to_owned(), now).into(),
        (ObservedTemplate::Ours { .. }, _) => destroy(build, sight, now),
        // Ours is gone; the other one stays.
        (ObservedTemplate::Foreign(_), _) => build.advanced(now).into(),
        (ObservedTemplate::Disputed(why), _) => waiting(
            build,
            format!("VM {vmid} is left alone: {why}; set smbios1 of the VM back, or delete the VM yourself"),
        ),
        // Nothing but the lock is left in its configuration then.
        (ObservedTemplate::Locked(lock), _) if lock == "destroyed" => {
            let host = &build.place.host;
            waiting(
                build,
                format!(
                    "the deletion of VM {vmid} was interrupted, and an API token cannot finish it; on host {host} run: \
                     qm destroy {vmid} --skiplock 1"
                ),
            )
        }
        (ObservedTemplate::Locked(lock), _) => waiting(build, format!("VM {vmid} is locked (lock: {lock})")),
        (ObservedTemplate::Creating, _) => waiting(build, incomplete(build)),
        (ObservedTemplate::Hidden, _) => waiting(
            build,
            format!("the API token cannot read VM {vmid}; grant VM.Audit on it, or delete the VM yourself"),
        ),
        (ObservedTemplate::Unreachable, _) => waiting(build, no_answer(build)),
    }
}

/// It is ours: does anything need it?
fn destroy(build: &TemplateBuild, sight: &BuildSight, now: Seconds) -> TemplateDecision {
    match &sight.users {
        TemplateUsers::Some { count, words } => {
            let clones = Some(*count);
            if build.clones == clones && build.error.as_ref() == Some(words) {
                return TemplateDecision::Wait;
            }
            TemplateBuild { clones, error: Some(words.clone()), ..build.clone() }.into()
        }
        TemplateUsers::Unknown(why) => waiting(build, why.clone()),
        TemplateUsers::Unseen => TemplateDecision::Wait,
        TemplateUsers::None if now.since(build.last_progress_at) < GRACE_S => TemplateDecision::Wait,
        TemplateUsers::None => TemplateDecision::Perform(TemplateChange::Destroy),
    }
}

/// The image of a build whose VM is gone. Only our own download is deleted, and only if nothing is made from it.
pub(crate) fn delete_image_step(build: &TemplateBuild, sight: &BuildSight, now: Seconds) -> TemplateDecision {
    match &sight.task {
        _ if !build.downloaded || sight.image_is_needed => TemplateDecision::Forget,
        TemplateTask::Done => TemplateDecision::Forget,
        TemplateTask::Failed(failure) => build.failed(failure.words().to_owned(), now).into(),
        // Deleting what is not there succeeds, so it is asked for again.
        _ => TemplateDecision::Perform(TemplateChange::DeleteImage),
    }
}
