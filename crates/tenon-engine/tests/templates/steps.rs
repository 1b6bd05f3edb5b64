//! One VM template, a step at a time.

use tenon_engine::template::{
    BuildFailure, BuildOrder, BuildSight, ObservedImage, ObservedTemplate, TemplateChange, TemplateDecision,
    TemplateTask, TemplateUsers, next_template_step, retry_after_s,
};
use tenon_model::{Seconds, TemplateBuild, TemplateStep};

use crate::templates::build;

pub(super) const UPID: &str = "UPID:pve1:0:0:0:qmcreate:1000:a@pve!b:";

pub(super) fn decide_at(now: i64, build: &TemplateBuild, sight: &BuildSight, has_checksum: bool) -> TemplateDecision {
    decide_for(build, sight, &BuildOrder { now: Seconds(now), in_place: "a", has_checksum, certifies: true })
}

pub(super) fn decide_for(build: &TemplateBuild, sight: &BuildSight, order: &BuildOrder<'_>) -> TemplateDecision {
    next_template_step(build, sight, order)
}

pub(super) fn decide(build: &TemplateBuild, sight: &BuildSight) -> TemplateDecision {
    decide_at(1_010, build, sight, false)
}

pub(super) fn at(step: TemplateStep) -> TemplateBuild {
    TemplateBuild { step, ..build("pve1", 1000) }
}

pub(super) fn sees(vm: ObservedTemplate, task: TemplateTask) -> BuildSight {
    BuildSight { vm, task, ..BuildSight::default() }
}

fn ours(is_template: bool, is_as_described: bool) -> ObservedTemplate {
    ObservedTemplate::Ours { is_template, is_as_described }
}

pub(super) fn recorded(decision: TemplateDecision) -> TemplateBuild {
    match decision {
        TemplateDecision::Record(build) => build,
        other => panic!("{other:?}"),
    }
}

pub(super) fn image(image: ObservedImage, task: TemplateTask) -> BuildSight {
    BuildSight { image, task, ..BuildSight::default() }
}

#[test]
fn a_lost_task_is_followed_and_nothing_is_sent_twice() {
    let found = sees(ObservedTemplate::Creating, TemplateTask::Found(UPID.to_owned()));
    let followed = recorded(decide(&at(TemplateStep::Create), &found));
    assert_eq!(followed.upid.as_deref(), Some(UPID));
    let running = sees(ObservedTemplate::Unseen, TemplateTask::Running(None));
    assert_eq!(decide(&followed, &running), TemplateDecision::Wait);
    // The VM proves itself, whatever became of the task.
    for task in [TemplateTask::None, TemplateTask::Lost, TemplateTask::Failed(BuildFailure::IdTaken)] {
        assert_eq!(recorded(decide(&followed, &sees(ours(false, false), task))).step, TemplateStep::Configure);
    }
}

#[test]
fn a_foreign_vm_under_the_id_means_another_id() {
    let foreign = || ObservedTemplate::Foreign("its SMBIOS UUID is another".to_owned());
    for step in [TemplateStep::Create, TemplateStep::Configure, TemplateStep::Convert, TemplateStep::Ready] {
        let decision = decide(&at(step), &sees(foreign(), TemplateTask::None));
        assert!(matches!(decision, TemplateDecision::Move { leftover: None, .. }), "{step:?}: {decision:?}");
    }
    let retired = TemplateBuild { retired: true, ..at(TemplateStep::Destroy) };
    let left = decide(&retired, &sees(foreign(), TemplateTask::None));
    assert_eq!(recorded(left).step, TemplateStep::DeleteImage, "it is never destroyed");
}

#[test]
fn a_vm_whose_proof_is_disputed_is_neither_changed_nor_destroyed() {
    let disputed = || sees(ObservedTemplate::Disputed("its SMBIOS UUID is another".to_owned()), TemplateTask::None);
    for step in [TemplateStep::Configure, TemplateStep::Convert, TemplateStep::Ready, TemplateStep::Destroy] {
        let build = TemplateBuild { retired: step == TemplateStep::Destroy, ..at(step) };
        let told = recorded(decide(&build, &disputed()));
        assert_eq!(told.step, step);
        assert!(told.error.as_ref().unwrap().contains("left alone"), "{told:?}");
        assert_eq!(decide(&told, &disputed()), TemplateDecision::Wait, "a sentence is written once");
    }
}

#[test]
fn an_interrupted_creation_stays_in_the_record_and_another_id_is_taken() {
    let build = TemplateBuild { upid: Some(UPID.to_owned()), ..at(TemplateStep::Create) };
    let decision = decide(&build, &sees(ObservedTemplate::Creating, TemplateTask::Lost));
    let TemplateDecision::Move { leftover: Some(words), .. } = decision else { panic!("{decision:?}") };
    assert!(words.contains("qm unlock 1000 && qm destroy 1000"), "{words}");
    // Nobody's creation that we know of may still be our own for a minute.
    let unknown = sees(ObservedTemplate::Creating, TemplateTask::None);
    assert_eq!(decide(&at(TemplateStep::Create), &unknown), TemplateDecision::Wait);
    let late = decide_at(1_100, &at(TemplateStep::Create), &unknown, false);
    assert!(matches!(late, TemplateDecision::Move { leftover: Some(_), .. }), "{late:?}");
}

#[test]
fn a_failure_rests_longer_each_time_up_to_a_quarter_of_an_hour() {
    let failing = image(ObservedImage::Absent, TemplateTask::Failed(BuildFailure::Other("404".to_owned())));
    let failed = recorded(decide(&at(TemplateStep::Download), &failing));
    assert_eq!((failed.attempt, failed.error.as_deref()), (1, Some("404")));
    let absent = image(ObservedImage::Absent, TemplateTask::None);
    let failed = TemplateBuild { ordered_at: Some(Seconds(1_000)), ..failed };
    assert_eq!(decide_at(1_010 + 29, &failed, &absent, false), TemplateDecision::Wait);
    let again = decide_at(1_010 + 30, &failed, &absent, false);
    assert_eq!(again, TemplateDecision::Perform(TemplateChange::Download));
    let rests: Vec<i64> = (1..=8).map(retry_after_s).collect();
    assert_eq!(rests, [30, 60, 120, 240, 480, 900, 900, 900]);
    assert_eq!(retry_after_s(u32::MAX), 900);
}

#[test]
fn a_finished_template_is_kept_as_described_and_replaced_when_it_is_gone() {
    let ready = at(TemplateStep::Ready);
    assert_eq!(decide(&ready, &sees(ours(true, true), TemplateTask::None)), TemplateDecision::Wait);
    let other = decide(&ready, &sees(ours(true, false), TemplateTask::None));
    assert_eq!(other, TemplateDecision::Perform(TemplateChange::Configure));
    assert!(matches!(
        decide(&ready, &sees(ObservedTemplate::Absent, TemplateTask::None)),
        TemplateDecision::Move { .. }
    ));
    let away = recorded(decide(&ready, &sees(ObservedTemplate::Unreachable, TemplateTask::None)));
    assert_eq!((away.step, away.vmid), (TemplateStep::Ready, ready.vmid), "a host that does not answer proves nothing");
}

#[test]
fn a_conversion_that_died_is_repeated_and_one_that_died_in_the_middle_is_made_again() {
    let build = TemplateBuild { upid: Some(UPID.to_owned()), ..at(TemplateStep::Convert) };
    let failed = recorded(decide(&build, &sees(ours(false, true), TemplateTask::Lost)));
    assert_eq!((failed.step, failed.attempt), (TemplateStep::Convert, 1));
    let again = decide_at(1_100, &failed, &sees(ours(false, true), TemplateTask::None), false);
    assert_eq!(again, TemplateDecision::Perform(TemplateChange::Convert));
    let half = BuildSight { is_half_converted: true, ..sees(ours(true, true), TemplateTask::Lost) };
    let retired = recorded(decide(&build, &half));
    assert!(retired.retired && retired.step == TemplateStep::Destroy, "{retired:?}");
}

#[test]
fn the_clones_of_a_template_that_serves_are_written_down_when_their_number_changes() {
    let counted = |clones| BuildSight { clones, ..sees(ours(true, true), TemplateTask::None) };
    let ready = at(TemplateStep::Ready);
    let told = recorded(decide(&ready, &counted(Some(2))));
    assert_eq!(told.clones, Some(2));
    for same in [Some(2), None] {
        assert_eq!(decide(&told, &counted(same)), TemplateDecision::Wait);
    }
}

#[test]
fn a_deletion_that_died_is_repeated_and_what_only_its_host_can_remove_is_told() {
    let build = TemplateBuild { retired: true, upid: Some(UPID.to_owned()), ..at(TemplateStep::Destroy) };
    let lost = BuildSight { users: TemplateUsers::None, ..sees(ours(true, true), TemplateTask::Lost) };
    assert_eq!(decide_at(1_100, &build, &lost, false), TemplateDecision::Perform(TemplateChange::Destroy));
    let husk = sees(ObservedTemplate::Locked("destroyed".to_owned()), TemplateTask::Lost);
    let told = recorded(decide(&build, &husk)).error.unwrap();
    assert!(told.contains("on host pve1 run: qm destroy 1000 --skiplock 1"), "{told}");
}

#[test]
fn a_template_goes_when_nothing_uses_it_and_a_plan_of_before_has_come_to_light() {
    let retired = TemplateBuild { retired: true, ..at(TemplateStep::Destroy) };
    let with = |users| BuildSight { vm: ours(true, true), users, ..BuildSight::default() };
    let used = TemplateUsers::Some { count: 2, words: "VM 1000 is kept".to_owned() };
    let told = recorded(decide_at(5_000, &retired, &with(used.clone()), false));
    assert_eq!((told.clones, told.error.as_deref()), (Some(2), Some("VM 1000 is kept")));
    assert_eq!(decide_at(5_000, &told, &with(used), false), TemplateDecision::Wait);
    assert_eq!(decide_at(1_029, &retired, &with(TemplateUsers::None), false), TemplateDecision::Wait);
    let destroyed = decide_at(1_030, &retired, &with(TemplateUsers::None), false);
    assert_eq!(destroyed, TemplateDecision::Perform(TemplateChange::Destroy));
    let unknown = decide_at(5_000, &retired, &with(TemplateUsers::Unknown("no list".to_owned())), false);
    assert_eq!(recorded(unknown).step, TemplateStep::Destroy);
}

#[test]
fn an_image_is_deleted_only_if_we_downloaded_it_and_nothing_else_is_made_from_it() {
    let end = TemplateBuild { retired: true, downloaded: true, ..at(TemplateStep::DeleteImage) };
    let needed = BuildSight { image_is_needed: true, ..BuildSight::default() };
    assert_eq!(decide(&end, &needed), TemplateDecision::Forget);
    assert_eq!(decide(&end, &BuildSight::default()), TemplateDecision::Perform(TemplateChange::DeleteImage));
    let found = TemplateBuild { downloaded: false, ..end };
    assert_eq!(decide(&found, &BuildSight::default()), TemplateDecision::Forget);
}

#[test]
fn a_vm_that_is_not_there_may_still_come_for_a_minute() {
    let retired = TemplateBuild { retired: true, ..at(TemplateStep::Destroy) };
    let absent = sees(ObservedTemplate::Absent, TemplateTask::None);
    assert_eq!(decide_at(1_060, &retired, &absent, false), TemplateDecision::Wait);
    assert_eq!(recorded(decide_at(1_061, &retired, &absent, false)).step, TemplateStep::DeleteImage);
}
