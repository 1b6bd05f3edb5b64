//! What is said to whoever waits (D12, D13, C2), and demands that are not judged yet.

use std::sync::Arc;

use tenon_engine::Engine;
use tenon_model::{Pod, PodStorage, Snapshot};

use crate::packing::cluster::{cluster, reason, sound_plan};

const ONE: &str = "type one cpu=4 memory=8Gi price=1 zone=a,b";

#[test]
fn the_words_name_what_no_size_has() {
    for (pod, words) in [
        ("cpu=9", "no instance type has enough resources"),
        ("cpu=1 need:instance-type=In:two", "no instance type met all requirements"),
        ("cpu=9 need:instance-type=In:two", "no instance type met the scheduling requirements or had enough resources"),
        ("cpu=1 need:zone=In:x", "no instance type met the scheduling requirements or had a required offering"),
        (
            "cpu=9 need:zone=In:x",
            "no instance type met the scheduling requirements or had enough resources or had a required offering",
        ),
        ("cpu=2000000", "(CPU request >= 1 Million, m vs M typo?)"),
    ] {
        let why = reason(&format!("{ONE}\npod p {pod}"));
        assert!(why.contains(words) && why.contains("requirements=") && why.contains("resources="), "{pod}: {why}");
    }
    let why = reason(&format!("{ONE}\npod p cpu=1 memory=200Gi"));
    assert!(why.contains("memory: 200 GiB requested, but the largest instance type has 8 GiB for pods"), "{why}");
}

#[test]
fn pairs_that_never_come_together_are_told() {
    let two = "type a cpu=4 memory=8Gi price=1 label:gen=1\ntype b cpu=1 memory=1Gi price=1 label:gen=2";
    let why = reason(&format!("{two}\npod p cpu=3 need:gen=In:2"));
    assert!(
        why.contains(
            "no instance type which had enough resources and the required offering met the scheduling requirements"
        ),
        "{why}"
    );
    let apart = "type a cpu=4 memory=8Gi price=1 zone=a,b unavailable=a\ntype b cpu=1 memory=1Gi price=1 zone=a";
    let why = reason(&format!("{apart}\npod p cpu=3 need:zone=In:a"));
    assert!(
        why.contains("which met the scheduling requirements and had enough resources, had a required offering"),
        "{why}"
    );
}

#[test]
fn daemons_are_shown_in_what_would_be_needed() {
    let why = reason(&format!(
        "{ONE}\ntype two cpu=2 memory=2Gi price=1\ndaemon d cpu=1 need:instance-type=In:one\npod p cpu=9"
    ));
    assert!(why.contains("min={cpu: 9") && why.contains("max={cpu: 10"), "{why}");
}

#[test]
fn every_pool_is_told_of() {
    let pools = "pool a taint=gpu:NoSchedule\npool b not-ready=Sick\npool c replicas=1\npool d empty";
    let why = reason(&format!("{ONE}\n{pools}\npod p cpu=1"));
    assert_eq!(
        why,
        "NodePool d: nodepool requirements filtered out all available instance types; \
         NodePool c: static NodePool (spec.replicas is set), which adds no nodes for pods; NodePool b: not ready (Sick); \
         NodePool a: did not tolerate taint gpu:NoSchedule"
    );
}

#[test]
fn a_pool_that_no_size_meets_is_named_also_where_the_pod_finds_a_node_elsewhere() {
    let snapshot = cluster(&format!(
        "{ONE}\npool a\npool b not-ready=Sick empty\npool c replicas=1 empty\npool d empty\npod p cpu=1"
    ));
    let engine = Engine::of(&snapshot);
    assert_eq!(engine.pools_without_sizes(), ["d"]);
    assert_eq!(engine.plan().new_nodes[0].pool, "a");
}

#[test]
fn every_pod_hears_that_the_pools_demands_leave_nothing() {
    let plan = sound_plan(&cluster(&format!("{ONE}\npool default need:arch=In:riscv\npod p cpu=1\npod q cpu=1")));
    assert_eq!(plan.unplaced.len(), 2);
    for waiting in &plan.unplaced {
        let why = waiting.reason.to_string();
        assert!(why.contains("nodepool requirements filtered out all available instance types"), "{why}");
    }
}

#[test]
fn demands_of_a_pool_that_contradict_each_other_leave_nothing() {
    for pool in
        ["need:arch=In:amd64 need:arch=In:arm64", "need:zone=In:x", "need:instance-type=In:two", "need:os=NotIn:linux"]
    {
        let snapshot = cluster(&format!("{ONE}\npool default {pool}\npod p cpu=1"));
        assert_eq!(Engine::of(&snapshot).pools_without_sizes(), ["default"], "{pool}");
        let why = sound_plan(&snapshot).unplaced[0].reason.to_string();
        assert!(why.contains("nodepool requirements filtered out all available instance types"), "{pool}: {why}");
    }
}

#[test]
fn a_pool_whose_sizes_cannot_be_had_has_nothing_either() {
    let snapshot = cluster("type one cpu=4 memory=8Gi zone=a unavailable=a\npool default\npod p cpu=1");
    assert_eq!(Engine::of(&snapshot).pools_without_sizes(), ["default"]);
}

#[test]
fn devices_by_claim_are_refused_while_they_are_ignored() {
    let why = reason(&format!("{ONE}\nnode n cpu=4 memory=8Gi\npod p cpu=1 claim=gpu"));
    assert!(why.contains("resource claims"), "{why}");
}

#[test]
fn a_pod_without_claimed_devices_is_placed_beside_one_with_them() {
    let plan = sound_plan(&cluster(&format!("{ONE}\npod p cpu=1 claim=gpu\npod q cpu=1")));
    assert_eq!((plan.new_nodes.len(), plan.unplaced.len()), (1, 1));
    assert_eq!(&*plan.new_nodes[0].pods[0].name, "q");
}

#[test]
fn a_daemon_with_claimed_devices_takes_no_room_while_they_are_ignored() {
    let plan = sound_plan(&cluster(&format!("{ONE}\ndaemon d cpu=4 claim=gpu\npod p cpu=1")));
    assert!(plan.unplaced.is_empty(), "{plan:?}");
    let plan = sound_plan(&cluster(&format!("option dra=true\n{ONE}\ndaemon d cpu=4 claim=gpu\npod p cpu=1")));
    assert_eq!(plan.unplaced.len(), 1);
}

/// Something that is done to a pod.
type ChangePod = Box<dyn Fn(&mut Pod)>;

fn changed(text: &str, change: impl Fn(&mut Pod)) -> Snapshot {
    let mut snapshot = cluster(text);
    change(Arc::make_mut(&mut snapshot.pods[0]));
    snapshot
}

#[test]
fn a_demand_that_no_node_is_planned_by_is_never_passed_over() {
    let text = format!("{ONE}\nnode n cpu=4 memory=8Gi\npod p cpu=1");
    let changes: [(&str, ChangePod); 2] = [
        ("data is Lost", Box::new(|pod| pod.storage = PodStorage::Refused("data is Lost".to_owned()))),
        ("odd things", Box::new(|pod| pod.unsupported = Some("odd things".to_owned()))),
    ];
    for (words, change) in changes {
        let plan = sound_plan(&changed(&text, change));
        assert!(plan.placements.is_empty() && plan.new_nodes.is_empty(), "{plan:?}");
        let reason = &plan.unplaced[0].reason;
        assert!(reason.is_rejected() && reason.to_string().contains(words), "{reason}");
    }
}
