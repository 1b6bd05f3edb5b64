//! Packing onto new nodes (D4, D3, C8, C11, D14).

use tenon_model::{Quantity, Requirement};

use crate::cluster::{cluster, expect, label, sound_plan};

const SIZES: &str = "
    type small cpu=2 memory=4Gi price=1
    type large cpu=8 memory=16Gi price=4
";

#[test]
fn a_pod_gets_the_cheapest_size_that_carries_it_whatever_the_order() {
    expect(&format!("{SIZES} \n pod p cpu=1 memory=1Gi"), &["default/small: p"]);
    expect("type z cpu=4 memory=8Gi price=1\ntype a cpu=4 memory=8Gi price=2\npod p cpu=1", &["default/z: p"]);
    expect(&format!("{SIZES} \n pod p cpu=3"), &["default/large: p"]);
}

#[test]
fn pods_share_a_node_that_grows_with_them() {
    let pods = "pod a cpu=1500m\npod b cpu=1500m\npod c cpu=1500m\npod d cpu=1500m";
    expect(&format!("{SIZES} \n {pods}"), &["default/large: a b c d"]);
}

#[test]
fn a_full_node_is_followed_by_another() {
    let pods = "pod a cpu=6\npod b cpu=6\npod c cpu=1";
    // The node with fewest pods is asked first, and of equal ones the older.
    expect(&format!("{SIZES} \n {pods}"), &["default/large: a c", "default/large: b"]);
}

#[test]
fn large_pods_are_placed_before_small_ones_and_old_ones_before_young() {
    let sizes = "type one cpu=4 memory=8Gi price=1\npool default limit:nodes=1";
    expect(&format!("{sizes}\npod a cpu=1\npod z cpu=4"), &["default/one: z", "a waits"]);
    expect(&format!("{sizes}\npod a cpu=3 created=9\npod z cpu=3 created=5"), &["default/one: z", "a waits"]);
}

#[test]
fn the_number_of_pods_on_a_node_is_a_resource() {
    let pods = "pod a cpu=1m\npod b cpu=1m\npod c cpu=1m";
    expect(&format!("type tiny cpu=4 memory=8Gi pods=2 price=1\n{pods}"), &["default/tiny: a b", "default/tiny: c"]);
}

#[test]
fn extended_resources_choose_their_size() {
    expect(
        "type plain cpu=4 memory=8Gi price=1\ntype gpu cpu=4 memory=8Gi gpu=2 price=9\npod p cpu=1 gpu=1",
        &["default/gpu: p"],
    );
}

#[test]
fn what_is_kept_back_is_not_given_to_pods() {
    let one = "type one cpu=4 memory=4Gi overhead:cpu=1 price=1";
    expect(&format!("{one}\npod p cpu=3"), &["default/one: p"]);
    expect(&format!("{one}\npod p cpu=3001m"), &["p waits"]);
    // Where more is kept back than there is, nothing fits.
    expect("type odd cpu=4 memory=4Gi overhead:memory=5Gi price=1\npod p cpu=1", &["p waits"]);
}

#[test]
fn huge_pages_are_taken_from_memory() {
    let one = "type one cpu=4 memory=4Gi hugepages-2Mi=1Gi overhead:cpu=100m overhead:memory=10Mi price=1";
    expect(&format!("{one}\npod p cpu=3900m memory=3062Mi"), &["default/one: p"]);
    expect(&format!("{one}\npod p memory=3063Mi"), &["p waits"]);
    let all = "type one cpu=4 memory=1Gi hugepages-2Mi=2Gi price=1";
    expect(&format!("{all}\npod p memory=1"), &["p waits"]);
}

#[test]
fn an_offering_may_leave_pods_more_or_less_than_its_size() {
    let text = "
        type one cpu=4 memory=8Gi price=2 zone=a
        offering one price=1 zone=b capacity-type=on-demand capacity:cpu=2
        pool default need:zone=Exists";
    expect(&format!("{text}\npod p cpu=1"), &["default/one: p"]);
    let cheap = sound_plan(&cluster(&format!("{text}\npod p cpu=1")));
    assert_eq!(cheap.new_nodes[0].chosen.price.value().to_string(), "1");
    let large = sound_plan(&cluster(&format!("{text}\npod p cpu=3")));
    assert_eq!(large.new_nodes[0].chosen.price.value().to_string(), "2");
    // The offering that has room is not where the pod wants to be.
    expect(&format!("{text}\npod p cpu=3 need:zone=In:b"), &["p waits"]);
}

#[test]
fn what_cannot_be_had_is_not_taken() {
    let text = "type one cpu=4 memory=8Gi price=1 zone=a,b unavailable=a";
    expect(&format!("{text}\npod p cpu=1 need:zone=In:b"), &["default/one: p"]);
    expect(&format!("{text}\npod p cpu=1 need:zone=In:a"), &["p waits"]);
}

#[test]
fn the_pool_with_more_weight_is_asked_first_and_of_equal_ones_the_last_by_name() {
    let two = "type one cpu=4 memory=8Gi price=1";
    expect(&format!("{two}\npool a weight=1\npool b weight=9\npod p cpu=1"), &["b/one: p"]);
    expect(&format!("{two}\npool a\npool b\npod p cpu=1"), &["b/one: p"]);
    expect(&format!("{two}\npool a weight=1\npool b weight=9\npod p cpu=1 need:nodepool=In:a"), &["a/one: p"]);
    expect(&format!("{two}\npool a label:team=red\npool b weight=9\npod p cpu=1 need:team=In:red"), &["a/one: p"]);
}

#[test]
fn pools_that_are_not_ready_or_of_fixed_size_make_no_nodes_for_pods() {
    let one = "type one cpu=4 memory=8Gi price=1\npool a";
    expect(&format!("{one}\npool b weight=9 not-ready=broken\npod p cpu=1"), &["a/one: p"]);
    expect(&format!("{one}\npool b weight=9 replicas=3\npod p cpu=1"), &["a/one: p"]);
    expect(&format!("{one}\npool b weight=9 empty\npod p cpu=1"), &["a/one: p"]);
    expect("type one cpu=4 memory=8Gi\npool b replicas=3\nnode n cpu=4 memory=8Gi\npod p cpu=1", &["p waits"]);
}

#[test]
fn a_new_node_asks_for_its_pods_and_its_daemons_once_and_lists_every_size_that_would_do() {
    let text =
        format!("{SIZES} \n daemon agent cpu=100m memory=64Mi\npod a cpu=500m memory=1Gi\npod b cpu=500m memory=1Gi");
    let plan = sound_plan(&cluster(&text));
    let node = &plan.new_nodes[0];
    assert_eq!(node.requests.get("cpu"), Quantity::milli(1100));
    assert_eq!(node.requests.get("pods"), Quantity::whole(3));
    assert_eq!(node.instance_types, ["small", "large"]);
    assert_eq!(node.requirements.get(&label("nodepool")), Some(&Requirement::is("default")));
    assert_eq!(node.requirements.get(&label("instance-type")), None);
    for hidden in ["karpenter.sh/registered", "karpenter.sh/initialized", "kubernetes.io/hostname"] {
        assert_eq!(node.requirements.get(hidden), None, "{hidden}");
    }
    assert_eq!(node.chosen.labels[&label("zone")], "a");
    assert_eq!(node.chosen.labels[&label("instance-type")], "small");
}

#[test]
fn sizes_are_listed_by_price_and_no_more_than_may_be() {
    let sizes: String =
        (0..9).map(|n| format!("type t{n} cpu=4 memory=8Gi price={}\n", 9 - n)).collect::<Vec<_>>().join("");
    let plan = sound_plan(&cluster(&format!("{sizes}\noption max-types=3\npod p cpu=1")));
    assert_eq!(plan.new_nodes[0].instance_types, ["t8", "t7", "t6"]);
}
