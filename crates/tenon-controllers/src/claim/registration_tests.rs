//! From a VM that runs to a Node that takes pods, pass by pass on a cluster in memory.

use kube::ResourceExt;
use kube::api::Api;
use serde_json::{Value, json};
use tenon_api::{NodePool, names};

use super::test_stage::ClaimStage;

/// Key and effect of every taint of a Node.
async fn taints(stage: &ClaimStage, node: &str) -> Vec<String> {
    let taints = stage.node(node).await.unwrap().spec.and_then(|spec| spec.taints).unwrap_or_default();
    taints.into_iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
}

fn taint(key: &str, effect: &str) -> Value {
    json!({ "key": key, "effect": effect })
}

/// A condition of the pool: its status.
async fn health(stage: &ClaimStage) -> Option<String> {
    let pool = Api::<NodePool>::all(stage.client.clone()).get("default").await.unwrap();
    let conditions = pool.status.and_then(|status| status.conditions).unwrap_or_default();
    let found = conditions.into_iter().find(|condition| condition.type_ == "NodeRegistrationHealthy");
    found.map(|found| format!("{:?}", found.status))
}

#[tokio::test(start_paused = true)]
async fn a_node_registers_by_the_uuid_of_its_vm_and_loses_the_unregistered_taint() {
    let stage = ClaimStage::new().await;
    stage.add_launched("n", json!({})).await;
    assert_eq!(stage.condition("n", "Registered").await.1, "NodeNotFound");
    stage.add_node("n", json!({})).await;
    stage.pass("n").await;
    let (node, claim) = (stage.node("n").await.unwrap(), stage.claim("n").await);
    assert_eq!(node.labels()[names::LABEL_REGISTERED], "true");
    assert_eq!(taints(&stage, "n").await, [""; 0]);
    assert!(node.finalizers().iter().any(|name| name == names::FINALIZER));
    let told = claim.status.clone().unwrap();
    assert_eq!(node.spec.unwrap().provider_id.as_deref(), Some("proxmox://lab/20000"));
    assert_eq!((told.provider_id.as_deref(), told.node_name.as_deref()), (Some("proxmox://lab/20000"), Some("n")));
    assert_eq!(stage.condition("n", "Registered").await.0, "True");
    assert_eq!(stage.counted("karpenter_nodes_created", &["nodepool=\"default\"", "zone=\"pve1\""]), 1);
    assert!(stage.told("n", "UnregisteredTaintMissing").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_node_that_joins_without_the_unregistered_taint_is_registered_and_reported() {
    let stage = ClaimStage::new().await;
    stage.add_launched("n", json!({})).await;
    stage.add_node("n", json!({ "spec": { "taints": [] } })).await;
    stage.pass("n").await;
    assert_eq!(stage.condition("n", "Registered").await.0, "True");
    let told = stage.told("n", "UnregisteredTaintMissing").await;
    assert!(told.len() == 1 && told[0].contains("karpenter.sh/unregistered:NoExecute"), "{told:?}");
    // The same key with another effect keeps no running pod away.
    stage.add_launched("o", json!({})).await;
    stage.add_node("o", json!({ "spec": { "taints": [taint(names::TAINT_UNREGISTERED, "NoSchedule")] } })).await;
    stage.pass("o").await;
    assert_eq!(stage.told("o", "UnregisteredTaintMissing").await.len(), 1);
    assert_eq!(taints(&stage, "o").await, [""; 0]);
    // One that was registered before, and of which only the condition was lost, has no such taint.
    stage.add_launched("m", json!({})).await;
    let labels = json!({ names::LABEL_REGISTERED: "true" });
    stage.add_node("m", json!({ "metadata": { "labels": labels }, "spec": { "taints": [] } })).await;
    stage.pass("m").await;
    assert_eq!(stage.condition("m", "Registered").await.0, "True");
    assert!(stage.told("m", "UnregisteredTaintMissing").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_owner_reference_of_a_node_is_set_once() {
    let stage = ClaimStage::new().await;
    stage.add_launched("n", json!({})).await;
    let uid = stage.claim("n").await.uid().unwrap();
    let other = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "other" });
    let ours = json!({ "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "n", "uid": uid });
    stage.add_node("n", json!({ "metadata": { "ownerReferences": [other, ours] } })).await;
    stage.pass("n").await;
    let owners = stage.node("n").await.unwrap().owner_references().to_vec();
    assert_eq!(owners.iter().map(|owner| owner.kind.as_str()).collect::<Vec<_>>(), ["ConfigMap", "NodeClaim"]);

    stage.add_launched("m", json!({})).await;
    stage.add_node("m", json!({})).await;
    stage.pass("m").await;
    let owners = stage.node("m").await.unwrap().owner_references().to_vec();
    let claim = stage.claim("m").await;
    assert_eq!((owners.len(), &owners[0].name, Some(&owners[0].uid)), (1, &claim.name_any(), claim.uid().as_ref()));
    assert_eq!((owners[0].api_version.as_str(), owners[0].block_owner_deletion), ("karpenter.sh/v1", Some(true)));
}

#[tokio::test(start_paused = true)]
async fn labels_annotations_taints_and_startup_taints_are_synced_to_the_node() {
    let stage = ClaimStage::new().await;
    let metadata = json!({ "labels": { "team": "claim" }, "annotations": { "note": "claim" } });
    let spec = json!({ "taints": [taint("dedicated", "NoSchedule")], "startupTaints": [taint("cni", "NoExecute")] });
    stage.add_launched("n", json!({ "metadata": metadata, "spec": spec })).await;
    let own = json!({ "labels": { "team": "node", "own": "node" }, "annotations": { "own": "node" } });
    let unregistered = taint(names::TAINT_UNREGISTERED, "NoExecute");
    let taints_of_node = json!([unregistered, taint("own", "NoSchedule"), taint("dedicated", "NoExecute")]);
    stage.add_node("n", json!({ "metadata": own, "spec": { "taints": taints_of_node } })).await;
    stage.pass("n").await;
    let node = stage.node("n").await.unwrap();
    let label = |name: &str| node.labels().get(name).cloned().unwrap_or_default();
    assert_eq!((label("team"), label("own")), ("claim".to_owned(), "node".to_owned()), "the claim's word counts");
    assert_eq!(label(names::LABEL_NODECLASS), "default");
    assert_eq!((&node.annotations()["note"], &node.annotations()["own"]), (&"claim".to_owned(), &"node".to_owned()));
    assert!(!node.annotations().contains_key(names::ANNOTATION_LAUNCH), "our own notes stay with the claim");
    let expected = ["own:NoSchedule", "dedicated:NoExecute", "dedicated:NoSchedule", "cni:NoExecute"];
    assert_eq!(taints(&stage, "n").await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_taint_the_node_has_already_is_not_added_again_whatever_its_value() {
    let stage = ClaimStage::new().await;
    let wanted = json!({ "key": "dedicated", "value": "claim", "effect": "NoSchedule" });
    stage.add_launched("n", json!({ "spec": { "taints": [wanted] } })).await;
    let own = json!({ "key": "dedicated", "value": "node", "effect": "NoSchedule" });
    stage.add_node("n", json!({ "spec": { "taints": [own] } })).await;
    stage.pass("n").await;
    let taints = stage.node("n").await.unwrap().spec.unwrap().taints.unwrap();
    assert_eq!((taints.len(), taints[0].value.as_deref()), (1, Some("node")));
}

#[tokio::test(start_paused = true)]
async fn taints_are_not_synced_to_a_node_that_asks_for_that() {
    let stage = ClaimStage::new().await;
    let spec = json!({ "taints": [taint("dedicated", "NoSchedule")], "startupTaints": [taint("cni", "NoExecute")] });
    stage.add_launched("n", json!({ "spec": spec })).await;
    let labels = json!({ names::LABEL_DO_NOT_SYNC_TAINTS: "true" });
    stage.add_node("n", json!({ "metadata": { "labels": labels } })).await;
    stage.pass("n").await;
    assert_eq!(taints(&stage, "n").await, [""; 0]);
    assert_eq!(stage.node("n").await.unwrap().labels()[names::LABEL_REGISTERED], "true");
}

#[tokio::test(start_paused = true)]
async fn a_registered_node_is_not_synced_again() {
    let stage = ClaimStage::new().await;
    let spec = json!({ "taints": [taint("dedicated", "NoSchedule")], "startupTaints": [taint("cni", "NoExecute")] });
    stage.add_launched("n", json!({ "metadata": { "labels": { "team": "claim" } }, "spec": spec })).await;
    stage.add_node("n", json!({})).await;
    stage.pass("n").await;
    assert_eq!(taints(&stage, "n").await, ["dedicated:NoSchedule", "cni:NoExecute"]);
    let changed = json!({ "metadata": { "labels": { "team": "admin" } }, "spec": { "taints": [] } });
    stage.patch(stage.nodes_api(), "n", changed).await;
    stage.run("n", 60).await;
    assert_eq!(stage.condition("n", "Initialized").await.0, "True");
    assert_eq!(taints(&stage, "n").await, [""; 0]);
    assert_eq!(stage.node("n").await.unwrap().labels()["team"], "admin");
}

#[tokio::test(start_paused = true)]
async fn a_registration_that_is_repeated_adds_no_startup_taint_and_counts_no_node_again() {
    let stage = ClaimStage::new().await;
    stage.add_launched("n", json!({ "spec": { "startupTaints": [taint("cni", "NoExecute")] } })).await;
    stage.add_node("n", json!({})).await;
    stage.pass("n").await;
    assert_eq!(taints(&stage, "n").await, ["cni:NoExecute"]);
    // Whoever removes it was quick, and what was said of the claim got lost.
    stage.patch(stage.nodes_api(), "n", json!({ "spec": { "taints": [] } })).await;
    let conditions = stage.claim("n").await.status.unwrap().conditions.unwrap();
    let lost: Vec<_> = conditions.iter().filter(|condition| condition.type_ != "Registered").collect();
    stage.patch_status(stage.claims_api(), "n", json!({ "conditions": lost })).await;
    stage.pass("n").await;
    assert_eq!(stage.condition("n", "Registered").await.0, "True");
    assert_eq!(taints(&stage, "n").await, [""; 0]);
    assert_eq!(stage.counted("karpenter_nodes_created", &["nodepool=\"default\""]), 1);
}

#[tokio::test(start_paused = true)]
async fn two_nodes_with_one_provider_id_are_reported_and_none_is_registered() {
    let stage = ClaimStage::new().await;
    stage.add_launched("n", json!({})).await;
    let id = json!({ "spec": { "providerID": "proxmox://lab/20000" } });
    stage.create(stage.nodes_api(), json!({ "metadata": { "name": "twin" }, "spec": id["spec"] })).await;
    stage.add_node("n", id).await;
    stage.pass("n").await;
    let (status, reason, message) = stage.condition("n", "Registered").await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "MultipleNodesFound"));
    assert!(message.contains("Nodes n and twin both have providerID proxmox://lab/20000"), "{message}");
    assert!(!stage.node("n").await.unwrap().labels().contains_key(names::LABEL_REGISTERED));
    stage.delete(stage.nodes_api(), "twin").await;
    stage.pass("n").await;
    assert_eq!(stage.condition("n", "Registered").await.0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_does_not_join_within_fifteen_minutes_ends_its_claim_and_counts_against_its_pool() {
    let stage = ClaimStage::new().await;
    for (name, expected) in [("a", None), ("b", Some("False".to_owned()))] {
        stage.add_launched(name, json!({})).await;
        stage.run(name, 14 * 60).await;
        assert!(!stage.is_deleting(name).await, "it has a minute left");
        stage.run(name, 120).await;
        assert!(stage.is_gone(name).await);
        assert!(stage.told(name, "RegistrationFailed").await[0].contains("within 15 min of the start"));
        assert_eq!(health(&stage).await.filter(|status| status != "Unknown"), expected, "after the failure of {name}");
    }
    assert_eq!(stage.counted("karpenter_nodeclaims_disrupted", &["reason=\"registration_timeout\""]), 2);
    assert_eq!(stage.vms(), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_pool_is_healthy_again_once_enough_of_its_nodes_registered() {
    let stage = ClaimStage::new().await;
    for name in ["a", "b"] {
        stage.add_launched(name, json!({})).await;
        stage.run(name, 16 * 60).await;
    }
    for (name, expected) in [("c", "False"), ("d", "False"), ("e", "True")] {
        stage.add_initialized(name, json!({})).await;
        assert_eq!(health(&stage).await.as_deref(), Some(expected), "after {name} registered");
    }
}

#[tokio::test(start_paused = true)]
async fn a_registered_claim_is_never_deleted_because_its_node_takes_long() {
    let stage = ClaimStage::new().await;
    stage.add_launched("n", json!({})).await;
    stage.add_node("n", json!({ "status": { "conditions": [{ "type": "Ready", "status": "False" }] } })).await;
    stage.run("n", 24 * 3600).await;
    assert_eq!(stage.condition("n", "Registered").await.0, "True");
    assert!(!stage.is_deleting("n").await && stage.vms() == [20_000]);
}

/// A claim whose node has registered as it is here, and is not initialized for this reason.
async fn is_held_up(stage: &ClaimStage, name: &str, reason: &str) {
    stage.run(name, 60).await;
    assert_eq!(stage.condition(name, "Registered").await.0, "True");
    let (status, found, _) = stage.condition(name, "Initialized").await;
    assert_eq!((status.as_str(), found.as_str()), ("Unknown", reason));
    assert!(!stage.node(name).await.unwrap().labels().contains_key(names::LABEL_INITIALIZED));
}

/// The same claim once nothing holds it up any more.
async fn is_initialized(stage: &ClaimStage, name: &str) {
    stage.run(name, 10).await;
    assert_eq!(stage.condition(name, "Initialized").await.0, "True");
    assert_eq!(stage.node(name).await.unwrap().labels()[names::LABEL_INITIALIZED], "true");
    assert_eq!(stage.condition(name, "Ready").await.0, "True");
}

#[tokio::test(start_paused = true)]
async fn a_node_is_initialized_only_when_it_is_ready_and_stays_so() {
    let stage = ClaimStage::new().await;
    stage.add_launched("n", json!({})).await;
    stage.add_node("n", json!({ "status": { "conditions": [{ "type": "Ready", "status": "Unknown" }] } })).await;
    is_held_up(&stage, "n", "NodeNotReady").await;
    let ready = |status: &str| json!({ "conditions": [{ "type": "Ready", "status": status }] });
    stage.patch_status(stage.nodes_api(), "n", ready("True")).await;
    is_initialized(&stage, "n").await;
    stage.patch_status(stage.nodes_api(), "n", ready("False")).await;
    is_initialized(&stage, "n").await;
}

#[tokio::test(start_paused = true)]
async fn a_node_is_initialized_only_without_its_startup_taints() {
    let stage = ClaimStage::new().await;
    let startup = json!([taint("cni", "NoExecute"), taint("csi", "NoSchedule")]);
    stage.add_launched("n", json!({ "spec": { "startupTaints": startup } })).await;
    stage.add_node("n", json!({})).await;
    is_held_up(&stage, "n", "StartupTaintsExist").await;
    stage.patch(stage.nodes_api(), "n", json!({ "spec": { "taints": [taint("csi", "NoSchedule")] } })).await;
    is_held_up(&stage, "n", "StartupTaintsExist").await;
    // The same key with another effect is another taint, and somebody's own.
    stage.patch(stage.nodes_api(), "n", json!({ "spec": { "taints": [taint("csi", "NoExecute")] } })).await;
    is_initialized(&stage, "n").await;
}

#[tokio::test(start_paused = true)]
async fn a_node_is_initialized_only_without_the_taints_of_a_start() {
    let stage = ClaimStage::new().await;
    stage.add_launched("n", json!({})).await;
    stage.add_node("n", json!({ "spec": { "taints": [taint("readiness.k8s.io/gpu", "NoSchedule")] } })).await;
    is_held_up(&stage, "n", "KnownEphemeralTaintsExist").await;
    for (key, effect) in [
        ("node.kubernetes.io/not-ready", "NoSchedule"),
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unreachable", "NoSchedule"),
        ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
        (names::TAINT_UNREGISTERED, "NoExecute"),
        ("readiness.k8s.io/gpu", "NoExecute"),
    ] {
        stage.patch(stage.nodes_api(), "n", json!({ "spec": { "taints": [taint(key, effect)] } })).await;
        is_held_up(&stage, "n", "KnownEphemeralTaintsExist").await;
    }
    stage.patch(stage.nodes_api(), "n", json!({ "spec": { "taints": [taint("anything", "NoSchedule")] } })).await;
    is_initialized(&stage, "n").await;
}

#[tokio::test(start_paused = true)]
async fn a_node_is_initialized_only_when_it_reports_every_resource_that_is_requested() {
    let stage = ClaimStage::new().await;
    let requests = json!({ "cpu": "1", "nvidia.com/gpu": "1", "example.com/none": "0" });
    stage.add_launched("n", json!({ "spec": { "resources": { "requests": requests } } })).await;
    stage.add_node("n", json!({})).await;
    is_held_up(&stage, "n", "ResourceNotRegistered").await;
    assert!(stage.condition("n", "Initialized").await.2.contains("nvidia.com/gpu"));
    let allocatable = |gpus: &str| json!({ "allocatable": { "cpu": "1", "nvidia.com/gpu": gpus } });
    stage.patch_status(stage.nodes_api(), "n", allocatable("0")).await;
    is_held_up(&stage, "n", "ResourceNotRegistered").await;
    stage.patch_status(stage.nodes_api(), "n", allocatable("1")).await;
    is_initialized(&stage, "n").await;
}

#[tokio::test(start_paused = true)]
async fn two_nodes_with_one_provider_id_end_the_claim_if_nobody_deletes_one() {
    let stage = ClaimStage::new().await;
    stage.add_launched("n", json!({})).await;
    let id = json!({ "spec": { "providerID": "proxmox://lab/20000" } });
    stage.create(stage.nodes_api(), json!({ "metadata": { "name": "twin" }, "spec": id["spec"] })).await;
    stage.add_node("n", id).await;
    stage.run("n", 14 * 60).await;
    assert!(!stage.is_deleting("n").await, "somebody may still delete one of them");
    stage.run("n", 180).await;
    assert!(stage.is_gone("n").await && stage.vms().is_empty());
    assert_eq!(stage.counted("karpenter_nodeclaims_disrupted", &["reason=\"registration_timeout\""]), 1);
    assert!(stage.node("twin").await.is_some(), "it is not ours");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_cannot_be_deleted_and_a_pool_that_cannot_be_read_keep_no_node_from_registering() {
    let mut stage = ClaimStage::new().await;
    stage.add_launched("n", json!({})).await;
    stage.forbid(|_, path| path.contains("/secrets") || path.contains("/nodepools"));
    stage.add_node("n", json!({})).await;
    stage.run("n", 10).await;
    assert_eq!(stage.condition("n", "Registered").await.0, "True");
    assert_eq!(stage.condition("n", "Initialized").await.0, "True");
}
