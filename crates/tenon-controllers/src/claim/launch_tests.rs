//! From a planned NodeClaim to a VM that runs, and every way a launch ends without one, on a cluster in memory.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{Api, DeleteParams};
use kube::{Resource, ResourceExt};
use serde_json::json;
use tenon_api::{ProxmoxNodeClass, names};
use tenon_model::LaunchLimits;
use tenon_sim::{FaultEffect, FaultMatch, FaultRule};

use super::test_stage::{ClaimStage, ready};
use crate::settings::Settings;

fn refuse(method: &str, path: &str, text: &str) -> FaultRule {
    FaultRule::new(FaultMatch::call(method, path), FaultEffect::Refuse { status: 500, text: text.to_owned() })
}

/// How many requests Proxmox got that change something.
fn changes(stage: &ClaimStage) -> usize {
    stage.estate.ledger().iter().filter(|entry| entry.method != "GET").count()
}

/// How many NodeClaims were deleted for a reason.
fn disrupted(stage: &ClaimStage, reason: &str) -> u64 {
    stage.counted("karpenter_nodeclaims_disrupted", &[&format!("reason=\"{reason}\""), "nodepool=\"default\""])
}

#[tokio::test(start_paused = true)]
async fn the_finalizer_is_there_before_anything_is_launched() {
    let stage = ClaimStage::new().await;
    stage.add_claim("n", json!({ "metadata": { "finalizers": ["example.com/other"] } })).await;
    stage.pass("n").await;
    assert_eq!(stage.claim("n").await.finalizers(), ["example.com/other", names::FINALIZER]);
    assert_eq!(changes(&stage), 0);
    stage.run("n", 30).await;
    assert_eq!(stage.vms(), [20_000]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_with_a_class_of_another_provider_is_not_touched() {
    let stage = ClaimStage::new().await;
    let class = json!({ "group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default" });
    stage.add_claim("n", json!({ "spec": { "nodeClassRef": class } })).await;
    let before = stage.claim("n").await;
    assert_eq!(stage.pass("n").await, None);
    assert_eq!(stage.claim("n").await.resource_version(), before.resource_version());
    assert_eq!(changes(&stage), 0);
}

#[tokio::test(start_paused = true)]
async fn conditions_name_the_generation_they_were_written_for() {
    let stage = ClaimStage::new().await;
    stage.add_launched("n", json!({})).await;
    let claim = stage.claim("n").await;
    let conditions = claim.status.unwrap().conditions.unwrap();
    assert!(conditions.len() >= 4, "{conditions:?}");
    let generation = claim.metadata.generation;
    assert!(conditions.iter().all(|condition| condition.observed_generation == generation), "{conditions:?}");
}

#[tokio::test(start_paused = true)]
async fn a_launched_claim_says_which_vm_it_is_and_keeps_its_own_labels() {
    let stage = ClaimStage::new().await;
    stage.add_launched("n", json!({ "metadata": { "labels": { "team": "web" } } })).await;
    let claim = stage.claim("n").await;
    let status = claim.status.as_ref().unwrap();
    assert_eq!(status.provider_id.as_deref(), Some("proxmox://lab/20000"));
    assert!(status.image_id.as_ref().is_some_and(|image| !image.is_empty()));
    let has = |map: &Option<tenon_api::ResourceMap>| map.as_ref().is_some_and(|map| map.contains_key("cpu"));
    assert!(has(&status.capacity) && has(&status.allocatable), "{status:?}");
    assert_eq!(claim.labels()["team"], "web");
    assert!(claim.labels().contains_key(names::LABEL_INSTANCE_IMAGE_ID));
    assert_eq!(stage.condition("n", "Ready").await.0, "Unknown", "its Node has not joined");
}

/// A reference to a pod that a claim was made for.
async fn planned(stage: &ClaimStage, name: &str) -> ObjectReference {
    stage.pod(name).await.unwrap().object_ref(&())
}

#[tokio::test(start_paused = true)]
async fn j9_without_room_a_claim_is_deleted_and_the_pods_that_still_wait_hear_why() {
    let stage = ClaimStage::new().await;
    stage.add_claim("n", json!({})).await;
    let pending = json!({ "spec": { "nodeName": null }, "status": { "phase": "Pending" } });
    for name in ["waits", "bound", "ended", "leaving", "deleted"] {
        stage.add_pod(("", name), pending.clone()).await;
    }
    let mut pods = Vec::new();
    for name in ["waits", "bound", "ended", "leaving", "deleted"] {
        pods.push(planned(&stage, name).await);
    }
    stage.end_pod("bound").await;
    stage.add_pod(("other", "bound"), json!({})).await;
    pods[1].uid = stage.pod("bound").await.unwrap().uid();
    stage.patch_status(stage.pods_api(), "ended", json!({ "phase": "Succeeded" })).await;
    stage.patch(stage.pods_api(), "leaving", json!({ "metadata": { "finalizers": ["example.com/wait"] } })).await;
    stage.delete(stage.pods_api(), "leaving").await;
    stage.end_pod("deleted").await;
    stage.context.memory.add_claim(&stage.claim("n").await, pods, stage.context.clock.now());
    stage.estate.set_storage_free("shared", 0).unwrap();
    stage.run("n", 60).await;
    assert!(stage.is_gone("n").await && stage.vms().is_empty());
    let told = stage.told("n", "InsufficientCapacityError").await;
    assert!(told.iter().any(|note| note.contains("No space left on device")), "{told:?}");
    assert_eq!(stage.told("waits", "InsufficientCapacityError").await, told);
    for name in ["bound", "ended", "leaving", "deleted"] {
        assert_eq!(stage.told(name, "InsufficientCapacityError").await, [""; 0], "pod {name} needs no node");
    }
    assert_eq!(disrupted(&stage, "insufficient_capacity"), 1);
    assert!(failed_to_create(&stage, "InsufficientCapacityError") >= 1);
}

/// How often VMs could not be created for this reason, as the reference names it.
fn failed_to_create(stage: &ClaimStage, error: &str) -> u64 {
    let error = format!("error=\"{error}\"");
    stage.counted("karpenter_cloudprovider_errors_total{", &["method=\"Create\"", &error, "nodepool=\"default\""])
}

#[tokio::test(start_paused = true)]
async fn without_its_class_a_claim_is_deleted_for_want_of_capacity() {
    let stage = ClaimStage::new().await;
    stage.add_claim("n", json!({})).await;
    let classes: Api<ProxmoxNodeClass> = Api::all(stage.client.clone());
    classes.delete("default", &DeleteParams::default()).await.unwrap();
    stage.run("n", 60).await;
    assert!(stage.is_gone("n").await);
    let told = stage.told("n", "InsufficientCapacityError").await;
    assert!(told[0].contains("ProxmoxNodeClass default does not exist; create it"), "{told:?}");
    assert_eq!((disrupted(&stage, "insufficient_capacity"), changes(&stage)), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn with_a_class_that_is_not_ready_a_claim_is_deleted_before_anything_is_made() {
    let stage = ClaimStage::new().await;
    let classes = || Api::<ProxmoxNodeClass>::all(stage.client.clone());
    stage.patch_status(classes(), "default", json!({ "conditions": ready("False") })).await;
    stage.add_claim("n", json!({})).await;
    stage.run("n", 60).await;
    assert!(stage.is_gone("n").await);
    assert_eq!((disrupted(&stage, "nodeclass_not_ready"), changes(&stage)), (1, 0));
    assert_eq!(failed_to_create(&stage, "NodeClassNotReadyError"), 1);
    assert!(stage.told("n", "InsufficientCapacityError").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn with_a_class_of_which_nothing_is_known_a_claim_waits_and_says_so() {
    let stage = ClaimStage::new().await;
    let classes = || Api::<ProxmoxNodeClass>::all(stage.client.clone());
    stage.patch_status(classes(), "default", json!({ "conditions": ready("Unknown") })).await;
    stage.add_claim("n", json!({})).await;
    stage.run("n", 60).await;
    let (status, reason, _) = stage.condition("n", "Launched").await;
    assert_eq!((status.as_str(), reason.as_str(), changes(&stage)), ("Unknown", "NodeClassReadinessUnknown", 0));
    stage.patch_status(classes(), "default", json!({ "conditions": ready("True") })).await;
    stage.run("n", 60).await;
    assert_eq!(stage.condition("n", "Launched").await.0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_class_that_fails_while_a_vm_is_made_does_not_end_the_launch() {
    let stage = ClaimStage::new().await;
    stage.add_claim("n", json!({})).await;
    stage.estate.hold_tasks("qmclone");
    stage.run("n", 5).await;
    assert_eq!(changes(&stage), 1, "the copy was begun");
    let classes: Api<ProxmoxNodeClass> = Api::all(stage.client.clone());
    stage.patch_status(classes, "default", json!({ "conditions": ready("False") })).await;
    stage.estate.release_tasks();
    stage.run("n", 60).await;
    assert_eq!(stage.condition("n", "Launched").await.0, "True");
}

#[tokio::test(start_paused = true)]
async fn j9_an_error_nobody_knows_is_retried_and_told_in_at_most_1024_bytes() {
    let stage = ClaimStage::new().await;
    stage.estate.add_fault(refuse("POST", "/nodes/*/qemu/*/clone", &"é".repeat(2000)));
    stage.add_claim("n", json!({})).await;
    stage.run("n", 20).await;
    let (status, reason, message) = stage.condition("n", "Launched").await;
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "LaunchFailed"));
    assert!(message.len() <= 1024 && message.len() > 1020 && message.ends_with("..."), "{}", message.len());
    assert!(!stage.is_deleting("n").await && changes(&stage) > 1, "it is tried again");
    assert!(failed_to_create(&stage, "unknown") > 1, "{}", stage.context.metrics.text());
    stage.estate.remove_faults();
    stage.run("n", 60).await;
    assert_eq!(stage.condition("n", "Launched").await.0, "True");
    assert_eq!(stage.counted("karpenter_cloudprovider_duration_seconds_count{", &["method=\"Create\""]), 1);
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_fails_for_five_minutes_ends_its_claim() {
    let stage = ClaimStage::new().await;
    stage.estate.add_fault(refuse("POST", "/nodes/*/qemu/*/clone", "the moon is in the wrong house"));
    stage.add_claim("n", json!({})).await;
    stage.run("n", 290).await;
    assert!(!stage.is_deleting("n").await, "it has ten seconds left");
    stage.run("n", 120).await;
    assert!(stage.is_gone("n").await);
    assert_eq!((disrupted(&stage, "launch_timeout"), disrupted(&stage, "insufficient_capacity")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn how_long_a_launch_may_fail_is_for_the_operator_to_say() {
    let launch_limits = LaunchLimits { stalled_s: 30, ..LaunchLimits::default() };
    let stage = ClaimStage::with(Settings { launch_limits, ..Settings::default() }).await;
    stage.estate.add_fault(refuse("POST", "/nodes/*/qemu/*/clone", "the moon is in the wrong house"));
    stage.add_claim("n", json!({})).await;
    stage.run("n", 25).await;
    assert!(!stage.is_deleting("n").await, "it has five seconds left");
    stage.run("n", 100).await;
    assert!(stage.is_gone("n").await);
    assert_eq!(disrupted(&stage, "launch_timeout"), 1);
}
