//! Capacity that was set aside (D11, and its vectors).

use crate::packing::cluster::{cluster, expect, label, sound_plan, told};

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
fn j6_a_full_reservation_leaves_the_pod_to_what_else_there_is() {
    let plan = sound_plan(&cluster(&format!("{}\npod p cpu=1", one(0))));
    let node = &plan.new_nodes[0];
    assert_eq!(node.chosen.price.value().to_string(), "2");
    assert_eq!(node.requirements.get("example.com/reservation-id"), None);
}

#[test]
fn j6_where_only_a_full_reservation_would_do_the_pod_waits_for_it() {
    let plan = sound_plan(&cluster(&format!("{}\npod p cpu=1", only(0))));
    assert_eq!(told(&plan), ["p waits"]);
    assert!(plan.unplaced[0].reason.is_deferred());
}

#[test]
fn j6_the_price_of_a_full_reservation_makes_no_instance_type_the_cheapest() {
    let other = "type other cpu=4 memory=8Gi price=1 zone=a capacity-type=on-demand";
    for (left, chosen) in [(1, "default/one: p"), (0, "default/other: p")] {
        let plan = sound_plan(&cluster(&format!("{}\n{other}\npod p cpu=1", one(left))));
        assert_eq!(told(&plan), [chosen], "{left} left");
    }
}

#[test]
fn of_two_nodes_that_want_the_last_machine_one_gets_it_and_the_other_waits() {
    let plan = sound_plan(&cluster(&format!("{}\npod p cpu=3\npod q cpu=3", only(1))));
    assert_eq!(told(&plan), ["default/one: p", "q waits"]);
    assert!(plan.unplaced[0].reason.is_deferred());
}

#[test]
fn while_a_reservation_has_machines_nothing_else_is_taken_instead() {
    let plan = sound_plan(&cluster(&format!("{}\npod p cpu=3\npod q cpu=3", one(1))));
    assert_eq!(told(&plan), ["default/one: p", "q waits"]);
    assert!(plan.unplaced[0].reason.is_deferred());
}

#[test]
fn a_spread_pod_takes_an_equally_empty_zone_where_nothing_is_reserved_before_it_waits() {
    let text = format!("{}\ntype two cpu=4 memory=8Gi price=3 zone=b capacity-type=on-demand\npod p cpu=3", one(1));
    let spread = format!("{text}\npod q cpu=2 label:app=web spread=zone:1:app=web");
    assert_eq!(told(&sound_plan(&cluster(&spread))), ["default/one: p", "default/two: q"]);
    // Where the zone without it is fuller, the pod waits.
    let fuller = format!("{spread}\nnode n cpu=1 memory=1Gi label:zone=b\nbound x on=n cpu=1 label:app=web");
    assert_eq!(told(&sound_plan(&cluster(&fuller))), ["default/one: p", "q waits"]);
}

#[test]
fn who_waits_for_a_reservation_is_not_sent_to_a_lighter_pool() {
    let pools = "pool heavy weight=9\npool light need:capacity-type=In:on-demand";
    let text = format!("{}\n{pools}\npod p cpu=3\npod q cpu=3", one(1));
    assert_eq!(told(&sound_plan(&cluster(&text))), ["heavy/one: p", "q waits"]);
    // Not even where the reservation is full from the start.
    let pools = "pool heavy weight=9 need:capacity-type=In:reserved\npool light";
    expect(&format!("{}\n{pools}\npod p cpu=1", one(0)), &["p waits"]);
}

#[test]
fn who_waits_for_a_reservation_gives_up_no_wish() {
    let text = format!("{}\npod p cpu=3\npod q cpu=3 prefer:1:capacity-type=In:reserved", one(1));
    assert_eq!(told(&sound_plan(&cluster(&text))), ["default/one: p", "q waits"]);
    let terms = "pod q cpu=3 or:capacity-type=In:reserved or:capacity-type=In:on-demand";
    assert_eq!(
        told(&sound_plan(&cluster(&format!("{}\npod p cpu=3\n{terms}", one(1))))),
        ["default/one: p", "q waits"]
    );
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
fn pools_with_reservations_of_their_own_do_not_share_them() {
    let text = "
        type one cpu=4 memory=8Gi price=2 zone=a
        offering one price=0.1 zone=a capacity-type=reserved id=r1 left=1
        offering one price=0.1 zone=a capacity-type=reserved id=r2 left=1
        pool a need:example.com/reservation-id=In:r1
        pool b need:example.com/reservation-id=In:r2";
    let pods = "pod p cpu=3 need:nodepool=In:a\npod q cpu=3 need:nodepool=In:b\npod r cpu=3 need:nodepool=In:a";
    expect(&format!("{text}\n{pods}"), &["a/one: p", "b/one: q", "r waits"]);
}

#[test]
fn several_machines_of_a_reservation_go_to_as_many_nodes() {
    expect(
        &format!("{}\npod p cpu=3\npod q cpu=3\npod r cpu=3", one(2)),
        &["default/one: p", "default/one: q", "r waits"],
    );
}

#[test]
fn where_offerings_of_a_reservation_disagree_the_least_is_believed() {
    let text = "
        type one cpu=4 memory=8Gi price=2 zone=a
        offering one price=0.1 zone=a capacity-type=reserved id=r1 left=5
        type two cpu=4 memory=8Gi price=3 zone=a
        offering two price=0.2 zone=a capacity-type=reserved id=r1 left=1
        pod p cpu=3\npod q cpu=3";
    let plan = sound_plan(&cluster(text));
    assert_eq!((plan.new_nodes.len(), plan.unplaced.len()), (1, 1));
}

#[test]
fn a_pod_that_leaves_a_node_one_of_its_reservations_gives_the_other_back() {
    let text = "
        type one cpu=4 memory=8Gi price=2 zone=a
        offering one price=0.1 zone=a capacity-type=reserved id=r1 left=1
        offering one price=0.1 zone=b capacity-type=reserved id=r2 left=1
        pod p cpu=2
        pod q cpu=1 need:zone=In:a
        pod r cpu=1 port=80 need:zone=In:b
        pod s cpu=0 port=80";
    let plan = sound_plan(&cluster(text));
    let ids: Vec<String> = plan
        .new_nodes
        .iter()
        .map(|node| node.requirements.get("example.com/reservation-id").unwrap().to_string())
        .collect();
    assert_eq!((ids, plan.unplaced.len()), (vec!["In [r1]".to_owned(), "In [r2]".to_owned()], 0));
}

#[test]
fn falling_back_takes_something_else_where_the_machines_are_taken() {
    let text = format!("option reserved=Fallback\n{}\npod p cpu=3\npod q cpu=3", one(1));
    let plan = sound_plan(&cluster(&text));
    let prices: Vec<String> = plan.new_nodes.iter().map(|node| node.chosen.price.value().to_string()).collect();
    assert_eq!(prices, ["0.1", "2"]);
}

#[test]
fn falling_back_asks_the_next_pool_where_only_a_full_reservation_would_do() {
    let pools = "pool heavy weight=9 need:capacity-type=In:reserved\npool light need:capacity-type=In:on-demand";
    expect(&format!("option reserved=Fallback\n{}\n{pools}\npod p cpu=1", one(0)), &["light/one: p"]);
    let plan = sound_plan(&cluster(&format!("option reserved=Fallback\n{}\npod p cpu=1", only(0))));
    assert_eq!(told(&plan), ["p waits"]);
    assert!(!plan.unplaced[0].reason.is_deferred(), "nothing is waited for: {}", plan.unplaced[0].reason);
}

#[test]
fn falling_back_still_takes_what_is_set_aside_first() {
    let plan = sound_plan(&cluster(&format!("option reserved=Fallback\n{}\npod p cpu=1", one(1))));
    assert_eq!(plan.new_nodes[0].requirements.get("example.com/reservation-id").unwrap().to_string(), "In [r1]");
}

#[test]
fn falling_back_lets_a_pod_drive_a_node_out_of_its_reservation() {
    let pods = "pod p cpu=2\npod q cpu=1 need:capacity-type=In:on-demand";
    expect(&format!("option reserved=Fallback\n{}\n{pods}", one(1)), &["default/one: p q"]);
}

#[test]
fn where_reservations_are_switched_off_they_are_offerings_like_others() {
    let text = format!("option reserved=Off\n{}\npod p cpu=3\npod q cpu=3", one(1));
    let plan = sound_plan(&cluster(&text));
    assert_eq!((plan.new_nodes.len(), plan.unplaced.len()), (2, 0));
    assert_eq!(plan.new_nodes[0].requirements.get("example.com/reservation-id"), None);
}

#[test]
fn where_reservations_are_switched_off_nothing_is_made_from_a_full_one() {
    expect(&format!("option reserved=Off\n{}\npod p cpu=3", one(0)), &["default/one: p"]);
    expect(&format!("option reserved=Off\n{}\npod p cpu=3", only(0)), &["p waits"]);
}

#[test]
fn a_machine_that_is_supposed_to_be_free_again_can_be_had() {
    let plan = sound_plan(&cluster(&format!("option credit:r1=1\n{}\npod p cpu=3", only(0))));
    assert_eq!(told(&plan), ["default/one: p"]);
    assert_eq!(plan.new_nodes[0].requirements.get("example.com/reservation-id").unwrap().to_string(), "In [r1]");
}

#[test]
fn of_two_nodes_that_want_the_machine_supposed_to_be_free_the_second_waits() {
    let plan = sound_plan(&cluster(&format!("option credit:r1=1\n{}\npod p cpu=3\npod q cpu=3", only(0))));
    assert_eq!(told(&plan), ["default/one: p", "q waits"]);
    assert!(plan.unplaced[0].reason.is_deferred());
    let enough = format!("option credit:r1=2\n{}\npod p cpu=3\npod q cpu=3", only(0));
    expect(&enough, &["default/one: p", "default/one: q"]);
}

#[test]
fn what_is_supposed_to_be_free_comes_on_top_of_what_is() {
    let text = format!("option credit:r1=1\n{}\npod p cpu=3\npod q cpu=3\npod r cpu=3", only(1));
    expect(&text, &["default/one: p", "default/one: q", "r waits"]);
}

#[test]
fn a_supposed_machine_of_a_reservation_nobody_offers_is_ignored() {
    expect(&format!("option credit:other=5\n{}\npod p cpu=3", only(0)), &["p waits"]);
    let broken = "
        type one cpu=4 memory=8Gi price=2 zone=a
        offering one price=0.1 zone=a capacity-type=reserved id=r1 left=0 unavailable=yes
        pool default need:capacity-type=In:reserved
        pod p cpu=1";
    expect(&format!("option credit:r1=1\n{broken}"), &["p waits"]);
}

#[test]
fn with_fallback_a_pod_for_which_no_reserved_capacity_is_left_waits_and_is_not_forgotten() {
    let plan = sound_plan(&cluster(&format!("option reserved=Fallback\n{}\npod p cpu=3\npod q cpu=3", only(1))));
    assert_eq!(told(&plan), ["default/one: p", "q waits"]);
    assert!(plan.unplaced[0].reason.is_deferred());
}
