//! How many values of a label must stay possible (C12, and its vectors).

use crate::cluster::{cluster, expect, label, reason, sound_plan};

const SIZES: &str = "type a cpu=2 memory=4Gi price=1 zone=a\ntype b cpu=4 memory=8Gi price=2 zone=a,b\ntype c cpu=8 memory=16Gi price=3 zone=b";

#[test]
fn a_node_keeps_as_many_sizes_as_its_pool_asks_for() {
    let pool = "pool default need:instance-type=Exists:+min=3";
    expect(&format!("{SIZES}\n{pool}\npod p cpu=1\npod q cpu=1"), &["default/a: p q"]);
    // With the third pod only two sizes would be left, so it gets a node of its own.
    expect(&format!("{SIZES}\n{pool}\npod p cpu=1\npod q cpu=1\npod r cpu=1"), &["default/a: p q", "default/a: r"]);
    let why = reason(&format!("{SIZES}\n{pool}\npod p cpu=3"));
    assert!(why.contains("minValues requirement is not met"), "{why}");
}

#[test]
fn only_values_that_stay_possible_count() {
    let pool = "pool default need:zone=Exists:+min=2";
    expect(&format!("{SIZES}\n{pool}\npod p cpu=1"), &["default/a: p"]);
    expect(&format!("{SIZES}\n{pool}\npod p cpu=1 need:zone=In:a"), &["p waits"]);
}

#[test]
fn with_best_effort_a_new_node_makes_do_with_fewer() {
    let text = format!(
        "option min-values=BestEffort\n{SIZES}\npool default need:zone=Exists:+min=2\npod p cpu=1 need:zone=In:a"
    );
    let plan = sound_plan(&cluster(&text));
    let node = &plan.new_nodes[0];
    assert!(node.min_values_relaxed);
    assert_eq!(node.requirements.get(&label("zone")).unwrap().min_values(), Some(1));
    let content = format!("option min-values=BestEffort\n{SIZES}\npool default need:zone=Exists:+min=2\npod p cpu=1");
    assert!(!sound_plan(&cluster(&content)).new_nodes[0].min_values_relaxed);
}

#[test]
fn a_node_that_is_planned_gives_nothing_up_for_one_more_pod() {
    let pool = "option min-values=BestEffort\npool default need:instance-type=Exists:+min=3";
    expect(&format!("{SIZES}\n{pool}\npod p cpu=1\npod q cpu=1\npod r cpu=1"), &["default/a: p q", "default/a: r"]);
}

#[test]
fn values_are_given_up_before_another_pool_is_asked() {
    let pools = "pool heavy weight=9 need:instance-type=Exists:+min=9\npool light";
    expect(&format!("{SIZES}\n{pools}\npod p cpu=1"), &["light/a: p"]);
    expect(&format!("option min-values=BestEffort\n{SIZES}\n{pools}\npod p cpu=1"), &["heavy/a: p"]);
}

#[test]
fn a_list_cut_to_length_must_still_have_enough_values() {
    let pool = "pool default need:zone=Exists:+min=2";
    let types = "type a cpu=2 memory=4Gi price=1 zone=a\ntype b cpu=2 memory=4Gi price=2 zone=a\ntype c cpu=2 memory=4Gi price=3 zone=b";
    expect(&format!("option max-types=3\n{types}\n{pool}\npod p cpu=1"), &["default/a: p"]);
    expect(&format!("option max-types=2\n{types}\n{pool}\npod p cpu=1"), &["p waits"]);
    expect(&format!("option max-types=2 min-values=BestEffort\n{types}\n{pool}\npod p cpu=1"), &["default/a: p"]);
}
