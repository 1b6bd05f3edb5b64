//! Labels of pods, pools and sizes (D1, D2, D3, B, and the compatibility vectors).

use crate::cluster::{cluster, expect, reason, sound_plan};

const ONE: &str = "type one cpu=8 memory=16Gi price=1 zone=a,b capacity-type=spot,on-demand";

#[test]
fn a_label_that_no_pool_has_can_only_be_asked_to_be_absent_or_other() {
    for (need, is_met) in
        [("In:red", false), ("Exists", false), ("Gt:1", false), ("NotIn:red", true), ("DoesNotExist", true)]
    {
        let told = if is_met { "default/one: p" } else { "p waits" };
        expect(&format!("{ONE}\npod p cpu=1 need:team={need}"), &[told]);
    }
    let why = reason(&format!("{ONE}\npod p cpu=1 need:team=In:red"));
    assert!(why.contains("incompatible requirements, label team does not have known values"), "{why}");
}

#[test]
fn a_label_of_the_pool_decides() {
    for (need, is_met) in [
        ("In:red", true),
        ("In:blue", false),
        ("NotIn:red", false),
        ("NotIn:blue", true),
        ("Exists", true),
        ("DoesNotExist", false),
    ] {
        let told = if is_met { "default/one: p" } else { "p waits" };
        expect(&format!("{ONE}\npool default label:team=red\npod p cpu=1 need:team={need}"), &[told]);
    }
}

#[test]
fn labels_that_the_catalogue_decides_need_not_be_named_by_the_pool() {
    for (need, told) in [
        ("need:zone=In:b", "default/one: p"),
        ("need:zone=NotIn:a", "default/one: p"),
        ("need:zone=In:c", "p waits"),
        ("need:zone=Exists", "default/one: p"),
        ("need:zone=DoesNotExist", "p waits"),
        ("need:capacity-type=In:spot", "default/one: p"),
        ("need:arch=In:arm64", "p waits"),
        ("need:instance-type=In:one,other", "default/one: p"),
        ("need:os=NotIn:linux", "p waits"),
    ] {
        expect(&format!("{ONE}\npod p cpu=1 {need}"), &[told]);
    }
}

#[test]
fn bounds_compare_numbers() {
    let sizes = "type a cpu=8 memory=8Gi price=1 label:gen=2\ntype b cpu=8 memory=8Gi price=2 label:gen=5";
    expect(&format!("{sizes}\npod p cpu=1 need:gen=Gt:3"), &["default/b: p"]);
    expect(&format!("{sizes}\npod p cpu=1 need:gen=Lt:3"), &["default/a: p"]);
    expect(&format!("{sizes}\npod p cpu=1 need:gen=Gte:5"), &["default/b: p"]);
    expect(&format!("{sizes}\npod p cpu=1 need:gen=Lte:1"), &["p waits"]);
}

#[test]
fn pods_that_agree_share_a_node_and_others_do_not() {
    let pods =
        |a: &str, b: &str| format!("{ONE}\npool default need:team=In:red,blue\npod a cpu=1 {a}\npod b cpu=1 {b}");
    expect(&pods("need:team=In:red", "need:team=In:red,blue"), &["default/one: a b"]);
    expect(&pods("need:team=In:red", "need:team=In:blue"), &["default/one: a", "default/one: b"]);
    expect(&pods("need:team=In:red", "need:team=NotIn:red"), &["default/one: a", "default/one: b"]);
    expect(&pods("need:team=In:red", "need:team=Exists"), &["default/one: a b"]);
}

#[test]
fn what_a_pod_asks_for_narrows_its_node() {
    let plan = sound_plan(&cluster(&format!("{ONE}\npod a cpu=1 need:zone=In:b\npod b cpu=1 need:zone=Exists")));
    assert_eq!(plan.new_nodes.len(), 1);
    assert_eq!(plan.new_nodes[0].requirements.get("topology.kubernetes.io/zone").unwrap().to_string(), "In [b]");
}

#[test]
fn any_of_a_pods_terms_will_do_and_the_first_is_tried_first() {
    expect(&format!("{ONE}\npod p cpu=1 or:zone=In:c or:zone=In:b"), &["default/one: p"]);
    let plan = sound_plan(&cluster(&format!("{ONE}\npod p cpu=1 or:zone=In:b or:zone=In:a")));
    assert_eq!(plan.new_nodes[0].requirements.get("topology.kubernetes.io/zone").unwrap().to_string(), "In [b]");
    // What the selector says holds for every term.
    expect(&format!("{ONE}\npod p cpu=1 need:arch=In:arm64 or:zone=In:a or:zone=In:b"), &["p waits"]);
}

#[test]
fn labels_that_are_not_for_pods_to_ask_for_are_refused_at_once() {
    for need in ["hostname=In:x", "karpenter.sh/initialized=In:true", "nodepool=DoesNotExist", "capacity-type=In:free"]
    {
        let snapshot = cluster(&format!("{ONE}\nnode n cpu=8 memory=8Gi\npod p cpu=1 need:{need}"));
        let plan = sound_plan(&snapshot);
        assert!(plan.unplaced[0].reason.is_rejected(), "{need}: {plan:?}");
    }
    // One meaningful value is enough.
    expect(&format!("{ONE}\npod p cpu=1 need:capacity-type=In:free,spot"), &["default/one: p"]);
}

#[test]
fn a_pool_may_ask_for_less_than_its_catalogue_has() {
    let two = "type a cpu=8 memory=8Gi price=1 arch=arm64\ntype b cpu=8 memory=8Gi price=2";
    expect(&format!("{two}\npool default need:arch=In:amd64\npod p cpu=1"), &["default/b: p"]);
    let why = reason(&format!("{two}\npool default need:arch=In:riscv\npod p cpu=1"));
    assert!(why.contains("nodepool requirements filtered out all available instance types"), "{why}");
}
