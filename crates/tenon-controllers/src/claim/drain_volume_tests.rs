//! Which volumes a drain waits for, and for how long, on a cluster in memory.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{Api, DeleteParams};
use serde_json::json;

use super::drain_tests::{delete_and_run, with_node};
use super::test_stage::ClaimStage;

/// A volume that is attached to the Node.
async fn attach(stage: &ClaimStage, volume: &str) {
    let spec = json!({ "attacher": "csi.example", "nodeName": "n", "source": { "persistentVolumeName": volume } });
    let api: Api<VolumeAttachment> = Api::all(stage.client.clone());
    stage.create(api, json!({ "metadata": { "name": volume }, "spec": spec })).await;
}

async fn detach(stage: &ClaimStage, volume: &str) {
    let api: Api<VolumeAttachment> = Api::all(stage.client.clone());
    api.delete(volume, &DeleteParams::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn g4_a_vm_stays_until_its_volumes_are_detached() {
    let stage = with_node(json!({})).await;
    attach(&stage, "pv-1").await;
    delete_and_run(&stage, 120).await;
    let (status, reason, message) = stage.condition("n", "VolumesDetached").await;
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "AwaitingVolumeDetachment"));
    assert!(message.contains("pv-1") && stage.vms() == [20_000]);
    assert!(!stage.told("n", "AwaitingVolumeDetachment").await.is_empty());
    detach(&stage, "pv-1").await;
    stage.run("n", 60).await;
    assert!(stage.is_gone("n").await);
}

#[tokio::test(start_paused = true)]
async fn g4_volumes_of_pods_that_stay_and_of_other_nodes_are_not_waited_for() {
    let stage = with_node(json!({})).await;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(stage.client.clone(), "default");
    let spec = json!({ "volumeName": "pv-1", "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } } });
    stage.create(claims, json!({ "metadata": { "name": "data" }, "spec": spec })).await;
    let volumes = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
    let tolerations = json!([{ "operator": "Exists" }]);
    stage.add_pod(("n", "agent"), json!({ "spec": { "volumes": volumes, "tolerations": tolerations } })).await;
    attach(&stage, "pv-1").await;
    let elsewhere = json!({ "attacher": "csi.example", "nodeName": "m", "source": { "persistentVolumeName": "pv-2" } });
    let api: Api<VolumeAttachment> = Api::all(stage.client.clone());
    stage.create(api, json!({ "metadata": { "name": "pv-2" }, "spec": elsewhere })).await;
    delete_and_run(&stage, 60).await;
    assert!(stage.is_gone("n").await);
    assert!(!stage.is_leaving("agent").await);
}

#[tokio::test(start_paused = true)]
async fn g4_a_volume_that_was_made_for_a_pod_that_stays_is_not_waited_for() {
    let stage = with_node(json!({})).await;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(stage.client.clone(), "default");
    let spec = json!({ "volumeName": "pv-1", "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } } });
    stage.create(claims, json!({ "metadata": { "name": "agent-scratch" }, "spec": spec.clone() })).await;
    let template = json!({ "accessModes": spec["accessModes"], "resources": spec["resources"] });
    let volumes = json!([{ "name": "scratch", "ephemeral": { "volumeClaimTemplate": { "spec": template } } }]);
    let tolerations = json!([{ "operator": "Exists" }]);
    stage.add_pod(("n", "agent"), json!({ "spec": { "volumes": volumes, "tolerations": tolerations } })).await;
    attach(&stage, "pv-1").await;
    delete_and_run(&stage, 60).await;
    assert!(stage.is_gone("n").await);
}

#[tokio::test(start_paused = true)]
async fn g4_volumes_are_waited_for_until_the_termination_grace_period_ends() {
    let stage = with_node(json!({ "spec": { "terminationGracePeriod": "60s" } })).await;
    attach(&stage, "pv-1").await;
    // What the VM is destroyed with shows what was written before.
    stage.estate.hold_tasks("qmdestroy");
    delete_and_run(&stage, 50).await;
    assert_eq!(stage.condition("n", "VolumesDetached").await.0, "Unknown");
    stage.run("n", 20).await;
    let (status, reason, _) = stage.condition("n", "VolumesDetached").await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "TerminationGracePeriodElapsed"));
    stage.estate.release_tasks();
    stage.run("n", 60).await;
    assert!(stage.is_gone("n").await);
}
