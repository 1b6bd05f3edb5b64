//! What a new node asks for and lists (C8, and what is left of it after the results are cut to length).

use tenon_model::{Quantity, Requirement};

use crate::packing::cluster::{cluster, label, sizes, sound_plan};

const SIZES: &str = "
    type small cpu=2 memory=4Gi price=1
    type large cpu=8 memory=16Gi price=4
";

#[test]
fn a_new_node_asks_for_what_its_pods_need() {
    let plan = sound_plan(&cluster(&format!("{SIZES}\npod a cpu=500m memory=1Gi gpu=0\npod b cpu=250m memory=1Gi")));
    let node = &plan.new_nodes[0];
    assert_eq!(node.requests.get("cpu"), Quantity::milli(750));
    assert_eq!(node.requests.get("memory"), "2Gi".parse().unwrap());
    assert_eq!(node.requests.get("pods"), Quantity::whole(2));
}

#[test]
fn a_new_node_asks_for_its_daemons_once_however_many_pods_it_gets() {
    let text =
        format!("{SIZES}\ndaemon agent cpu=100m memory=64Mi\npod a cpu=500m memory=1Gi\npod b cpu=500m memory=1Gi");
    let plan = sound_plan(&cluster(&text));
    let node = &plan.new_nodes[0];
    assert_eq!(node.requests.get("cpu"), Quantity::milli(1100));
    assert_eq!(node.requests.get("memory"), "2112Mi".parse().unwrap());
    assert_eq!(node.requests.get("pods"), Quantity::whole(3));
}

#[test]
fn a_new_node_lists_every_size_that_would_do_the_cheapest_first() {
    assert_eq!(sizes(&format!("{SIZES}\npod p cpu=1")), ["small", "large"]);
    let dear = "type small cpu=2 memory=4Gi price=9\ntype large cpu=8 memory=16Gi price=4";
    assert_eq!(sizes(&format!("{dear}\npod p cpu=1")), ["large", "small"]);
}

#[test]
fn a_new_node_demands_what_its_pool_and_its_pods_do() {
    let pool = "pool default label:team=red need:zone=In:a,b need:example.com/tier=In:gold,silver";
    let text = format!("{SIZES}\n{pool}\npod p cpu=1 need:example.com/tier=In:gold need:arch=In:amd64");
    let plan = sound_plan(&cluster(&text));
    let asked = plan.new_nodes[0].requirements.to_string();
    assert_eq!(
        asked,
        "example.com/tier In [gold], karpenter.sh/nodepool In [default], kubernetes.io/arch In [amd64], team In [red], \
         topology.kubernetes.io/zone In [a, b]"
    );
}

#[test]
fn a_new_node_names_its_pool_and_not_the_sizes_or_what_only_daemons_ask_for() {
    let plan = sound_plan(&cluster(&format!("{SIZES}\npod p cpu=1")));
    let node = &plan.new_nodes[0];
    assert_eq!(node.requirements.get(&label("nodepool")), Some(&Requirement::is("default")));
    for hidden in ["instance-type", "karpenter.sh/registered", "karpenter.sh/initialized", "hostname"] {
        assert_eq!(node.requirements.get(&label(hidden)), None, "{hidden}");
    }
}

#[test]
fn what_is_chosen_says_the_labels_the_node_will_have() {
    let plan = sound_plan(&cluster(&format!("{SIZES}\npod p cpu=1")));
    let labels = &plan.new_nodes[0].chosen.labels;
    for (short, value) in
        [("zone", "a"), ("instance-type", "small"), ("capacity-type", "on-demand"), ("arch", "amd64"), ("os", "linux")]
    {
        assert_eq!(labels[&label(short)], value);
    }
}

#[test]
fn no_more_sizes_are_listed_than_may_be_and_those_are_the_cheapest() {
    let many: String =
        (0..9).map(|n| format!("type t{n} cpu=4 memory=8Gi price={}\n", 9 - n)).collect::<Vec<_>>().join("");
    assert_eq!(sizes(&format!("{many}\noption max-types=3\npod p cpu=1")), ["t8", "t7", "t6"]);
    let more: String = (0..700).map(|n| format!("type t{n:03} cpu=4 memory=8Gi price={n}\n")).collect();
    let listed = sizes(&format!("{more}\npod p cpu=1"));
    assert_eq!((listed.len(), listed[599].as_str()), (600, "t599"));
}

#[test]
fn a_size_that_can_only_be_had_from_a_full_reservation_is_listed_last() {
    let text = "
        type full cpu=4 memory=8Gi price=1 capacity-type=spot unavailable=a
        offering full price=0.1 zone=a capacity-type=reserved id=r left=0
        type plain cpu=4 memory=8Gi price=5
        pod p cpu=1";
    assert_eq!(sizes(text), ["plain", "full"]);
}
