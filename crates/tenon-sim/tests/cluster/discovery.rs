//! Clients learn what there is.

use kube::discovery::Discovery;
use serde_json::{Value, json};

use crate::cluster::{PODS, admin, cluster, pod};

#[tokio::test]
async fn versions_groups_and_resources_are_told() {
    let asker = admin();
    assert_eq!(asker.get("/version").await.1["gitVersion"], "v1.36.3");
    assert_eq!(asker.get("/api").await.1["versions"], json!(["v1"]));
    let (_, group) = asker.get("/apis/apps").await;
    assert_eq!((&group["kind"], &group["preferredVersion"]["version"]), (&json!("APIGroup"), &json!("v1")));
    let (_, list) = asker.get("/api/v1").await;
    let names: Vec<_> = list["resources"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    for name in ["pods", "pods/binding", "pods/eviction", "pods/status", "nodes", "events"] {
        assert!(names.contains(&name), "{name}");
    }
    let (_, list) = asker.get("/apis/apps/v1").await;
    let scale = list["resources"].as_array().unwrap().iter().find(|row| row["name"] == "deployments/scale").cloned();
    assert_eq!(scale.unwrap()["group"], "autoscaling");
}

#[tokio::test]
async fn the_client_library_discovers_everything() {
    let discovery = Discovery::new(cluster().client()).run().await.unwrap();
    assert!(discovery.has_group("coordination.k8s.io") && discovery.has_group("certificates.k8s.io"));
}

#[tokio::test]
async fn health_is_told_to_everybody() {
    let asker = admin();
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(asker.text("GET", path, ("", Value::Null)).await, (200, "ok".into()));
    }
}

#[tokio::test]
async fn fields_are_said_to_be_checked_by_the_server() {
    let asker = admin();
    let (_, index) = asker.get("/openapi/v3").await;
    let url = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap();
    let (_, document) = asker.get(url).await;
    let patch = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
    assert_eq!(patch["parameters"][0]["name"], "fieldValidation");
    assert_eq!(asker.post(&format!("{PODS}?fieldValidation=Strict"), pod("a")).await.0, 201);
}

#[tokio::test]
async fn paths_that_lead_nowhere_are_not_found() {
    let asker = admin();
    let nothing = (404, Value::String("404 page not found\n".into()));
    assert_eq!(asker.get("/nonsense").await, nothing);
    assert_eq!(asker.get("/apis/none.example/v1/x").await, nothing);
    let (code, status) = asker.get("/api/v1/nonsense").await;
    assert_eq!((code, status["message"].as_str()), (404, Some("the server could not find the requested resource")));
    assert_eq!(asker.get("/api/v1/namespaces/default/nodes").await.0, 404);
}

#[tokio::test]
async fn pods_and_nodes_are_shown_as_rows() {
    let asker = admin();
    asker.make(PODS, pod("a")).await;
    asker.make("/api/v1/nodes", json!({ "metadata": { "name": "n" }, "spec": { "unschedulable": true } })).await;
    let table = async |path: &str| {
        let request = http::Request::get(path).header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
        let table: Value = asker.0.request(request.body(Vec::new()).unwrap()).await.unwrap();
        table["rows"][0]["cells"].as_array().unwrap().iter().take(4).cloned().collect::<Vec<_>>()
    };
    assert_eq!(table(PODS).await, ["a", "0/1", "Pending", "0"]);
    assert_eq!(table("/api/v1/nodes/n").await, ["n", "Unknown,SchedulingDisabled", "<none>", "0s"]);
}
