//! VMs that are bound to CPUs and memory of their hosts.

use std::sync::Arc;

use tenon_engine::{Change, Engine, check};
use tenon_model::{Pinning, Plan, Snapshot};

use crate::packing::cluster::{cluster, expect, reason, sound_plan};

/// Two NUMA nodes of 8 CPUs, two of each core, and 16 GiB each.
const HOST: &str = "host pve1 cpu=16 memory=32Gi cells=2 threads=2";

/// What each new node is bound to.
fn bound(plan: &Plan) -> Vec<String> {
    let told = |pinning: &Pinning| {
        let cells = pinning.cells.iter().map(|cell| format!("{}:{}:{}", cell.node, cell.cpus, cell.memory_mib));
        cells.collect::<Vec<_>>().join(" ")
    };
    plan.new_nodes.iter().map(|node| node.pinning.as_deref().map_or_else(String::new, told)).collect()
}

fn planned(text: &str) -> (Snapshot, Plan) {
    let snapshot = cluster(text);
    let plan = sound_plan(&snapshot);
    (snapshot, plan)
}

#[test]
fn vms_of_one_plan_are_bound_to_different_cpus_of_one_numa_node_each() {
    let pods: Vec<String> =
        (0..5).map(|pod| format!("pod p{pod} cpu=3500m memory=6Gi label:a=b apart=hostname:a=b")).collect();
    let (_, plan) = planned(&format!("{HOST}\n{}", pods.join("\n")));
    let expected = ["0:0-1,8-9:8192", "0:2-3,10-11:8192", "1:4-5,12-13:8192", "1:6-7,14-15:8192"];
    assert_eq!((bound(&plan), plan.unplaced.len()), (expected.map(str::to_owned).to_vec(), 1));
}

#[test]
fn a_vm_that_is_larger_than_a_numa_node_is_on_two_with_exactly_its_memory() {
    let (_, plan) = planned(&format!("{HOST}\npod p cpu=14 memory=24Gi"));
    assert_eq!(plan.new_nodes[0].chosen.instance_type, "c1.16VCPU-32GB");
    assert_eq!(bound(&plan), ["0:0-3,8-11:16384 1:4-7,12-15:16384"]);
}

#[test]
fn a_node_that_grows_in_a_plan_gives_back_what_it_was_bound_to() {
    let pods: Vec<String> = (0..7).map(|pod| format!("pod p{pod} cpu=900m memory=1Gi")).collect();
    let (_, plan) = planned(&format!("host pve1 cpu=8 memory=16Gi cells=1 threads=2\n{}", pods.join("\n")));
    assert_eq!(bound(&plan), ["0:0-7:16384"]);
}

#[test]
fn what_fits_in_sum_but_not_on_numa_nodes_says_what_is_short() {
    // A VM with one CPU is on one NUMA node, and none has 8 GiB.
    let host = "host pve1 cpu=8 memory=16Gi cells=4";
    expect(&format!("{host}\npod p cpu=500m memory=1Gi"), &["default/c1.1VCPU-2GB@pve1: p"]);
    let why = reason(&format!("{host}\npod p cpu=500m memory=7Gi need:instance-type=In:m1.1VCPU-8GB"));
    assert!(
        why.contains("no host has 8 GiB of memory free") && why.contains("the most is 4 GiB on host pve1"),
        "{why}"
    );
}

#[test]
fn what_would_be_if_a_node_were_gone_leaves_nothing_bound() {
    let pods: Vec<String> = (0..3).map(|pod| format!("pod p{pod} cpu=3 memory=4Gi")).collect();
    let snapshot = cluster(&format!("{HOST}\nnode n cpu=1 memory=1Gi\nbound b on=n cpu=1\n{}", pods.join("\n")));
    let engine = Engine::with_pods_on_nodes(&snapshot);
    let mut what_ifs = engine.what_ifs(false);
    let first = what_ifs.plan(&Change::default()).unwrap();
    let _ = what_ifs.plan(&Change { remove: &["n"], ..Change::default() }).unwrap();
    assert_eq!(what_ifs.plan(&Change::default()).unwrap(), first);
    assert!(!bound(&first).is_empty());
}

#[test]
fn a_plan_that_binds_two_vms_to_one_cpu_or_to_less_than_they_have_is_not_sound() {
    let pods =
        "pod a cpu=3 memory=6Gi label:a=b apart=hostname:a=b\npod b cpu=3 memory=6Gi label:a=b apart=hostname:a=b";
    let (snapshot, plan) = planned(&format!("{HOST}\n{pods}"));
    let broken = |change: &dyn Fn(&mut Plan)| {
        let mut plan = plan.clone();
        change(&mut plan);
        let found: Vec<String> = check(&snapshot, &plan).iter().map(ToString::to_string).collect();
        found.join("; ")
    };
    let pinning = |plan: &mut Plan, node: usize| plan.new_nodes[node].pinning.clone().unwrap();
    let said = broken(&|plan| plan.new_nodes[1].pinning = Some(pinning(plan, 0)));
    assert_eq!(
        said,
        "a new VM of NodePool default on host pve1 is bound to CPUs 0-1,8-9 and 8192 MiB of NUMA node 0, which are not free"
    );
    let said = broken(&|plan| plan.new_nodes[1].pinning = None);
    assert_eq!(said, "a new VM of NodePool default on host pve1 is not bound to any CPU");
    let said = broken(&|plan| {
        let mut less = Pinning::clone(&pinning(plan, 1));
        less.cells[0].memory_mib -= 1;
        plan.new_nodes[1].pinning = Some(Arc::new(less));
    });
    assert_eq!(said, "a new VM of NodePool default on host pve1 has 8192 MiB of memory and is bound to 8191 MiB");
}
