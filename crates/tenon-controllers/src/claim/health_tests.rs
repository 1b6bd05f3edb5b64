//! The health of a pool: from the ends of its nodes, over a restart, and anew when the pool or its class changes.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::Api;
use serde_json::{Value, json};
use tenon_api::plan_options::FeatureGates;
use tenon_api::{Condition, NodePool, ProxmoxNodeClass, ProxmoxUnmanagedTemplate};

use super::test_stage::ClaimStage;
use crate::RegistrationBook;
use crate::status::{self, StatusContext};

/// With a template, so that the class is ready whoever judges it.
async fn stage() -> ClaimStage {
    let stage = ClaimStage::new().await;
    let template = json!({ "metadata": { "name": "debian" }, "spec": { "templateName": "debian" } });
    stage.create::<ProxmoxUnmanagedTemplate>(Api::all(stage.client.clone()), template).await;
    stage
}

async fn pool(stage: &ClaimStage) -> NodePool {
    Api::all(stage.client.clone()).get("default").await.unwrap()
}

async fn condition(stage: &ClaimStage) -> Option<Condition> {
    let conditions = pool(stage).await.status.and_then(|status| status.conditions).unwrap_or_default();
    conditions.into_iter().find(|condition| condition.type_ == "NodeRegistrationHealthy")
}

/// Status and reason.
async fn health(stage: &ClaimStage) -> (String, String) {
    let found = condition(stage).await;
    found.map(|found| (format!("{:?}", found.status), found.reason)).unwrap_or_default()
}

async fn is(stage: &ClaimStage, status: &str) -> bool {
    health(stage).await.0 == status
}

/// What the loop that judges pools does, with this memory.
async fn judge(stage: &ClaimStage, registrations: &RegistrationBook) {
    let context = StatusContext {
        join: crate::join::JoinChecks::none(),
        workload: stage.client.clone(),
        secrets: stage.context.secrets.clone(),
        regions: stage.context.regions.clone(),
        gates: FeatureGates::default(),
        registrations: registrations.clone(),
    };
    let now: Time = stage.context.clock.time();
    assert!(status::pass(&context, &now).await.unwrap().errors.is_empty());
    assert_eq!(status::pass(&context, &now).await.unwrap().written, 0, "a second look changes nothing");
    stage.settle().await;
}

async fn fails(stage: &ClaimStage, name: &str) {
    stage.add_launched(name, json!({})).await;
    stage.run(name, 16 * 60).await;
    assert!(stage.is_gone(name).await);
}

async fn change(stage: &ClaimStage, spec: Value) {
    let pools: Api<NodePool> = Api::all(stage.client.clone());
    stage.patch(pools, "default", json!({ "spec": spec })).await;
}

#[tokio::test(start_paused = true)]
async fn i4_health_is_unknown_until_a_node_registered() {
    let stage = stage().await;
    let book = &stage.context.memory.registrations;
    judge(&stage, book).await;
    assert_eq!(health(&stage).await, ("Unknown".to_owned(), "AwaitingReconciliation".to_owned()));
    assert_eq!(pool(&stage).await.status.unwrap().node_class_observed_generation, Some(1));
    stage.add_initialized("a", json!({})).await;
    assert!(is(&stage, "True").await);
    judge(&stage, book).await;
    assert!(is(&stage, "True").await, "what is known is not forgotten");
}

#[tokio::test(start_paused = true)]
async fn i4_health_is_reset_by_a_new_generation_of_the_pool_and_of_its_class() {
    let stage = stage().await;
    let book = &stage.context.memory.registrations;
    judge(&stage, book).await;
    fails(&stage, "a").await;
    fails(&stage, "b").await;
    assert!(is(&stage, "False").await);
    change(&stage, json!({ "weight": 7 })).await;
    judge(&stage, book).await;
    assert!(is(&stage, "Unknown").await);
    fails(&stage, "c").await;
    assert!(is(&stage, "Unknown").await, "the two before are forgotten");
    fails(&stage, "d").await;
    assert!(is(&stage, "False").await);
    let classes: Api<ProxmoxNodeClass> = Api::all(stage.client.clone());
    stage.patch(classes, "default", json!({ "spec": { "tags": ["new"] } })).await;
    judge(&stage, book).await;
    assert!(is(&stage, "Unknown").await);
    assert_eq!(pool(&stage).await.status.unwrap().node_class_observed_generation, Some(2));
    stage.add_initialized("e", json!({})).await;
    assert!(is(&stage, "True").await);
}

#[tokio::test(start_paused = true)]
async fn i4_health_is_seeded_from_the_condition_after_a_restart() {
    let stage = stage().await;
    let book = &stage.context.memory.registrations;
    judge(&stage, book).await;
    fails(&stage, "a").await;
    fails(&stage, "b").await;
    // What a restart leaves of the memory.
    book.reset(&pool(&stage).await.uid().unwrap());
    judge(&stage, book).await;
    for (name, expected) in [("c", "False"), ("d", "False"), ("e", "True")] {
        stage.add_initialized(name, json!({})).await;
        assert!(is(&stage, expected).await, "after {name} registered");
    }
    book.reset(&pool(&stage).await.uid().unwrap());
    fails(&stage, "f").await;
    assert!(is(&stage, "True").await, "one failure after a restart is one failure");
}

#[tokio::test(start_paused = true)]
async fn i4_health_without_its_class_a_pool_is_left_as_it_is() {
    let stage = stage().await;
    change(&stage, json!({ "template": { "spec": { "nodeClassRef": { "name": "missing" } } } })).await;
    judge(&stage, &stage.context.memory.registrations).await;
    assert_eq!(condition(&stage).await, None);
    assert_eq!(pool(&stage).await.status.unwrap().node_class_observed_generation, None);
}

#[tokio::test(start_paused = true)]
async fn i4_health_a_failed_registration_says_so_and_a_failed_launch_says_what_it_waited_for() {
    let stage = stage().await;
    fails(&stage, "a").await;
    fails(&stage, "b").await;
    assert_eq!(health(&stage).await.1, "RegistrationFailed");
    assert!(condition(&stage).await.unwrap().message.contains("Node b did not register within 15 min"));
    change(&stage, json!({ "weight": 7 })).await;
    judge(&stage, &stage.context.memory.registrations).await;
    // Somebody else's VM has the name.
    for name in ["c", "d"] {
        let template = tenon_sim::TemplateSpec {
            host: "pve1".to_owned(),
            vmid: if name == "c" { 9101 } else { 9102 },
            name: name.to_owned(),
            ..tenon_sim::TemplateSpec::default()
        };
        stage.estate.add_template(&template).unwrap();
        // A launch goes by the last poll.
        tokio::time::sleep(std::time::Duration::from_secs(20)).await;
        stage.add_claim(name, json!({})).await;
        stage.run(name, 400).await;
        assert!(stage.is_gone(name).await);
    }
    let found = condition(&stage).await.unwrap();
    assert_eq!(found.reason, "NameTaken");
    assert!(found.message.contains("VM 9102 on host pve1 is already named d"), "{}", found.message);
}

#[tokio::test(start_paused = true)]
async fn i4_health_a_claim_that_was_not_made_from_the_pool_does_not_count() {
    let stage = stage().await;
    stage.add_initialized("a", json!({ "metadata": { "ownerReferences": null } })).await;
    assert_eq!(condition(&stage).await, None);
}

#[tokio::test(start_paused = true)]
async fn i4_health_a_claim_counts_once_however_often_its_pass_is_repeated() {
    let stage = stage().await;
    judge(&stage, &stage.context.memory.registrations).await;
    stage.add_launched("a", json!({})).await;
    let claim = stage.claim("a").await;
    for _ in 0..3 {
        let reason = &tenon_api::condition_reasons::REGISTRATION_FAILED;
        crate::claim::registration_health::failed(&stage.context, &claim, reason, "late").await.unwrap();
    }
    assert!(is(&stage, "Unknown").await, "it is one failure");
}
