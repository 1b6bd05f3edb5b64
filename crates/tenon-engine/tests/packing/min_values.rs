//! How many values of a label must stay possible (C12, and its vectors).

use crate::packing::cluster::{cluster, demand_on, expect, label, reason, sizes, sound_plan};

const SIZES: &str = "type a cpu=2 memory=4Gi price=1 zone=a\ntype b cpu=4 memory=8Gi price=2 zone=a,b\ntype c cpu=8 memory=16Gi price=3 zone=b";

#[test]
fn a_node_keeps_as_many_sizes_as_its_pool_asks_for() {
    let pool = "pool default need:instance-type=Exists:+min=3";
    expect(&format!("{SIZES}\n{pool}\npod p cpu=1\npod q cpu=1"), &["default/a: p q"]);
    // With the third pod only two sizes would be left, so it gets a node of its own.
    expect(&format!("{SIZES}\n{pool}\npod p cpu=1\npod q cpu=1\npod r cpu=1"), &["default/a: p q", "default/a: r"]);
}

#[test]
fn too_few_sizes_are_waited_for() {
    let why = reason(&format!("{SIZES}\npool default need:instance-type=Exists:+min=3\npod p cpu=3"));
    assert!(why.contains("minValues requirement is not met"), "{why}");
    expect(&format!("{SIZES}\npool default need:instance-type=Exists:+min=4\npod p cpu=1"), &["p waits"]);
}

#[test]
fn too_few_zones_are_waited_for() {
    let pool = "pool default need:zone=Exists:+min=2";
    expect(&format!("{SIZES}\n{pool}\npod p cpu=1"), &["default/a: p"]);
    expect(&format!("{SIZES}\npool default need:zone=Exists:+min=3\npod p cpu=1"), &["p waits"]);
}

#[test]
fn only_values_that_stay_possible_count() {
    let pool = "pool default need:zone=Exists:+min=2";
    expect(&format!("{SIZES}\n{pool}\npod p cpu=1 need:zone=In:a"), &["p waits"]);
    expect(&format!("{SIZES}\n{pool}\npod p cpu=1 need:zone=In:a,b"), &["default/a: p"]);
}

#[test]
fn every_label_that_asks_for_values_must_have_them() {
    let pool = |sizes: u32, zones: u32| {
        format!(
            "{SIZES}\npool default need:instance-type=Exists:+min={sizes} need:zone=Exists:+min={zones}\npod p cpu=1"
        )
    };
    expect(&pool(3, 2), &["default/a: p"]);
    expect(&pool(4, 2), &["p waits"]);
    expect(&pool(3, 3), &["p waits"]);
}

#[test]
fn values_are_counted_within_bounds() {
    let sizes = "type a cpu=2 memory=4Gi price=1 label:gen=1\ntype b cpu=2 memory=4Gi price=2 label:gen=2\ntype c cpu=2 memory=4Gi price=3 label:gen=3";
    expect(&format!("{sizes}\npool default need:gen=Gt:1+min=2\npod p cpu=1"), &["default/b: p"]);
    expect(&format!("{sizes}\npool default need:gen=Gt:2+min=2\npod p cpu=1"), &["p waits"]);
    expect(&format!("{sizes}\npool default need:gen=Lt:3+min=2\npod p cpu=1"), &["default/a: p"]);
    expect(&format!("{sizes}\npool default need:gen=Lt:2+min=2\npod p cpu=1"), &["p waits"]);
}

#[test]
fn of_several_demands_on_one_label_the_largest_number_counts() {
    let pool = |least: u32| {
        format!(
            "{SIZES}\npool default need:instance-type=In:a,b,c+min=1 need:instance-type=NotIn:x+min={least}\npod p cpu=1"
        )
    };
    expect(&pool(3), &["default/a: p"]);
    expect(&pool(4), &["p waits"]);
}

#[test]
fn with_best_effort_too_few_sizes_will_do_for_a_new_node() {
    let text =
        format!("option min-values=BestEffort\n{SIZES}\npool default need:instance-type=Exists:+min=3\npod p cpu=3");
    let plan = sound_plan(&cluster(&text));
    let node = &plan.new_nodes[0];
    assert!(node.min_values_relaxed);
    assert_eq!(node.instance_types[..], ["b", "c"]);
    assert_eq!(node.requirements.get(&label("instance-type")).unwrap().min_values(), Some(2));
}

#[test]
fn with_best_effort_too_few_zones_will_do_for_a_new_node() {
    let text = format!(
        "option min-values=BestEffort\n{SIZES}\npool default need:zone=Exists:+min=2\npod p cpu=1 need:zone=In:a"
    );
    let plan = sound_plan(&cluster(&text));
    let node = &plan.new_nodes[0];
    assert!(node.min_values_relaxed);
    assert_eq!(node.requirements.get(&label("zone")).unwrap().min_values(), Some(1));
}

#[test]
fn with_best_effort_only_what_is_short_is_lowered() {
    let pool = "pool default need:instance-type=Exists:+min=9 need:zone=Exists:+min=2";
    let plan = sound_plan(&cluster(&format!("option min-values=BestEffort\n{SIZES}\n{pool}\npod p cpu=1")));
    let least = |short: &str| plan.new_nodes[0].requirements.get(&label(short)).unwrap().min_values();
    assert_eq!((least("instance-type"), least("zone")), (Some(3), Some(2)));
}

#[test]
fn with_best_effort_a_node_that_has_enough_gives_nothing_up() {
    let text = format!("option min-values=BestEffort\n{SIZES}\npool default need:zone=Exists:+min=2\npod p cpu=1");
    assert!(!sound_plan(&cluster(&text)).new_nodes[0].min_values_relaxed);
    assert_eq!(demand_on("zone", &text), "Exists");
}

#[test]
fn a_node_that_is_planned_gives_nothing_up_for_one_more_pod() {
    let pool = "option min-values=BestEffort\npool default need:instance-type=Exists:+min=3";
    expect(&format!("{SIZES}\n{pool}\npod p cpu=1\npod q cpu=1\npod r cpu=1"), &["default/a: p q", "default/a: r"]);
}

#[test]
fn without_enough_values_the_next_pool_is_asked() {
    let pools = "pool heavy weight=9 need:instance-type=Exists:+min=9\npool light";
    expect(&format!("{SIZES}\n{pools}\npod p cpu=1"), &["light/a: p"]);
}

#[test]
fn values_are_given_up_before_another_pool_is_asked() {
    let pools = "pool heavy weight=9 need:instance-type=Exists:+min=9\npool light";
    expect(&format!("option min-values=BestEffort\n{SIZES}\n{pools}\npod p cpu=1"), &["heavy/a: p"]);
}

#[test]
fn of_pools_that_all_give_values_up_the_heaviest_is_taken() {
    let pools = "pool a weight=5 need:instance-type=Exists:+min=9\npool b weight=1 need:instance-type=Exists:+min=4";
    expect(&format!("option min-values=BestEffort\n{SIZES}\n{pools}\npod p cpu=1"), &["a/a: p"]);
}

#[test]
fn a_list_cut_to_length_must_still_have_enough_values() {
    let pool = "pool default need:zone=Exists:+min=2";
    let types = "type a cpu=2 memory=4Gi price=1 zone=a\ntype b cpu=2 memory=4Gi price=2 zone=a\ntype c cpu=2 memory=4Gi price=3 zone=b";
    expect(&format!("option max-types=3\n{types}\n{pool}\npod p cpu=1"), &["default/a: p"]);
    expect(&format!("option max-types=2\n{types}\n{pool}\npod p cpu=1"), &["p waits"]);
}

#[test]
fn with_best_effort_a_list_is_cut_whatever_values_that_costs() {
    let types = "type a cpu=2 memory=4Gi price=1 zone=a\ntype b cpu=2 memory=4Gi price=2 zone=a\ntype c cpu=2 memory=4Gi price=3 zone=b";
    let text =
        format!("option max-types=2 min-values=BestEffort\n{types}\npool default need:zone=Exists:+min=2\npod p cpu=1");
    assert_eq!(sizes(&text), ["a", "b"]);
}
