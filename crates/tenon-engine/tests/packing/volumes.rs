//! Where the volumes of a pod can be used (C9), and where that leaves its wishes, spread and minValues.

use crate::packing::cluster::{cluster, demand_on, expect, label, reason, sound_plan, told};

const ZONES: &str = "type one cpu=10 memory=40Gi zone=a,b,c";

/// Zones of new nodes, in order, each once for each pod.
#[track_caller]
fn zones(text: &str) -> Vec<String> {
    let plan = sound_plan(&cluster(text));
    assert!(plan.unplaced.is_empty(), "{:?}\n{text}", told(&plan));
    let zone = label("zone");
    let of_node = |node: &tenon_model::NewNode| vec![node.chosen.labels[&zone].clone(); node.pods.len()];
    let mut zones: Vec<String> = plan.new_nodes.iter().flat_map(of_node).collect();
    zones.sort();
    zones
}

#[test]
fn c9_a_new_node_is_where_the_volume_is() {
    assert_eq!(demand_on("zone", &format!("{ZONES}\npod p cpu=1 volume=zone:b")), "In [b]");
    assert_eq!(demand_on("zone", &format!("{ZONES}\npod p cpu=1 volume=zone:b,c")), "In [b, c]");
    assert_eq!(demand_on("zone", &format!("{ZONES}\npod p cpu=1 need:zone=NotIn:b volume=zone:b,c")), "In [c]");
}

#[test]
fn c9_the_first_place_that_works_is_taken() {
    assert_eq!(demand_on("zone", &format!("{ZONES}\npod p cpu=1 volume=zone:b|zone:a")), "In [b]");
    assert_eq!(demand_on("zone", &format!("{ZONES}\npod p cpu=1 volume=zone:x|zone:a")), "In [a]");
    assert_eq!(demand_on("zone", &format!("{ZONES}\npod p cpu=1 need:zone=In:a volume=zone:b|zone:a")), "In [a]");
    let pools = "pool heavy weight=9 need:zone=In:c\npool light need:zone=In:a,b";
    expect(&format!("{ZONES}\n{pools}\npod p cpu=1 volume=zone:b|zone:c"), &["heavy/one: p"]);
}

#[test]
fn c9_pods_with_volumes_in_different_zones_get_different_nodes() {
    expect(
        &format!("{ZONES}\npod p cpu=1 volume=zone:a\npod q cpu=1 volume=zone:b\npod r cpu=1 volume=zone:b|zone:c"),
        &["default/one: p", "default/one: q r"],
    );
    // The planned node may still be in any zone when the volume comes.
    expect(&format!("{ZONES}\npod p cpu=2\npod q cpu=1 volume=zone:c"), &["default/one: p q"]);
}

#[test]
fn c9_nodes_that_are_there_take_a_pod_if_they_are_in_any_of_its_places() {
    let nodes =
        "node n1 cpu=4 memory=8Gi label:zone=a\nnode n2 cpu=4 memory=8Gi label:zone=b\nnode n3 cpu=4 memory=8Gi";
    let text = |volume: &str| format!("{ZONES}\n{nodes}\npod p cpu=1 volume={volume}");
    expect(&text("zone:b"), &["n2: p"]);
    expect(&text("zone:b|zone:a"), &["n1: p"]);
    expect(&text("zone:c"), &["default/one: p"]);
    expect(&text("hostname:n3|zone:c"), &["n3: p"]);
}

#[test]
fn c9_a_volume_on_a_host_that_is_not_there_cannot_be_had_on_a_new_node() {
    let why = reason(&format!("{ZONES}\npod p cpu=1 volume=hostname:gone"));
    assert!(why.contains("label kubernetes.io/hostname") && why.contains("volume of the pod"), "{why}");
}

#[test]
fn c9_zones_of_pod_and_volume_that_exclude_each_other_are_waited_for() {
    let node = "node n1 cpu=4 memory=8Gi\nnode n2 cpu=4 memory=8Gi label:zone=a\nnode n3 cpu=4 memory=8Gi label:zone=b";
    let why = reason(&format!("{ZONES}\n{node}\npod p cpu=1 need:zone=In:a volume=zone:b"));
    let words =
        "label topology.kubernetes.io/zone: a volume of the pod requires In [b], the pod itself requires In [a]";
    assert!(why.contains(words), "{why}");
}

#[test]
fn c9_a_zone_that_the_pool_does_not_have_is_named_with_the_volume() {
    let why = reason(&format!("{ZONES}\npool web need:zone=In:a,b\npod p cpu=1 volume=zone:c"));
    assert!(why.contains("required In [c], available In [a, b] (required by a volume of the pod)"), "{why}");
    let why = reason(&format!("{ZONES}\npod p cpu=1 volume=zone:x|zone:y"));
    assert!(why.contains("(required by a volume of the pod: topology.kubernetes.io/zone In [x])"), "{why}");
}

#[test]
fn c9_a_volume_is_never_given_up_and_a_wish_is() {
    assert_eq!(demand_on("zone", &format!("{ZONES}\npod p cpu=1 prefer:9:zone=In:a volume=zone:b")), "In [b]");
    assert_eq!(demand_on("zone", &format!("{ZONES}\npod p cpu=1 or:zone=In:a or:zone=In:b volume=zone:b")), "In [b]");
    expect(&format!("{ZONES}\npod p cpu=1 prefer:9:zone=In:a volume=zone:x"), &["p waits"]);
}

#[test]
fn reserved_capacity_in_another_place_of_the_volume_is_used() {
    let text = "type one cpu=4 memory=8Gi price=2 zone=a,b capacity-type=spot
        offering one price=0 zone=a capacity-type=reserved id=r1 left=1
        offering one price=0 zone=b capacity-type=reserved id=r2 left=1";
    let pod = |name: &str| format!("\npod {name} cpu=3 need:capacity-type=In:reserved volume=zone:a|zone:b");
    expect(&format!("{text}{}{}", pod("p"), pod("q")), &["default/one: p", "default/one: q"]);
}

#[test]
fn volumes_that_differ_make_pods_differ_and_nothing_else_does() {
    let pods = "pod p cpu=1 volume=zone:a\npod q cpu=1\npod r cpu=1 volume=zone:b";
    expect(&format!("{ZONES}\n{pods}"), &["default/one: p q", "default/one: r"]);
}

#[test]
fn a_spread_chooses_among_the_zones_of_the_volume() {
    let pods: String = (0..4)
        .map(|n| format!("\npod p{n} cpu=1 label:app=web spread=zone:1:app=web volume=zone:a|zone:b|zone:c"))
        .collect();
    assert_eq!(zones(&format!("{ZONES}{pods}")), ["a", "a", "b", "c"]);
    let own: String = ["a", "b", "c"]
        .map(|zone| format!("\npod p{zone} cpu=1 label:app=web spread=zone:1:app=web volume=zone:{zone}"))
        .concat();
    assert_eq!(zones(&format!("{ZONES}{own}")), ["a", "b", "c"]);
}

#[test]
fn a_volume_does_not_shrink_the_domains_that_a_spread_is_measured_by() {
    // All volumes are in zone a: with maxSkew 1 over a, b and c only one pod may be there.
    let pods: String =
        (0..3).map(|n| format!("\npod p{n} cpu=1 label:app=web spread=zone:1:app=web volume=zone:a")).collect();
    let plan = sound_plan(&cluster(&format!("{ZONES}{pods}")));
    assert_eq!(plan.unplaced.len(), 2, "{:?}", told(&plan));
    let why = plan.unplaced[0].reason.to_string();
    assert!(why.ends_with("maxSkew 1 allows no more pods in a (1 pod)"), "{why}");
    // What the pod itself requires does.
    let pods = pods.replace("volume=zone:a", "volume=zone:a need:zone=In:a");
    assert_eq!(zones(&format!("{ZONES}{pods}")), ["a", "a", "a"]);
}

#[test]
fn affinity_and_volumes_have_to_agree() {
    let near = "label:app=web with=zone:app=web";
    let text = |volume: &str| format!("{ZONES}\npod p cpu=2 {near} volume=zone:b\npod q cpu=1 {near} volume={volume}");
    assert_eq!(zones(&text("zone:b,c")), ["b", "b"]);
    expect(&text("zone:c"), &["default/one: p", "q waits"]);
}

#[test]
fn min_values_that_a_volume_leaves_too_few_of_are_waited_for_or_relaxed() {
    let text = "type one cpu=4 memory=8Gi zone=a,b\npool default need:zone=Exists:+min=2\npod p cpu=1 volume=zone:a";
    let why = reason(text);
    assert!(why.contains("minValues requirement is not met"), "{why}");
    let plan = sound_plan(&cluster(&format!("option min-values=BestEffort\n{text}")));
    assert!(plan.new_nodes[0].min_values_relaxed);
    assert_eq!(plan.new_nodes[0].requirements.get(&label("zone")).unwrap().min_values(), Some(1));
    // A node that is planned relaxes nothing: the second pod gets a new one.
    let text = "option min-values=BestEffort\ntype one cpu=4 memory=8Gi zone=a,b\npool default need:zone=Exists:+min=2";
    expect(&format!("{text}\npod p cpu=2\npod q cpu=1 volume=zone:a"), &["default/one: p", "default/one: q"]);
}
