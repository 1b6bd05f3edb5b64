//! Wishes for nodes, and the order in which they are given up (C10).

use crate::packing::cluster::{demand_on, expect};

const ONE: &str = "type one cpu=8 memory=16Gi price=1 zone=a,b,c capacity-type=spot,on-demand";

/// What the node of a pod demands of its zone.
#[track_caller]
fn zone(pod: &str) -> String {
    demand_on("zone", &format!("{ONE}\npod p cpu=1 {pod}"))
}

#[test]
fn a_wish_is_a_demand_while_it_can_be_met() {
    assert_eq!(zone("prefer:1:zone=In:b"), "In [b]");
}

#[test]
fn a_wish_that_cannot_be_met_is_given_up() {
    assert_eq!(zone("prefer:1:zone=In:x"), "");
    assert_eq!(zone("prefer:1:zone=In:x prefer:5:zone=In:y prefer:9:zone=In:z"), "");
}

#[test]
fn the_heaviest_wish_comes_first_and_of_equal_ones_the_first_written() {
    assert_eq!(zone("prefer:1:zone=In:a prefer:9:zone=In:b"), "In [b]");
    assert_eq!(zone("prefer:5:zone=In:c prefer:5:zone=In:a"), "In [c]");
}

#[test]
fn lighter_wishes_are_tried_when_heavier_ones_fail() {
    assert_eq!(zone("prefer:1:zone=In:a prefer:9:zone=In:x prefer:5:zone=In:c"), "In [c]");
    assert_eq!(zone("prefer:1:zone=In:a prefer:9:zone=In:x prefer:5:zone=In:y"), "In [a]");
}

#[test]
fn lighter_wishes_are_not_looked_at_while_a_heavier_one_holds() {
    // Together they would leave nothing.
    assert_eq!(zone("prefer:9:zone=In:b prefer:1:zone=In:c"), "In [b]");
    assert_eq!(zone("prefer:9:zone=In:b prefer:1:capacity-type=In:free"), "In [b]");
}

#[test]
fn a_demand_wins_over_a_wish_that_conflicts_with_it() {
    assert_eq!(zone("need:zone=In:a prefer:9:zone=In:b"), "In [a]");
    expect(&format!("{ONE}\npod p cpu=1 need:zone=In:x prefer:9:zone=In:b"), &["p waits"]);
}

#[test]
fn terms_are_given_up_one_after_the_other() {
    assert_eq!(zone("or:zone=In:x or:zone=In:y or:zone=In:c"), "In [c]");
    assert_eq!(zone("or:zone=In:b or:zone=In:c"), "In [b]");
}

#[test]
fn the_last_term_is_never_given_up() {
    expect(&format!("{ONE}\npod p cpu=1 or:zone=In:x"), &["p waits"]);
    expect(&format!("{ONE}\npod p cpu=1 or:zone=In:x or:zone=In:y prefer:9:zone=In:b"), &["p waits"]);
}

#[test]
fn terms_are_given_up_before_wishes() {
    assert_eq!(zone("or:zone=In:a or:zone=In:b prefer:9:zone=In:b"), "In [b]");
}

#[test]
fn a_wish_is_whole_again_for_the_next_pod() {
    let text =
        format!("{ONE}\npool default limit:nodes=9\npod p cpu=5 prefer:1:zone=In:x\npod q cpu=4 prefer:1:zone=In:b");
    expect(&text, &["default/one: p", "default/one: q"]);
}

#[test]
fn advice_of_a_taint_is_given_in_to_last() {
    let two = format!("{ONE}\npool a weight=9 taint=gpu:PreferNoSchedule\npool b");
    expect(&format!("{two}\npod p cpu=1"), &["b/one: p"]);
    expect(&format!("{two}\npod p cpu=1 need:nodepool=In:a"), &["a/one: p"]);
    // The wish is given up, and the advice is still heeded.
    expect(&format!("{two}\npod p cpu=1 prefer:1:nodepool=In:a"), &["b/one: p"]);
    expect(&format!("{two}\npod p cpu=1 or:nodepool=In:x or:nodepool=In:a"), &["a/one: p"]);
}

#[test]
fn advice_of_a_taint_can_be_tolerated_from_the_start() {
    let two = format!("{ONE}\npool a weight=9 taint=gpu:PreferNoSchedule\npool b");
    expect(&format!("{two}\npod p cpu=1 tolerate=gpu"), &["a/one: p"]);
}

#[test]
fn a_taint_keeps_pods_off_unless_they_tolerate_it() {
    let one = format!("{ONE}\npool a taint=gpu:NoSchedule");
    expect(&format!("{one}\npod p cpu=1"), &["p waits"]);
    expect(&format!("{one}\npod p cpu=1 tolerate=gpu"), &["a/one: p"]);
}

#[test]
fn a_startup_taint_of_the_pool_keeps_nobody_off() {
    expect(&format!("{ONE}\npool a startup=boot:NoSchedule\npod p cpu=1"), &["a/one: p"]);
}

#[test]
fn advice_is_given_in_to_on_nodes_that_are_there_even_if_their_pool_makes_no_more() {
    let node = "node n cpu=4 memory=8Gi taint=gpu:PreferNoSchedule pool=a";
    let pool = "pool a taint=gpu:PreferNoSchedule need:arch=In:none";
    expect(&format!("{ONE}\n{pool}\n{node}\npod p cpu=1"), &["n: p"]);
    expect(&format!("{ONE}\npool a need:arch=In:none\n{node}\npod p cpu=1"), &["p waits"]);
}

#[test]
fn wishes_for_a_zone_may_be_ignored_altogether() {
    assert_eq!(demand_on("zone", &format!("option preferences=Ignore\n{ONE}\npod p cpu=1 prefer:9:zone=In:b")), "");
}

#[test]
fn wishes_for_a_host_may_be_ignored_altogether() {
    let nodes = "node n1 cpu=4 memory=8Gi label:hostname=n1\nnode n2 cpu=4 memory=8Gi label:hostname=n2";
    let pod = "pod p cpu=1 prefer:9:hostname=In:n2";
    expect(&format!("{ONE}\n{nodes}\n{pod}"), &["n2: p"]);
    expect(&format!("option preferences=Ignore\n{ONE}\n{nodes}\n{pod}"), &["n1: p"]);
}

#[test]
fn where_wishes_are_ignored_terms_and_advice_still_count() {
    let text = |pod: &str| format!("option preferences=Ignore\n{ONE}\n{pod}");
    assert_eq!(demand_on("zone", &text("pod p cpu=1 or:zone=In:x or:zone=In:c")), "In [c]");
    expect(&text("pool a weight=9 taint=gpu:PreferNoSchedule\npool b\npod p cpu=1"), &["b/one: p"]);
}

#[test]
fn a_wish_against_what_the_pod_needs_is_given_up_and_never_puts_it_on_a_node_without_the_label() {
    let pools = "type one cpu=4 memory=8Gi price=1\npool plain weight=9\npool red label:team=red";
    expect(&format!("{pools}\npod p cpu=1 need:team=In:red prefer:5:team=In:blue"), &["red/one: p"]);
    expect(&format!("{pools}\npod p cpu=1 need:team=In:blue prefer:5:team=In:red"), &["p waits"]);
    expect(&format!("{pools}\npod p cpu=1 need:team=Exists prefer:5:team=NotIn:blue"), &["red/one: p"]);
    expect(
        &format!("{pools}\nnode n cpu=4 memory=8Gi\npod p cpu=1 need:team=In:red prefer:5:team=NotIn:red"),
        &["red/one: p"],
    );
}
