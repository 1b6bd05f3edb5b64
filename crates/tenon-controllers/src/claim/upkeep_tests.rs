//! What a class says of time, and what is kept up on claims and nodes that are there: labels, and the look whether a node has
//! what was promised.

use kube::ResourceExt;
use kube::api::Api;
use serde_json::{Value, json};
use tenon_api::{NodeClaim, ProxmoxNodeClass, names};
use tenon_sim::{FaultEffect, FaultMatch, FaultRule};

use super::test_stage::ClaimStage;

async fn set_timeouts(stage: &ClaimStage, timeouts: Value) {
    let classes: Api<ProxmoxNodeClass> = Api::all(stage.client.clone());
    stage.patch(classes, "default", json!({ "spec": { "timeouts": timeouts } })).await;
}

#[tokio::test(start_paused = true)]
async fn a_class_says_how_long_its_vms_have_to_join() {
    let stage = ClaimStage::new().await;
    set_timeouts(&stage, json!({ "registration": "40m" })).await;
    stage.add_launched("n", json!({})).await;
    stage.run("n", 39 * 60).await;
    assert!(!stage.is_deleting("n").await, "it has a minute left");
    stage.run("n", 120).await;
    assert!(stage.is_gone("n").await);
    let told = stage.told("n", "RegistrationFailed").await;
    assert!(told[0].contains("did not register within 40 min of the start of its VM"), "{told:?}");

    set_timeouts(&stage, json!({ "registration": "90s" })).await;
    stage.add_launched("m", json!({})).await;
    stage.run("m", 180).await;
    assert!(stage.is_gone("m").await);
    assert!(stage.told("m", "RegistrationFailed").await[0].contains("within 90 s of the start"));
}

#[tokio::test(start_paused = true)]
async fn a_class_says_how_long_its_launches_may_stand_still() {
    let stage = ClaimStage::new().await;
    set_timeouts(&stage, json!({ "launch": "20m" })).await;
    let refused = FaultEffect::Refuse { status: 500, text: "the moon is in the wrong house".to_owned() };
    stage.estate.add_fault(FaultRule::new(FaultMatch::call("POST", "/nodes/*/qemu/*/clone"), refused));
    stage.add_claim("n", json!({})).await;
    assert_eq!(stage.context.launch_time(&stage.claim("n").await).limits.stalled_s, 1200);
    stage.run("n", 19 * 60).await;
    assert!(!stage.is_deleting("n").await, "it has a minute left");
    stage.run("n", 240).await;
    assert!(stage.is_gone("n").await);
}

#[tokio::test(start_paused = true)]
async fn f7_hydration_a_claim_and_its_node_get_the_label_of_their_class() {
    let stage = ClaimStage::new().await;
    stage.add_initialized("n", json!({})).await;
    let without = json!({ "metadata": { "labels": { names::LABEL_NODECLASS: null } } });
    stage.patch(stage.claims_api(), "n", without.clone()).await;
    stage.patch(stage.nodes_api(), "n", without).await;
    stage.run("n", 10).await;
    assert_eq!(stage.claim("n").await.labels()[names::LABEL_NODECLASS], "default");
    assert_eq!(stage.node("n").await.unwrap().labels()[names::LABEL_NODECLASS], "default");
    let wrong = json!({ "metadata": { "labels": { names::LABEL_NODECLASS: "other" } } });
    stage.patch(stage.claims_api(), "n", wrong).await;
    stage.run("n", 10).await;
    assert_eq!(stage.claim("n").await.labels()[names::LABEL_NODECLASS], "default");
    let (claim, node) = (stage.claim("n").await, stage.node("n").await.unwrap());
    stage.run("n", 1200).await;
    assert_eq!(stage.node("n").await.unwrap().resource_version(), node.resource_version(), "once is enough");
    assert_eq!(stage.claim("n").await.labels(), claim.labels());
}

/// A claim that another controller made, with its VM.
async fn add_foreign(stage: &ClaimStage, name: &str, id: &str) {
    let spec = json!({
        "expireAfter": "Never", "requirements": [],
        "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
    });
    let metadata = json!({ "name": name, "finalizers": [names::FINALIZER] });
    let claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata, "spec": spec,
        "status": { "providerID": id },
    });
    stage.create::<NodeClaim>(stage.claims_api(), claim).await;
}

#[tokio::test(start_paused = true)]
async fn f7_hydration_claims_of_other_controllers_are_labelled_and_only_nodes_with_their_provider_id() {
    let stage = ClaimStage::new().await;
    for (name, node_id) in [("a", "proxmox://lab/500"), ("b", "proxmox://lab/999")] {
        add_foreign(&stage, name, "proxmox://lab/500").await;
        let node = json!({ "metadata": { "name": name }, "spec": { "providerID": node_id } });
        stage.create(stage.nodes_api(), node).await;
        stage.run(name, 10).await;
        assert_eq!(stage.claim(name).await.labels()[names::LABEL_NODECLASS], "default");
    }
    let label =
        |name: &'static str| async { stage.node(name).await.unwrap().labels().get(names::LABEL_NODECLASS).cloned() };
    assert_eq!((label("a").await.as_deref(), label("b").await), (Some("default"), None));
}

#[tokio::test(start_paused = true)]
async fn f7_consistency_a_node_that_lost_resources_is_told_of_within_ten_minutes_and_well_again_later() {
    let stage = ClaimStage::new().await;
    let requests = json!({ "spec": { "resources": { "requests": { "cpu": "1", "memory": "1Gi" } } } });
    stage.add_launched("n", requests).await;
    let promised = stage.claim("n").await.status.unwrap().capacity.unwrap();
    stage.add_node("n", json!({ "status": { "capacity": promised } })).await;
    stage.run("n", 30).await;
    assert_eq!(stage.condition("n", "ConsistentStateFound").await.0, "True");
    let smaller = json!({ "capacity": { "cpu": promised["cpu"], "memory": "1Mi" } });
    stage.patch_status(stage.nodes_api(), "n", smaller).await;
    stage.run("n", 300).await;
    assert_eq!(stage.condition("n", "ConsistentStateFound").await.0, "True", "a moment is no loss");
    stage.run("n", 600).await;
    let (status, reason, message) = stage.condition("n", "ConsistentStateFound").await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "ConsistencyCheckFailed"));
    assert!(message.contains("Node n has 1Mi of resource memory, expected"), "{message}");
    assert_eq!(stage.told("n", "FailedConsistencyCheck").await.len(), 1);
    assert_eq!(stage.condition("n", "Ready").await.0, "True", "a node stays what it is");
    stage.patch_status(stage.nodes_api(), "n", json!({ "capacity": promised })).await;
    stage.run("n", 1200).await;
    assert_eq!(stage.condition("n", "ConsistentStateFound").await.0, "True");
}

#[tokio::test(start_paused = true)]
async fn f7_hydration_a_label_that_cannot_be_written_keeps_no_claim_from_going_on() {
    let mut stage = ClaimStage::new().await;
    stage.add_initialized("n", json!({})).await;
    stage.patch(stage.nodes_api(), "n", json!({ "metadata": { "labels": { names::LABEL_NODECLASS: null } } })).await;
    stage.forbid(|method, path| method == "PATCH" && path.contains("/nodes/"));
    stage.delete(stage.claims_api(), "n").await;
    stage.run("n", 60).await;
    assert!(stage.node("n").await.unwrap().metadata.deletion_timestamp.is_some(), "its Node was deleted all the same");
}
