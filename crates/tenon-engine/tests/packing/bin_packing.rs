//! How pods share new nodes (D4, C5).

use crate::packing::cluster::{cluster, expect, sizes, sound_plan};

const SIZES: &str = "
    type small cpu=2 memory=4Gi price=1
    type large cpu=8 memory=16Gi price=4
";

#[test]
fn a_small_pod_gets_the_smallest_size() {
    expect(&format!("{SIZES}\npod p cpu=1 memory=1Gi"), &["default/small: p"]);
    expect(&format!("{SIZES}\npod p cpu=3"), &["default/large: p"]);
}

#[test]
fn several_small_pods_share_the_smallest_size_that_holds_them() {
    expect(&format!("{SIZES}\npod a cpu=500m\npod b cpu=500m\npod c cpu=500m"), &["default/small: a b c"]);
    let pods = "pod a cpu=1500m\npod b cpu=1500m\npod c cpu=1500m\npod d cpu=1500m";
    expect(&format!("{SIZES}\n{pods}"), &["default/large: a b c d"]);
}

#[test]
fn a_full_node_is_followed_by_another() {
    let pods = "pod a cpu=6\npod b cpu=6\npod c cpu=1";
    // The node with fewest pods is asked first, and of equal ones the older.
    expect(&format!("{SIZES}\n{pods}"), &["default/large: a c", "default/large: b"]);
}

#[test]
fn small_pods_fill_what_large_ones_leave() {
    let pods = "pod a cpu=6\npod b cpu=6\npod c cpu=2\npod d cpu=2";
    expect(&format!("{SIZES}\n{pods}"), &["default/large: a c", "default/large: b d"]);
}

#[test]
fn a_node_is_packed_to_the_last_thousandth() {
    let pods: String = (0..8).map(|n| format!("pod p{n} cpu=1 memory=2Gi\n")).collect();
    expect(&format!("{SIZES}\n{pods}"), &["default/large: p0 p1 p2 p3 p4 p5 p6 p7"]);
    let plan = sound_plan(&cluster(&format!("{SIZES}\n{pods}\npod q cpu=1m")));
    assert_eq!(plan.new_nodes.len(), 2);
}

#[test]
fn large_pods_are_placed_before_small_ones() {
    let one = "type one cpu=4 memory=8Gi price=1\npool default limit:nodes=1";
    expect(&format!("{one}\npod a cpu=1\npod z cpu=4"), &["default/one: z", "a waits"]);
    expect(&format!("{one}\npod a cpu=3 memory=1Gi\npod z cpu=3 memory=2Gi"), &["default/one: z", "a waits"]);
}

#[test]
fn of_equal_pods_the_oldest_is_placed_first_and_then_by_uid() {
    let one = "type one cpu=4 memory=8Gi price=1\npool default limit:nodes=1";
    expect(&format!("{one}\npod a cpu=3 created=9\npod z cpu=3 created=5"), &["default/one: z", "a waits"]);
    expect(&format!("{one}\npod z cpu=3 created=5\npod a cpu=3 created=5"), &["default/one: a", "z waits"]);
}

#[test]
fn the_cheapest_size_is_taken_whatever_its_name_or_amounts() {
    expect("type z cpu=4 memory=8Gi price=1\ntype a cpu=4 memory=8Gi price=2\npod p cpu=1", &["default/z: p"]);
    let odd = "
        type medium cpu=2 memory=2Gi price=3
        type small cpu=1 memory=1Gi price=2
        type large cpu=4 memory=4Gi price=1
        pod p cpu=1m memory=1Mi";
    expect(odd, &["default/large: p"]);
    assert_eq!(sizes(odd), ["large", "small", "medium"], "the others would do as well");
}

#[test]
fn the_number_of_pods_on_a_node_is_a_resource() {
    let pods = "pod a cpu=1m\npod b cpu=1m\npod c cpu=1m";
    expect(&format!("type tiny cpu=4 memory=8Gi pods=2 price=1\n{pods}"), &["default/tiny: a b", "default/tiny: c"]);
    let daemon = "daemon d cpu=1m";
    let apart = ["default/tiny: a", "default/tiny: b", "default/tiny: c"];
    expect(&format!("type tiny cpu=4 memory=8Gi pods=2 price=1\n{daemon}\n{pods}"), &apart);
}

#[test]
fn extended_resources_choose_their_size() {
    let two = "type plain cpu=4 memory=8Gi price=1\ntype gpu cpu=4 memory=8Gi gpu=2 price=9";
    expect(&format!("{two}\npod p cpu=1 gpu=1\npod q cpu=1 gpu=1"), &["default/gpu: p q"]);
    expect(&format!("{two}\npod p cpu=1 gpu=2\npod q cpu=1 gpu=1"), &["default/gpu: p", "default/gpu: q"]);
    expect(&format!("{two}\npod p cpu=1"), &["default/plain: p"]);
}

#[test]
fn a_request_for_nothing_of_a_resource_fits_where_there_is_none() {
    expect("type one cpu=4 memory=8Gi price=1\npod p cpu=0 memory=0 gpu=0", &["default/one: p"]);
    expect("type one cpu=4 memory=8Gi price=1\nnode n cpu=1 memory=1Gi\npod p gpu=0", &["n: p"]);
}

#[test]
fn a_pod_that_asks_for_nothing_gets_a_node() {
    expect("type one cpu=4 memory=8Gi price=1\npod p", &["default/one: p"]);
}

#[test]
fn what_exceeds_every_size_is_waited_for_and_holds_nobody_up() {
    expect(&format!("{SIZES}\npod huge cpu=9\npod p cpu=1"), &["huge waits", "default/small: p"]);
}
