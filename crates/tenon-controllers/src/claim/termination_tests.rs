//! From a NodeClaim that is deleted to nothing, pass by pass on a cluster in memory.

use std::time::Duration;

use kube::ResourceExt;
use serde_json::{Value, json};
use tenon_api::names;
use tenon_sim::{FaultEffect, FaultMatch, FaultRule};

use super::test_stage::ClaimStage;

/// When pods must have left, as it stands in the claim.
async fn deadline(stage: &ClaimStage, claim: &str) -> Option<jiff::Timestamp> {
    let claim = stage.claim(claim).await;
    claim.annotations().get(names::ANNOTATION_TERMINATION_TIMESTAMP).map(|text| text.parse().unwrap())
}

/// A pod that leaves only when it has to.
fn protected() -> Value {
    json!({ "metadata": { "annotations": { names::ANNOTATION_DO_NOT_DISRUPT: "true" } } })
}

/// The deadline that follows from when the claim was deleted.
async fn expected_deadline(stage: &ClaimStage, claim: &str, grace_s: i64) -> Option<jiff::Timestamp> {
    let deleted = stage.claim(claim).await.metadata.deletion_timestamp.unwrap().0;
    Some(deleted + jiff::SignedDuration::from_secs(grace_s))
}

#[tokio::test(start_paused = true)]
async fn g1_a_deleted_claim_takes_its_node_and_its_vm_along() {
    let stage = ClaimStage::new().await;
    stage.add_initialized("n", json!({})).await;
    stage.delete(stage.claims_api(), "n").await;
    stage.run("n", 60).await;
    assert!(stage.is_gone("n").await && stage.node("n").await.is_none());
    assert_eq!(stage.vms(), [0; 0]);
    let labels = ["nodepool=\"default\"", "zone=\"pve1\""];
    assert_eq!(stage.counted("karpenter_nodeclaims_terminated", &labels), 1);
    assert_eq!(stage.counted("karpenter_nodes_terminated", &labels), 1);
    assert_eq!(stage.counted("karpenter_nodeclaims_disrupted", &[]), 0, "it was not our idea");
}

#[tokio::test(start_paused = true)]
async fn g1_a_deleted_node_takes_its_claim_and_its_vm_along() {
    let stage = ClaimStage::new().await;
    stage.add_initialized("n", json!({})).await;
    stage.delete(stage.nodes_api(), "n").await;
    stage.pass("n").await;
    assert!(stage.is_deleting("n").await);
    assert_eq!(stage.told("n", "NodeDeleted").await.len(), 1);
    stage.run("n", 60).await;
    assert!(stage.is_gone("n").await && stage.node("n").await.is_none() && stage.vms().is_empty());
}

#[tokio::test(start_paused = true)]
async fn g1_a_node_that_vanished_takes_its_claim_and_its_vm_along() {
    let stage = ClaimStage::new().await;
    stage.add_initialized("n", json!({})).await;
    stage.patch(stage.nodes_api(), "n", json!({ "metadata": { "finalizers": null } })).await;
    stage.delete(stage.nodes_api(), "n").await;
    assert!(stage.node("n").await.is_none());
    stage.run("n", 60).await;
    assert!(stage.is_gone("n").await && stage.vms().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_being_deleted_stays_ready() {
    let stage = ClaimStage::new().await;
    stage.add_initialized("n", json!({})).await;
    stage.add_pod(("n", "web"), json!({})).await;
    stage.delete(stage.claims_api(), "n").await;
    stage.run("n", 20).await;
    assert_eq!(stage.condition("n", "Drained").await.1, "Draining");
    assert_eq!(stage.condition("n", "Ready").await.0, "True");
}

#[tokio::test(start_paused = true)]
async fn quantities_stay_as_they_were_written() {
    let stage = ClaimStage::new().await;
    let requests = json!({ "cpu": "0.5", "memory": "1048576Ki", "ephemeral-storage": 1_000_000 });
    stage.add_claim("n", json!({ "spec": { "resources": { "requests": requests.clone() } } })).await;
    let spec = stage.claim("n").await.spec;
    stage.run("n", 30).await;
    let allocatable = json!({ "cpu": "500m", "memory": "1Gi", "ephemeral-storage": "1M" });
    stage.add_node("n", json!({ "status": { "allocatable": allocatable } })).await;
    stage.run("n", 30).await;
    assert_eq!(stage.claim("n").await.spec, spec);
    assert_eq!(json!(stage.claim("n").await.spec.resources.unwrap().requests), requests);
    stage.delete(stage.claims_api(), "n").await;
    stage.run("n", 60).await;
    assert!(stage.is_gone("n").await);
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_cannot_be_deleted_keeps_its_claim_until_it_can() {
    let stage = ClaimStage::new().await;
    stage.add_initialized("n", json!({})).await;
    let effect = FaultEffect::Refuse { status: 500, text: "the moon is in the wrong house".to_owned() };
    stage.estate.add_fault(FaultRule::new(FaultMatch::call("DELETE", "/nodes/*/qemu/*"), effect));
    stage.delete(stage.claims_api(), "n").await;
    stage.run("n", 120).await;
    assert!(stage.is_deleting("n").await && stage.vms() == [20_000]);
    let told = stage.told("n", "FailedTermination").await;
    assert!(told.iter().any(|note| note.contains("the moon is in the wrong house")), "{told:?}");
    assert!(stage.node("n").await.is_some(), "its Node shows that it is still there");
    stage.estate.remove_faults();
    stage.run("n", 120).await;
    assert!(stage.is_gone("n").await && stage.vms().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_claim_stays_while_its_vm_is_being_destroyed() {
    let stage = ClaimStage::new().await;
    stage.add_initialized("n", json!({})).await;
    stage.estate.hold_tasks("qmdestroy");
    stage.delete(stage.claims_api(), "n").await;
    stage.run("n", 60).await;
    assert_eq!(stage.condition("n", "InstanceTerminating").await.0, "True");
    assert!(stage.is_deleting("n").await && stage.node("n").await.is_some());
    stage.estate.release_tasks();
    stage.run("n", 60).await;
    assert!(stage.is_gone("n").await && stage.vms().is_empty());
}

#[tokio::test(start_paused = true)]
async fn g1_a_vm_is_not_touched_before_its_node_is_drained() {
    let stage = ClaimStage::new().await;
    stage.add_initialized("n", json!({})).await;
    stage.add_pod(("n", "web"), json!({})).await;
    let before = stage.estate.ledger().len();
    stage.delete(stage.claims_api(), "n").await;
    stage.run("n", 30).await;
    let changes = stage.estate.ledger().split_off(before);
    assert!(changes.iter().all(|entry| entry.method == "GET"), "{changes:?}");
    stage.end_pod("web").await;
    stage.run("n", 60).await;
    assert!(stage.is_gone("n").await && stage.vms().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_never_planned_goes_without_a_call_to_proxmox() {
    let stage = ClaimStage::new().await;
    stage.add_claim("n", json!({ "metadata": { "annotations": null } })).await;
    stage.run("n", 5).await;
    assert_eq!(stage.condition("n", "Launched").await.1, "NotPlanned");
    let before = stage.estate.ledger().len();
    stage.delete(stage.claims_api(), "n").await;
    stage.run("n", 10).await;
    assert!(stage.is_gone("n").await);
    assert_eq!(stage.estate.ledger().len(), before);
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_launch_was_not_begun_goes_without_a_change_of_proxmox() {
    let stage = ClaimStage::new().await;
    stage.add_claim("n", json!({})).await;
    stage.pass("n").await;
    stage.delete(stage.claims_api(), "n").await;
    stage.run("n", 60).await;
    assert!(stage.is_gone("n").await);
    assert!(stage.estate.ledger().iter().all(|entry| entry.method == "GET"));
}

#[tokio::test(start_paused = true)]
async fn g3_a_claim_without_a_termination_grace_period_gets_no_deadline() {
    let stage = ClaimStage::new().await;
    stage.add_initialized("n", json!({})).await;
    stage.add_pod(("n", "web"), json!({})).await;
    stage.delete(stage.claims_api(), "n").await;
    stage.run("n", 60).await;
    assert_eq!(deadline(&stage, "n").await, None);
    assert!(stage.told("n", "TerminationGracePeriodExpiring").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn g3_the_deadline_of_a_deleted_claim_is_set_once_and_counts_from_its_deletion() {
    let stage = ClaimStage::new().await;
    stage.add_initialized("n", json!({ "spec": { "terminationGracePeriod": "10m" } })).await;
    stage.add_pod(("n", "web"), json!({})).await;
    assert_eq!(deadline(&stage, "n").await, None, "nobody deleted it yet");
    stage.delete(stage.claims_api(), "n").await;
    tokio::time::sleep(Duration::from_secs(7)).await;
    stage.pass("n").await;
    assert_eq!(deadline(&stage, "n").await, expected_deadline(&stage, "n", 600).await);
    assert_eq!(stage.told("n", "TerminationGracePeriodExpiring").await.len(), 1);
    // Whoever shortens it is obeyed.
    let sooner = "2026-11-15T00:00:00Z";
    let annotations = json!({ names::ANNOTATION_TERMINATION_TIMESTAMP: sooner });
    stage.patch(stage.claims_api(), "n", json!({ "metadata": { "annotations": annotations } })).await;
    stage.pass("n").await;
    assert_eq!(deadline(&stage, "n").await, Some(sooner.parse().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn g3_a_deleted_node_has_the_deadline_of_its_claim_too() {
    let stage = ClaimStage::new().await;
    stage.add_initialized("n", json!({ "spec": { "terminationGracePeriod": "60s" } })).await;
    stage.add_pod(("n", "web"), protected()).await;
    stage.delete(stage.nodes_api(), "n").await;
    stage.run("n", 10).await;
    assert_eq!(deadline(&stage, "n").await, expected_deadline(&stage, "n", 60).await);
    assert!(!stage.is_leaving("web").await);
    stage.run("n", 50).await;
    assert!(stage.is_leaving("web").await, "the termination grace period ends");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_too_old_is_deleted_whether_its_node_is_there_or_not() {
    let stage = ClaimStage::new().await;
    stage.add_initialized("n", json!({ "spec": { "expireAfter": "30m" } })).await;
    stage.add_pod(("n", "web"), protected()).await;
    stage.add_launched("m", json!({ "spec": { "expireAfter": "5m" } })).await;
    stage.run("m", 4 * 60).await;
    assert!(!stage.is_deleting("m").await);
    stage.run("m", 120).await;
    assert!(stage.is_gone("m").await);
    stage.run("n", 22 * 60).await;
    assert!(!stage.is_deleting("n").await);
    stage.run("n", 180).await;
    assert!(stage.is_deleting("n").await);
    assert!(stage.told("n", "Expired").await[0].contains("older than expireAfter 30m"));
    assert_eq!(stage.counted("karpenter_nodeclaims_disrupted", &["reason=\"expired\""]), 2);
}

#[tokio::test(start_paused = true)]
async fn g5_what_a_deletion_waits_for_is_in_the_metric_of_disrupted_claims() {
    for (grace, mode) in [(None, "graceful"), (Some("0s"), "forceful"), (Some("1h"), "eventual")] {
        let stage = ClaimStage::new().await;
        let spec = json!({ "expireAfter": "1m", "terminationGracePeriod": grace });
        stage.add_launched("n", json!({ "spec": spec })).await;
        stage.run("n", 120).await;
        let labels = ["reason=\"expired\"", &format!("termination_mode=\"{mode}\"")];
        assert_eq!(stage.counted("karpenter_nodeclaims_disrupted", &labels), 1, "{}", stage.context.metrics.text());
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_no_host_has_room_for_is_deleted_when_it_is_too_old() {
    let stage = ClaimStage::new().await;
    stage.add_claim("n", json!({ "metadata": { "annotations": null }, "spec": { "expireAfter": "5m" } })).await;
    stage.run("n", 4 * 60).await;
    assert!(!stage.is_deleting("n").await);
    stage.run("n", 120).await;
    assert!(stage.is_gone("n").await);
    assert_eq!(stage.counted("karpenter_nodeclaims_disrupted", &["reason=\"expired\""]), 1);
}
