//! Capacity that was set aside (D11, and its vectors).

use crate::cluster::{cluster, expect, label, sound_plan, told};

fn one(left: u32) -> String {
    format!(
        "type one cpu=4 memory=8Gi price=2 zone=a capacity-type=on-demand
         offering one price=0.1 zone=a capacity-type=reserved id=r1 left={left}"
    )
}

/// Only reserved capacity.
fn only(left: u32) -> String {
    format!("{}\npool default need:capacity-type=In:reserved", one(left))
}

#[test]
fn what_is_set_aside_is_taken_first_and_asked_for_by_name() {
    let plan = sound_plan(&cluster(&format!("{}\npod p cpu=1", one(1))));
    let node = &plan.new_nodes[0];
    assert_eq!(node.chosen.price.value().to_string(), "0.1");
    assert_eq!(node.requirements.get(&label("capacity-type")).unwrap().to_string(), "In [reserved]");
    assert_eq!(node.requirements.get("example.com/reservation-id").unwrap().to_string(), "In [r1]");
}

#[test]
fn a_full_reservation_leaves_the_pod_to_what_else_there_is() {
    let plan = sound_plan(&cluster(&format!("{}\npod p cpu=1", one(0))));
    assert_eq!(plan.new_nodes[0].chosen.price.value().to_string(), "2");
    expect(&format!("{}\npod p cpu=1", only(0)), &["p waits"]);
}

#[test]
fn who_comes_too_late_in_a_plan_waits_and_is_not_sent_elsewhere() {
    let text = format!("{}\npod p cpu=3\npod q cpu=3", one(1));
    let plan = sound_plan(&cluster(&text));
    assert_eq!(told(&plan), ["default/one: p", "q waits"]);
    assert!(plan.unplaced[0].reason.is_deferred());
    // Neither to a lighter pool nor by giving up a wish.
    let pools = "pool heavy weight=9\npool light need:capacity-type=In:on-demand";
    let text = format!("{}\n{pools}\npod p cpu=3\npod q cpu=3 prefer:1:capacity-type=In:reserved", one(1));
    assert_eq!(told(&sound_plan(&cluster(&text))), ["heavy/one: p", "q waits"]);
}

#[test]
fn several_pods_share_a_reserved_node() {
    expect(&format!("{}\npod p cpu=2\npod q cpu=2", one(1)), &["default/one: p q"]);
}

#[test]
fn a_reservation_is_shared_by_pools() {
    let text = format!("{}\npool a need:team=In:red\npool b need:team=In:blue", one(1));
    let pods = "pod p cpu=3 need:team=In:red\npod q cpu=3 need:team=In:blue";
    expect(&format!("{text}\n{pods}"), &["a/one: p", "q waits"]);
}

#[test]
fn a_node_that_may_use_several_reservations_holds_them_all() {
    let text = "
        type one cpu=4 memory=8Gi price=2 zone=a
        offering one price=0.1 zone=a capacity-type=reserved id=r1 left=1
        offering one price=0.1 zone=b capacity-type=reserved id=r2 left=1
        pod p cpu=3";
    let plan = sound_plan(&cluster(text));
    let ids = plan.new_nodes[0].requirements.get("example.com/reservation-id").unwrap().to_string();
    assert_eq!(ids, "In [r1, r2]");
    let text = format!("{text}\npod q cpu=3");
    expect(&text, &["default/one: p", "q waits"]);
}

#[test]
fn a_pod_that_would_drive_a_node_out_of_its_reservation_waits() {
    let text = format!("{}\npod p cpu=2\npod q cpu=1 need:capacity-type=In:on-demand", one(1));
    let plan = sound_plan(&cluster(&text));
    assert_eq!(told(&plan), ["default/one: p", "default/one: q"]);
}

#[test]
fn what_is_broken_is_not_counted_on() {
    let text = "
        type one cpu=4 memory=8Gi price=2 zone=a
        offering one price=0.1 zone=a capacity-type=reserved id=r1 left=5 unavailable=yes
        pod p cpu=1";
    let plan = sound_plan(&cluster(text));
    assert_eq!(plan.new_nodes[0].chosen.price.value().to_string(), "2");
}

#[test]
fn when_falling_back_is_allowed_something_else_is_taken() {
    let text = format!("option reserved=Fallback\n{}\npod p cpu=3\npod q cpu=3", one(1));
    expect(&text, &["default/one: p", "default/one: q"]);
    let pools = "pool heavy weight=9 need:capacity-type=In:reserved\npool light";
    expect(&format!("option reserved=Fallback\n{}\n{pools}\npod p cpu=1", one(0)), &["light/one: p"]);
    expect(&format!("{}\n{pools}\npod p cpu=1", one(0)), &["p waits"]);
}
