//! What of a pod decides when it leaves a drained node. The rules themselves are tested with the engine.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use tenon_api::kube_objects::Pod;
use tenon_api::{drain_pod, timestamp};
use tenon_engine::drain::{DrainPlan, plan_drain};
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
    pods.iter().map(|key| key.name.as_str()).collect()
}

#[test]
fn pods_that_serve_others_leave_last() {
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
fn pods_that_stay_on_their_node_are_not_waited_for() {
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
fn a_protected_pod_is_waited_for_until_the_deadline() {
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
fn a_terminating_pod_is_waited_for_and_not_evicted_again() {
    let plan = plan(&[pod("going", &deleting(10))], None, 0);
    assert_eq!((plan.evict.len(), plan.remaining), (0, 1));
}
