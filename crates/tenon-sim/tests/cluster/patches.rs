//! Patches in three languages.

use serde_json::{Value, json};

use crate::cluster::{Asker, JSON_PATCH, MAPS, MERGE, PODS, STRATEGIC, admin, map, pod};

async fn with_map() -> (Asker, Value, String) {
    let asker = admin();
    let made = asker.make(MAPS, map("m")).await;
    (asker, made, format!("{MAPS}/m"))
}

#[tokio::test]
async fn a_merge_patch_sets_and_removes() {
    let (asker, _, path) = with_map().await;
    let (code, new) = asker.patch(&path, (MERGE, json!({ "data": { "a": null, "c": "d" } }))).await;
    assert_eq!((code, &new["data"]), (200, &json!({ "c": "d" })));
}

#[tokio::test]
async fn a_patch_with_an_old_version_is_a_conflict() {
    let (asker, made, path) = with_map().await;
    let version = &made["metadata"]["resourceVersion"];
    let patch = json!({ "metadata": { "resourceVersion": version }, "data": { "a": "c" } });
    assert_eq!(asker.patch(&path, (MERGE, patch.clone())).await.0, 200);
    let (code, status) = asker.patch(&path, (MERGE, patch)).await;
    assert_eq!((code, status["reason"].as_str()), (409, Some("Conflict")));
}

#[tokio::test]
async fn a_patch_for_another_uid_is_invalid() {
    let (asker, _, path) = with_map().await;
    let (code, status) = asker.patch(&path, (MERGE, json!({ "metadata": { "uid": "other" } }))).await;
    assert_eq!(code, 422);
    let told = "ConfigMap \"m\" is invalid: metadata.uid: Invalid value: \"other\": field is immutable";
    assert_eq!(status["message"], told);
}

#[tokio::test]
async fn a_patch_may_not_rename() {
    let (asker, _, path) = with_map().await;
    let (code, status) = asker.patch(&path, (MERGE, json!({ "metadata": { "name": "other" } }))).await;
    let told = "the name of the object (other) does not match the name on the URL (m)";
    assert_eq!((code, status["message"].as_str()), (400, Some(told)));
}

#[tokio::test]
async fn a_json_patch_is_applied_whole_or_not_at_all() {
    let (asker, _, path) = with_map().await;
    let good =
        json!([{ "op": "test", "path": "/data/a", "value": "b" }, { "op": "add", "path": "/data/c", "value": "d" }]);
    assert_eq!(asker.patch(&path, (JSON_PATCH, good)).await.1["data"], json!({ "a": "b", "c": "d" }));
    let bad =
        json!([{ "op": "add", "path": "/data/e", "value": "f" }, { "op": "test", "path": "/data/a", "value": "x" }]);
    let (code, status) = asker.patch(&path, (JSON_PATCH, bad)).await;
    assert_eq!((code, status["reason"].as_str()), (422, Some("Invalid")));
    assert_eq!(status["message"], "the server rejected our request due to an error in our request");
    assert_eq!(asker.get(&path).await.1["data"], json!({ "a": "b", "c": "d" }));
}

#[tokio::test]
async fn a_strategic_patch_merges_lists_by_their_keys() {
    let asker = admin();
    asker.make(PODS, pod("a")).await;
    let status = |kind: &str, status: &str| json!({ "status": { "conditions": [{ "type": kind, "status": status }] } });
    for (kind, value) in [("Ready", "False"), ("Other", "True"), ("Ready", "True")] {
        asker.patch(&format!("{PODS}/a/status"), (STRATEGIC, status(kind, value))).await;
    }
    let (_, pod) = asker.get(&format!("{PODS}/a")).await;
    let told: Vec<_> = pod["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (c["type"].clone(), c["status"].clone()))
        .collect();
    assert_eq!(told, [(json!("Other"), json!("True")), (json!("Ready"), json!("True"))]);
}

#[tokio::test]
async fn taints_are_replaced_whole_even_by_a_strategic_patch() {
    let asker = admin();
    asker.make("/api/v1/nodes", json!({ "metadata": { "name": "n" } })).await;
    let patch = json!({ "spec": { "taints": [{ "key": "z", "effect": "NoSchedule" }] } });
    let (_, node) = asker.patch("/api/v1/nodes/n", (STRATEGIC, patch)).await;
    assert_eq!(node["spec"]["taints"], json!([{ "key": "z", "effect": "NoSchedule" }]));
}

#[tokio::test]
async fn server_side_apply_is_not_done() {
    let (asker, _, path) = with_map().await;
    let (code, status) = asker.patch(&path, ("application/apply-patch+yaml", map("m"))).await;
    assert_eq!((code, status["reason"].as_str()), (415, Some("UnsupportedMediaType")));
    assert!(status["message"].as_str().unwrap().contains("server-side apply"));
}

#[tokio::test]
async fn what_is_no_patch_is_refused() {
    let (asker, _, path) = with_map().await;
    assert_eq!(asker.patch(&path, ("text/plain", json!({}))).await.0, 415);
    assert_eq!(asker.patch(&path, (JSON_PATCH, json!({ "op": "remove" }))).await.0, 400);
    assert_eq!(asker.patch(&format!("{MAPS}/none"), (MERGE, json!({}))).await.0, 404);
}

#[tokio::test]
async fn what_the_server_sets_cannot_be_patched() {
    let (asker, made, path) = with_map().await;
    let patch = json!({ "metadata": { "creationTimestamp": "2000-01-01T00:00:00Z", "deletionTimestamp": "2000-01-01T00:00:00Z" } });
    let (_, new) = asker.patch(&path, (MERGE, patch)).await;
    assert_eq!(new["metadata"], made["metadata"]);
}
