//! What a pod needs of a node: containers, init containers, sidecars, the pod itself (C5), and claimed devices (D13).

use serde_json::{Value, json};
use tenon_model::Quantity;

use super::{container, model, needs, sidecar};

fn with(containers: &Value, init: &Value) -> Value {
    json!({ "containers": containers, "initContainers": init })
}

#[test]
fn the_largest_init_container_counts_if_it_is_larger_than_what_runs() {
    let running = json!([container("a", "100m", "64Mi"), container("b", "200m", "64Mi")]);
    assert_eq!(needs(&with(&running, &json!([container("i", "1", "16Mi")]))), (1000, 128));
    let inits = json!([container("i", "1", "16Mi"), container("j", "500m", "256Mi")]);
    assert_eq!(needs(&with(&running, &inits)), (1000, 256), "of each resource the largest");
    assert_eq!(needs(&with(&running, &json!([container("i", "1m", "1Mi")]))), (300, 128));
}

#[test]
fn a_sidecar_before_an_init_container_runs_beside_it() {
    let init = json!([sidecar("s", "200m", "32Mi"), container("i", "1", "16Mi")]);
    assert_eq!(needs(&with(&json!([container("a", "100m", "64Mi")]), &init)), (1200, 96));
}

#[test]
fn a_sidecar_after_an_init_container_does_not_run_beside_it() {
    let init = json!([container("i", "1", "16Mi"), sidecar("s", "200m", "32Mi")]);
    assert_eq!(needs(&with(&json!([container("a", "100m", "64Mi")]), &init)), (1000, 96));
}

#[test]
fn sidecars_between_init_containers_count_from_where_they_start() {
    let init = json!([
        container("i", "700m", "8Mi"),
        sidecar("s", "200m", "32Mi"),
        container("j", "600m", "300Mi"),
        sidecar("t", "300m", "16Mi"),
        container("k", "250m", "8Mi"),
    ]);
    assert_eq!(needs(&with(&json!([container("a", "100m", "64Mi")]), &init)), (800, 332));
}

#[test]
fn what_is_asked_at_the_level_of_the_pod_stands_for_its_containers() {
    let level = json!({ "requests": { "cpu": "2", "memory": "1Gi" } });
    let pod = json!({ "containers": [container("a", "100m", "64Mi")], "resources": level });
    assert_eq!(needs(&pod), (2000, 1024));
    let part = json!({ "containers": [container("a", "100m", "64Mi")], "resources": { "requests": { "cpu": "2" } } });
    assert_eq!(needs(&part), (2000, 64));
}

#[test]
fn what_the_runtime_needs_comes_on_top() {
    let overhead = json!({ "cpu": "50m", "memory": "8Mi" });
    let pod = json!({ "containers": [container("a", "100m", "64Mi")], "overhead": overhead });
    assert_eq!(needs(&pod), (150, 72));
    let level = json!({ "requests": { "cpu": "2" } });
    let pod = json!({ "containers": [container("a", "100m", "64Mi")], "overhead": overhead, "resources": level });
    assert_eq!(needs(&pod), (2050, 72));
}

#[test]
fn a_limit_stands_for_a_missing_request_and_not_for_one_that_is_there() {
    let limited = |resources: Value| json!({ "containers": [{ "name": "a", "resources": resources }] });
    assert_eq!(needs(&limited(json!({ "limits": { "cpu": "300m", "memory": "64Mi" } }))), (300, 64));
    let part = json!({ "limits": { "cpu": "1", "memory": "64Mi" }, "requests": { "cpu": "100m" } });
    assert_eq!(needs(&limited(part)), (100, 64));
    let nothing = json!({ "limits": { "cpu": "1" }, "requests": { "cpu": "0" } });
    assert_eq!(needs(&limited(nothing)), (0, 0), "a request for nothing is a request");
}

#[test]
fn a_pod_that_asks_for_nothing_still_counts_as_one_pod() {
    assert_eq!(needs(&json!({ "containers": [{ "name": "a" }] })), (0, 0));
}

#[test]
fn extended_resources_are_counted_by_their_limits() {
    let device = json!({ "limits": { "example.com/gpu": 2 }, "requests": { "cpu": "1" } });
    let pod = model(&with(
        &json!([{ "name": "a", "resources": device }, { "name": "b", "resources": device }]),
        &json!([{ "name": "i", "resources": { "limits": { "example.com/gpu": 3 } } }]),
    ));
    assert_eq!(pod.requests.get("example.com/gpu"), Quantity::whole(4));
}

#[test]
fn devices_are_claimed_by_the_pod_by_containers_and_by_init_containers() {
    let claims = |name: &str| json!({ "name": "c", "resources": { "claims": [{ "name": name }] } });
    for (pod, claimed) in [
        (json!({ "containers": [{ "name": "c" }], "resourceClaims": [{ "name": "gpu" }] }), vec!["gpu"]),
        (json!({ "containers": [claims("gpu")] }), vec!["gpu"]),
        (with(&json!([{ "name": "c" }]), &json!([claims("nic")])), vec!["nic"]),
        (with(&json!([claims("gpu")]), &json!([claims("nic"), claims("gpu")])), vec!["gpu", "nic"]),
        (json!({ "containers": [{ "name": "c" }] }), vec![]),
    ] {
        assert_eq!(model(&pod).resource_claims, claimed, "{pod}");
    }
}
