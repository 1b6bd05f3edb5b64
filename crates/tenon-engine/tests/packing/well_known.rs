//! Labels that the catalogue decides, and labels that nobody may ask for (D2).

use tenon_model::labels;

use crate::packing::cluster::{cluster, demand_on, expect, label, reason, sound_plan};

const ONE: &str = "type one cpu=8 memory=16Gi price=1 zone=a,b,c capacity-type=spot,on-demand label:gen=5";

#[test]
fn a_pools_demand_on_a_zone_decides_where_its_nodes_are() {
    let plan = sound_plan(&cluster(&format!("{ONE}\npool default need:zone=In:b\npod p cpu=1")));
    assert_eq!(plan.new_nodes[0].chosen.labels[&label("zone")], "b");
}

#[test]
fn a_pods_selector_decides_within_what_the_pool_allows() {
    let text = |zone: &str| format!("{ONE}\npool default need:zone=In:a,b\npod p cpu=1 need:zone=In:{zone}");
    assert_eq!(demand_on("zone", &text("b")), "In [b]");
    expect(&text("c"), &["p waits"]);
}

#[test]
fn a_value_that_nothing_has_is_waited_for() {
    for need in ["zone=In:x", "capacity-type=In:reserved", "instance-type=In:two", "arch=In:riscv", "os=In:plan9"] {
        expect(&format!("{ONE}\npod p cpu=1 need:{need}"), &["p waits"]);
    }
}

#[test]
fn every_operator_is_understood_on_a_label_the_pool_does_not_name() {
    for (need, told) in [
        ("zone=In:b", "default/one: p"),
        ("zone=In:b,x", "default/one: p"),
        ("zone=NotIn:a", "default/one: p"),
        ("zone=NotIn:a,b,c", "p waits"),
        ("zone=Exists", "default/one: p"),
        ("zone=DoesNotExist", "p waits"),
        ("gen=Gt:4", "default/one: p"),
        ("gen=Gt:5", "p waits"),
        ("gen=Lt:6", "default/one: p"),
        ("gen=Lt:5", "p waits"),
        ("gen=Gte:5", "default/one: p"),
        ("gen=Gte:6", "p waits"),
        ("gen=Lte:5", "default/one: p"),
        ("gen=Lte:4", "p waits"),
    ] {
        expect(&format!("{ONE}\npod p cpu=1 need:{need}"), &[told]);
    }
}

#[test]
fn bounds_choose_among_sizes_by_number() {
    let sizes = "type a cpu=8 memory=8Gi price=1 label:gen=2\ntype b cpu=8 memory=8Gi price=2 label:gen=10";
    expect(&format!("{sizes}\npod p cpu=1 need:gen=Gt:3"), &["default/b: p"]);
    expect(&format!("{sizes}\npod p cpu=1 need:gen=Lt:3"), &["default/a: p"]);
    expect(&format!("{sizes}\npod p cpu=1 need:gen=Gte:10"), &["default/b: p"]);
    expect(&format!("{sizes}\npod p cpu=1 need:gen=Lte:1"), &["p waits"]);
}

/// A demand and a wish on the zone, and what they leave.
#[track_caller]
fn expect_zone(need: &str, prefer: &str, left: &str) {
    let text = format!("{ONE}\npod p cpu=1 need:zone={need} prefer:1:zone={prefer}");
    assert_eq!(demand_on("zone", &text), left, "{need} {prefer}");
}

#[test]
fn a_wish_that_agrees_with_a_demand_narrows_it() {
    expect_zone("In:a,b,c", "In:a,b", "In [a, b]");
    expect_zone("In:a,b", "NotIn:a", "In [b]");
    expect_zone("NotIn:a", "In:a,b", "In [b]");
    expect_zone("NotIn:a", "NotIn:b", "NotIn [a, b]");
    expect_zone("Exists", "In:c", "In [c]");
}

#[test]
fn a_wish_that_contradicts_a_demand_is_given_up() {
    expect_zone("In:a,b", "In:c", "In [a, b]");
    expect_zone("In:a", "NotIn:a", "In [a]");
    expect_zone("NotIn:a,b", "In:a", "NotIn [a, b]");
    expect_zone("NotIn:a", "NotIn:b,c", "NotIn [a]");
}

#[test]
fn demands_that_no_zone_meets_are_not_met_by_a_wish() {
    for need in ["In:x", "NotIn:a,b,c"] {
        expect(&format!("{ONE}\npod p cpu=1 need:zone={need} prefer:1:zone=In:a"), &["p waits"]);
    }
}

#[test]
fn demands_and_wishes_on_several_labels_hold_together() {
    let sizes = "type x cpu=8 memory=16Gi price=1 zone=a,b,c\ntype y cpu=8 memory=16Gi price=2 zone=b,c arch=arm64";
    let text = format!(
        "{sizes}\npod p cpu=1 need:zone=In:b,c need:instance-type=In:x,y prefer:1:arch=In:arm64 or:zone=NotIn:c"
    );
    expect(&text, &["default/y: p"]);
    assert_eq!(demand_on("zone", &text), "In [b]");
    assert_eq!(demand_on("arch", &text), "In [arm64]");
}

/// Whether a pod that asks for a label is refused before anything is tried.
fn is_refused(need: &str) -> bool {
    let plan = sound_plan(&cluster(&format!("{ONE}\nnode n cpu=8 memory=8Gi\npod p cpu=1 need:{need}")));
    plan.unplaced.first().is_some_and(|waiting| waiting.reason.is_rejected())
}

#[test]
fn a_host_name_cannot_be_asked_for() {
    assert!(is_refused("hostname=In:n") && is_refused("hostname=Exists") && is_refused("hostname=NotIn:n"));
    assert!(reason(&format!("{ONE}\npod p cpu=1 need:hostname=In:n")).contains("kubernetes.io/hostname"));
}

#[test]
fn labels_of_the_autoscalers_own_domain_and_below_cannot_be_asked_for() {
    for label in ["karpenter.sh/initialized", "karpenter.sh/registered", "karpenter.sh/any", "sub.karpenter.sh/any"] {
        assert!(is_refused(&format!("{label}=In:true")), "{label}");
    }
    assert!(!is_refused("mykarpenter.sh/any=NotIn:true"));
}

#[test]
fn labels_of_kubernetes_domains_and_below_may_be_asked_for() {
    for domain in ["kubernetes.io", "k8s.io", "node.kubernetes.io", "sub.k8s.io"] {
        let text = format!("{ONE}\npool default label:{domain}/team=red\npod p cpu=1 need:{domain}/team=In:red");
        expect(&text, &["default/one: p"]);
    }
}

#[test]
fn every_well_known_label_may_be_asked_for() {
    for label in labels::WELL_KNOWN {
        assert!(!is_refused(&format!("{label}=Exists")), "{label}");
    }
}

#[test]
fn a_pod_that_wants_a_node_of_no_pool_is_not_for_us() {
    assert!(is_refused("nodepool=DoesNotExist") && !is_refused("nodepool=NotIn:other"));
}

#[test]
fn a_capacity_type_that_means_nothing_is_refused_unless_another_one_does() {
    assert!(is_refused("capacity-type=In:free"));
    expect(&format!("{ONE}\npod p cpu=1 need:capacity-type=In:free,spot"), &["default/one: p"]);
}
