//! Wishes, and how they are given up (C10, C11).

use crate::cluster::{cluster, expect, sound_plan};

const ONE: &str = "type one cpu=8 memory=16Gi price=1 zone=a,b,c capacity-type=spot,on-demand";

fn zone(text: &str) -> String {
    let plan = sound_plan(&cluster(text));
    assert!(plan.unplaced.is_empty(), "{plan:?}");
    plan.new_nodes[0].requirements.get("topology.kubernetes.io/zone").map(ToString::to_string).unwrap_or_default()
}

#[test]
fn a_wish_is_a_demand_until_it_cannot_be_met() {
    assert_eq!(zone(&format!("{ONE}\npod p cpu=1 prefer:1:zone=In:b")), "In [b]");
    assert_eq!(zone(&format!("{ONE}\npod p cpu=1 prefer:1:zone=In:x")), "");
}

#[test]
fn the_heaviest_wish_is_kept_and_lighter_ones_are_not_looked_at() {
    assert_eq!(zone(&format!("{ONE}\npod p cpu=1 prefer:1:zone=In:a prefer:9:zone=In:b")), "In [b]");
    assert_eq!(zone(&format!("{ONE}\npod p cpu=1 prefer:1:zone=In:a prefer:9:zone=In:x prefer:5:zone=In:c")), "In [c]");
    // Two that contradict each other are tried one after the other.
    assert_eq!(zone(&format!("{ONE}\npod p cpu=1 prefer:9:zone=In:b prefer:1:zone=In:c")), "In [b]");
}

#[test]
fn a_demand_wins_over_a_wish() {
    assert_eq!(zone(&format!("{ONE}\npod p cpu=1 need:zone=In:a prefer:9:zone=In:b")), "In [a]");
}

#[test]
fn terms_are_given_up_before_wishes_and_the_last_one_never() {
    assert_eq!(zone(&format!("{ONE}\npod p cpu=1 or:zone=In:a or:zone=In:b prefer:9:zone=In:b")), "In [b]");
    expect(&format!("{ONE}\npod p cpu=1 or:zone=In:x or:zone=In:y prefer:9:zone=In:b"), &["p waits"]);
}

#[test]
fn wishes_may_be_ignored_altogether() {
    assert_eq!(zone(&format!("option preferences=Ignore\n{ONE}\npod p cpu=1 prefer:9:zone=In:b")), "");
}

#[test]
fn a_taint_that_only_advises_is_given_in_to_last() {
    let two = format!("{ONE}\npool a weight=9 taint=gpu:PreferNoSchedule\npool b");
    expect(&format!("{two}\npod p cpu=1"), &["b/one: p"]);
    expect(&format!("{two}\npod p cpu=1 need:nodepool=In:a"), &["a/one: p"]);
    // A wish is given up before the advice is.
    expect(&format!("{two}\npod p cpu=1 prefer:1:nodepool=In:a"), &["b/one: p"]);
    expect(&format!("{two}\npod p cpu=1 tolerate=gpu"), &["a/one: p"]);
}

#[test]
fn a_taint_keeps_pods_off_unless_they_tolerate_it() {
    let one = format!("{ONE}\npool a taint=gpu:NoSchedule startup=boot:NoSchedule");
    expect(&format!("{one}\npod p cpu=1"), &["p waits"]);
    expect(&format!("{one}\npod p cpu=1 tolerate=gpu"), &["a/one: p"]);
}

#[test]
fn advice_is_given_in_to_on_nodes_that_are_there_even_if_their_pool_makes_no_more() {
    let node = "node n cpu=4 memory=8Gi taint=gpu:PreferNoSchedule pool=a";
    let pool = "pool a taint=gpu:PreferNoSchedule need:arch=In:none";
    expect(&format!("{ONE}\n{pool}\n{node}\npod p cpu=1"), &["n: p"]);
    expect(&format!("{ONE}\npool a need:arch=In:none\n{node}\npod p cpu=1"), &["p waits"]);
}
