//! What comes next in the life of a claim.

use tenon_engine::claim::{
    ClaimConditions, ClaimStep, DeletionCause, ObservedClaim, ObservedLaunch, ObservedNode, Obstacle,
    REGISTER_WITHIN_S, Unmanaged, next_step,
};
use tenon_model::{LaunchRecord, LaunchStep, Place, Seconds};

fn record(step: LaunchStep) -> LaunchRecord {
    let place = Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() };
    let record = LaunchRecord::new(place, "20000".parse().unwrap(), "9000".parse().unwrap(), Seconds(0));
    LaunchRecord { step, ..record }
}

/// A claim whose VM runs and of which nothing was said yet.
fn launched() -> ObservedClaim {
    ObservedClaim {
        has_finalizer: true,
        deleting_since: None,
        expires_at: None,
        launch: ObservedLaunch::Record(record(LaunchStep::Launched)),
        conditions: ClaimConditions::default(),
        node: ObservedNode::Absent,
        seed_deleted: false,
        skip_vm_deletion: false,
        register_within_s: REGISTER_WITHIN_S,
    }
}

fn ours(deleting: bool) -> ObservedNode {
    ObservedNode::Ours { deleting, obstacle: None }
}

fn said(count: usize) -> ClaimConditions {
    ClaimConditions { launched: count > 0, registered: count > 1, initialized: count > 2, ..ClaimConditions::default() }
}

fn step(seen: &ObservedClaim) -> ClaimStep {
    next_step(seen, Seconds(60))
}

#[test]
fn nothing_is_made_before_the_claim_is_held() {
    let seen =
        ObservedClaim { has_finalizer: false, launch: ObservedLaunch::Record(record(LaunchStep::Clone)), ..launched() };
    assert_eq!(step(&seen), ClaimStep::AddFinalizer);
    assert_eq!(step(&ObservedClaim { has_finalizer: true, ..seen }), ClaimStep::Launch(record(LaunchStep::Clone)));
}

#[test]
fn a_vm_that_runs_becomes_a_node_step_by_step() {
    let mut seen = launched();
    assert_eq!(step(&seen), ClaimStep::ReportLaunched(record(LaunchStep::Launched)));
    seen.conditions = said(1);
    assert_eq!(step(&seen), ClaimStep::AwaitNode(None));
    seen.node = ours(false);
    assert_eq!(step(&seen), ClaimStep::Register(record(LaunchStep::Launched)));
    seen.conditions = said(2);
    let obstacle = Obstacle::NotReady;
    seen.node = ObservedNode::Ours { deleting: false, obstacle: Some(obstacle.clone()) };
    assert_eq!(step(&seen), ClaimStep::AwaitReadiness(obstacle));
    seen.node = ours(false);
    assert_eq!(step(&seen), ClaimStep::Initialize);
    seen.conditions = said(3);
    assert_eq!(step(&seen), ClaimStep::DeleteSeed(record(LaunchStep::Launched)));
    seen.seed_deleted = true;
    assert_eq!(step(&seen), ClaimStep::Settled(record(LaunchStep::Launched)));
}

#[test]
fn a_node_of_the_same_name_that_is_another_machine_is_never_touched() {
    let stranger = ObservedNode::Stranger("another uuid".to_owned());
    let seen = ObservedClaim { conditions: said(1), node: stranger.clone(), ..launched() };
    assert_eq!(step(&seen), ClaimStep::AwaitNode(Some("another uuid".to_owned())));
    let going = ObservedClaim { deleting_since: Some(Seconds(1)), ..seen };
    assert_eq!(step(&going), ClaimStep::Release(record(LaunchStep::Launched)), "only its own VM goes");
}

#[test]
fn a_vm_that_never_joins_is_given_up_and_one_that_joined_is_not() {
    let seen = ObservedClaim { conditions: said(1), ..launched() };
    let late = Seconds(REGISTER_WITHIN_S + 1);
    assert_eq!(next_step(&seen, Seconds(REGISTER_WITHIN_S)), ClaimStep::AwaitNode(None));
    assert_eq!(next_step(&seen, late), ClaimStep::Delete(DeletionCause::NotRegistered));
    let patient = ObservedClaim { register_within_s: 2 * REGISTER_WITHIN_S, ..seen };
    assert_eq!(next_step(&patient, late), ClaimStep::AwaitNode(None), "its class gives it longer");
    let joined = ObservedClaim { conditions: said(3), node: ours(false), seed_deleted: true, ..launched() };
    assert_eq!(next_step(&joined, late), ClaimStep::Settled(record(LaunchStep::Launched)));
}

#[test]
fn g1_a_node_that_is_deleted_or_gone_takes_its_claim_along() {
    let deleted = ObservedClaim { conditions: said(3), node: ours(true), ..launched() };
    assert_eq!(step(&deleted), ClaimStep::Delete(DeletionCause::NodeDeleted));
    let gone = ObservedClaim { conditions: said(3), node: ObservedNode::Absent, ..launched() };
    assert_eq!(step(&gone), ClaimStep::Delete(DeletionCause::NodeDeleted));
}

#[test]
fn a_claim_that_is_too_old_goes_once_its_vm_is_ours() {
    let seen = ObservedClaim { conditions: said(3), node: ours(false), expires_at: Some(Seconds(60)), ..launched() };
    assert_eq!(next_step(&seen, Seconds(60)), ClaimStep::Delete(DeletionCause::Expired));
    assert_ne!(next_step(&seen, Seconds(59)), ClaimStep::Delete(DeletionCause::Expired));
    let unplanned = ObservedClaim { launch: ObservedLaunch::Unplanned, node: ObservedNode::Absent, ..seen.clone() };
    assert_eq!(next_step(&unplanned, Seconds(60)), ClaimStep::Delete(DeletionCause::Expired));
    let foreign = ObservedClaim { launch: ObservedLaunch::Foreign, ..seen };
    assert_eq!(next_step(&foreign, Seconds(60)), ClaimStep::Adopt);
}

#[test]
fn the_way_back_goes_node_pods_vm_claim() {
    let mut seen =
        ObservedClaim { conditions: said(3), node: ours(false), deleting_since: Some(Seconds(1)), ..launched() };
    assert_eq!(step(&seen), ClaimStep::DeleteNode);
    seen.node = ours(true);
    assert_eq!(step(&seen), ClaimStep::Drain);
    seen.conditions.drained = true;
    assert_eq!(step(&seen), ClaimStep::Release(record(LaunchStep::Launched)));
    seen.has_finalizer = false;
    assert_eq!(step(&seen), ClaimStep::LeaveAlone(Unmanaged::Released));
}

#[test]
fn a_claim_whose_vm_is_kept_deletes_its_node_and_does_not_wait_for_a_drain() {
    let mut seen = ObservedClaim { deleting_since: Some(Seconds(1)), skip_vm_deletion: true, ..launched() };
    seen.node = ours(false);
    assert_eq!(step(&seen), ClaimStep::DeleteNode);
    seen.node = ours(true);
    assert_eq!(step(&seen), ClaimStep::ReleaseWithoutVm(Some(record(LaunchStep::Launched))));
}

#[test]
fn the_time_to_register_counts_from_the_start_of_the_vm_however_long_its_launch_took() {
    let started = LaunchRecord { last_progress_at: Seconds(50_000), ..record(LaunchStep::Launched) };
    let mut seen = ObservedClaim { launch: ObservedLaunch::Record(started), ..launched() };
    seen.node = ObservedNode::Absent;
    seen.conditions = said(1);
    assert_eq!(next_step(&seen, Seconds(50_900)), ClaimStep::AwaitNode(None));
    assert_eq!(next_step(&seen, Seconds(50_901)), ClaimStep::Delete(DeletionCause::NotRegistered));
}

#[test]
fn what_tenon_did_not_make_is_adopted_before_it_is_released() {
    let mut seen = ObservedClaim { launch: ObservedLaunch::Foreign, deleting_since: Some(Seconds(1)), ..launched() };
    assert_eq!(step(&seen), ClaimStep::Adopt);
    seen.launch = ObservedLaunch::Unreadable("broken".to_owned());
    assert_eq!(step(&seen), ClaimStep::LeaveAlone(Unmanaged::Unreadable("broken".to_owned())));
    seen.skip_vm_deletion = true;
    assert_eq!(step(&seen), ClaimStep::ReleaseWithoutVm(None), "its operator takes care of the rest");
    let never_made = ObservedClaim { launch: ObservedLaunch::Unplanned, skip_vm_deletion: false, ..seen };
    assert_eq!(step(&never_made), ClaimStep::RemoveFinalizer);
}
