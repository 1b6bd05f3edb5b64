//! Which pool makes the node: those that make none (C2), and which of several (C11).

use crate::packing::cluster::{cluster, expect, reason, sound_plan};

const ONE: &str = "type one cpu=4 memory=8Gi price=1";

#[test]
fn a_pool_that_is_not_ready_is_passed_over() {
    expect(&format!("{ONE}\npool a\npool b weight=9 not-ready=broken\npod p cpu=1"), &["a/one: p"]);
    expect(&format!("{ONE}\npool b not-ready=broken\npod p cpu=1"), &["p waits"]);
}

#[test]
fn a_pool_of_fixed_size_makes_no_node_for_a_pod() {
    expect(&format!("{ONE}\npool a\npool b weight=9 replicas=3\npod p cpu=1"), &["a/one: p"]);
    expect(&format!("{ONE}\npool b replicas=3\npod p cpu=1"), &["p waits"]);
}

#[test]
fn a_pool_with_nothing_to_make_nodes_of_is_passed_over() {
    expect(&format!("{ONE}\npool a\npool b weight=9 empty\npod p cpu=1"), &["a/one: p"]);
}

#[test]
fn without_a_pool_every_pod_waits_with_a_reason_even_beside_a_node_with_room() {
    let mut snapshot = cluster(&format!("{ONE}\nnode n cpu=4 memory=8Gi\npod p cpu=1\npod q cpu=1"));
    snapshot.pools.clear();
    let plan = sound_plan(&snapshot);
    assert_eq!(plan.unplaced.len(), 2);
    assert!(plan.unplaced.iter().all(|waiting| waiting.reason.to_string().contains("no dynamic nodepools found")));
}

#[test]
fn without_a_pool_that_makes_nodes_nothing_is_decided_and_each_pool_says_why() {
    let text = format!("{ONE}\npool b replicas=3\nnode n cpu=4 memory=8Gi\npod p cpu=1");
    expect(&text, &["p waits"]);
    assert!(reason(&text).contains("NodePool b: static NodePool (spec.replicas is set)"));
}

#[test]
fn a_pool_may_be_selected_by_name() {
    expect(&format!("{ONE}\npool a\npool b\npod p cpu=1 need:nodepool=In:a"), &["a/one: p"]);
    expect(&format!("{ONE}\npool a\npool b\npod p cpu=1 need:nodepool=In:c"), &["p waits"]);
}

#[test]
fn a_pool_may_be_selected_by_its_labels() {
    expect(&format!("{ONE}\npool a label:team=red\npool b\npod p cpu=1 need:team=In:red"), &["a/one: p"]);
    expect(&format!("{ONE}\npool a label:team=red\npool b\npod p cpu=1 need:team=DoesNotExist"), &["b/one: p"]);
}

#[test]
fn a_pool_whose_taint_only_advises_is_avoided_while_another_one_serves() {
    let two = format!("{ONE}\npool z taint=gpu:PreferNoSchedule\npool b");
    expect(&format!("{two}\npod p cpu=1"), &["b/one: p"]);
    expect(&format!("{two} limit:nodes=0\npod p cpu=1"), &["z/one: p"]);
}

#[test]
fn the_pool_with_more_weight_is_asked_first() {
    expect(&format!("{ONE}\npool a weight=9\npool b weight=1\npool c\npod p cpu=1"), &["a/one: p"]);
    // Even where it costs more.
    let two = "type cheap cpu=4 memory=8Gi price=1\ntype dear cpu=4 memory=8Gi price=9";
    let pools = "pool a weight=9 need:instance-type=In:dear\npool b";
    expect(&format!("{two}\n{pools}\npod p cpu=1"), &["a/dear: p"]);
}

#[test]
fn of_pools_with_equal_weight_the_last_by_name_is_asked_first() {
    expect(&format!("{ONE}\npool a\npool b\npod p cpu=1"), &["b/one: p"]);
    expect(&format!("{ONE}\npool a weight=3\npool b weight=3\npod p cpu=1"), &["b/one: p"]);
}

#[test]
fn a_pool_that_is_selected_is_used_whatever_the_weight_of_others() {
    expect(&format!("{ONE}\npool a weight=1\npool b weight=9\npod p cpu=1 need:nodepool=In:a"), &["a/one: p"]);
    expect(&format!("{ONE}\npool a label:team=red\npool b weight=9\npod p cpu=1 need:team=In:red"), &["a/one: p"]);
}

#[test]
fn a_lighter_pool_serves_whom_the_heavier_one_cannot() {
    let pools = "pool a weight=9 need:arch=In:arm64\npool b weight=5 taint=gpu:NoSchedule\npool c";
    expect(&format!("{ONE}\n{pools}\npod p cpu=1"), &["c/one: p"]);
}

#[test]
fn a_planned_node_of_a_lighter_pool_is_filled_before_a_new_one_of_a_heavier() {
    // The first pod can only go to b; the second could go to a, but there is room already.
    let pools = "pool a weight=9\npool b label:team=red";
    expect(&format!("{ONE}\n{pools}\npod p cpu=2 need:team=In:red\npod q cpu=1"), &["b/one: p q"]);
}
