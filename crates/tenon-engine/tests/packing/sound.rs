//! What is left of a spoilt plan: nothing that breaks a rule, and everything else.

use std::sync::Arc;

use proptest::prelude::*;
use tenon_engine::{CheckedPlan, Subject, check, sound_part};
use tenon_model::{Placement, Plan, PodKey, Reason, Snapshot, Unplaced};

use crate::packing::cluster::{amounts, cluster, place, sound_plan, told};

/// Two nodes of their own, a third pod on a node that is there, and one that nothing fits.
const FOUR: &str = "type one cpu=4 memory=8Gi price=1\nnode n1 cpu=1 memory=8Gi\n\
                    pod a cpu=3\npod b cpu=3\npod c cpu=1\npod d cpu=99";

fn planned(text: &str) -> (Snapshot, Plan) {
    let snapshot = cluster(text);
    let plan = sound_plan(&snapshot);
    (snapshot, plan)
}

/// The sound part, which is checked once more.
#[track_caller]
fn salvaged(snapshot: &Snapshot, plan: Plan) -> CheckedPlan {
    let left = sound_part(snapshot, plan);
    assert!(check(snapshot, &left.plan).is_empty(), "{:?}", check(snapshot, &left.plan));
    left
}

fn bug(plan: &Plan, pod: &str) -> String {
    let found = plan.unplaced.iter().find(|waits| *waits.pod.name == *pod).unwrap();
    assert!(matches!(found.reason, Reason::CheckFailed(_)), "{found:?}");
    found.reason.to_string()
}

#[test]
fn a_sound_plan_stays_as_it_is() {
    let (snapshot, plan) = planned(FOUR);
    let left = salvaged(&snapshot, plan.clone());
    assert_eq!((left.plan, left.violations.len()), (plan, 0));
}

#[test]
fn a_new_node_that_cannot_be_is_dropped_and_its_pods_hear_that_it_is_a_bug() {
    let (snapshot, mut plan) = planned(FOUR);
    plan.new_nodes[0].chosen.place = Some(place("pve9"));
    let lost = plan.new_nodes[0].pods[0].name.to_string();
    let left = salvaged(&snapshot, plan);
    assert_eq!(left.plan.new_nodes.len(), 1);
    assert!(told(&left.plan).contains(&"n1: c".to_owned()), "{:?}", told(&left.plan));
    let said = bug(&left.plan, &lost);
    let words = "the plan for this pod failed its check: new node 1 (NodePool default, one) is created from an offering \
                 that does not exist; this is a bug in Tenon, please report it";
    assert_eq!(said, words);
    assert_eq!(left.violations.len(), 1);
    assert_eq!(left.violations[0].concerns(), [Subject::NewNode(0)]);
}

#[test]
fn a_pod_that_must_not_be_there_leaves_its_node_to_the_others() {
    let (mut snapshot, plan) = planned("type one cpu=4 memory=8Gi price=1\npod a cpu=1\npod b cpu=1\npod c cpu=1");
    assert_eq!(told(&plan).len(), 1, "{:?}", told(&plan));
    Arc::make_mut(&mut snapshot.pods[1]).unsupported = Some("x".to_owned());
    let left = salvaged(&snapshot, plan).plan;
    assert_eq!(told(&left), ["default/one: a c", "b waits"]);
    assert!(bug(&left, "b").contains("pod default/b is placed, but asks for something that is not supported yet"));
}

#[test]
fn pods_that_are_forgotten_doubled_or_unknown_are_mentioned_once_or_not_at_all() {
    let (snapshot, mut plan) = planned(FOUR);
    let other = Arc::new(PodKey { name: "stranger".into(), ..PodKey::default() });
    plan.placements[0].pod = other.clone();
    plan.unplaced.push(Unplaced { pod: plan.new_nodes[0].pods[0].clone(), reason: Reason::NoPools });
    plan.unplaced.push(Unplaced { pod: other, reason: Reason::NoPools });
    let left = salvaged(&snapshot, plan).plan;
    assert_eq!((left.new_nodes.len(), left.placements.len(), left.unplaced.len()), (1, 0, 3), "{left:?}");
}

#[test]
fn an_existing_node_that_takes_too_much_takes_nothing() {
    let (snapshot, mut plan) = planned(FOUR);
    let moved = plan.new_nodes.pop().unwrap();
    plan.placements.extend(moved.pods.into_iter().map(|pod| Placement { pod, node: "n1".to_owned() }));
    let left = salvaged(&snapshot, plan).plan;
    assert_eq!((left.new_nodes.len(), left.placements.len()), (1, 0));
    assert!(bug(&left, "c").contains("node n1 takes more pods than it has cpu for"));
}

#[test]
fn a_limit_costs_the_new_nodes_of_its_pool_and_a_full_host_those_on_it() {
    let (mut snapshot, plan) = planned(
        "type one cpu=4 memory=8Gi price=1\npool default weight=1\npool other taint=x:NoSchedule\n\
        pod a cpu=3\npod b cpu=3 tolerate=x need:nodepool=In:other",
    );
    assert_eq!(plan.new_nodes.len(), 2);
    Arc::make_mut(snapshot.pools.iter_mut().find(|pool| pool.name == "other").unwrap()).limits = amounts("1", "1Gi");
    assert_eq!(told(&salvaged(&snapshot, plan).plan), ["default/one: a", "b waits"]);
    let (mut snapshot, plan) = planned(
        "host pve1 cpu=16 memory=64Gi\nhost pve2 cpu=16 memory=64Gi\n\
        pod a cpu=1 need:zone=In:pve1\npod b cpu=1 need:zone=In:pve2",
    );
    snapshot.hosts.iter_mut().find(|host| host.place == place("pve1")).unwrap().closed = Some("offline".to_owned());
    let left = salvaged(&snapshot, plan).plan;
    assert_eq!((left.new_nodes.len(), &*left.new_nodes[0].pods[0].name), (1, "b"));
    assert!(bug(&left, "a").contains("host pve1 cannot be used: offline"));
}

proptest! {
    #[test]
    fn however_a_plan_is_spoilt_what_is_left_is_sound(spoil in proptest::collection::vec((0..9_u8, 0..4_usize), 1..6)) {
        let (snapshot, mut plan) = planned(FOUR);
        for (how, which) in spoil {
            let nodes = plan.new_nodes.len().max(1);
            let node = plan.new_nodes.get_mut(which % nodes);
            match (how, node) {
                (0, Some(node)) => node.pods.clear(),
                (1, Some(node)) => node.pool = "nowhere".to_owned(),
                (2, Some(node)) => node.instance_types = ["unknown".to_owned()].into(),
                (3, Some(node)) => node.requests = amounts("0", "0"),
                (4, Some(node)) => { let twice = node.clone(); plan.new_nodes.push(twice); }
                (5, Some(node)) => { let pods = node.pods.clone(); plan.placements.extend(pods.into_iter().map(|pod| Placement { pod, node: "n1".to_owned() })); }
                (6, _) => { plan.unplaced.pop(); }
                (7, _) => plan.placements.iter_mut().for_each(|placement| placement.node = "n9".to_owned()),
                _ => { let again = plan.unplaced.clone(); plan.unplaced.extend(again); }
            }
        }
        salvaged(&snapshot, plan);
    }
}
