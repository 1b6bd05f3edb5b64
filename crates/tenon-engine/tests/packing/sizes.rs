//! Which sizes suit a pod: by label, by zone, by amount (D3), and which of them is taken.

use crate::packing::cluster::{cluster, expect, label, sizes, sound_plan};

/// Two architectures and two operating systems.
const MIXED: &str = "
    type amd cpu=4 memory=8Gi price=2 zone=a,b
    type arm cpu=4 memory=8Gi price=3 zone=b,c arch=arm64
    type win cpu=4 memory=8Gi price=4 zone=a,c os=windows capacity-type=spot,on-demand
";

#[test]
fn more_than_any_size_has_is_waited_for() {
    for pod in ["cpu=5", "memory=9Gi", "cpu=1 gpu=1", "cpu=4 memory=9Gi"] {
        expect(&format!("{MIXED}\npod p {pod}"), &["p waits"]);
    }
}

#[test]
fn pods_of_different_architectures_get_different_nodes() {
    let pods = "pod p cpu=1 need:arch=In:amd64 need:os=In:linux\npod q cpu=1 need:arch=In:arm64";
    expect(&format!("{MIXED}\n{pods}"), &["default/amd: p", "default/arm: q"]);
}

#[test]
fn pods_of_different_operating_systems_get_different_nodes() {
    let pods = "pod p cpu=1 need:os=In:linux\npod q cpu=1 need:os=In:windows";
    expect(&format!("{MIXED}\n{pods}"), &["default/amd: p", "default/win: q"]);
}

#[test]
fn pods_of_different_sizes_get_different_nodes() {
    let pods = "pod p cpu=1 need:instance-type=In:amd\npod q cpu=1 need:instance-type=In:arm";
    expect(&format!("{MIXED}\n{pods}"), &["default/amd: p", "default/arm: q"]);
}

#[test]
fn pods_of_different_zones_get_different_nodes() {
    let plan = sound_plan(&cluster(&format!("{MIXED}\npod p cpu=1 need:zone=In:a\npod q cpu=1 need:zone=In:b")));
    let zones: Vec<&str> = plan.new_nodes.iter().map(|node| node.chosen.labels[&label("zone")].as_str()).collect();
    assert_eq!(zones, ["a", "b"]);
}

#[test]
fn pods_that_need_what_no_one_size_has_get_different_nodes() {
    let two = "type gpu cpu=4 memory=8Gi gpu=1 price=1\ntype fpga cpu=4 memory=8Gi fpga=1 price=1";
    expect(&format!("{two}\npod p cpu=1 gpu=1\npod q cpu=1 fpga=1"), &["default/gpu: p", "default/fpga: q"]);
    expect(&format!("{two}\npod p cpu=1 gpu=1 fpga=1"), &["p waits"]);
}

#[test]
fn only_sizes_that_the_pod_allows_are_listed() {
    for (need, listed) in [
        ("instance-type=NotIn:amd", vec!["arm", "win"]),
        ("os=In:linux", vec!["amd", "arm"]),
        ("arch=In:amd64", vec!["amd", "win"]),
        ("zone=In:c", vec!["arm", "win"]),
        ("capacity-type=In:spot", vec!["win"]),
    ] {
        let mut found = sizes(&format!("{MIXED}\npod p cpu=1 need:{need}"));
        found.sort();
        assert_eq!(found, listed, "{need}");
    }
}

#[test]
fn only_sizes_that_the_pool_allows_are_listed() {
    assert_eq!(sizes(&format!("{MIXED}\npool default need:arch=In:arm64\npod p cpu=1")), ["arm"]);
    assert_eq!(sizes(&format!("{MIXED}\npool default need:os=In:windows\npod p cpu=1")), ["win"]);
}

#[test]
fn only_sizes_that_carry_the_pod_are_listed() {
    let three = "type s cpu=1 memory=8Gi price=1\ntype m cpu=2 memory=8Gi price=2\ntype l cpu=4 memory=8Gi price=3";
    assert_eq!(sizes(&format!("{three}\npod p cpu=1500m")), ["m", "l"]);
}

/// Labels that only this catalogue knows, one of them not on every size.
const OWN: &str = "
    type s cpu=2 memory=8Gi price=1 label:size=small need:exotic=DoesNotExist
    type l cpu=4 memory=8Gi price=2 label:size=large label:exotic=yes
";

#[test]
fn labels_of_the_catalogues_own_choose_the_size() {
    let pods = "pod p cpu=1 need:size=In:small\npod q cpu=1 need:size=In:large";
    expect(&format!("{OWN}\n{pods}"), &["default/s: p", "default/l: q"]);
}

#[test]
fn labels_of_the_catalogues_own_that_contradict_the_size_are_waited_for() {
    expect(&format!("{OWN}\npod p cpu=1 need:size=In:large need:instance-type=In:s"), &["p waits"]);
    expect(&format!("{OWN}\npod p cpu=1 need:size=In:small need:instance-type=In:l"), &["p waits"]);
}

#[test]
fn a_label_that_only_some_sizes_have_may_be_demanded() {
    expect(&format!("{OWN}\npod p cpu=1 need:exotic=Exists"), &["default/l: p"]);
}

#[test]
fn a_label_that_only_some_sizes_have_may_be_ruled_out() {
    expect(&format!("{OWN}\npod p cpu=1 need:exotic=DoesNotExist"), &["default/s: p"]);
    expect(&format!("{OWN}\npod p cpu=3 need:exotic=DoesNotExist"), &["p waits"]);
}

/// Every combination of architecture, system, zone and capacity type is offered, each at its own price.
fn assortment() -> String {
    let mut lines = Vec::new();
    for (n, (arch, os)) in
        [("amd64", "linux"), ("arm64", "linux"), ("amd64", "windows"), ("arm64", "windows")].iter().enumerate()
    {
        for (m, cpu) in [2, 8].iter().enumerate() {
            let name = format!("{arch}-{os}-{cpu}");
            let price = 1 + (n * 7 + m * 5) % 11;
            lines.push(format!(
                "type {name} cpu={cpu} memory=16Gi price={price} zone=a,b capacity-type=spot,on-demand arch={arch} os={os}"
            ));
        }
    }
    lines.join("\n")
}

#[test]
fn the_cheapest_that_suits_is_taken_whoever_narrows_the_choice() {
    let assortment = assortment();
    for demand in [
        "need:arch=In:amd64",
        "need:arch=In:arm64",
        "need:os=In:windows",
        "need:zone=In:b",
        "need:capacity-type=In:spot",
        "need:capacity-type=In:on-demand need:zone=In:a",
        "need:capacity-type=In:on-demand need:zone=In:a need:arch=In:arm64 need:os=In:windows",
    ] {
        for text in
            [format!("{assortment}\npod p cpu=1 {demand}"), format!("{assortment}\npool default {demand}\npod p cpu=1")]
        {
            let snapshot = cluster(&text);
            let plan = sound_plan(&snapshot);
            let node = &plan.new_nodes[0];
            let catalog = &snapshot.pools[0].catalog;
            let suiting = catalog.types().iter().filter(|size| size.requirements.intersects(&node.requirements));
            let ways = suiting.flat_map(|size| size.offerings.iter());
            let cheapest =
                ways.filter(|way| way.requirements.intersects(&node.requirements)).map(|way| way.price).min();
            assert_eq!(Some(node.chosen.price), cheapest, "{demand}");
        }
    }
}

#[test]
fn a_size_that_suits_nowhere_is_not_taken_for_another() {
    let some = "type amd cpu=4 memory=8Gi price=1 zone=a\ntype arm cpu=4 memory=8Gi price=2 zone=b arch=arm64";
    expect(&format!("{some}\npod p cpu=1 need:arch=In:arm64 need:zone=In:a"), &["p waits"]);
    expect(&format!("{some}\npool default need:arch=In:arm64\npod p cpu=1 need:zone=In:a"), &["p waits"]);
}

#[test]
fn a_cheaper_on_demand_size_is_taken_before_a_dearer_spot_one() {
    let two = "
        type a cpu=4 memory=8Gi price=3 capacity-type=on-demand
        type b cpu=4 memory=8Gi price=9 capacity-type=spot,on-demand";
    expect(&format!("{two}\npod p cpu=1"), &["default/a: p"]);
    expect(&format!("{two}\npod p cpu=1 need:capacity-type=In:spot"), &["default/b: p"]);
    assert_eq!(sizes(&format!("{two}\npod p cpu=1")), ["a", "b"]);
}
