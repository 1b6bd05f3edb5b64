//! What comes next, case by case.

use tenon_engine::launch::{AwaitedEnd, Failure, LaunchDecision, LaunchResult, LaunchTime, ObservedTask, ObservedVm};
use tenon_model::{LaunchLimits, LaunchRecord, LaunchStep, Leftover, Place, Seconds};

pub(crate) fn record(step: LaunchStep) -> LaunchRecord {
    let place = Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() };
    let first = LaunchRecord::new(place, "20001".parse().unwrap(), "9000".parse().unwrap(), Seconds(1_000));
    let upid = None;
    LaunchRecord { step, upid, ..first }
}

pub(crate) fn at(now: i64) -> LaunchTime {
    LaunchTime { now: Seconds(now), limits: LaunchLimits { stalled_s: 300, task_s: 1_800 }, blocked_since: Seconds(0) }
}

fn ours() -> ObservedVm {
    ObservedVm::Ours { uuid: Some("u1".to_owned()) }
}

fn decide(step: LaunchStep, vm: &ObservedVm, task: &ObservedTask) -> LaunchDecision {
    tenon_engine::launch::next_step(&record(step), vm, task, &at(1_010))
}

fn next(step: LaunchStep, vm: &ObservedVm, task: &ObservedTask) -> LaunchResult {
    next_step(&record(step), vm, task, Seconds(1_010))
}

/// What comes of a pass that makes no change.
fn next_step(record: &LaunchRecord, vm: &ObservedVm, task: &ObservedTask, now: Seconds) -> LaunchResult {
    match tenon_engine::launch::next_step(record, vm, task, &at(now.0)) {
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
        assert!(matches!(action, LaunchResult::Relaunch { leftover: Leftover::Nothing, .. }), "{action:?}");
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
    let late = next_step(&record(LaunchStep::Clone), &locked, &taken, Seconds(1_301));
    assert!(matches!(late, LaunchResult::Relaunch { leftover: Leftover::Nothing, .. }), "{late:?}");
}

#[test]
fn a_husk_is_kept_in_mind_and_the_launch_goes_on_under_another_id() {
    let action = next(LaunchStep::Clone, &ObservedVm::Locked("clone".to_owned()), &ObservedTask::Lost);
    assert!(matches!(&action, LaunchResult::Relaunch { leftover: Leftover::IncompleteClone, .. }), "{action:?}");
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
    let late = next_step(&record(LaunchStep::Configure), &ObservedVm::Unreachable, &ObservedTask::None, Seconds(1_301));
    assert!(matches!(late, LaunchResult::GiveUp(_)), "{late:?}");
}

#[test]
fn what_was_removed_under_our_hands_goes_back_to_planning() {
    let action = next(LaunchStep::Resize, &ObservedVm::Absent, &ObservedTask::None);
    assert!(matches!(&action, LaunchResult::GiveUp(why) if why.contains("removed")), "{action:?}");
}

#[test]
fn a_task_that_does_not_end_is_followed_for_as_long_as_a_task_may_run() {
    let record = LaunchRecord {
        upid: Some("UPID:pve1:00002874:00091F65:6AF96A3F:qmclone:9000:a@pve!b:".to_owned()),
        ..record(LaunchStep::Clone)
    };
    let at = |now| next_step(&record, &ObservedVm::Absent, &ObservedTask::Running, Seconds(now));
    // Longer than a launch may stand still: a full copy takes its time.
    assert_eq!(at(2_800), LaunchResult::Wait(AwaitedEnd::Task));
    assert_eq!(at(2_801), LaunchResult::GiveUp("task qmclone on host pve1 did not end within 30 min".to_owned()));
}

#[test]
fn a_task_whose_host_is_dead_ends_the_launch_and_is_not_sent_again() {
    for step in [LaunchStep::Clone, LaunchStep::Resize] {
        for vm in [ObservedVm::Unreachable, ObservedVm::Locked("clone".to_owned())] {
            let soon = next_step(&record(step), &vm, &ObservedTask::Unreachable, Seconds(1_010));
            assert!(matches!(soon, LaunchResult::Wait(_)), "{step:?} {vm:?} {soon:?}");
            let late = next_step(&record(step), &vm, &ObservedTask::Unreachable, Seconds(1_301));
            assert!(!matches!(late, LaunchResult::Wait(_)), "{step:?} {vm:?} {late:?}");
        }
    }
    let gone = next_step(&record(LaunchStep::Clone), &ObservedVm::Absent, &ObservedTask::Unreachable, Seconds(1_301));
    assert_eq!(gone, LaunchResult::GiveUp("host pve1 did not answer for 5 min".to_owned()));
    // HA moved the VM to a host that answers: the step is made there.
    let moved = decide(LaunchStep::Resize, &ours(), &ObservedTask::Unreachable);
    assert_eq!(moved, LaunchDecision::Perform(LaunchStep::Resize));
}

#[test]
fn a_clone_that_cannot_be_read_is_followed_by_its_task() {
    let upid = "UPID:pve1:00002874:00091F65:6AF96A3F:qmclone:9000:a@pve!b:".to_owned();
    let found = next(LaunchStep::Clone, &ObservedVm::Hidden, &ObservedTask::Found(upid.clone()));
    assert!(matches!(&found, LaunchResult::Record(next) if next.upid == Some(upid)), "{found:?}");
    let hidden =
        |task: &ObservedTask, now| next_step(&record(LaunchStep::Clone), &ObservedVm::Hidden, task, Seconds(now));
    assert_eq!(hidden(&ObservedTask::None, 1_060), LaunchResult::Wait(AwaitedEnd::HiddenVm));
    // No task of ours clones into the id, and no request of ours is on its way: somebody else has it.
    let foreign = hidden(&ObservedTask::None, 1_061);
    assert!(matches!(foreign, LaunchResult::Relaunch { leftover: Leftover::Nothing, .. }), "{foreign:?}");
    let husk = hidden(&ObservedTask::Lost, 1_010);
    assert!(matches!(husk, LaunchResult::Relaunch { leftover: Leftover::IncompleteClone, .. }), "{husk:?}");
    let unreadable = hidden(&ObservedTask::Done, 1_301);
    assert!(matches!(&unreadable, LaunchResult::GiveUp(why) if why.contains("cannot read it")), "{unreadable:?}");
}

#[test]
fn a_storage_without_linked_clones_gets_a_full_clone() {
    let refused = ObservedTask::Failed(Failure::NoLinkedClone("not supported".to_owned()));
    let LaunchResult::Record(again) = next(LaunchStep::Clone, &ObservedVm::Absent, &refused) else {
        panic!("it should be cloned again")
    };
    assert!(again.full_clone && again.step == LaunchStep::Clone);
    let last = next_step(&again, &ObservedVm::Absent, &refused, Seconds(1_010));
    assert_eq!(last, LaunchResult::GiveUp("not supported".to_owned()));
}

#[test]
fn a_vm_in_another_state_than_assumed_is_looked_at_again() {
    let running = ObservedTask::Failed(Failure::OtherState("VM 20001 already running".to_owned()));
    let again = next(LaunchStep::Start, &ours(), &running);
    assert!(matches!(&again, LaunchResult::Record(next) if next.attempt == 2 && next.upid.is_none()), "{again:?}");
}

#[test]
fn no_more_than_three_ids_are_tried_for_one_launch() {
    let mut record = record(LaunchStep::Clone);
    let foreign = ObservedVm::Foreign("no mark".to_owned());
    for number in 20_002..=20_004_u32 {
        let moved = next_step(&record, &foreign, &ObservedTask::None, Seconds(1_010));
        assert!(matches!(moved, LaunchResult::Relaunch { .. }), "{moved:?}");
        record = record.moved_to(number.try_into().unwrap(), Leftover::Nothing, Seconds(1_010));
    }
    assert_eq!(record.retired.iter().map(|id| id.get()).collect::<Vec<_>>(), [20_001, 20_002, 20_003]);
    assert!(record.incomplete.is_empty());
    let ended = next_step(&record, &foreign, &ObservedTask::None, Seconds(1_010));
    assert!(matches!(ended, LaunchResult::GiveUp(_)), "{ended:?}");
}

#[test]
fn what_stands_still_only_for_a_moment_does_not_end_a_launch_that_took_long() {
    let time = LaunchTime { blocked_since: Seconds(2_000), ..at(2_010) };
    let launch = tenon_engine::launch::next_step(
        &record(LaunchStep::Clone),
        &ObservedVm::Locked("clone".to_owned()),
        &ObservedTask::Unreachable,
        &time,
    );
    assert!(matches!(launch, LaunchDecision::Conclude(LaunchResult::Wait(_))), "{launch:?}");
    let time = LaunchTime { blocked_since: Seconds(2_000), ..at(2_301) };
    assert!(time.is_stalled(&record(LaunchStep::Clone)));
}

#[test]
fn a_clone_of_somebody_else_on_our_id_is_never_taken_for_our_incomplete_one() {
    let locked = ObservedVm::Locked("clone".to_owned());
    for task in [ObservedTask::None, ObservedTask::Failed(Failure::IdTaken)] {
        let left = next_step(&record(LaunchStep::Clone), &locked, &task, Seconds(1_301));
        assert!(matches!(left, LaunchResult::Relaunch { leftover: Leftover::Nothing, .. }), "{task:?} {left:?}");
    }
}

#[test]
fn a_step_whose_worker_dies_every_time_ends() {
    let mut record = record(LaunchStep::Start);
    for _ in 0..2 {
        let LaunchResult::Record(again) = next_step(&record, &ours(), &ObservedTask::Lost, Seconds(1_010)) else {
            panic!("it should be tried again")
        };
        record = again;
    }
    let ended = next_step(&record, &ours(), &ObservedTask::Lost, Seconds(1_010));
    assert!(matches!(&ended, LaunchResult::GiveUp(why) if why.contains("worker")), "{ended:?}");
}
