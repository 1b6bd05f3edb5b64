//! What objects mean together: who needs a node, what nodes are, what daemons ask for, what pools use.

#![expect(clippy::unwrap_used, reason = "an object of the test's own that does not read is a failed test")]

mod daemons;
mod default_spread;
mod follower;
mod leaving;
mod nodes;
mod pools;
mod storage;
mod waiting;

use std::sync::Arc;

use serde_json::{Value, json};
use tenon_api::objects::{Kind, Objects};
use tenon_api::plan_options::PlanOptions;
use tenon_api::planning::{Surroundings, to_snapshot};
use tenon_api::{NodeClaim, NodePool};
use tenon_model::{Catalog, NodeStage, Quantity, Requirement, Resources, Seconds, Snapshot};

/// When the snapshots are taken: 2026-01-01T01:00:00Z.
const NOW: Seconds = Seconds(1_767_229_200);

struct Plain;

impl Surroundings for Plain {
    fn catalog(&self, _pool: &NodePool) -> Arc<Catalog> {
        Arc::default()
    }

    fn not_ready(&self, _pool: &NodePool) -> Option<String> {
        None
    }

    fn expected(&self, _claim: &NodeClaim) -> Option<(Resources, Resources)> {
        let amounts = Resources::default().with("cpu", Quantity::whole(7));
        Some((amounts.clone(), amounts))
    }
}

fn snapshot(items: &[(Kind, Value)]) -> Snapshot {
    let mut objects = read(items);
    objects.sort();
    to_snapshot(&objects, &Plain, &PlanOptions::default(), NOW)
}

/// The same with objects in the order they are given, as a store may show them.
fn unsorted(items: &[(Kind, Value)]) -> Snapshot {
    to_snapshot(&read(items), &Plain, &PlanOptions::default(), NOW)
}

fn read(items: &[(Kind, Value)]) -> Objects {
    let mut objects = Objects::default();
    for (kind, value) in items {
        objects.add(kind.read(value.clone()).unwrap().settled().unwrap());
    }
    objects
}

fn merged(mut base: Value, more: &Value) -> Value {
    for (key, value) in more.as_object().unwrap() {
        match base.get_mut(key) {
            Some(present) if present.is_object() && value.is_object() => *present = merged(present.clone(), value),
            _ => base[key] = value.clone(),
        }
    }
    base
}

fn pod(name: &str, more: &Value) -> (Kind, Value) {
    let plain = json!({
        "metadata": { "name": name, "namespace": "n", "labels": { "app": "web" } },
        "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1" } } }] },
    });
    (Kind::Pod, merged(plain, more))
}

fn waiting(name: &str, more: &Value) -> (Kind, Value) {
    let told = json!({ "status": { "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] } });
    pod(name, &merged(told, more))
}

fn node(name: &str, more: &Value) -> (Kind, Value) {
    let plain = json!({
        "metadata": { "name": name, "labels": {} },
        "spec": { "providerID": format!("proxmox://r/{name}") },
        "status": { "capacity": { "cpu": "4", "pods": "10" }, "allocatable": { "cpu": "4", "pods": "10" } },
    });
    (Kind::Node, merged(plain, more))
}

fn claim(name: &str, node: &str, more: &Value) -> (Kind, Value) {
    let plain = json!({
        "metadata": { "name": name, "labels": { "karpenter.sh/nodepool": "default", "from": "claim" } },
        "spec": { "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "c" },
            "taints": [{ "key": "lasting", "effect": "NoSchedule" }], "startupTaints": [{ "key": "boot", "effect": "NoSchedule" }] },
        "status": { "providerID": format!("proxmox://r/{node}"), "capacity": { "cpu": "4", "gpu": "2" },
            "allocatable": { "cpu": "3", "gpu": "2" } },
    });
    (Kind::NodeClaim, merged(plain, more))
}

fn names(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.pods.iter().map(|pod| &*pod.key.name).collect()
}

#[test]
fn pods_the_scheduler_gave_up_on_need_a_node_and_no_others() {
    let owner = |kind: &str| json!({ "metadata": { "ownerReferences": [{ "apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": "x" }] } });
    let gated = json!({ "status": { "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "SchedulingGated" }] } });
    let seen = snapshot(&[
        waiting("a", &json!({})),
        pod("untried", &json!({ "status": { "phase": "Pending" } })),
        pod("gated", &gated),
        waiting("bound", &json!({ "spec": { "nodeName": "n" } })),
        waiting("promised", &json!({ "status": { "nominatedNodeName": "n" } })),
        waiting("daemon", &owner("DaemonSet")),
        waiting("set", &owner("StatefulSet")),
    ]);
    assert_eq!(names(&seen), ["a", "set"]);
    assert_eq!(names(&snapshot(&[pod("never applied", &json!({}))])), ["never applied"]);
}

#[test]
fn a_pod_that_no_node_can_suit_is_refused_with_a_reason() {
    let seen = snapshot(&[waiting("a", &json!({ "spec": { "nodeSelector": { "kubernetes.io/hostname": "x" } } }))]);
    assert!(seen.pods.is_empty());
    assert!(seen.invalid[0].1.contains("kubernetes.io/hostname"), "{:?}", seen.invalid);
    // Only the first term can keep a pod from us, later ones may never be looked at.
    let term = |key: &str, operator: &str| json!({ "matchExpressions": [{ "key": key, "operator": operator }] });
    let with = |terms: Value| {
        let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } });
        snapshot(&[waiting("a", &json!({ "spec": { "affinity": { "nodeAffinity": required } } }))]).invalid.len()
    };
    let foreign = || term("karpenter.sh/nodepool", "DoesNotExist");
    assert_eq!(with(json!([foreign(), term("team", "Exists")])), 1);
    assert_eq!(with(json!([term("team", "Exists"), foreign()])), 0);
}

#[test]
fn a_node_that_comes_up_is_what_its_claim_says_until_it_registers() {
    let rising =
        snapshot(&[claim("c", "n1", &json!({})), node("n1", &json!({ "status": { "allocatable": { "cpu": "2" } } }))]);
    let state = &rising.nodes[0];
    assert_eq!(
        (state.name.as_str(), state.stage, state.labels.get("from").unwrap_or_default()),
        ("c", NodeStage::Rising, "claim")
    );
    assert_eq!(state.taints.iter().map(|taint| taint.key.as_str()).collect::<Vec<_>>(), ["lasting"]);
    // The kubelet knows nothing of the devices yet; the claim does.
    assert_eq!((state.allocatable.get("cpu"), state.allocatable.get("gpu")), (Quantity::whole(2), Quantity::whole(2)));
    let labels =
        json!({ "metadata": { "labels": { "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true" } } });
    let up = snapshot(&[claim("c", "n1", &json!({})), node("n1", &labels)]);
    let state = &up.nodes[0];
    assert_eq!((up.nodes.len(), state.name.as_str(), state.stage), (1, "n1", NodeStage::Initialized));
    assert_eq!((state.allocatable.get("gpu"), state.taints.len()), (Quantity::ZERO, 0));
}

#[test]
fn a_claim_with_nothing_behind_it_is_no_capacity_and_one_we_launch_is() {
    let bare = json!({ "status": { "providerID": "" } });
    assert!(snapshot(&[claim("c", "n1", &bare)]).nodes.is_empty());
    let mut ours = claim("c", "n1", &json!({ "metadata": { "annotations": { "tenon.dev/launch": "{}" } } }));
    ours.1["status"] = json!({});
    let seen = snapshot(&[ours]);
    assert_eq!(seen.nodes[0].allocatable.get("cpu"), Quantity::whole(7));
}

#[test]
fn what_is_bound_is_counted_and_daemons_apart() {
    let owner = json!([{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "x", "uid": "x" }]);
    let bound = json!({ "spec": { "nodeName": "n1" } });
    let port = json!({ "spec": { "nodeName": "n1", "containers": [{ "name": "c", "ports": [{ "containerPort": 80, "hostPort": 80 }] }] } });
    let seen = snapshot(&[
        node("n1", &json!({})),
        pod("a", &bound),
        pod("b", &merged(bound.clone(), &json!({ "metadata": { "ownerReferences": owner } }))),
        pod("over", &merged(bound, &json!({ "status": { "phase": "Failed" } }))),
        pod("port", &port),
    ]);
    let state = &seen.nodes[0];
    assert_eq!((state.bound.get("cpu"), state.bound_daemons.get("cpu")), (Quantity::whole(2), Quantity::whole(1)));
    assert_eq!((state.host_ports.len(), state.is_managed), (1, false));
}

#[test]
fn pools_count_claims_from_the_moment_they_are_made_and_not_what_leaves() {
    let pool = (
        Kind::NodePool,
        json!({ "metadata": { "name": "default" }, "spec": { "limits": { "cpu": "10" }, "template": {
            "metadata": { "labels": { "team": "red" } },
            "spec": { "requirements": [], "nodeClassRef": { "group": "g", "kind": "Klass", "name": "c" } } } } }),
    );
    let gone = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    let seen = snapshot(&[pool, claim("a", "n1", &json!({})), claim("b", "n2", &gone)]);
    let pool = &seen.pools[0];
    assert_eq!((pool.used.get("cpu"), pool.used.get("nodes")), (Quantity::whole(4), Quantity::whole(1)));
    assert_eq!(pool.requirements.get("g/klass"), Some(&Requirement::is("c")));
    assert_eq!(pool.requirements.get("team"), Some(&Requirement::is("red")));
}

#[test]
fn pods_of_a_node_that_leaves_before_it_registered_need_another() {
    let rising = || node("n1", &json!({}));
    let bound = || pod("a", &json!({ "spec": { "nodeName": "n1" } }));
    let gone = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    let taken = json!({ "status": { "conditions": [{ "type": "InstanceTerminating", "status": "True", "reason": "r",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" }] } });
    for (more, pods) in [(json!({}), 0), (gone, 1), (taken, 1)] {
        let seen = snapshot(&[claim("c", "n1", &more), rising(), bound()]);
        assert_eq!((seen.pods.len(), seen.nodes[0].is_leaving), (pods, pods == 1), "{more}");
        assert_eq!(seen.nodes[0].name, "c");
    }
}

#[test]
fn what_runs_on_a_node_that_does_not_say_its_size_yet_counts_as_little_as_the_node() {
    let used = |labels: Value| {
        let node = node("n1", &json!({ "metadata": { "labels": labels } }));
        let seen = snapshot(&[claim("c", "n1", &json!({})), node, pod("a", &json!({ "spec": { "nodeName": "n1" } }))]);
        seen.nodes[0].bound.get("cpu")
    };
    assert_eq!(used(json!({ "karpenter.sh/nodepool": "default" })), Quantity::ZERO);
    let sized = json!({ "karpenter.sh/nodepool": "default", "node.kubernetes.io/instance-type": "m" });
    assert_eq!(used(sized), Quantity::whole(1));
}

#[test]
fn a_pod_whose_heaviest_wish_is_a_node_of_no_pool_is_not_for_us() {
    let wish = |weight: i64, operator: &str| json!({ "weight": weight, "preference": { "matchExpressions": [{ "key": "karpenter.sh/nodepool", "operator": operator }] } });
    let wishing = |wishes: Value| {
        let affinity = json!({ "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": wishes } });
        let status =
            json!({ "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] });
        let seen = snapshot(&[pod("a", &json!({ "spec": { "affinity": affinity }, "status": status }))]);
        (seen.pods.len(), seen.invalid.len())
    };
    assert_eq!(wishing(json!([wish(2, "DoesNotExist"), wish(1, "Exists")])), (0, 1));
    assert_eq!(wishing(json!([wish(1, "DoesNotExist"), wish(2, "Exists")])), (1, 0));
    assert_eq!(
        wishing(json!([wish(2, "DoesNotExist"), wish(2, "Exists")])),
        (0, 1),
        "of equal weight the first counts"
    );
    assert_eq!(wishing(json!([{ "weight": 9, "preference": {} }, wish(2, "DoesNotExist")])), (1, 0));
}

#[test]
fn a_pod_that_needs_one_pool_and_would_rather_have_another_or_none_is_refused_with_the_reason() {
    let wishes = ["In", "DoesNotExist"].map(|operator| {
        let values = if operator == "In" { json!(["b"]) } else { json!([]) };
        let expression = json!({ "key": "karpenter.sh/nodepool", "operator": operator, "values": values });
        json!([{ "weight": 1, "preference": { "matchExpressions": [expression] } }])
    });
    for wish in wishes {
        let affinity = json!({ "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": wish } });
        let spec = json!({ "nodeSelector": { "karpenter.sh/nodepool": "a" }, "affinity": affinity });
        let torn = waiting("a", &json!({ "spec": spec }));
        let seen = snapshot(std::slice::from_ref(&torn));
        assert!(seen.pods.is_empty() && seen.invalid[0].1.contains("exclude each other"), "{:?}", seen.invalid);
        let torn = read(&[torn]).pods.remove(0);
        assert!(!tenon_api::pod::is_for_others(&torn), "so it has to hear of it");
    }
}

#[test]
fn several_expressions_of_one_pod_on_a_label_do_not_let_it_be_absent() {
    let expression = |operator: &str, values: Value| json!({ "key": "team", "operator": operator, "values": values });
    let asking = |expressions: Value| {
        let terms = json!([{ "matchExpressions": expressions }]);
        let affinity = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } } });
        let status =
            json!({ "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] });
        let seen = snapshot(&[pod("a", &json!({ "spec": { "affinity": affinity }, "status": status }))]);
        seen.pods[0].alternatives[0].get("team").unwrap().permits_absence()
    };
    assert!(asking(json!([expression("NotIn", json!(["red"]))])));
    assert!(!asking(json!([expression("NotIn", json!(["red"])), expression("Exists", json!([]))])));
    assert!(!asking(json!([expression("In", json!(["red"])), expression("NotIn", json!(["red"]))])));
}

#[test]
fn running_pods_stand_on_their_nodes_with_what_they_ask_of_others() {
    let term =
        json!([{ "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "app": "db" } } }]);
    let apart = json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": term } });
    let alone = |more: Value| pod("a", &merged(json!({ "spec": { "nodeName": "n1", "affinity": apart } }), &more));
    let found = snapshot(&[node("n1", &json!({})), alone(json!({}))]);
    assert_eq!(found.nodes[0].pods[0].shape.pod_anti_affinity.len(), 1);
    assert!(!found.nodes[0].pods[0].is_terminating);
    let going = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } });
    assert!(snapshot(&[node("n1", &json!({})), alone(going)]).nodes[0].pods[0].is_terminating);
    let ended = snapshot(&[node("n1", &json!({})), alone(json!({ "status": { "phase": "Succeeded" } }))]);
    assert!(ended.nodes[0].pods.is_empty());
}
