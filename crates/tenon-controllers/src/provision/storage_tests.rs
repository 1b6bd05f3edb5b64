//! Pods with claims: when they are planned for, and what they hear until then.

use std::time::Duration;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use tenon_api::objects::Kind;

use super::gather::gather;
use super::pass::pending;
use super::test_stage::{Stage, add_pod, object};
use crate::settings::Settings;

async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

async fn add_pod_with_claim(stage: &Stage) {
    let volumes = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "data" } }]);
    add_pod(&stage.client, "stateful", ("1", json!({ "volumes": volumes }))).await;
    stage.until_waiting(2).await;
}

fn claims(stage: &Stage) -> Api<PersistentVolumeClaim> {
    Api::namespaced(stage.client.clone(), "default")
}

async fn add_claim(stage: &Stage) {
    let claim =
        object(json!({ "metadata": { "name": "data", "namespace": "default" }, "spec": { "storageClassName": "fast",
        "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } } }));
    claims(stage).create(&PostParams::default(), &claim).await.unwrap();
    settle().await;
}

async fn add_class(stage: &Stage) {
    let class: StorageClass = object(json!({ "metadata": { "name": "fast" }, "provisioner": "csi.example",
        "volumeBindingMode": "WaitForFirstConsumer" }));
    Api::all(stage.client.clone()).create(&PostParams::default(), &class).await.unwrap();
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_hears_what_is_wrong_with_its_claim_and_stops_no_other() {
    let stage = Stage::new().await;
    add_pod_with_claim(&stage).await;
    stage.pass().await;
    assert_eq!(stage.claims().await.len(), 1, "the other pod gets its node");
    let told = stage.told("FailedScheduling").await;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("PersistentVolumeClaim default/data does not exist; create the claim"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_whose_claim_changes_is_planned_for_as_if_it_were_new() {
    let stage = Stage::new().await;
    add_pod_with_claim(&stage).await;
    let before = pending(&stage.context);
    add_claim(&stage).await;
    let with_claim = pending(&stage.context);
    assert_eq!(with_claim.difference(&before).count(), 1);
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "note": "nobody asks" } } }));
    claims(&stage).patch("data", &PatchParams::default(), &patch).await.unwrap();
    settle().await;
    assert_eq!(pending(&stage.context), with_claim, "nothing that matters changed");
    add_class(&stage).await;
    let with_class = pending(&stage.context);
    assert_eq!(with_class.difference(&with_claim).count(), 1);
    let bound = Patch::Merge(json!({ "spec": { "volumeName": "pv-1" } }));
    claims(&stage).patch("data", &PatchParams::default(), &bound).await.unwrap();
    settle().await;
    assert_eq!(pending(&stage.context).difference(&with_class).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn where_volumes_cannot_be_read_only_pods_with_claims_wait_and_hear_why() {
    let is_storage = |path: &str| path.ends_with("persistentvolumeclaims") || path.ends_with("csinodes");
    let stage = Stage::forbidden(Settings::default(), is_storage).await;
    add_pod_with_claim(&stage).await;
    add_claim(&stage).await;
    let unreadable = gather(&stage.context).await.unreadable;
    assert_eq!(unreadable.keys().collect::<Vec<_>>(), [&Kind::PersistentVolumeClaim]);
    stage.pass().await;
    assert_eq!(stage.claims().await.len(), 1, "the other pod gets its node");
    let told = stage.told("FailedScheduling").await;
    let expected = "cannot list PersistentVolumeClaim: forbidden (Kubernetes API, HTTP 403); allow the controller to get, \
                    list and watch persistentvolumeclaims in the cluster";
    assert!(told.len() == 1 && told[0].contains(expected), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_a_claim_that_waits_for_it_is_known_with_its_driver() {
    let stage = Stage::new().await;
    add_class(&stage).await;
    add_claim(&stage).await;
    add_pod_with_claim(&stage).await;
    let (_, snapshot, _) = stage.plan().await;
    let pod = snapshot.pods.iter().find(|pod| pod.key.name.as_ref() == "stateful").unwrap();
    assert_eq!(pod.storage.volumes().unwrap().attachments[0].driver, "csi.example");
    assert!(snapshot.namespaces.contains_key("default"));
}
