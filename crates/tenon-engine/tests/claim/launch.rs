//! What comes next, case by case.

use tenon_engine::launch::{AwaitedEnd, Failure, LaunchDecision, LaunchResult, ObservedTask, ObservedVm};
use tenon_model::{LaunchRecord, LaunchStep, Place, Seconds};

pub(crate) fn record(step: LaunchStep) -> LaunchRecord {
    let place = Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() };
    let first = LaunchRecord::new(place, "20001".parse().unwrap(), "9000".parse().unwrap(), Seconds(1_000));
    let upid = None;
    LaunchRecord { step, upid, ..first }
}

fn ours() -> ObservedVm {
    ObservedVm::Ours { uuid: Some("u1".to_owned()) }
}

fn decide(step: LaunchStep, vm: &ObservedVm, task: &ObservedTask) -> LaunchDecision {
    tenon_engine::launch::next_step(&record(step), vm, task, Seconds(1_010))
}

fn next(step: LaunchStep, vm: &ObservedVm, task: &ObservedTask) -> LaunchResult {
    next_step(&record(step), vm, task, Seconds(1_010))
}

/// What comes of a pass that makes no change.
fn next_step(record: &LaunchRecord, vm: &ObservedVm, task: &ObservedTask, now: Seconds) -> LaunchResult {
    match tenon_engine::launch::next_step(record, vm, task, now) {
        LaunchDecision::Conclude(result) => result,
        LaunchDecision::Perform(step) => panic!("{step:?} should not be performed"),
    }
}

#[test]
fn an_intent_without_a_trace_is_carried_out() {
    assert_eq!(
        decide(LaunchStep::Clone, &ObservedVm::Absent, &ObservedTask::None),
        LaunchDecision::Perform(LaunchStep::Clone)
    );
}

#[test]
fn a_lost_reply_is_looked_for_and_never_sent_again_blindly() {
    // The copy is under way, though nobody told us its task.
    let locked = ObservedVm::Locked("clone".to_owned());
    assert_eq!(
        next(LaunchStep::Clone, &locked, &ObservedTask::None),
        LaunchResult::Wait(AwaitedEnd::Lock("clone".to_owned()))
    );
    // It was done, though nobody told us.
    let LaunchResult::Record(after) = next(LaunchStep::Clone, &ours(), &ObservedTask::None) else {
        panic!("it should go on")
    };
    assert_eq!(after.step, LaunchStep::Identify);
}

#[test]
fn a_running_task_is_followed_whatever_else_is_seen() {
    for vm in [ObservedVm::Absent, ObservedVm::Unreachable, ObservedVm::Locked("clone".to_owned()), ours()] {
        assert_eq!(
            next(LaunchStep::Clone, &vm, &ObservedTask::Running),
            LaunchResult::Wait(AwaitedEnd::Task),
            "{vm:?}"
        );
    }
}

#[test]
fn an_id_that_somebody_else_took_is_left_to_them() {
    let foreign = ObservedVm::Foreign("no mark".to_owned());
    for (vm, task) in [
        (&foreign, ObservedTask::None),
        (&foreign, ObservedTask::Failed(Failure::IdTaken)),
        (&ObservedVm::Absent, ObservedTask::Failed(Failure::IdTaken)),
    ] {
        let action = next(LaunchStep::Clone, vm, &task);
        assert!(matches!(action, LaunchResult::Relaunch { incomplete: None, .. }), "{action:?}");
    }
    // Once we had made changes under the id, a stranger there is reported, never touched.
    for step in [LaunchStep::Configure, LaunchStep::Resize, LaunchStep::Start] {
        let action = next(step, &foreign, &ObservedTask::None);
        assert!(matches!(&action, LaunchResult::Refuse(why) if why.contains("20001")), "{action:?}");
    }
}

#[test]
fn an_id_that_a_late_call_of_ours_took_is_ours() {
    let taken = ObservedTask::Failed(Failure::IdTaken);
    let LaunchResult::Record(after) = next(LaunchStep::Clone, &ours(), &taken) else { panic!("it should go on") };
    assert_eq!((after.step, after.vmid.get()), (LaunchStep::Identify, 20_001));
    // Whose it is cannot be read yet: it is waited for, and not for ever.
    let locked = ObservedVm::Locked("clone".to_owned());
    assert_eq!(next(LaunchStep::Clone, &locked, &taken), LaunchResult::Wait(AwaitedEnd::Lock("clone".to_owned())));
    let late = next_step(&record(LaunchStep::Clone), &locked, &taken, Seconds(1_601));
    assert!(matches!(late, LaunchResult::Relaunch { incomplete: Some(_), .. }), "{late:?}");
}

#[test]
fn a_husk_is_kept_in_mind_and_the_launch_goes_on_under_another_id() {
    let action = next(LaunchStep::Clone, &ObservedVm::Locked("clone".to_owned()), &ObservedTask::Lost);
    assert!(matches!(&action, LaunchResult::Relaunch { incomplete: Some(id), .. } if id.get() == 20_001), "{action:?}");
}

#[test]
fn the_uuid_is_written_down_before_anything_is_changed() {
    let LaunchResult::Record(after) = next(LaunchStep::Identify, &ours(), &ObservedTask::None) else {
        panic!("it should be recorded")
    };
    assert_eq!((after.step, after.uuid.as_deref()), (LaunchStep::Configure, Some("u1")));
    let action = next(LaunchStep::Identify, &ObservedVm::Ours { uuid: None }, &ObservedTask::None);
    assert!(matches!(action, LaunchResult::GiveUp(_)), "{action:?}");
}

#[test]
fn a_hopeless_failure_goes_back_to_planning_and_a_passing_one_is_tried_three_times() {
    let full = ObservedTask::Failed(Failure::Hopeless("storage `fast` is full".to_owned()));
    assert_eq!(
        next(LaunchStep::Clone, &ObservedVm::Absent, &full),
        LaunchResult::GiveUp("storage `fast` is full".to_owned())
    );
    let busy = ObservedTask::Failed(Failure::Busy("can't lock file".to_owned()));
    let mut record = record(LaunchStep::Start);
    for attempt in 2..=3 {
        let LaunchResult::Record(again) = next_step(&record, &ours(), &busy, Seconds(1_010)) else {
            panic!("it should be tried again")
        };
        assert_eq!((again.attempt, again.upid.clone()), (attempt, None));
        record = again;
    }
    assert!(matches!(next_step(&record, &ours(), &busy, Seconds(1_010)), LaunchResult::GiveUp(_)));
}

#[test]
fn a_host_out_of_reach_is_waited_for_but_not_for_ever() {
    assert_eq!(
        next(LaunchStep::Configure, &ObservedVm::Unreachable, &ObservedTask::None),
        LaunchResult::Wait(AwaitedEnd::Host)
    );
    let late = next_step(&record(LaunchStep::Configure), &ObservedVm::Unreachable, &ObservedTask::None, Seconds(1_601));
    assert!(matches!(late, LaunchResult::GiveUp(_)), "{late:?}");
}

#[test]
fn what_was_removed_under_our_hands_goes_back_to_planning() {
    let action = next(LaunchStep::Resize, &ObservedVm::Absent, &ObservedTask::None);
    assert!(matches!(&action, LaunchResult::GiveUp(why) if why.contains("removed")), "{action:?}");
}
