//! Daemons as they would be on a new node: from their newest pod, or from their template (C7).

use serde_json::{Value, json};
use tenon_api::objects::Kind;
use tenon_model::{Quantity, Requirement};

use super::{merged, pod, snapshot};

fn set(pod: &Value) -> (Kind, Value) {
    let plain = json!({ "containers": [{ "name": "c", "resources": { "limits": { "cpu": "100m" } } }] });
    let template = json!({ "spec": merged(plain, pod) });
    let metadata = json!({ "name": "d", "namespace": "n", "uid": "d-1" });
    (Kind::DaemonSet, json!({ "metadata": metadata, "spec": { "selector": {}, "template": template } }))
}

/// A pod of the daemon, which its controller pinned to a node.
fn live(name: &str, made: &str, cpu: &str) -> (Kind, Value) {
    let owner =
        json!([{ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d-1", "controller": true }]);
    let pin = json!([{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n1"] }] }]);
    pod(
        name,
        &json!({
            "metadata": { "creationTimestamp": made, "ownerReferences": owner },
            "spec": {
                "nodeName": "n1",
                "affinity": required(&pin),
                "containers": [{ "name": "c", "resources": { "requests": { "cpu": cpu } } }],
            },
        }),
    )
}

fn required(terms: &Value) -> Value {
    json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } } })
}

fn expressions(key: &str) -> Value {
    json!({ "matchExpressions": [{ "key": key, "operator": "Exists" }] })
}

#[test]
fn a_daemon_without_a_pod_is_what_its_template_says_with_limits_for_requests() {
    let seen = snapshot(&[set(&json!({ "nodeSelector": { "team": "red" } }))]);
    let daemon = &seen.daemons[0];
    assert_eq!((&*daemon.key.name, &*daemon.key.namespace), ("d", "n"));
    assert_eq!(daemon.requests.get("cpu"), Quantity::milli(100));
    assert_eq!(daemon.alternatives[0].get("team"), Some(&Requirement::is("red")));
}

#[test]
fn i8_daemons_a_daemon_with_pods_needs_what_its_newest_pod_does() {
    let pods = [live("old", "2026-01-01T00:00:00Z", "1"), live("new", "2026-01-02T00:00:00Z", "2")];
    let items = [set(&json!({})), pods[1].clone(), pods[0].clone()];
    assert_eq!(snapshot(&items).daemons[0].requests.get("cpu"), Quantity::whole(2));
}

#[test]
fn of_equally_new_pods_a_daemon_is_the_first_by_name() {
    let made = "2026-01-02T00:00:00Z";
    let seen = snapshot(&[set(&json!({})), live("b", made, "2"), live("a", made, "1")]);
    assert_eq!(seen.daemons[0].requests.get("cpu"), Quantity::whole(1));
}

#[test]
fn a_pod_that_another_controls_is_not_the_daemons() {
    let mut of_another = live("newer", "2026-01-03T00:00:00Z", "3");
    of_another.1["metadata"]["ownerReferences"][0]["uid"] = "d-2".into();
    let mut uncontrolled = live("newest", "2026-01-04T00:00:00Z", "4");
    uncontrolled.1["metadata"]["ownerReferences"][0]["controller"] = false.into();
    let seen = snapshot(&[set(&json!({})), of_another, uncontrolled]);
    assert_eq!(seen.daemons[0].requests.get("cpu"), Quantity::milli(100));
}

#[test]
fn a_daemons_pod_that_lost_its_affinity_asks_for_what_its_template_asks_for() {
    let mut bare = live("p", "2026-01-01T00:00:00Z", "1");
    bare.1["spec"]["affinity"] = Value::Null;
    let seen = snapshot(&[set(&json!({ "affinity": required(&json!([expressions("team")])) })), bare]);
    assert!(seen.daemons[0].alternatives[0].get("team").is_some());
}

#[test]
fn what_only_a_daemons_pod_asks_for_counts_where_its_template_asks_for_nothing() {
    let mut own = live("p", "2026-01-01T00:00:00Z", "1");
    own.1["spec"]["affinity"] = required(&json!([expressions("team")]));
    let seen = snapshot(&[set(&json!({})), own]);
    assert!(seen.daemons[0].alternatives[0].get("team").is_some());
}

#[test]
fn the_pin_of_a_daemons_pod_to_its_node_is_nobodys_wish() {
    let seen = snapshot(&[set(&json!({})), live("p", "2026-01-01T00:00:00Z", "1")]);
    let daemon = &seen.daemons[0];
    assert!(daemon.alternatives.len() == 1 && daemon.alternatives[0].is_empty());
}

#[test]
fn a_daemons_pod_asks_for_the_nodes_its_template_asks_for() {
    let wanted = required(&json!([expressions("team"), expressions("rack")]));
    let seen = snapshot(&[set(&json!({ "affinity": wanted })), live("p", "2026-01-01T00:00:00Z", "1")]);
    let labels: Vec<&str> =
        seen.daemons[0].alternatives.iter().flat_map(|term| term.iter().map(|(label, _)| label)).collect();
    assert_eq!(labels, ["team", "rack"], "every term");
}

#[test]
fn ports_tolerations_and_claims_of_a_daemon_are_its_pods() {
    let spec = json!({
        "tolerations": [{ "operator": "Exists" }],
        "containers": [{ "name": "c", "ports": [{ "containerPort": 9100, "hostPort": 9100 }],
            "resources": { "claims": [{ "name": "nic" }] } }],
    });
    let seen = snapshot(&[set(&spec)]);
    let daemon = &seen.daemons[0];
    assert_eq!((daemon.host_ports[0].port, daemon.tolerations.len()), (9100, 1));
    assert_eq!(daemon.resource_claims, ["nic"]);
}
