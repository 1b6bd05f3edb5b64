//! Labels of one's own: what pods and pools say of them (D1).

use crate::packing::cluster::{demand_on, expect, reason};

const ONE: &str = "type one cpu=8 memory=16Gi price=1";

/// A pod with a demand on `team`, and whether it finds a node.
#[track_caller]
fn expect_met(pool: &str, need: &str, is_met: bool) {
    let told = if is_met { "default/one: p" } else { "p waits" };
    expect(&format!("{ONE}\npool default {pool}\npod p cpu=1 need:team={need}"), &[told]);
}

#[test]
fn a_pod_that_asks_for_nothing_goes_to_a_pool_with_labels() {
    for pool in ["label:team=red", "need:team=In:red,blue", "need:team=NotIn:red", "need:team=Exists"] {
        expect(&format!("{ONE}\npool default {pool}\npod p cpu=1"), &["default/one: p"]);
    }
}

#[test]
fn an_undefined_label_is_not_met_by_in_exists_or_a_bound() {
    for need in ["In:red", "Exists", "Gt:1", "Lt:1", "Gte:1", "Lte:1"] {
        expect_met("", need, false);
    }
    let why = reason(&format!("{ONE}\npod p cpu=1 need:team=In:red"));
    assert!(why.contains("incompatible requirements, label team does not have known values"), "{why}");
}

#[test]
fn an_undefined_label_is_met_by_not_in_and_does_not_exist() {
    for need in ["NotIn:red", "DoesNotExist"] {
        expect_met("", need, true);
    }
}

#[test]
fn a_label_of_the_pool_is_matched_by_in_not_in_other_and_exists() {
    for need in ["In:red", "In:red,blue", "NotIn:blue", "Exists"] {
        expect_met("label:team=red", need, true);
    }
}

#[test]
fn a_label_of_the_pool_conflicts_with_other_values_and_with_absence() {
    for need in ["In:blue", "NotIn:red", "DoesNotExist", "Gt:1"] {
        expect_met("label:team=red", need, false);
    }
}

#[test]
fn a_demand_of_the_pool_is_matched_within_and_conflicts_outside() {
    for (need, is_met) in [
        ("In:red", true),
        ("In:green", false),
        ("NotIn:red", true),
        ("NotIn:red,blue", false),
        ("Exists", true),
        ("DoesNotExist", false),
    ] {
        expect_met("need:team=In:red,blue", need, is_met);
    }
}

#[test]
fn exists_does_not_overwrite_the_value_a_label_has() {
    let text = format!("{ONE}\npool default label:team=red\npod p cpu=1 need:team=Exists");
    assert_eq!(demand_on("team", &text), "In [red]");
    let two = format!("{ONE}\npool default label:team=red\npod p cpu=1 need:team=In:red\npod q cpu=1 need:team=Exists");
    assert_eq!(demand_on("team", &two), "In [red]");
}

#[test]
fn a_pool_that_asks_for_any_value_takes_the_pods_value() {
    let text = format!("{ONE}\npool default need:team=Exists\npod p cpu=1 need:team=In:red");
    assert_eq!(demand_on("team", &text), "In [red]");
}

#[test]
fn pods_whose_demands_agree_share_a_node() {
    let pods =
        |a: &str, b: &str| format!("{ONE}\npool default need:team=In:red,blue\npod a cpu=1 {a}\npod b cpu=1 {b}");
    expect(&pods("need:team=In:red", "need:team=In:red,blue"), &["default/one: a b"]);
    expect(&pods("need:team=In:red", "need:team=Exists"), &["default/one: a b"]);
    expect(&pods("need:team=NotIn:red", "need:team=In:blue"), &["default/one: a b"]);
}

#[test]
fn pods_whose_demands_disagree_get_a_node_each() {
    let pods =
        |a: &str, b: &str| format!("{ONE}\npool default need:team=In:red,blue\npod a cpu=1 {a}\npod b cpu=1 {b}");
    let apart = ["default/one: a", "default/one: b"];
    expect(&pods("need:team=In:red", "need:team=In:blue"), &apart);
    expect(&pods("need:team=In:red", "need:team=NotIn:red"), &apart);
    // Each of them agrees with the pool, and the pair leaves nothing.
    expect(&pods("need:team=NotIn:red", "need:team=NotIn:blue"), &apart);
}

#[test]
fn any_of_a_pods_terms_will_do_and_the_first_is_tried_first() {
    let zones = "type one cpu=8 memory=16Gi price=1 zone=a,b";
    expect(&format!("{zones}\npod p cpu=1 or:zone=In:c or:zone=In:b"), &["default/one: p"]);
    assert_eq!(demand_on("zone", &format!("{zones}\npod p cpu=1 or:zone=In:b or:zone=In:a")), "In [b]");
    // What the selector says holds for every term.
    expect(&format!("{zones}\npod p cpu=1 need:arch=In:arm64 or:zone=In:a or:zone=In:b"), &["p waits"]);
}

#[test]
fn a_pod_that_was_refused_for_a_label_nobody_spoke_of_is_tried_again_when_another_pod_spoke_of_it() {
    let large = "type one cpu=8 memory=16Gi price=1";
    let pods = "pod c cpu=3\npod b cpu=2 need:team=In:blue\npod a cpu=1 need:team=NotIn:red";
    expect(&format!("{large}\n{pods}"), &["default/one: a b c"]);
    expect(
        &format!("{large}\npod c cpu=3\npod b cpu=2 need:team=In:blue\npod a cpu=1"),
        &["default/one: a c", "b waits"],
    );
}
