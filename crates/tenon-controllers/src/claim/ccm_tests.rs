//! Nodes whose kubelet expects a cloud controller manager, in clusters that have one and in clusters that have none.

use kube::ResourceExt;
use serde_json::{Value, json};
use tenon_api::names;

use super::test_stage::ClaimStage;
use crate::settings::{CloudControllerManager, Settings};

async fn stage(ccm: CloudControllerManager) -> ClaimStage {
    ClaimStage::with(Settings { ccm, ..Settings::default() }).await
}

fn uninitialized() -> Value {
    json!({ "key": names::TAINT_UNINITIALIZED, "value": "true", "effect": "NoSchedule" })
}

fn unregistered() -> Value {
    json!({ "key": names::TAINT_UNREGISTERED, "effect": "NoExecute" })
}

async fn taints(stage: &ClaimStage, node: &str) -> Vec<String> {
    let taints = stage.node(node).await.unwrap().spec.and_then(|spec| spec.taints).unwrap_or_default();
    taints.into_iter().map(|taint| taint.key).collect()
}

#[tokio::test(start_paused = true)]
async fn without_a_ccm_the_uninitialized_taint_is_removed_and_the_provider_id_set() {
    let stage = stage(CloudControllerManager::None).await;
    stage.add_launched("n", json!({})).await;
    let own = json!({ "key": "own", "effect": "NoSchedule" });
    stage.add_node("n", json!({ "spec": { "taints": [unregistered(), uninitialized(), own] } })).await;
    stage.pass("n").await;
    assert_eq!(taints(&stage, "n").await, ["own"], "with the same write as everything else");
    stage.run("n", 30).await;
    assert_eq!(stage.condition("n", "Initialized").await.0, "True");
    let id = stage.node("n").await.unwrap().spec.unwrap().provider_id;
    assert_eq!(id.as_deref(), Some("proxmox://lab/20000"));
}

#[tokio::test(start_paused = true)]
async fn without_a_ccm_a_node_that_registered_before_loses_the_taint_even_if_it_is_not_ready() {
    let stage = stage(CloudControllerManager::None).await;
    stage.add_launched("n", json!({})).await;
    let unready = json!([{ "type": "Ready", "status": "False" }]);
    stage.add_node("n", json!({ "status": { "conditions": unready } })).await;
    stage.pass("n").await;
    assert_eq!(stage.condition("n", "Registered").await.0, "True");
    stage.patch(stage.nodes_api(), "n", json!({ "spec": { "taints": [uninitialized()] } })).await;
    stage.run("n", 10).await;
    assert_eq!(taints(&stage, "n").await, [""; 0]);
    let (_, reason, message) = stage.condition("n", "Initialized").await;
    assert_eq!((reason.as_str(), message.as_str()), ("NodeNotReady", "Node n is not Ready"));
}

#[tokio::test(start_paused = true)]
async fn with_a_ccm_its_taint_is_waited_for_and_the_condition_says_who_removes_it() {
    let stage = stage(CloudControllerManager::External).await;
    stage.add_launched("n", json!({})).await;
    let unready = json!([{ "type": "Ready", "status": "False" }]);
    let spec = json!({ "taints": [unregistered(), uninitialized()] });
    stage.add_node("n", json!({ "spec": spec, "status": { "conditions": unready } })).await;
    stage.run("n", 30).await;
    let (_, reason, message) = stage.condition("n", "Initialized").await;
    assert_eq!(reason, "NodeNotReady");
    assert!(message.contains(names::TAINT_UNINITIALIZED) && message.contains("--ccm=none"), "{message}");
    stage.patch_status(stage.nodes_api(), "n", json!({ "conditions": [{ "type": "Ready", "status": "True" }] })).await;
    stage.run("n", 3600).await;
    let (status, reason, message) = stage.condition("n", "Initialized").await;
    assert_eq!((status.as_str(), reason.as_str()), ("Unknown", "KnownEphemeralTaintsExist"));
    assert!(
        message.contains("a cloud controller manager must remove it") && message.contains("--ccm=none"),
        "{message}"
    );
    assert_eq!(taints(&stage, "n").await, [names::TAINT_UNINITIALIZED]);
    stage.patch(stage.nodes_api(), "n", json!({ "spec": { "taints": [] } })).await;
    stage.run("n", 10).await;
    assert_eq!(stage.condition("n", "Initialized").await.0, "True");
}

#[tokio::test(start_paused = true)]
async fn what_a_ccm_wrote_before_and_writes_after_registration_stays() {
    let stage = stage(CloudControllerManager::External).await;
    let labels = json!({ names::LABEL_REGION: "lab", names::LABEL_ZONE: "pve1" });
    stage.add_launched("n", json!({ "metadata": { "labels": labels } })).await;
    // A CCM that was faster than we are: the same id, the same labels, and its own besides.
    let ccm = json!({
        names::LABEL_REGION: "lab", names::LABEL_ZONE: "pve1", "topology.proxmox.sinextra.dev/zone": "pve1",
        "topology.proxmox.sinextra.dev/region": "lab",
    });
    let spec = json!({ "providerID": "proxmox://lab/20000" });
    stage.add_node("n", json!({ "metadata": { "labels": ccm }, "spec": spec })).await;
    stage.run("n", 30).await;
    assert_eq!(stage.condition("n", "Initialized").await.0, "True");
    let node = stage.node("n").await.unwrap();
    assert_eq!(node.labels()["topology.proxmox.sinextra.dev/zone"], "pve1");
    // One whose zones are HA groups, and that is slower: its word stands, and is not written over again and again.
    let group = json!({ "metadata": { "labels": { names::LABEL_ZONE: "ha-group-1" } } });
    stage.patch(stage.nodes_api(), "n", group).await;
    stage.run("n", 3600).await;
    assert_eq!(stage.node("n").await.unwrap().labels()[names::LABEL_ZONE], "ha-group-1");
    assert!(!stage.is_deleting("n").await);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_a_ccm_deletes_before_it_registered_may_come_again() {
    let stage = stage(CloudControllerManager::External).await;
    stage.add_launched("n", json!({})).await;
    stage.add_node("n", json!({ "status": { "nodeInfo": { "systemUUID": "" } } })).await;
    stage.run("n", 30).await;
    stage.delete(stage.nodes_api(), "n").await;
    stage.run("n", 60).await;
    assert!(stage.node("n").await.is_none() && !stage.is_deleting("n").await);
    stage.add_node("n", json!({})).await;
    stage.run("n", 30).await;
    assert_eq!(stage.condition("n", "Initialized").await.0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_a_ccm_deletes_after_it_registered_ends_its_claim() {
    let stage = stage(CloudControllerManager::External).await;
    stage.add_initialized("n", json!({})).await;
    stage.delete(stage.nodes_api(), "n").await;
    stage.run("n", 120).await;
    assert!(stage.is_gone("n").await && stage.vms().is_empty());
    assert_eq!(stage.told("n", "NodeDeleted").await.len(), 1);
}
