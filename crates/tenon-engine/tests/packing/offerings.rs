//! What of a size pods can have (the allocatable vectors), where it can be had, and offerings that differ (D14).

use crate::packing::cluster::{cluster, expect, reason, sizes, sound_plan};

#[test]
fn what_is_kept_back_is_not_given_to_pods() {
    let one = "type one cpu=4 memory=4Gi overhead:cpu=1 price=1";
    expect(&format!("{one}\npod p cpu=3"), &["default/one: p"]);
    expect(&format!("{one}\npod p cpu=3001m"), &["p waits"]);
}

#[test]
fn where_more_is_kept_back_than_there_is_nothing_fits() {
    expect("type odd cpu=4 memory=4Gi overhead:memory=5Gi price=1\npod p cpu=1", &["p waits"]);
}

#[test]
fn huge_pages_are_taken_from_memory() {
    let one = "type one cpu=4 memory=4Gi hugepages-2Mi=1Gi overhead:cpu=100m overhead:memory=10Mi price=1";
    expect(&format!("{one}\npod p cpu=3900m memory=3062Mi"), &["default/one: p"]);
    expect(&format!("{one}\npod p cpu=3901m"), &["p waits"]);
    expect(&format!("{one}\npod p memory=3063Mi"), &["p waits"]);
}

#[test]
fn more_huge_pages_than_memory_leave_none() {
    let all = "type one cpu=4 memory=1Gi hugepages-2Mi=2Gi price=1";
    expect(&format!("{all}\npod p memory=1"), &["p waits"]);
    expect(&format!("{all}\npod p cpu=1"), &["default/one: p"]);
}

#[test]
fn what_cannot_be_had_is_not_taken() {
    let text = "type one cpu=4 memory=8Gi price=1 zone=a,b unavailable=a";
    expect(&format!("{text}\npod p cpu=1 need:zone=In:b"), &["default/one: p"]);
    expect(&format!("{text}\npod p cpu=1 need:zone=In:a"), &["p waits"]);
}

const LESS_IN_B: &str = "
    type one cpu=4 memory=8Gi price=2 zone=a
    offering one price=1 zone=b capacity-type=on-demand capacity:cpu=2
    pool default need:zone=Exists";

/// The price of what the only new node is made from.
fn price(text: &str) -> String {
    sound_plan(&cluster(text)).new_nodes[0].chosen.price.value().to_string()
}

#[test]
fn an_offering_that_leaves_less_is_taken_while_that_is_enough() {
    assert_eq!(price(&format!("{LESS_IN_B}\npod p cpu=1")), "1");
    assert_eq!(price(&format!("{LESS_IN_B}\npod p cpu=3")), "2");
}

#[test]
fn the_offering_with_room_must_be_where_the_pod_wants_to_be() {
    expect(&format!("{LESS_IN_B}\npod p cpu=2 need:zone=In:b"), &["default/one: p"]);
    expect(&format!("{LESS_IN_B}\npod p cpu=3 need:zone=In:b"), &["p waits"]);
}

#[test]
fn a_node_that_grows_leaves_the_offering_that_is_too_small() {
    let text = format!("{LESS_IN_B}\npod p cpu=1500m\npod q cpu=1500m");
    expect(&text, &["default/one: p q"]);
    assert_eq!(price(&text), "2");
}

const SLOTS: &str = "
    type special cpu=4 memory=8Gi price=5
    offering special price=5 zone=a capacity-type=on-demand capacity:fpga=4 overhead:memory=1Gi
    type plain cpu=4 memory=8Gi price=1";

#[test]
fn a_resource_that_only_an_offering_adds_chooses_the_sizes_that_have_it() {
    assert_eq!(sizes(&format!("{SLOTS}\npod p cpu=1 fpga=1")), ["special"]);
    expect(&format!("{SLOTS}\npod p cpu=1"), &["default/plain: p"]);
}

#[test]
fn what_an_offering_keeps_back_stands_in_place_of_what_its_size_does() {
    expect(&format!("{SLOTS}\npod p memory=7Gi fpga=1"), &["default/special: p"]);
    // The size has 8 GiB without the resource and 7 GiB with it, and a pod needs both from one offering.
    expect(&format!("{SLOTS}\npod p memory=8Gi fpga=1"), &["p waits"]);
}

#[test]
fn an_offering_that_cannot_be_had_adds_nothing() {
    let text = SLOTS.replace("capacity:fpga=4", "capacity:fpga=4 unavailable=yes");
    expect(&format!("{text}\npod p cpu=1 fpga=1"), &["p waits"]);
    let why = reason(&format!("{text}\npod p cpu=1 fpga=1"));
    assert!(why.contains("no instance type has enough resources"), "{why}");
}
