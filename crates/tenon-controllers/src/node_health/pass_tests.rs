//! What becomes of nodes that are not ready, on a cluster in memory.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::pass::pass;
use crate::claim::test_stage::ClaimStage;

/// A node that has been so for so many minutes.
async fn break_node(stage: &ClaimStage, name: &str, (status, minutes): (&str, i64)) {
    let since = stage.context.clock.now() - jiff::SignedDuration::from_mins(minutes);
    let since = Timestamp::from_second(since.as_second()).unwrap().to_string();
    let ready = json!({ "type": "Ready", "status": status, "lastTransitionTime": since });
    stage.patch_status(stage.nodes_api(), name, json!({ "conditions": [ready] })).await;
}

async fn annotate(stage: &ClaimStage, name: &str, (annotation, value): (&str, &str)) {
    let patch = json!({ "metadata": { "annotations": { annotation: value } } });
    stage.patch(stage.claims_api(), name, patch).await;
}

async fn deadline(stage: &ClaimStage, name: &str) -> Value {
    let annotations = stage.claim(name).await.metadata.annotations.unwrap_or_default();
    json!(annotations.get("karpenter.sh/nodeclaim-termination-timestamp"))
}

#[tokio::test(start_paused = true)]
async fn i1_a_node_that_is_not_ready_for_a_quarter_of_an_hour_is_deleted_though_everything_asks_to_keep_it() {
    let stage = ClaimStage::new().await;
    stage.add_initialized("a", json!({ "spec": { "terminationGracePeriod": "5h" } })).await;
    for protection in ["karpenter.sh/do-not-disrupt", "karpenter.sh/do-not-repair"] {
        annotate(&stage, "a", (protection, "true")).await;
    }
    stage
        .add_pod(("a", "p"), json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } }))
        .await;
    break_node(&stage, "a", ("Unknown", 14)).await;
    assert!(pass(&stage.context).await.is_empty());
    assert!(!stage.is_deleting("a").await && deadline(&stage, "a").await.is_null());
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert!(pass(&stage.context).await.is_empty());
    assert!(stage.is_deleting("a").await);
    let by: Timestamp = deadline(&stage, "a").await.as_str().unwrap().parse().unwrap();
    assert!(by <= stage.context.clock.now(), "{by}");
    let told = stage.told("a", "DisruptionTerminating").await;
    assert!(
        told[0].starts_with("Deleting NodeClaim a: Node a is unhealthy (condition Ready=Unknown since"),
        "{told:?}"
    );
    let labels = ["condition=\"ready\"", "nodepool=\"default\"", "termination_mode=\"forceful\""];
    assert_eq!(stage.counted("karpenter_nodeclaims_unhealthy_disrupted_total", &labels), 1);
    assert_eq!(stage.counted("karpenter_nodeclaims_disrupted_total", &["reason=\"unhealthy\""]), 1);
    assert!(pass(&stage.context).await.is_empty(), "once is enough");
    assert_eq!(stage.counted("karpenter_nodeclaims_unhealthy_disrupted_total", &labels), 1);
    stage.run("a", 300).await;
    assert!(stage.is_gone("a").await && stage.vms().is_empty(), "its pod had no time");
}

#[tokio::test(start_paused = true)]
async fn i1_a_deadline_that_has_passed_stays_and_a_later_one_becomes_now() {
    for (written, is_kept) in [("2020-01-01T00:00:00Z", true), ("2090-01-01T00:00:00Z", false)] {
        let stage = ClaimStage::new().await;
        stage.add_initialized("a", json!({})).await;
        annotate(&stage, "a", ("karpenter.sh/nodeclaim-termination-timestamp", written)).await;
        break_node(&stage, "a", ("False", 16)).await;
        pass(&stage.context).await;
        assert!(stage.is_deleting("a").await, "{written}");
        assert_eq!(deadline(&stage, "a").await == json!(written), is_kept);
    }
}

#[tokio::test(start_paused = true)]
async fn i1_too_many_broken_nodes_are_left_alone_and_node_claim_and_pool_say_why() {
    let stage = ClaimStage::new().await;
    for name in ["a", "b", "c"] {
        stage.add_initialized(name, json!({})).await;
    }
    break_node(&stage, "a", ("Unknown", 16)).await;
    break_node(&stage, "b", ("Unknown", 1)).await;
    assert!(pass(&stage.context).await.is_empty());
    assert!(!stage.is_deleting("a").await);
    let why = "2 of 3 nodes of NodePool default are unhealthy, and nodes are repaired only up to 1 (20%); find the common cause";
    // Node and NodeClaim have the same name.
    assert_eq!(stage.told("a", "NodeRepairBlocked").await, vec![format!("Cannot repair Node a: {why}"); 2]);
    assert_eq!(
        stage.told("default", "NodeRepairBlocked").await,
        [format!("Cannot repair nodes of NodePool default: {why}")]
    );
    break_node(&stage, "b", ("True", 0)).await;
    pass(&stage.context).await;
    assert!(stage.is_deleting("a").await && !stage.is_deleting("b").await);
}

#[tokio::test(start_paused = true)]
async fn i1_a_node_of_another_controller_is_left_alone() {
    let stage = ClaimStage::new().await;
    stage.add_initialized("a", json!({})).await;
    let foreign = json!({ "metadata": { "annotations": { "tenon.dev/launch": null } } });
    stage.patch(stage.claims_api(), "a", foreign).await;
    break_node(&stage, "a", ("Unknown", 60)).await;
    assert!(pass(&stage.context).await.is_empty());
    assert!(!stage.is_deleting("a").await);
}
