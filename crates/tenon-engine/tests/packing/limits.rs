//! Limits of pools (C6).

use crate::packing::cluster::{cluster, expect, reason, sound_plan};
use crate::packing::laws::carried_out;

const SIZES: &str = "type small cpu=2 memory=4Gi price=1\ntype large cpu=8 memory=16Gi price=4";

#[test]
fn a_pool_over_its_limit_makes_nothing() {
    expect(&format!("{SIZES}\npool default limit:cpu=10 used:cpu=12\npod p cpu=1"), &["p waits"]);
    expect(&format!("{SIZES}\npool default limit:cpu=10 used:cpu=10\npod p cpu=1"), &["p waits"]);
    let why = reason(&format!("{SIZES}\npool default limit:cpu=10 used:cpu=12\npod p cpu=1"));
    assert!(why.contains("all available instance types exceed limits for nodepool"), "{why}");
}

#[test]
fn a_limit_may_be_met_exactly() {
    expect(&format!("{SIZES}\npool default limit:cpu=2\npod p cpu=1"), &["default/small: p"]);
    expect(&format!("{SIZES}\npool default limit:cpu=10 used:cpu=8\npod p cpu=1"), &["default/small: p"]);
}

#[test]
fn a_limit_is_not_passed() {
    expect(&format!("{SIZES}\npool default limit:cpu=1\npod p cpu=1"), &["p waits"]);
    expect(&format!("{SIZES}\npool default limit:cpu=10 used:cpu=9\npod p cpu=1"), &["p waits"]);
    expect(&format!("{SIZES}\npool default limit:cpu=9 limit:memory=3Gi\npod p cpu=1"), &["p waits"]);
}

#[test]
fn sizes_that_would_pass_the_limit_are_left_out() {
    let why = reason(&format!("{SIZES}\npool default limit:cpu=4\npod p cpu=3"));
    assert!(why.contains("no instance type has enough resources"), "{why}");
    let plan = sound_plan(&cluster(&format!("{SIZES}\npool default limit:cpu=4\npod p cpu=1")));
    assert_eq!(plan.new_nodes[0].instance_types[..], ["small"]);
}

#[test]
fn as_many_pods_are_placed_as_the_limit_allows() {
    let pods = "pod a cpu=7\npod b cpu=6";
    expect(&format!("{SIZES}\npool default limit:cpu=10\n{pods}"), &["default/large: a", "b waits"]);
}

#[test]
fn within_a_plan_each_node_counts_as_the_largest_it_may_become() {
    let pods = "pod a cpu=1500m\npod b cpu=1500m memory=15Gi";
    expect(&format!("{SIZES}\npool default limit:cpu=16\n{pods}"), &["default/large: a b"]);
    // The first may become large, and what that leaves is not even enough for a small one.
    let pods = "pod a cpu=2 need:zone=In:a\npod b cpu=1 port=80\npod c cpu=1 port=80";
    let plan = sound_plan(&cluster(&format!("{SIZES}\npool default limit:cpu=9\n{pods}")));
    assert_eq!((plan.new_nodes.len(), plan.unplaced.len()), (1, 1));
}

#[test]
fn a_limit_on_devices_counts_like_any_other() {
    let gpu = "type gpu cpu=2 memory=4Gi gpu=2 price=1";
    let pods = "pod a cpu=2 gpu=1\npod b cpu=2 gpu=1";
    expect(&format!("{gpu}\npool default limit:gpu=2\n{pods}"), &["default/gpu: a", "b waits"]);
    expect(&format!("{gpu}\npool default limit:gpu=4\n{pods}"), &["default/gpu: a", "default/gpu: b"]);
    expect(&format!("{gpu}\npool default limit:gpu=1\npod a cpu=2 gpu=1"), &["a waits"]);
}

#[test]
fn a_limit_holds_from_one_plan_to_the_next() {
    let text = format!("{SIZES}\npool default limit:cpu=8\npod a cpu=7");
    let mut after = carried_out(&cluster(&text));
    after.pods = cluster(&format!("{SIZES}\npod b cpu=1500m\npod c cpu=1")).pods;
    let plan = sound_plan(&after);
    assert!(plan.new_nodes.is_empty(), "{plan:?}");
    // What fits on the node that was made goes there, the other one waits for the limit.
    let waiting: Vec<&str> = plan.unplaced.iter().map(|waiting| &*waiting.pod.name).collect();
    assert_eq!((waiting, plan.placements.len()), (vec!["b"], 1));
}

#[test]
fn nodes_are_counted_within_a_plan() {
    let pods = "pod a cpu=7\npod b cpu=7\npod c cpu=7";
    expect(
        &format!("{SIZES}\npool default limit:nodes=2\n{pods}"),
        &["default/large: a", "default/large: b", "c waits"],
    );
}

#[test]
fn a_pool_with_all_its_nodes_says_that_they_are_exhausted() {
    for used in [3, 4] {
        let why = reason(&format!("{SIZES}\npool default limit:nodes=3 used:nodes={used}\npod p cpu=1"));
        assert!(why.contains("node limits have been exhausted for nodepool"), "{why}");
    }
    expect(&format!("{SIZES}\npool default limit:nodes=3 used:nodes=2\npod p cpu=1"), &["default/small: p"]);
}

#[test]
fn what_no_limit_names_is_not_limited() {
    expect(&format!("{SIZES}\npool default limit:gpu=0 used:cpu=999\npod p cpu=1"), &["default/small: p"]);
}

#[test]
fn a_pool_at_its_limit_leaves_the_pod_to_the_next() {
    expect(&format!("{SIZES}\npool heavy weight=9 limit:cpu=1\npool light\npod p cpu=1"), &["light/small: p"]);
}

#[test]
fn a_pool_at_its_limit_still_fills_the_nodes_it_has() {
    let node = "node n cpu=4 memory=8Gi pool=default rising";
    expect(&format!("{SIZES}\npool default limit:nodes=1 used:nodes=1\n{node}\npod p cpu=1"), &["n: p"]);
}
