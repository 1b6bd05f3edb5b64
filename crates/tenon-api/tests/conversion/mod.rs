//! Kubernetes objects as the engine sees them.

#![expect(clippy::unwrap_used, reason = "a pod of the test's own that does not read is a failed test")]

mod affinity;
mod custom_resources;
mod fuzz;
mod requests;

use serde_json::{Value, json};
use tenon_api::kube_objects::Pod as KubePod;
use tenon_api::pod::to_model;
use tenon_model::resources::{CPU, MEMORY, PODS};
use tenon_model::{Pod, Quantity, Requirement};

fn model(spec: &Value) -> Pod {
    let pod: KubePod =
        serde_json::from_value(json!({ "metadata": { "namespace": "n", "name": "p", "uid": "u" }, "spec": spec }))
            .unwrap();
    to_model(&pod)
}

fn container(name: &str, cpu: &str, memory: &str) -> Value {
    json!({ "name": name, "resources": { "requests": { "cpu": cpu, "memory": memory } } })
}

fn sidecar(name: &str, cpu: &str, memory: &str) -> Value {
    let mut sidecar = container(name, cpu, memory);
    sidecar["restartPolicy"] = "Always".into();
    sidecar
}

fn needs(spec: &Value) -> (i64, i64) {
    let requests = model(spec).requests.clone();
    assert_eq!(requests.get(PODS), Quantity::whole(1));
    (requests.get(CPU).milli_value(), requests.get(MEMORY).value() >> 20)
}

#[test]
fn a_container_that_is_resized_counts_as_the_larger_of_both_once_it_runs() {
    let counted = |node: Value| {
        let pod: KubePod = serde_json::from_value(json!({
            "spec": { "containers": [container("a", "100m", "64Mi")], "nodeName": node },
            "status": { "containerStatuses": [{
                "name": "a", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
                "allocatedResources": { "cpu": "300m", "memory": "32Mi" }, "resources": {},
            }] },
        }))
        .unwrap();
        let requests = to_model(&pod).requests.clone();
        (requests.get(CPU).milli_value(), requests.get(MEMORY).value() >> 20)
    };
    assert_eq!(counted(json!("n")), (300, 64));
    assert_eq!(counted(Value::Null), (100, 64));
}

#[test]
fn selector_and_each_affinity_term_make_an_alternative() {
    let term = |values: Value| json!({ "matchExpressions": [{ "key": "zone", "operator": "In", "values": values }] });
    let pod = model(&json!({
        "containers": [],
        "nodeSelector": { "beta.kubernetes.io/arch": "amd64" },
        "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [term(json!(["a"])), term(json!(["b"]))],
        } } },
    }));
    assert_eq!(pod.unsupported, None);
    let zones: Vec<_> = pod.alternatives.iter().map(|alternative| alternative.get("zone").unwrap().clone()).collect();
    assert_eq!(zones, [Requirement::is("a"), Requirement::is("b")]);
    assert!(
        pod.alternatives
            .iter()
            .all(|alternative| alternative.get("kubernetes.io/arch") == Some(&Requirement::is("amd64")))
    );
    assert_eq!(model(&json!({ "containers": [] })).alternatives.len(), 1);
}

#[test]
fn a_demand_that_no_node_is_planned_by_is_named() {
    let terms = |terms: Value| {
        let required = json!({ "nodeSelectorTerms": terms });
        json!({ "containers": [], "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } } })
    };
    let fields = json!([{ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["n"] }] }]);
    assert_eq!(
        model(&terms(fields)).unsupported.as_deref(),
        Some(
            "the required node affinity of the pod uses matchFields, and nodes are planned by their labels; use matchExpressions"
        )
    );
    let odd = json!([{ "matchExpressions": [{ "key": "a", "operator": "Gt", "values": ["x"] }] }]);
    assert_eq!(
        model(&terms(odd)).unsupported.as_deref(),
        Some(
            "the required node affinity of the pod cannot be met: requirement on label a: operator Gt needs exactly one value, a non-negative integer"
        )
    );
    let ports = json!({ "containers": [{ "name": "c", "ports": [{ "containerPort": 80, "hostPort": 80 }] }] });
    assert_eq!(model(&ports).unsupported, None, "what can be read is for the engine to judge");
}
