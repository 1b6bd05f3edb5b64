//! Which pods hold a node.

use serde_json::{Value, json};
use tenon_api::kube_objects::Pod;
use tenon_api::plan_options::FeatureGates;
use tenon_api::pod_predicates::eviction_cost;
use tenon_engine::disruption::{DisruptionBlocked, Protected};

use crate::decisions::candidates::{blocked, empty_node};
use crate::decisions::objects::spec;

fn owned(kind: &str, api_version: &str) -> Value {
    json!({ "ownerReferences": [{ "apiVersion": api_version, "kind": kind, "name": "o", "uid": "o" }] })
}

fn leaving(mut metadata: Value) -> Value {
    metadata["deletionTimestamp"] = json!("2026-03-11T10:09:00Z");
    json!({ "metadata": metadata })
}

fn annotated(name: &str, value: &str) -> Value {
    json!({ "metadata": { "annotations": { name: value } } })
}

fn wish(value: &str) -> Value {
    annotated("karpenter.sh/do-not-disrupt", value)
}

fn held() -> Option<DisruptionBlocked> {
    Some(DisruptionBlocked::DoNotDisrupt { on: Protected::Pod("shop/cart-0".to_owned()) })
}

fn busy() -> Option<DisruptionBlocked> {
    Some(DisruptionBlocked::NotEmpty { pods: 1, first: "shop/cart-0".to_owned() })
}

#[test]
fn a_running_pod_keeps_a_node() {
    assert_eq!(blocked(&empty_node("a").with_pod(&json!({}))), busy());
    assert_eq!(blocked(&empty_node("a").with_pod(&json!({ "status": { "phase": "Pending" } }))), busy());
    let two = empty_node("a").with_pod(&json!({})).with_pod(&json!({ "metadata": { "name": "basket" } }));
    let keep = blocked(&two).unwrap();
    assert_eq!(keep, DisruptionBlocked::NotEmpty { pods: 2, first: "shop/basket".to_owned() });
    assert_eq!(keep.to_string(), "2 pods need the node, such as shop/basket");
}

#[test]
fn a_finished_pod_does_not_keep_a_node() {
    for phase in ["Failed", "Succeeded"] {
        assert_eq!(blocked(&empty_node("a").with_pod(&json!({ "status": { "phase": phase } }))), None);
    }
}

#[test]
fn pods_of_daemons_and_of_the_node_itself_do_not_keep_it() {
    for (kind, api_version) in [("DaemonSet", "apps/v1"), ("Node", "v1")] {
        assert_eq!(
            blocked(&empty_node("a").with_pod(&json!({ "metadata": owned(kind, api_version) }))),
            None,
            "{kind}"
        );
    }
    assert_eq!(blocked(&empty_node("a").with_pod(&json!({ "metadata": owned("DaemonSet", "other/v1") }))), busy());
}

#[test]
fn a_terminating_deployment_pod_does_not_keep_a_node() {
    assert_eq!(blocked(&empty_node("a").with_pod(&leaving(owned("ReplicaSet", "apps/v1")))), None);
}

#[test]
fn a_terminating_pod_of_a_stateful_set_keeps_a_node() {
    assert_eq!(blocked(&empty_node("a").with_pod(&leaving(owned("StatefulSet", "apps/v1")))), busy());
}

#[test]
fn a_pod_that_costs_nothing_to_move_does_not_keep_a_node() {
    for cheap in [
        annotated("karpenter.sh/disruption-cost", "-2147483648"),
        annotated("controller.kubernetes.io/pod-deletion-cost", "-134217728"),
        json!({ "spec": { "priority": -33_554_432 } }),
    ] {
        assert_eq!(blocked(&empty_node("a").with_pod(&cheap)), None, "{cheap}");
    }
}

#[test]
fn a_deletion_cost_that_a_controller_manages_is_no_wish_of_the_user() {
    let pod = |annotations: &Value| -> Pod {
        spec(json!({ "metadata": { "annotations": annotations }, "spec": { "containers": [] } }))
    };
    let managed = FeatureGates { pod_deletion_cost_management: true, ..FeatureGates::default() };
    let of_kubernetes = pod(&json!({ "controller.kubernetes.io/pod-deletion-cost": "-2147483648" }));
    assert_eq!(
        (eviction_cost(&of_kubernetes, FeatureGates::default()), eviction_cost(&of_kubernetes, managed)),
        (-10.0, 1.0)
    );
    let leftover = |mark: &str| {
        let left =
            json!({ "controller.kubernetes.io/pod-deletion-cost": "-2147483648", "tenon.dev/pod-deletion-cost": mark });
        eviction_cost(&pod(&left), FeatureGates::default())
    };
    assert_eq!(leftover("-2147483648"), 1.0, "Tenon wrote that before the gate was switched off");
    assert_eq!(leftover("-3"), -10.0, "somebody else wrote it since");
    let ours = pod(&json!({ "karpenter.sh/disruption-cost": "-2147483648" }));
    assert_eq!(eviction_cost(&ours, managed), -10.0);
}

#[test]
fn the_cost_of_a_pod_follows_its_annotations_and_priority() {
    let cost = |ours: Option<&str>, theirs: Option<&str>, priority: Option<i32>| {
        let named = [("karpenter.sh/disruption-cost", ours), ("controller.kubernetes.io/pod-deletion-cost", theirs)];
        let set: std::collections::BTreeMap<_, _> = named.into_iter().filter(|(_, value)| value.is_some()).collect();
        let mut pod: Pod = spec(json!({ "metadata": { "annotations": set }, "spec": { "containers": [] } }));
        std::sync::Arc::make_mut(pod.spec.as_mut().unwrap()).priority = priority;
        format!("{}", eviction_cost(&pod, FeatureGates::default()))
    };
    let half = Some("67108864");
    assert_eq!(cost(None, None, None), "1");
    assert_eq!(cost(None, None, Some(1_000_000_000)), "10");
    assert_eq!(cost(None, None, Some(i32::MIN)), "-10");
    assert_eq!(cost(None, Some("2147483647"), None), "10");
    assert_eq!(cost(None, Some("-2147483647"), None), "-10");
    assert_eq!(cost(None, half, None), "1.5");
    assert_eq!(cost(half, Some("0"), None), "1.5");
    assert_eq!(cost(Some("1.5"), half, None), "1");
    assert_eq!(cost(Some("x"), half, None), "1");
    assert_eq!(cost(Some("2147483648"), None, None), "1");
}

#[test]
fn a_pod_that_wants_to_be_left_alone_protects_its_node_whoever_owns_it() {
    for metadata in [json!({}), owned("DaemonSet", "apps/v1"), owned("Node", "v1")] {
        let mut pod = wish("true");
        pod["metadata"]["ownerReferences"] = metadata["ownerReferences"].clone();
        assert_eq!(blocked(&empty_node("a").with_pod(&pod)), held(), "{pod}");
    }
}

#[test]
fn the_wish_of_a_pod_that_is_over_or_leaving_does_not_count() {
    let mut over = wish("true");
    over["status"] = json!({ "phase": "Succeeded" });
    assert_eq!(blocked(&empty_node("a").with_pod(&over)), None);
    assert_eq!(blocked(&empty_node("a").with_pod(&leaving(wish("true")["metadata"].clone()))), None);
}

#[test]
fn a_wish_for_a_while_ends() {
    let since = |value: &str, started: Option<&str>| {
        let mut pod = wish(value);
        pod["metadata"]["ownerReferences"] = owned("DaemonSet", "apps/v1")["ownerReferences"].clone();
        pod["status"] = json!({ "startTime": started });
        blocked(&empty_node("a").with_pod(&pod))
    };
    let ten_minutes_ago = Some("2026-03-11T10:00:00Z");
    assert_eq!(since("10m0.5s", ten_minutes_ago), held());
    assert_eq!(since("10m", ten_minutes_ago), None);
    assert_eq!(since("1ms", None), held(), "its time begins when it starts");
    assert_eq!(since("2562047h", ten_minutes_ago), held(), "the longest whole hours Go can count");
    for nothing in ["0", "0s", "-1h", "false", "True", "1d", "", "2562048h", "9999999999999h"] {
        assert_eq!(since(nothing, None), None, "{nothing}");
    }
}
