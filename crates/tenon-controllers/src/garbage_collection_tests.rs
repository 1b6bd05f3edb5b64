//! What the collector removes, and what it leaves alone, on a cluster in memory.

use std::time::Duration;

use serde_json::{Value, json};
use tenon_api::names;

use crate::claim::test_stage::ClaimStage;
use crate::garbage_collection;
use crate::stop;

/// Lets the collector run for so long.
async fn collect(stage: &ClaimStage, seconds: u64) {
    let (stopper, stop) = stop::stop();
    let collector = tokio::spawn(garbage_collection::run(stage.context.clone(), stop));
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    stopper.tell();
    collector.await.unwrap();
    stage.settle().await;
}

/// What a Node says of itself.
fn says(status: &str) -> Value {
    json!({ "conditions": [{ "type": "Ready", "status": status }] })
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_a_vm_is_deleted_if_its_node_is_not_ready() {
    let stage = ClaimStage::new().await;
    stage.add_initialized("n", json!({})).await;
    stage.estate.remove_vm(20_000).unwrap();
    stage.patch_status(stage.nodes_api(), "n", says("Unknown")).await;
    collect(&stage, 130).await;
    assert!(stage.is_deleting("n").await);
    assert!(stage.told("n", "VMNotFound").await[0].contains("VM 20000 no longer exists"));
    assert_eq!(stage.counted("karpenter_nodeclaims_disrupted", &["reason=\"garbage_collected\""]), 1);
    stage.run("n", 60).await;
    assert!(stage.is_gone("n").await && stage.node("n").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_a_vm_is_kept_while_its_node_is_ready() {
    let stage = ClaimStage::new().await;
    stage.add_initialized("n", json!({})).await;
    stage.estate.remove_vm(20_000).unwrap();
    collect(&stage, 300).await;
    assert!(!stage.is_deleting("n").await, "its kubelet is alive, whatever Proxmox shows");
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_a_vm_and_without_a_node_is_deleted() {
    let stage = ClaimStage::new().await;
    stage.add_initialized("n", json!({})).await;
    stage.estate.remove_vm(20_000).unwrap();
    stage.patch(stage.nodes_api(), "n", json!({ "metadata": { "finalizers": null } })).await;
    stage.delete(stage.nodes_api(), "n").await;
    collect(&stage, 130).await;
    assert!(stage.is_deleting("n").await);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_has_not_registered_is_left_to_its_own_passes() {
    let stage = ClaimStage::new().await;
    stage.add_launched("n", json!({})).await;
    stage.estate.remove_vm(20_000).unwrap();
    collect(&stage, 130).await;
    assert!(!stage.is_deleting("n").await);
}

#[tokio::test(start_paused = true)]
async fn g1_a_deleted_node_without_a_claim_is_let_go_and_one_that_is_not_ours_is_not() {
    let stage = ClaimStage::new().await;
    let ours = json!({ names::LABEL_NODECLASS: "default" });
    for (name, labels) in [("ours", ours), ("other", json!({}))] {
        let metadata = json!({ "name": name, "labels": labels, "finalizers": [names::FINALIZER] });
        stage.create(stage.nodes_api(), json!({ "metadata": metadata })).await;
    }
    collect(&stage, 70).await;
    assert!(stage.node("ours").await.is_some(), "nobody deleted it");
    for name in ["ours", "other"] {
        stage.delete(stage.nodes_api(), name).await;
    }
    collect(&stage, 70).await;
    assert!(stage.node("ours").await.is_none() && stage.node("other").await.is_some());
}

#[tokio::test(start_paused = true)]
async fn g1_a_deleted_node_without_a_claim_is_drained_before_it_is_let_go() {
    let stage = ClaimStage::new().await;
    let metadata =
        json!({ "name": "n", "labels": { names::LABEL_NODECLASS: "default" }, "finalizers": [names::FINALIZER] });
    stage.create(stage.nodes_api(), json!({ "metadata": metadata, "status": says("True") })).await;
    stage.add_pod(("n", "web"), json!({ "spec": { "terminationGracePeriodSeconds": 3600 } })).await;
    stage.delete(stage.nodes_api(), "n").await;
    collect(&stage, 190).await;
    assert!(stage.is_leaving("web").await && stage.node("n").await.is_some());
    assert_eq!(stage.told("web", "Evicted").await, ["Evicted: Node n is being removed"]);
    stage.end_pod("web").await;
    collect(&stage, 70).await;
    assert!(stage.node("n").await.is_none());
}
