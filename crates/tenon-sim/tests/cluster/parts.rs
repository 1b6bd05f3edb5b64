//! Parts of objects: status, scale, binding.

use serde_json::{Value, json};

use crate::cluster::{MERGE, PODS, admin, pod};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

pub(crate) fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d" },
        "spec": {
            "selector": { "matchLabels": { "a": "b" } },
            "template": {
                "metadata": { "labels": { "a": "b" } },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            },
        },
    })
}

#[tokio::test]
async fn the_status_and_the_rest_are_written_apart() {
    let asker = admin();
    asker.make("/api/v1/nodes", json!({ "metadata": { "name": "n" }, "status": { "capacity": { "cpu": "2" } } })).await;
    let patch = json!({ "spec": { "unschedulable": true }, "status": { "capacity": { "cpu": "9" } } });
    let (_, node) = asker.patch("/api/v1/nodes/n", (MERGE, patch.clone())).await;
    assert_eq!((&node["spec"]["unschedulable"], &node["status"]["capacity"]["cpu"]), (&json!(true), &json!("2")));
    let patch =
        json!({ "metadata": { "labels": { "x": "y" } }, "spec": { "unschedulable": null }, "status": patch["status"] });
    let (_, node) = asker.patch("/api/v1/nodes/n/status", (MERGE, patch)).await;
    assert_eq!((&node["spec"]["unschedulable"], &node["status"]["capacity"]["cpu"]), (&json!(true), &json!("9")));
    assert_eq!(node["metadata"]["labels"]["x"], "y", "labels of built-in kinds may come with the status");
}

#[tokio::test]
async fn the_generation_counts_changes_of_the_spec() {
    let asker = admin();
    asker.make(DEPLOYMENTS, deployment()).await;
    let path = format!("{DEPLOYMENTS}/d");
    for (part, patch, generation) in [
        ("", json!({ "metadata": { "labels": { "x": "y" } } }), 1),
        ("/status", json!({ "status": { "replicas": 1 } }), 1),
        ("", json!({ "spec": { "replicas": 4 } }), 2),
    ] {
        let (_, new) = asker.patch(&format!("{path}{part}"), (MERGE, patch)).await;
        assert_eq!(new["metadata"]["generation"], generation);
    }
}

#[tokio::test]
async fn a_deployment_is_scaled() {
    let asker = admin();
    asker.make(DEPLOYMENTS, deployment()).await;
    let path = format!("{DEPLOYMENTS}/d/scale");
    let (_, scale) = asker.get(&path).await;
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(1)));
    assert_eq!(scale["status"], json!({ "replicas": 0, "selector": "a=b" }));
    let (_, scale) = asker.patch(&path, (MERGE, json!({ "spec": { "replicas": 3 } }))).await;
    assert_eq!(scale["spec"]["replicas"], 3);
    let put = json!({ "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": { "name": "d", "resourceVersion": "1" }, "spec": { "replicas": 5 } });
    assert_eq!(asker.put(&path, put).await.0, 409);
    assert_eq!(asker.get(&format!("{DEPLOYMENTS}/d")).await.1["spec"]["replicas"], 3);
}

#[tokio::test]
async fn a_pod_is_bound_once() {
    let asker = admin();
    asker.make(PODS, pod("a")).await;
    let binding = json!({ "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "a" }, "target": { "kind": "Node", "name": "n1" } });
    let path = format!("{PODS}/a/binding");
    assert_eq!(asker.post(&path, binding.clone()).await.0, 201);
    let (_, bound) = asker.get(&format!("{PODS}/a")).await;
    assert_eq!(bound["spec"]["nodeName"], "n1");
    assert_eq!(
        (&bound["status"]["conditions"][0]["type"], &bound["status"]["conditions"][0]["status"]),
        (&json!("PodScheduled"), &json!("True"))
    );
    let (code, status) = asker.post(&path, binding).await;
    assert_eq!(code, 409);
    assert_eq!(
        status["message"],
        "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"n1\""
    );
}

#[tokio::test]
async fn what_is_not_served_says_so() {
    let asker = admin();
    asker.make(PODS, pod("a")).await;
    let (code, status) = asker.get(&format!("{PODS}/a/log")).await;
    assert_eq!((code, status["reason"].as_str()), (501, Some("NotImplemented")));
    assert!(status["message"].as_str().unwrap().contains("get pods/log"));
    let (code, status) = asker.post(&format!("{PODS}?dryRun=All"), pod("b")).await;
    assert_eq!((code, status["message"].as_str().unwrap().contains("create pods as a dry run")), (501, true));
    assert_eq!(asker.get(&format!("{PODS}/a/nonsense")).await.0, 404);
    assert_eq!(asker.post(&format!("{PODS}/a"), pod("a")).await.0, 405);
}
