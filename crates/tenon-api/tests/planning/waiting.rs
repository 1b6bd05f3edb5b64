//! Pods that wait: what of them the engine is told.

use serde_json::json;

use super::{claim, node, pod, snapshot, waiting};

#[test]
fn a_pod_is_pending_by_its_phase_alone() {
    let phase = |phase: &str| json!({ "status": { "phase": phase } });
    let seen = snapshot(&[waiting("a", &phase("Pending")), waiting("b", &phase("Failed")), waiting("c", &json!({}))]);
    let pending: Vec<bool> = seen.pods.iter().map(|pod| pod.is_pending).collect();
    assert_eq!(pending, [true, false, false]);
}

#[test]
fn pods_of_a_leaving_node_are_pending_only_until_they_run() {
    let gone = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"] } });
    let bound = |phase: &str| json!({ "spec": { "nodeName": "n1" }, "status": { "phase": phase } });
    let up =
        json!({ "metadata": { "labels": { "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true" } } });
    let seen = snapshot(&[
        claim("c", "n1", &gone),
        node("n1", &up),
        pod("runs", &bound("Running")),
        pod("starts", &bound("Pending")),
    ]);
    let pending: Vec<(&str, bool)> = seen.pods.iter().map(|pod| (&*pod.key.name, pod.is_pending)).collect();
    assert_eq!(pending, [("runs", false), ("starts", true)]);
}
