//! Hosts with limited room.

use crate::packing::cluster::{cluster, expect, reason, sound_plan};

const HOSTS: &str = "host pve1 cpu=16 memory=64Gi\nhost pve2 cpu=16 memory=64Gi\nhost pve3 cpu=16 memory=64Gi";

#[test]
fn a_pod_gets_the_cheapest_size_on_the_host_with_the_most_memory_left() {
    expect(&format!("{HOSTS}\npod p cpu=500m memory=1Gi"), &["default/c1.1VCPU-2GB@pve1: p"]);
    let uneven = "host pve1 cpu=16 memory=10Gi\nhost pve2 cpu=16 memory=30Gi\nhost pve3 cpu=16 memory=20Gi";
    expect(&format!("{uneven}\npod p cpu=500m memory=1Gi"), &["default/c1.1VCPU-2GB@pve2: p"]);
}

#[test]
fn a_zone_is_a_host() {
    expect(&format!("{HOSTS}\npod p cpu=500m need:zone=In:pve3"), &["default/c1.1VCPU-2GB@pve3: p"]);
    expect(&format!("{HOSTS}\npod p cpu=500m need:zone=NotIn:pve1,pve2"), &["default/c1.1VCPU-2GB@pve3: p"]);
    let pods = "pod p cpu=500m need:zone=In:pve1\npod q cpu=500m need:zone=In:pve2";
    expect(&format!("{HOSTS}\n{pods}"), &["default/c1.1VCPU-2GB@pve1: p", "default/c1.1VCPU-2GB@pve2: q"]);
}

#[test]
fn a_host_is_chosen_only_if_it_holds_the_vm() {
    let few = "host pve1 cpu=16 memory=1Gi\nhost pve2 cpu=0 memory=64Gi\nhost pve3 cpu=1 memory=2Gi";
    expect(&format!("{few}\npod p cpu=500m memory=1Gi"), &["default/c1.1VCPU-2GB@pve3: p"]);
    let why = reason(&format!("{few} closed=offline\npod p cpu=500m memory=1Gi"));
    assert_eq!(
        why,
        "NodePool default: no host has 2 GiB of memory free for instance type c1.1VCPU-2GB; the most is 1 GiB on host \
         pve1; host pve3 was skipped: it is offline; free up memory on a host or add a host"
    );
}

#[test]
fn a_host_that_one_pool_leaves_alone_is_used_by_the_others() {
    let one = "host pve1 cpu=16 memory=64Gi closed-for=web";
    let pools = "pool web weight=5 need:team=In:red\npool db need:team=In:blue";
    let pods = "pod p cpu=500m memory=1Gi need:team=In:blue";
    expect(&format!("{one}\n{pools}\n{pods}"), &["db/c1.1VCPU-2GB@pve1: p"]);
    let any = "pod p cpu=500m memory=1Gi";
    expect(&format!("{one}\n{pools}\n{any}"), &["db/c1.1VCPU-2GB@pve1: p"]);
    let two = format!("{one}\nhost pve2 cpu=1 memory=2Gi\n{pools}\n{any}");
    expect(&two, &["web/c1.1VCPU-2GB@pve2: p"]);
    let why = reason(&format!("{one}\npool web\n{any}"));
    assert!(why.contains("host pve1 was skipped: the storage of web is full"), "{why}");
}

#[test]
fn a_host_that_is_full_with_this_plans_own_vms_takes_no_more() {
    let pods = "pod a cpu=14 memory=8Gi\npod b cpu=14 memory=8Gi\npod c cpu=14 memory=8Gi\npod d cpu=14 memory=8Gi";
    let plan = sound_plan(&cluster(&format!("{HOSTS}\n{pods}")));
    assert_eq!((plan.new_nodes.len(), plan.unplaced.len()), (3, 1));
    assert!(plan.unplaced[0].reason.to_string().contains("no host has 16 CPU free"), "{}", plan.unplaced[0].reason);
}

#[test]
fn a_planned_node_grows_where_it_is_or_moves_to_where_there_is_room() {
    let two = "host pve1 cpu=2 memory=4Gi\nhost pve2 cpu=4 memory=3Gi";
    // One small pod fits on pve1, which has the most memory; with the second one more cores are needed.
    expect(
        &format!("{two}\npod a cpu=900m memory=256Mi\npod b cpu=900m memory=256Mi"),
        &["default/c1.2VCPU-4GB@pve1: a b"],
    );
    let two = "host pve1 cpu=1 memory=8Gi\nhost pve2 cpu=4 memory=8Gi";
    expect(
        &format!("{two}\npod a cpu=900m memory=256Mi\npod b cpu=900m memory=256Mi"),
        &["default/c1.2VCPU-4GB@pve2: a b"],
    );
}

#[test]
fn a_node_is_not_grown_beyond_what_hosts_hold() {
    let small = "host pve1 cpu=2 memory=4Gi\nhost pve2 cpu=2 memory=4Gi";
    let pods = "pod a cpu=1500m memory=256Mi\npod b cpu=1500m memory=256Mi\npod c cpu=1500m memory=256Mi";
    let plan = sound_plan(&cluster(&format!("{small}\n{pods}")));
    assert_eq!((plan.new_nodes.len(), plan.unplaced.len()), (2, 1));
}

#[test]
fn what_is_made_anywhere_needs_no_host() {
    expect("type one cpu=4 memory=8Gi price=1\npod p cpu=1", &["default/one: p"]);
}
