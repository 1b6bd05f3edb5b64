//! One behaviour each.

use tenon_engine::plan;
use tenon_model::{Effect, Operator, Quantity, Requirement, Resources, Snapshot};

use crate::cluster::{amounts, cluster, host, node, pod, pool, sound_plan, taint, told, tolerating, wanting};

#[track_caller]
fn expect(snapshot: &Snapshot, expected: &[&str]) {
    assert_eq!(told(&sound_plan(snapshot)), expected);
}

#[test]
fn a_pod_gets_the_cheapest_size_that_carries_it() {
    expect(&cluster(vec![pod("a", "500m", "1Gi")]), &["c1.1VCPU-2GB@pve1: a"]);
    // A 2 GB node leaves 1500 MiB for pods.
    expect(&cluster(vec![pod("a", "500m", "1500Mi")]), &["c1.1VCPU-2GB@pve1: a"]);
    expect(&cluster(vec![pod("a", "500m", "1501Mi")]), &["t1.1VCPU-3GB@pve1: a"]);
    expect(&cluster(vec![pod("a", "3500m", "1Gi")]), &["c1.4VCPU-8GB@pve1: a"]);
}

#[test]
fn pods_share_a_node_that_grows_with_them() {
    let pods = vec![pod("a", "900m", "512Mi"), pod("b", "900m", "512Mi"), pod("c", "900m", "512Mi")];
    expect(&cluster(pods), &["c1.4VCPU-8GB@pve1: a b c"]);
}

#[test]
fn what_fits_on_a_node_that_is_there_needs_no_new_one() {
    let mut snapshot = cluster(vec![pod("a", "1", "1Gi"), pod("b", "1", "1Gi")]);
    snapshot.nodes = vec![node("n1", "1500m", "8Gi")];
    expect(&snapshot, &["c1.2VCPU-4GB@pve1: b", "n1: a"]);
}

#[test]
fn a_label_of_a_node_that_is_there_is_a_fact() {
    let mut snapshot = cluster(vec![wanting(pod("a", "1", "1Gi"), "team", Operator::In, &["red"])]);
    snapshot.nodes = vec![node("n1", "4", "8Gi")];
    expect(&snapshot, &["a waits: NodePool default: incompatible requirements, label team does not have known values"]);
    snapshot.pools[0].requirements.add("team", &Requirement::is("red"));
    expect(&snapshot, &["c1.2VCPU-4GB@pve1: a"]);
}

#[test]
fn a_zone_is_a_host() {
    let zone = "topology.kubernetes.io/zone";
    expect(&cluster(vec![wanting(pod("a", "500m", "1Gi"), zone, Operator::In, &["pve3"])]), &["c1.1VCPU-2GB@pve3: a"]);
    expect(
        &cluster(vec![wanting(pod("a", "500m", "1Gi"), zone, Operator::NotIn, &["pve1", "pve2"])]),
        &["c1.1VCPU-2GB@pve3: a"],
    );
    let nowhere = cluster(vec![wanting(pod("a", "500m", "1Gi"), zone, Operator::In, &["pve9"])]);
    let told = told(&sound_plan(&nowhere));
    assert!(told[0].contains("label topology.kubernetes.io/zone wants In [pve9]"), "{told:?}");
}

#[test]
fn pods_that_want_different_zones_get_different_nodes() {
    let zone = "topology.kubernetes.io/zone";
    let pods = vec![
        wanting(pod("a", "500m", "512Mi"), zone, Operator::In, &["pve1"]),
        wanting(pod("b", "500m", "512Mi"), zone, Operator::In, &["pve2"]),
    ];
    expect(&cluster(pods), &["c1.1VCPU-2GB@pve1: a", "c1.1VCPU-2GB@pve2: b"]);
}

#[test]
fn any_of_a_pods_alternatives_will_do() {
    let zone = "topology.kubernetes.io/zone";
    let mut either = wanting(pod("a", "500m", "1Gi"), zone, Operator::In, &["pve9"]);
    let second = wanting(pod("a", "500m", "1Gi"), zone, Operator::In, &["pve2"]);
    either.alternatives.extend(second.alternatives);
    expect(&cluster(vec![either]), &["c1.1VCPU-2GB@pve2: a"]);
}

#[test]
fn a_tainted_pool_takes_only_pods_that_tolerate_it() {
    let mut snapshot = cluster(vec![pod("a", "500m", "1Gi"), tolerating(pod("b", "500m", "1Gi"), "gpu")]);
    snapshot.pools[0].taints = vec![taint("gpu", Effect::NoSchedule)];
    expect(&snapshot, &["c1.1VCPU-2GB@pve1: b", "a waits: NodePool default: did not tolerate gpu:NoSchedule"]);
    snapshot.pools[0].taints = vec![taint("gpu", Effect::PreferNoSchedule)];
    assert_eq!(sound_plan(&snapshot).unplaced, []);
}

#[test]
fn daemons_are_counted_on_every_new_node_they_would_run_on() {
    let mut snapshot = cluster(vec![pod("a", "500m", "1Gi")]);
    snapshot.daemons = vec![pod("agent", "600m", "128Mi")];
    expect(&snapshot, &["c1.2VCPU-4GB@pve1: a"]);
    snapshot.daemons = vec![wanting(pod("agent", "600m", "128Mi"), "gpu", Operator::Exists, &[])];
    expect(&snapshot, &["c1.1VCPU-2GB@pve1: a"]);
}

#[test]
fn the_pool_with_more_weight_is_asked_first() {
    let mut snapshot = cluster(vec![pod("a", "500m", "1Gi")]);
    let mut heavy = pool("heavy", &["pve2"]);
    heavy.weight = 10;
    snapshot.pools.push(heavy);
    expect(&snapshot, &["c1.1VCPU-2GB@pve2: a"]);
    snapshot.pools[1].not_ready = Some("NodeClassNotFound".to_owned());
    expect(&snapshot, &["c1.1VCPU-2GB@pve1: a"]);
}

#[test]
fn a_host_is_chosen_only_if_it_holds_the_vm() {
    let mut snapshot = cluster(vec![pod("a", "500m", "1Gi")]);
    snapshot.hosts = vec![host("pve1", "16", "1Gi"), host("pve2", "0", "64Gi"), host("pve3", "1", "2Gi")];
    expect(&snapshot, &["c1.1VCPU-2GB@pve3: a"]);
    snapshot.hosts[2].closed = Some("it is offline".to_owned());
    let told = told(&sound_plan(&snapshot));
    assert_eq!(
        told,
        [
            "a waits: NodePool default: no host has 2 GiB of memory free for a c1.1VCPU-2GB; the largest gap is 1 GiB on pve1; pve3 is left out: it is offline"
        ]
    );
}

#[test]
fn a_host_that_is_full_with_this_plans_own_vms_takes_no_more() {
    let pods = (0..4).map(|n| pod(&format!("p{n}"), "14", "8Gi")).collect();
    let plan = sound_plan(&cluster(pods));
    assert_eq!(plan.new_nodes.len(), 3);
    assert_eq!(plan.unplaced.len(), 1);
    assert!(plan.unplaced[0].reason.to_string().contains("no host has 16 of cpu free"), "{}", plan.unplaced[0].reason);
}

#[test]
fn new_vms_go_where_the_most_memory_is_left() {
    let zone_free = vec![host("pve1", "16", "10Gi"), host("pve2", "16", "30Gi"), host("pve3", "16", "20Gi")];
    let mut snapshot = cluster(vec![pod("a", "500m", "1Gi")]);
    snapshot.hosts = zone_free;
    expect(&snapshot, &["c1.1VCPU-2GB@pve2: a"]);
}

#[test]
fn a_pod_larger_than_every_size_says_so() {
    let told = told(&sound_plan(&cluster(vec![pod("a", "1", "200Gi")])));
    assert_eq!(
        told,
        [
            "a waits: NodePool default: no instance type has enough memory: 200 GiB wanted, at most 127.4 GiB left for pods"
        ]
    );
}

#[test]
fn limits_hold_within_one_plan_and_count_what_is_there() {
    let limited = |limits: Resources, used: Resources| {
        let mut snapshot = cluster((0..3).map(|n| pod(&format!("p{n}"), "900m", "512Mi")).collect());
        snapshot.pools[0].limits = limits;
        snapshot.pools[0].used = used;
        snapshot
    };
    let two_cores = Resources::default().with("cpu", Quantity::whole(2));
    expect(
        &limited(two_cores.clone(), Resources::default()),
        &["c1.2VCPU-4GB@pve1: p0 p1", "p2 waits: NodePool default: its limit of 2 cpu is reached"],
    );
    let plan = sound_plan(&limited(two_cores, amounts("2", "0")));
    assert_eq!((plan.new_nodes.len(), plan.unplaced.len()), (0, 3));
    let no_nodes = Resources::default().with("nodes", Quantity::whole(1));
    let used = Resources::default().with("nodes", Quantity::whole(1));
    assert_eq!(sound_plan(&limited(no_nodes, used)).unplaced.len(), 3);
}

#[test]
fn a_demand_we_cannot_judge_is_never_passed_over() {
    let mut odd = pod("a", "100m", "64Mi");
    odd.unsupported = Some("topology spread".to_owned());
    let mut snapshot = cluster(vec![odd]);
    snapshot.nodes = vec![node("n1", "4", "8Gi")];
    expect(&snapshot, &["a waits: it uses topology spread, which is not supported yet"]);
}

#[test]
fn without_a_pool_the_pod_is_told_to_get_one() {
    let mut snapshot = cluster(vec![pod("a", "1", "1Gi")]);
    snapshot.pools.clear();
    expect(&snapshot, &["a waits: there is no NodePool; create one"]);
}

#[test]
fn a_new_node_says_what_its_labels_will_be() {
    let plan = plan(&cluster(vec![pod("a", "500m", "1Gi")]));
    let labels = &plan.new_nodes[0].requirements;
    for (label, value) in [
        ("node.kubernetes.io/instance-type", "c1.1VCPU-2GB"),
        ("topology.kubernetes.io/zone", "pve1"),
        ("topology.kubernetes.io/region", "lab"),
        ("karpenter.sh/nodepool", "default"),
        ("karpenter.sh/capacity-type", "on-demand"),
    ] {
        assert_eq!(labels.get(label), Some(&Requirement::is(value)), "{label}");
    }
}
