//! What becomes of evictions that are refused, of several at once, and of the time that a drain may take; and what all that took, as
//! metrics tell it.

use serde_json::json;
use tenon_api::names;
use tenon_model::PodKey;

use super::drain_tests::{add_budget, delete_and_run, evictions, grace, protected, with_node};

#[tokio::test(start_paused = true)]
async fn g6_an_eviction_that_a_budget_blocks_becomes_a_deletion_for_the_deadline_and_is_forgotten() {
    let stage = with_node(json!({ "spec": { "terminationGracePeriod": "100s" } })).await;
    stage.add_pod(("n", "held"), grace(30)).await;
    add_budget(&stage, ("none", "held"), 0).await;
    delete_and_run(&stage, 60).await;
    assert!(evictions(&stage, 429).await > 1 && !stage.is_leaving("held").await);
    stage.run("n", 15).await;
    assert!(stage.is_leaving("held").await);
    assert_eq!(stage.told("held", "Disrupted").await.len(), 1, "deleted once");
    assert_eq!(evictions(&stage, 200).await, 0, "nothing was evicted past the budget");
    let blocked = evictions(&stage, 429).await;
    stage.run("n", 10).await;
    assert_eq!(evictions(&stage, 429).await, blocked, "a pod that ends is not asked again");
    let uid = stage.pod("held").await.unwrap().metadata.uid.unwrap();
    let key = PodKey { namespace: "default".into(), name: "held".into(), uid: uid.as_str().into() };
    assert_eq!(stage.context.memory.evictions.wait(&key), None, "nothing is kept of it");
}

#[tokio::test(start_paused = true)]
async fn g6_a_deadline_that_is_there_already_is_kept_whether_it_is_earlier_or_later() {
    for (deadline_s, leaves_after_s) in [(40, 45), (300, 305)] {
        let stage = with_node(json!({ "spec": { "terminationGracePeriod": "120s" } })).await;
        stage.add_pod(("n", "mine"), protected()).await;
        let deadline = stage.context.clock.now() + jiff::SignedDuration::from_secs(deadline_s);
        let text = deadline.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let annotations = json!({ names::ANNOTATION_TERMINATION_TIMESTAMP: text });
        stage.patch(stage.claims_api(), "n", json!({ "metadata": { "annotations": annotations } })).await;
        delete_and_run(&stage, u64::try_from(deadline_s).unwrap() - 35).await;
        assert!(!stage.is_leaving("mine").await, "deadline after {deadline_s} s");
        stage.run("n", u64::try_from(leaves_after_s - deadline_s).unwrap() + 35).await;
        assert!(stage.is_leaving("mine").await, "deadline after {deadline_s} s");
        assert_eq!(stage.claim("n").await.metadata.annotations.unwrap()[names::ANNOTATION_TERMINATION_TIMESTAMP], text);
    }
}

#[tokio::test(start_paused = true)]
async fn g6_all_pods_of_a_group_are_evicted_in_one_pass_and_one_that_is_held_keeps_no_other() {
    let stage = with_node(json!({})).await;
    for number in 0..20 {
        stage.add_pod(("n", &format!("web-{number}")), json!({})).await;
    }
    add_budget(&stage, ("none", "web-7"), 0).await;
    delete_and_run(&stage, 3).await;
    assert_eq!(evictions(&stage, 200).await, 19);
    assert!(stage.is_leaving("web-19").await && !stage.is_leaving("web-7").await);
}

#[tokio::test(start_paused = true)]
async fn g5_how_long_node_claim_and_vm_took_to_end_and_how_long_the_node_lived_is_observed_once() {
    let stage = with_node(json!({})).await;
    delete_and_run(&stage, 60).await;
    assert!(stage.is_gone("n").await);
    for metric in [
        "karpenter_nodes_termination_duration_seconds",
        "karpenter_nodes_lifetime_duration_seconds",
        "karpenter_nodeclaims_termination_duration_seconds",
        "karpenter_nodeclaims_instance_termination_duration_seconds",
    ] {
        let line = format!("{metric}_count{{nodepool=\"default\"}} 1\n");
        assert!(stage.context.metrics.text().contains(&line), "{line}: {}", stage.context.metrics.text());
    }
    assert_eq!(stage.counted("karpenter_nodes_terminated_total", &["nodepool=\"default\""]), 1);
    assert_eq!(stage.counted("karpenter_nodeclaims_terminated_total", &["nodepool=\"default\""]), 1);
}
