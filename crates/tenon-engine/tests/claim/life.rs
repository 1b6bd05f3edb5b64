//! What comes next in the life of a claim.

use tenon_engine::claim::{
    ClaimSeen, ClaimStep, Ending, LaunchSeen, Leaving, NodeSeen, Obstacle, REGISTER_WITHIN_S, Said, next_step,
};
use tenon_model::{LaunchRecord, LaunchStep, Place, Seconds};

fn record(step: LaunchStep) -> LaunchRecord {
    let place = Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() };
    let record = LaunchRecord::new(place, "20000".parse().unwrap(), "9000".parse().unwrap(), Seconds(0));
    LaunchRecord { step, ..record }
}

/// A claim whose VM runs and of which nothing was said yet.
fn launched() -> ClaimSeen {
    ClaimSeen {
        has_finalizer: true,
        deleting_since: None,
        expires_at: None,
        launch: LaunchSeen::Record(record(LaunchStep::Launched)),
        said: Said::default(),
        node: NodeSeen::Absent,
        seed_retired: false,
        let_go: false,
    }
}

fn ours(deleting: bool) -> NodeSeen {
    NodeSeen::Ours { deleting, obstacle: None }
}

fn said(count: usize) -> Said {
    Said { launched: count > 0, registered: count > 1, initialized: count > 2, ..Said::default() }
}

fn step(seen: &ClaimSeen) -> ClaimStep {
    next_step(seen, Seconds(60))
}

#[test]
fn nothing_is_made_before_the_claim_is_held() {
    let seen = ClaimSeen { has_finalizer: false, launch: LaunchSeen::Record(record(LaunchStep::Clone)), ..launched() };
    assert_eq!(step(&seen), ClaimStep::Hold);
    assert_eq!(step(&ClaimSeen { has_finalizer: true, ..seen }), ClaimStep::Launch(record(LaunchStep::Clone)));
}

#[test]
fn a_vm_that_runs_becomes_a_node_step_by_step() {
    let mut seen = launched();
    assert_eq!(step(&seen), ClaimStep::SayLaunched(record(LaunchStep::Launched)));
    seen.said = said(1);
    assert_eq!(step(&seen), ClaimStep::AwaitNode(None));
    seen.node = ours(false);
    assert_eq!(step(&seen), ClaimStep::Register(record(LaunchStep::Launched)));
    seen.said = said(2);
    let obstacle = Obstacle { reason: "NodeNotReady", message: "x".to_owned() };
    seen.node = NodeSeen::Ours { deleting: false, obstacle: Some(obstacle.clone()) };
    assert_eq!(step(&seen), ClaimStep::AwaitReadiness(obstacle));
    seen.node = ours(false);
    assert_eq!(step(&seen), ClaimStep::Initialize);
    seen.said = said(3);
    assert_eq!(step(&seen), ClaimStep::RetireSeed(record(LaunchStep::Launched)));
    seen.seed_retired = true;
    assert_eq!(step(&seen), ClaimStep::Settled(record(LaunchStep::Launched)));
}

#[test]
fn a_node_of_the_same_name_that_is_another_machine_is_never_touched() {
    let stranger = NodeSeen::Stranger("another uuid".to_owned());
    let seen = ClaimSeen { said: said(1), node: stranger.clone(), ..launched() };
    assert_eq!(step(&seen), ClaimStep::AwaitNode(Some("another uuid".to_owned())));
    let going = ClaimSeen { deleting_since: Some(Seconds(1)), ..seen };
    assert_eq!(step(&going), ClaimStep::Release(record(LaunchStep::Launched)), "only its own VM goes");
}

#[test]
fn a_vm_that_never_joins_is_given_up_and_one_that_joined_is_not() {
    let seen = ClaimSeen { said: said(1), ..launched() };
    let late = Seconds(REGISTER_WITHIN_S + 1);
    assert_eq!(next_step(&seen, Seconds(REGISTER_WITHIN_S)), ClaimStep::AwaitNode(None));
    assert_eq!(next_step(&seen, late), ClaimStep::Delete(Ending::NeverJoined));
    let joined = ClaimSeen { said: said(3), node: ours(false), seed_retired: true, ..launched() };
    assert_eq!(next_step(&joined, late), ClaimStep::Settled(record(LaunchStep::Launched)));
}

#[test]
fn a_node_that_is_deleted_or_gone_takes_its_claim_along() {
    let deleted = ClaimSeen { said: said(3), node: ours(true), ..launched() };
    assert_eq!(step(&deleted), ClaimStep::Delete(Ending::NodeGone));
    let gone = ClaimSeen { said: said(3), node: NodeSeen::Absent, ..launched() };
    assert_eq!(step(&gone), ClaimStep::Delete(Ending::NodeGone));
}

#[test]
fn a_claim_that_is_too_old_goes_and_one_that_was_never_launched_is_not_too_old() {
    let seen = ClaimSeen { said: said(3), node: ours(false), expires_at: Some(Seconds(60)), ..launched() };
    assert_eq!(next_step(&seen, Seconds(60)), ClaimStep::Delete(Ending::Expired));
    assert_ne!(next_step(&seen, Seconds(59)), ClaimStep::Delete(Ending::Expired));
    let foreign = ClaimSeen { launch: LaunchSeen::Foreign, ..seen };
    assert_eq!(next_step(&foreign, Seconds(60)), ClaimStep::Leave(Leaving::Foreign));
}

#[test]
fn the_way_back_goes_node_pods_vm_claim() {
    let mut seen = ClaimSeen { said: said(3), node: ours(false), deleting_since: Some(Seconds(1)), ..launched() };
    assert_eq!(step(&seen), ClaimStep::DeleteNode);
    seen.node = ours(true);
    assert_eq!(step(&seen), ClaimStep::Drain);
    seen.said.drained = true;
    assert_eq!(step(&seen), ClaimStep::Release(record(LaunchStep::Launched)));
    seen.has_finalizer = false;
    assert_eq!(step(&seen), ClaimStep::Leave(Leaving::Released));
}

#[test]
fn what_tenon_did_not_make_is_never_released() {
    let mut seen = ClaimSeen { launch: LaunchSeen::Foreign, deleting_since: Some(Seconds(1)), ..launched() };
    assert_eq!(step(&seen), ClaimStep::Leave(Leaving::Foreign));
    seen.launch = LaunchSeen::Unreadable("broken".to_owned());
    assert_eq!(step(&seen), ClaimStep::Leave(Leaving::Unreadable("broken".to_owned())));
    seen.let_go = true;
    assert_eq!(step(&seen), ClaimStep::LetGo, "its operator takes care of the rest");
    let never_made = ClaimSeen { launch: LaunchSeen::Unplanned, let_go: false, ..seen };
    assert_eq!(step(&never_made), ClaimStep::LetGo);
}
