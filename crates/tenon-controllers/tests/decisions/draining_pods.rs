//! What of a pod decides when it leaves a drained node. The rules themselves are tested with the engine.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use tenon_api::kube_objects::Pod;
use tenon_api::{drain_pod, timestamp};
use tenon_engine::drain::{DrainPlan, grace_left_s, has_seen_all_pods, plan_drain};
use tenon_model::{PodKey, Timestamp};

use crate::decisions::candidates::merged;
use crate::decisions::objects::spec;

fn time(second: i64) -> Time {
    Time(jiff::Timestamp::from_second(1_000_000 + second).unwrap())
}

fn at(second: i64) -> Timestamp {
    timestamp(&time(second))
}

fn pod(name: &str, more: &Value) -> Pod {
    let base = json!({ "metadata": { "name": name, "namespace": "d", "uid": name }, "spec": { "containers": [] } });
    spec(merged(base, more))
}

fn owned(api_version: &str, kind: &str) -> Value {
    json!({ "metadata": { "ownerReferences": [{ "apiVersion": api_version, "kind": kind, "name": "o", "uid": "o" }] } })
}

fn deleting(second: i64) -> Value {
    json!({ "metadata": { "deletionTimestamp": time(second) } })
}

fn plan(pods: &[Pod], deadline: Option<i64>, now: i64) -> DrainPlan {
    let pods: Vec<_> = pods.iter().map(|pod| drain_pod(pod, at(now))).collect();
    plan_drain(&pods, deadline.map(at), at(now))
}

fn names_of(pods: &[PodKey]) -> Vec<&str> {
    pods.iter().map(|key| &*key.name).collect()
}

#[test]
fn g2_pods_that_serve_others_leave_last() {
    let plain = pod("plain", &json!({}));
    let of_daemon = pod("daemon", &owned("apps/v1", "DaemonSet"));
    for class in ["system-cluster-critical", "system-node-critical"] {
        let critical = pod("critical", &json!({ "spec": { "priorityClassName": class } }));
        let pods = [critical.clone(), of_daemon.clone(), plain.clone()];
        let first = plan(&pods, None, 0);
        assert_eq!((names_of(&first.evict), first.remaining), (vec!["plain"], 3));
        assert_eq!(names_of(&plan(&pods[..2], None, 0).evict), ["daemon"]);
        assert_eq!(names_of(&plan(&[critical], None, 0).evict), ["critical"]);
    }
    let important = pod("important", &json!({ "spec": { "priorityClassName": "important" } }));
    assert_eq!(names_of(&plan(&[important, plain], None, 0).evict), ["important", "plain"]);
}

#[test]
fn g2_pods_that_stay_on_their_node_are_not_waited_for() {
    let tolerant = pod("tolerant", &json!({ "spec": { "tolerations": [{ "operator": "Exists" }] } }));
    let mirror = pod("mirror", &owned("v1", "Node"));
    let done = pod("done", &json!({ "status": { "phase": "Succeeded" } }));
    let stuck = pod("stuck", &deleting(-61));
    assert_eq!(plan(&[tolerant, mirror, done, stuck], None, 0), DrainPlan::default());
    let other = json!([{ "key": "karpenter.sh/disrupted", "operator": "Exists", "effect": "NoExecute" }]);
    let other = pod("other", &json!({ "spec": { "tolerations": other } }));
    assert_eq!(names_of(&plan(&[other], None, 0).evict), ["other"], "it does not tolerate the effect");
}

#[test]
fn g3_a_protected_pod_is_waited_for_until_the_deadline() {
    let annotations = json!({ "karpenter.sh/do-not-disrupt": "true" });
    let pods = [pod("mine", &json!({ "metadata": { "annotations": annotations } }))];
    let before = plan(&pods, Some(100), 69);
    assert_eq!((before.evict.len(), before.delete.len(), before.remaining), (0, 0, 1));
    assert_eq!(before.protected.map(|key| key.to_string()).as_deref(), Some("d/mine"));
    // Its grace period, which is 30 s where it says nothing, ends at the deadline if it is deleted just now.
    assert_eq!(names_of(&plan(&pods, Some(100), 71).delete), ["mine"]);
    let quick = [pod("quick", &json!({ "spec": { "terminationGracePeriodSeconds": 5 } }))];
    assert_eq!(names_of(&plan(&quick, Some(100), 95).evict), ["quick"]);
    assert_eq!(names_of(&plan(&quick, Some(100), 96).delete), ["quick"]);
}

#[test]
fn g2_a_terminating_pod_is_waited_for_and_not_evicted_again() {
    let plan = plan(&[pod("going", &deleting(10))], None, 0);
    assert_eq!((plan.evict.len(), plan.remaining), (0, 1));
}

#[test]
fn g2_pods_that_tolerate_the_taint_of_a_drain_stay() {
    for tolerations in [
        json!([{ "key": "karpenter.sh/disrupted", "operator": "Equal", "effect": "NoSchedule" }]),
        json!([{ "key": "karpenter.sh/disrupted", "operator": "Exists", "effect": "NoSchedule" }]),
        json!([{ "key": "karpenter.sh/disrupted", "operator": "Exists" }]),
        json!([{ "operator": "Exists" }]),
    ] {
        let pods = [pod("stays", &json!({ "spec": { "tolerations": tolerations } }))];
        assert_eq!(plan(&pods, Some(-1), 0), DrainPlan::default(), "{tolerations}");
    }
}

#[test]
fn g2_pods_that_tolerate_something_else_leave() {
    for tolerations in [
        json!([{ "key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule" }]),
        json!([{ "key": "karpenter.sh/disrupted", "operator": "Equal", "value": "other", "effect": "NoSchedule" }]),
        json!([{ "key": "karpenter.sh/disrupted", "operator": "Exists", "effect": "NoExecute" }]),
    ] {
        let pods = [pod("leaves", &json!({ "spec": { "tolerations": tolerations } }))];
        assert_eq!(names_of(&plan(&pods, None, 0).evict), ["leaves"], "{tolerations}");
    }
}

#[test]
fn g2_a_pod_is_stuck_a_minute_after_it_should_have_ended() {
    assert_eq!(plan(&[pod("ends", &deleting(-60))], None, 0).remaining, 1);
    assert_eq!(plan(&[pod("stuck", &deleting(-61))], None, 0).remaining, 0);
}

#[test]
fn g3_pods_that_are_due_are_deleted_whatever_their_group_and_the_others_wait_for_their_turn() {
    let class = json!({ "priorityClassName": "system-node-critical", "terminationGracePeriodSeconds": 300 });
    let critical = pod("critical", &json!({ "spec": class }));
    let daemon = pod("daemon", &owned("apps/v1", "DaemonSet"));
    let plan = plan(&[critical, daemon, pod("plain", &json!({}))], Some(100), 0);
    assert_eq!((names_of(&plan.delete), names_of(&plan.evict)), (vec!["critical"], vec!["plain"]));
    assert_eq!(plan.remaining, 3);
}

#[test]
fn g3_a_terminating_pod_is_deleted_again_only_if_it_would_outlast_the_deadline() {
    let pods = [pod("long", &deleting(101)), pod("just", &deleting(100)), pod("short", &deleting(20))];
    let plan = plan(&pods, Some(100), 0);
    assert_eq!((names_of(&plan.delete), plan.evict.len(), plan.remaining), (vec!["long"], 0, 3));
}

#[test]
fn g3_a_drain_lasts_at_least_five_seconds() {
    assert!(!has_seen_all_pods(at(0), at(4)) && has_seen_all_pods(at(0), at(5)));
}

#[test]
fn g6_a_pod_that_is_deleted_has_the_time_until_the_deadline_and_never_less_than_a_second() {
    for (deadline, expected) in [(Some(at(90)), 90), (Some(at(1)), 1), (Some(at(0)), 1), (Some(at(-90)), 1), (None, 1)]
    {
        assert_eq!(grace_left_s(deadline, at(0)), expected, "{deadline:?}");
    }
}
