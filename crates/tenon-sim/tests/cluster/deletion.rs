//! Objects go: at once, after their grace, or when nothing holds them any more.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};

use crate::cluster::{MAPS, MERGE, PODS, admin, cluster, map, pod, pod_on, typed_pod};

#[tokio::test]
async fn a_deleted_object_is_gone_and_told() {
    let asker = admin();
    let made = asker.make(MAPS, map("m")).await;
    let (code, status) = asker.delete(&format!("{MAPS}/m"), Value::Null).await;
    assert_eq!((code, status["status"].as_str()), (200, Some("Success")));
    assert_eq!(status["details"], json!({ "name": "m", "kind": "configmaps", "uid": made["metadata"]["uid"] }));
    assert_eq!(asker.get(&format!("{MAPS}/m")).await.0, 404);
}

#[tokio::test]
async fn a_pod_on_no_node_goes_at_once() {
    let pods: Api<Pod> = Api::default_namespaced(cluster().client());
    pods.create(&PostParams::default(), &typed_pod("a")).await.unwrap();
    let last = pods.delete("a", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(last.metadata.deletion_grace_period_seconds, Some(0));
    assert!(pods.get_opt("a").await.unwrap().is_none());
}

#[tokio::test]
async fn a_pod_on_a_node_stays_until_its_kubelet_is_done() {
    let asker = admin();
    asker.make(PODS, pod_on("a", "n1")).await;
    let (_, first) = asker.delete(&format!("{PODS}/a"), Value::Null).await;
    assert_eq!(
        (&first["metadata"]["deletionGracePeriodSeconds"], &first["metadata"]["generation"]),
        (&json!(30), &json!(2))
    );
    let (_, longer) = asker.delete(&format!("{PODS}/a"), json!({ "gracePeriodSeconds": 40 })).await;
    assert_eq!(longer["metadata"], first["metadata"]);
    let (_, shorter) = asker.delete(&format!("{PODS}/a"), json!({ "gracePeriodSeconds": 5 })).await;
    assert_eq!(shorter["metadata"]["deletionGracePeriodSeconds"], 5);
    assert!(shorter["metadata"]["deletionTimestamp"].as_str() < first["metadata"]["deletionTimestamp"].as_str());
    assert_eq!(asker.delete(&format!("{PODS}/a?gracePeriodSeconds=0"), Value::Null).await.0, 200);
    assert_eq!(asker.get(&format!("{PODS}/a")).await.0, 404);
}

#[tokio::test]
async fn only_the_object_that_was_meant_is_deleted() {
    let asker = admin();
    asker.make(PODS, pod("a")).await;
    let (code, status) = asker.delete(&format!("{PODS}/a"), json!({ "preconditions": { "uid": "other" } })).await;
    assert_eq!((code, &status["details"]), (409, &json!({ "name": "a", "kind": "Pod" })));
    let told = "Operation cannot be fulfilled on Pod \"a\": the UID in the precondition (other) does not match";
    assert!(status["message"].as_str().unwrap().starts_with(told));
    let (code, _) = asker.delete(&format!("{PODS}/a"), json!({ "preconditions": { "resourceVersion": "1" } })).await;
    assert_eq!(code, 409);
}

#[tokio::test]
async fn finalizers_hold_an_object() {
    let asker = admin();
    asker.make(MAPS, json!({ "metadata": { "name": "m", "finalizers": ["a.b/c"] } })).await;
    let path = format!("{MAPS}/m");
    let (_, held) = asker.delete(&path, Value::Null).await;
    assert_eq!(held["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(asker.delete(&path, Value::Null).await.1, held);
    let (code, status) = asker.patch(&path, (MERGE, json!({ "metadata": { "finalizers": ["a.b/c", "d.e/f"] } }))).await;
    assert_eq!(code, 422);
    assert!(status["message"].as_str().unwrap().contains("found new finalizers []string{\"d.e/f\"}"));
    assert_eq!(asker.patch(&path, (MERGE, json!({ "metadata": { "finalizers": null } }))).await.0, 200);
    assert_eq!(asker.get(&path).await.0, 404);
}

#[tokio::test]
async fn a_pod_waits_for_its_grace_and_its_finalizers() {
    let asker = admin();
    let mut pod = pod_on("a", "n1");
    pod["metadata"]["finalizers"] = json!(["a.b/c"]);
    asker.make(PODS, pod).await;
    let path = format!("{PODS}/a");
    asker.delete(&path, Value::Null).await;
    asker.patch(&path, (MERGE, json!({ "metadata": { "finalizers": [] } }))).await;
    assert_eq!(asker.get(&path).await.0, 200, "its grace is not over");
    asker.delete(&path, json!({ "gracePeriodSeconds": 0 })).await;
    assert_eq!(asker.get(&path).await.0, 404);
}

fn owned(name: &str, owners: &[&Value]) -> Value {
    let owner = |owner: &&Value| json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"] });
    json!({ "metadata": { "name": name, "ownerReferences": owners.iter().map(owner).collect::<Vec<_>>() } })
}

#[tokio::test]
async fn dependents_go_with_their_last_owner() {
    let asker = admin();
    let (one, two) = (asker.make(MAPS, map("one")).await, asker.make(MAPS, map("two")).await);
    let child = asker.make(MAPS, owned("child", &[&one, &two])).await;
    asker.make(MAPS, owned("grandchild", &[&child])).await;
    asker.delete(&format!("{MAPS}/one"), Value::Null).await;
    let (_, child) = asker.get(&format!("{MAPS}/child")).await;
    assert_eq!(child["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
    asker.delete(&format!("{MAPS}/two"), json!({ "propagationPolicy": "Background" })).await;
    assert_eq!(asker.get(&format!("{MAPS}/child")).await.0, 404);
    assert_eq!(asker.get(&format!("{MAPS}/grandchild")).await.0, 404);
}

#[tokio::test]
async fn orphans_outlive_their_owner() {
    let asker = admin();
    let owner = asker.make(MAPS, map("owner")).await;
    asker.make(MAPS, owned("child", &[&owner])).await;
    asker.delete(&format!("{MAPS}/owner?propagationPolicy=Orphan"), Value::Null).await;
    let (code, child) = asker.get(&format!("{MAPS}/child")).await;
    assert_eq!((code, child["metadata"].get("ownerReferences")), (200, None));
}

#[tokio::test]
async fn what_is_born_to_the_dead_goes_at_once() {
    let asker = admin();
    let owner = asker.make(MAPS, map("owner")).await;
    asker.delete(&format!("{MAPS}/owner"), Value::Null).await;
    asker.make(MAPS, owned("child", &[&owner])).await;
    assert_eq!(asker.get(&format!("{MAPS}/child")).await.0, 404);
}

#[tokio::test]
async fn many_are_deleted_at_once() {
    let asker = admin();
    for name in ["a", "b"] {
        asker.make(PODS, pod(name)).await;
    }
    asker
        .make(PODS, {
            let mut other = pod("c");
            other["metadata"]["labels"]["app"] = "y".into();
            other
        })
        .await;
    let (code, gone) = asker.delete(&format!("{PODS}?labelSelector=app%3Dx"), Value::Null).await;
    assert_eq!((code, gone["items"].as_array().unwrap().len()), (200, 2));
    assert_eq!(asker.get(PODS).await.1["items"].as_array().unwrap().len(), 1);
    assert_eq!(asker.delete("/api/v1/pods", Value::Null).await.0, 405);
}

#[tokio::test]
async fn a_namespace_goes_when_it_is_empty() {
    let asker = admin();
    asker.make("/api/v1/namespaces", json!({ "metadata": { "name": "mine" } })).await;
    let held = json!({ "metadata": { "name": "m", "finalizers": ["a.b/c"] } });
    asker.make("/api/v1/namespaces/mine/configmaps", held).await;
    let (_, going) = asker.delete("/api/v1/namespaces/mine", Value::Null).await;
    assert_eq!(going["status"]["phase"], "Terminating");
    let (code, status) = asker.post("/api/v1/namespaces/mine/configmaps", map("new")).await;
    assert_eq!((code, &status["details"]["causes"][0]["reason"]), (403, &json!("NamespaceTerminating")));
    asker.patch("/api/v1/namespaces/mine/configmaps/m", (MERGE, json!({ "metadata": { "finalizers": null } }))).await;
    assert_eq!(asker.get("/api/v1/namespaces/mine").await.0, 404);
    assert_eq!(asker.delete("/api/v1/namespaces/default", Value::Null).await.0, 403);
}
