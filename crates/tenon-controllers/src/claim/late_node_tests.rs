//! What is said of a Node that is late, look by look on a cluster in memory.

use kube::api::Api;
use serde_json::{Value, json};
use tenon_api::{ProxmoxNodeClass, names};

use super::test_stage::ClaimStage;

/// A claim whose VM has run for a while, and whose class has these options.
async fn late(options: Value, annotations: Value) -> ClaimStage {
    let stage = ClaimStage::new().await;
    stage.add_launched("n", json!({ "metadata": { "annotations": annotations } })).await;
    let classes: Api<ProxmoxNodeClass> = Api::all(stage.client.clone());
    stage.patch(classes, "default", json!({ "spec": { "metadataOptions": options } })).await;
    stage
}

fn token() -> Value {
    json!({ names::ANNOTATION_BOOTSTRAP_TOKEN: "abcdef" })
}

#[tokio::test(start_paused = true)]
async fn a_cause_is_an_event_once_it_was_found_twice_in_a_row() {
    let stage = late(json!({ "type": "none" }), json!({})).await;
    stage.run("n", 60).await;
    assert!(stage.condition("n", "Registered").await.2.starts_with("Node n has not joined 1 minute after"));
    assert!(stage.told("n", "NodeNotJoined").await.is_empty(), "it may be about to join");
    stage.run("n", 300).await;
    assert_eq!(stage.told("n", "NodeNotJoined").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_who_joins_without_a_bootstrap_token_is_told_nothing_of_tokens_and_bindings() {
    let stage = late(json!({ "type": "none" }), token()).await;
    stage.run("n", 120).await;
    let (_, reason, message) = stage.condition("n", "Registered").await;
    assert_eq!(reason, "NodeNotFound", "{message}");
    assert!(!message.contains("certificate") && !message.contains("token"), "{message}");
    let stage = late(json!({ "type": "cdrom" }), token()).await;
    stage.run("n", 120).await;
    let (_, reason, message) = stage.condition("n", "Registered").await;
    assert_eq!(reason, "BootstrapTokenInvalid", "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_seen_is_not_forgotten_because_it_was_deleted() {
    let stage = late(json!({ "type": "none" }), token()).await;
    stage.run("n", 90).await;
    let asked = json!({
        "lastTransitionTime": "2026-01-01T00:00:00Z", "type": "Registered", "status": "Unknown",
        "reason": "CertificateRequestDenied", "message": "denied",
    });
    let mut conditions = stage.claim("n").await.status.unwrap().conditions.unwrap();
    conditions.retain(|condition| condition.type_ != "Registered");
    let mut conditions = json!(conditions);
    conditions.as_array_mut().unwrap().push(asked);
    stage.patch_status(stage.claims_api(), "n", json!({ "conditions": conditions })).await;
    let claim = stage.claim("n").await;
    let gone = super::diagnosis::Diagnosis {
        reason: &tenon_api::condition_reasons::CERTIFICATE_REQUEST_NOT_FOUND,
        message: "its kubelet has not requested a certificate".to_owned(),
    };
    let outcome = super::late_node::report(&stage.context, &claim, gone);
    assert!(outcome.conditions.is_empty(), "a denied request was deleted meanwhile");
}
