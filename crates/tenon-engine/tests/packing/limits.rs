//! Limits of pools (C6).

use crate::cluster::{expect, reason};

const SIZES: &str = "type small cpu=2 memory=4Gi price=1\ntype large cpu=8 memory=16Gi price=4";

#[test]
fn a_limit_may_be_met_exactly_and_not_passed() {
    expect(&format!("{SIZES}\npool default limit:cpu=2\npod p cpu=1"), &["default/small: p"]);
    expect(&format!("{SIZES}\npool default limit:cpu=1\npod p cpu=1"), &["p waits"]);
    expect(&format!("{SIZES}\npool default limit:cpu=10 used:cpu=8\npod p cpu=1"), &["default/small: p"]);
    expect(&format!("{SIZES}\npool default limit:cpu=10 used:cpu=9\npod p cpu=1"), &["p waits"]);
}

#[test]
fn sizes_that_would_pass_the_limit_are_left_out() {
    let why = reason(&format!("{SIZES}\npool default limit:cpu=4\npod p cpu=3"));
    assert!(why.contains("no instance type has enough resources"), "{why}");
    let why = reason(&format!("{SIZES}\npool default limit:cpu=1\npod p cpu=1"));
    assert!(why.contains("all available instance types exceed limits for nodepool"), "{why}");
}

#[test]
fn within_a_plan_each_node_counts_as_the_largest_it_may_become() {
    let pods = "pod a cpu=1500m\npod b cpu=1500m memory=15Gi";
    expect(&format!("{SIZES}\npool default limit:cpu=16\n{pods}"), &["default/large: a b"]);
    // The first may become large, which leaves two cores: enough for a small one, not for b.
    let pods = "pod a cpu=7\npod b cpu=6";
    expect(&format!("{SIZES}\npool default limit:cpu=10\n{pods}"), &["default/large: a", "b waits"]);
}

#[test]
fn nodes_are_counted_within_a_plan_too() {
    let pods = "pod a cpu=7\npod b cpu=7\npod c cpu=7";
    expect(
        &format!("{SIZES}\npool default limit:nodes=2\n{pods}"),
        &["default/large: a", "default/large: b", "c waits"],
    );
    let why = reason(&format!("{SIZES}\npool default limit:nodes=3 used:nodes=3\npod p cpu=1"));
    assert!(why.contains("node limits have been exhausted for nodepool"), "{why}");
}

#[test]
fn other_resources_are_limited_the_same_way_and_what_is_not_named_is_not() {
    let gpu = "type gpu cpu=2 memory=4Gi gpu=2 price=1";
    expect(
        &format!("{gpu}\npool default limit:gpu=2\npod a cpu=2 gpu=1\npod b cpu=2 gpu=1"),
        &["default/gpu: a", "b waits"],
    );
    expect(
        &format!("{gpu}\npool default limit:gpu=4\npod a cpu=2 gpu=1\npod b cpu=2 gpu=1"),
        &["default/gpu: a", "default/gpu: b"],
    );
}

#[test]
fn a_pool_at_its_limit_leaves_the_pod_to_the_next() {
    expect(&format!("{SIZES}\npool heavy weight=9 limit:cpu=1\npool light\npod p cpu=1"), &["light/small: p"]);
}
