//! Pods of nodes that leave: who of them needs another node (D9).

use serde_json::{Value, json};
use tenon_api::objects::Kind;

use super::{claim, merged, names, node, pod, snapshot};

/// A pod on a node that leaves.
fn leaving(more: &Value, budgets: &[Value]) -> bool {
    let gone = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"] } });
    let mut items = vec![
        claim("c", "n1", &gone),
        node(
            "n1",
            &json!({ "metadata": { "labels": { "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true" } } }),
        ),
        pod(
            "p",
            &merged(
                json!({ "spec": { "nodeName": "n1" }, "status": { "phase": "Running", "startTime": "2026-01-01T00:30:00Z" } }),
                more,
            ),
        ),
    ];
    for (index, spec) in budgets.iter().enumerate() {
        let spec = merged(json!({ "selector": { "matchLabels": { "app": "web" } } }), spec);
        items.push((
            Kind::PodDisruptionBudget,
            json!({ "metadata": { "name": format!("b{index}"), "namespace": "n" }, "spec": spec }),
        ));
    }
    let seen = snapshot(&items);
    assert!(seen.nodes.iter().all(|node| node.is_leaving));
    names(&seen) == ["p"]
}

/// A pod that belongs to something.
fn owned(api_version: &str, kind: &str) -> Value {
    json!({ "metadata": { "ownerReferences": [{ "apiVersion": api_version, "kind": kind, "name": "x", "uid": "x" }] } })
}

/// The same pod while it is being deleted.
fn going(pod: Value) -> Value {
    merged(pod, &json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }))
}

#[test]
fn an_active_pod_needs_another_node() {
    assert!(leaving(&json!({}), &[]));
    assert!(leaving(&owned("apps/v1", "ReplicaSet"), &[]));
    assert!(leaving(&json!({ "status": { "phase": "Pending" } }), &[]), "it has a node and does not run there yet");
}

#[test]
fn a_pod_that_is_over_or_being_deleted_needs_none() {
    for phase in ["Succeeded", "Failed"] {
        assert!(!leaving(&json!({ "status": { "phase": phase } }), &[]), "{phase}");
    }
    assert!(!leaving(&going(json!({})), &[]));
}

#[test]
fn a_daemon_needs_none_nor_does_a_pod_of_the_node_itself() {
    assert!(!leaving(&owned("apps/v1", "DaemonSet"), &[]));
    assert!(!leaving(&owned("v1", "Node"), &[]));
}

#[test]
fn a_terminating_pod_of_a_replica_set_needs_none() {
    assert!(!leaving(&going(owned("apps/v1", "ReplicaSet")), &[]));
}

#[test]
fn a_terminating_pod_of_a_stateful_set_needs_another_node() {
    assert!(leaving(&going(owned("apps/v1", "StatefulSet")), &[]));
    assert!(!leaving(&going(owned("other/v1", "StatefulSet")), &[]));
}

#[test]
fn a_pod_that_wants_to_be_left_alone_needs_none_while_it_does() {
    let wish = |text: &str| json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": text } } });
    assert!(!leaving(&wish("true"), &[]));
    assert!(!leaving(&wish("31m"), &[]), "it started half an hour ago");
    assert!(leaving(&wish("29m"), &[]));
    assert!(leaving(&wish("soon"), &[]), "what cannot be read is no wish");
}

#[test]
fn a_pod_whose_budget_allows_no_disruption_needs_none() {
    for full in [json!({ "maxUnavailable": 0 }), json!({ "maxUnavailable": "0%" }), json!({ "minAvailable": "100%" })] {
        assert!(!leaving(&json!({}), std::slice::from_ref(&full)), "{full}");
    }
    for loose in [json!({ "maxUnavailable": 1 }), json!({ "maxUnavailable": "1%" }), json!({ "minAvailable": "99%" })] {
        assert!(leaving(&json!({}), std::slice::from_ref(&loose)), "{loose}");
    }
}

#[test]
fn a_pod_with_two_budgets_needs_none_because_it_cannot_be_evicted() {
    let loose = json!({ "maxUnavailable": 1 });
    assert!(!leaving(&json!({}), &[loose.clone(), loose]));
}

#[test]
fn a_budget_for_other_pods_does_not_count() {
    let others = json!({ "maxUnavailable": 0, "selector": { "matchLabels": { "app": "db" } } });
    assert!(leaving(&json!({}), &[others]));
}

#[test]
fn a_sick_pod_needs_another_node_if_its_budget_lets_sick_ones_go() {
    let sick = json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } });
    let full = json!({ "maxUnavailable": 0 });
    assert!(!leaving(&sick, std::slice::from_ref(&full)));
    assert!(leaving(&sick, &[merged(full, &json!({ "unhealthyPodEvictionPolicy": "AlwaysAllow" }))]));
}

#[test]
fn a_pod_that_is_never_evicted_is_not_held_by_its_budget() {
    let fence = json!([{ "key": "karpenter.sh/disrupted", "operator": "Exists" }]);
    assert!(leaving(&json!({ "spec": { "tolerations": fence } }), &[json!({ "maxUnavailable": 0 })]));
}

#[test]
fn pods_of_nodes_that_stay_need_none() {
    let seen = snapshot(&[node("n1", &json!({})), pod("p", &json!({ "spec": { "nodeName": "n1" } }))]);
    assert!(seen.pods.is_empty());
}
