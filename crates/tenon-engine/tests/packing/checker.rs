//! The checker finds what is wrong with a plan that was spoilt.

use tenon_engine::check;
use tenon_model::{Placement, Plan, Snapshot};

use crate::cluster::{cluster, host, node, place, pod, sound_plan};

#[track_caller]
fn expect_violation(snapshot: &Snapshot, plan: &Plan, words: &str) {
    let violations = check(snapshot, plan);
    assert!(violations.iter().any(|violation| violation.to_string().contains(words)), "{violations:?}");
}

fn planned() -> (Snapshot, Plan) {
    let snapshot = cluster(vec![pod("a", "500m", "1Gi"), pod("b", "500m", "1Gi")]);
    let plan = sound_plan(&snapshot);
    (snapshot, plan)
}

#[test]
fn a_forgotten_or_doubled_pod_is_found() {
    let (snapshot, plan) = planned();
    let mut forgotten = plan.clone();
    let lost = forgotten.new_nodes[0].pods.pop().unwrap();
    expect_violation(&snapshot, &forgotten, "spoken of 0 times");
    let mut doubled = plan;
    doubled.new_nodes[0].pods.push(lost);
    let again = doubled.new_nodes[0].pods[0].clone();
    doubled.new_nodes[0].pods.push(again);
    expect_violation(&snapshot, &doubled, "spoken of 2 times");
}

#[test]
fn a_node_too_small_or_a_host_too_full_is_found() {
    let (mut snapshot, plan) = planned();
    let mut small = plan.clone();
    small.new_nodes[0].instance_type = "c1.1VCPU-2GB".to_owned();
    expect_violation(&snapshot, &small, "is too small");
    snapshot.hosts[0] = host("pve1", "1", "1Gi");
    expect_violation(&snapshot, &plan, "host pve1 is overfull");
    snapshot.hosts[0].closed = Some("it is offline".to_owned());
    expect_violation(&snapshot, &plan, "host pve1 cannot be used");
}

#[test]
fn a_place_or_a_limit_that_is_not_the_pools_is_found() {
    let (mut snapshot, mut plan) = planned();
    snapshot.pools[0].limits = crate::cluster::amounts("1", "1Gi");
    expect_violation(&snapshot, &plan, "passes its limit");
    plan.new_nodes[0].place = place("pve9");
    expect_violation(&snapshot, &plan, "has no place");
    expect_violation(&snapshot, &plan, "host pve9 is not known");
}

#[test]
fn an_overfull_node_is_found() {
    let mut snapshot = cluster(vec![pod("a", "2", "1Gi")]);
    snapshot.nodes = vec![node("n1", "1", "8Gi")];
    let placement = Placement { pod: snapshot.pods[0].key.clone(), node: "n1".to_owned() };
    let plan = Plan { placements: vec![placement], ..Plan::default() };
    expect_violation(&snapshot, &plan, "node n1 is overfull");
}
