//! How pods leave the Node of a NodeClaim that is deleted, pass by pass on a cluster in memory. Which pods leave when is
//! tested with the decision itself.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kube::api::Api;
use serde_json::{Value, json};
use tenon_api::names;

use super::evict::{Removal, delete_pod, evict_pod};
use super::test_stage::ClaimStage;

/// A claim that is deleted, with its Node and what more the claim has.
pub(super) async fn with_node(more: Value) -> ClaimStage {
    let stage = ClaimStage::new().await;
    stage.add_initialized("n", more).await;
    stage
}

/// Deletes the claim and lets so much time pass.
pub(super) async fn delete_and_run(stage: &ClaimStage, seconds: u64) {
    stage.delete(stage.claims_api(), "n").await;
    stage.run("n", seconds).await;
}

pub(super) fn protected() -> Value {
    json!({ "metadata": { "annotations": { names::ANNOTATION_DO_NOT_DISRUPT: "true" } } })
}

pub(super) fn grace(seconds: i64) -> Value {
    json!({ "spec": { "terminationGracePeriodSeconds": seconds } })
}

/// Who owns the pods of a DaemonSet that is there.
async fn daemon_set(stage: &ClaimStage) -> Value {
    let api: Api<DaemonSet> = Api::namespaced(stage.client.clone(), "default");
    let template = json!({ "metadata": { "labels": { "app": "agent" } },
        "spec": { "containers": [{ "name": "c", "image": "x" }] } });
    let spec = json!({ "selector": { "matchLabels": { "app": "agent" } }, "template": template });
    stage.create(api.clone(), json!({ "metadata": { "name": "agent" }, "spec": spec })).await;
    json!({ "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": api.get("agent").await.unwrap().uid() })
}

/// A budget for the pod of this name, which allows so many disruptions now.
pub(super) async fn add_budget(stage: &ClaimStage, (name, pod): (&str, &str), allowed: i32) {
    let api: Api<PodDisruptionBudget> = Api::namespaced(stage.client.clone(), "default");
    let status = json!({ "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1 - allowed,
        "expectedPods": 1, "observedGeneration": 1 });
    let selector = json!({ "matchLabels": { "app": pod } });
    let spec = json!({ "maxUnavailable": allowed, "selector": selector });
    stage.create(api, json!({ "metadata": { "name": name }, "spec": spec, "status": status })).await;
}

pub(super) async fn evictions(stage: &ClaimStage, code: u16) -> u64 {
    stage.counted("karpenter_pods_eviction_requests", &[&format!("code=\"{code}\"")])
}

#[tokio::test(start_paused = true)]
async fn g1_a_node_that_is_drained_takes_no_pods_and_no_traffic_of_load_balancers() {
    let stage = with_node(json!({})).await;
    stage.add_pod(("n", "web"), json!({})).await;
    let other_effect =
        json!([{ "key": "karpenter.sh/disrupted", "effect": "NoExecute" }, { "key": "own", "effect": "NoSchedule" }]);
    stage.patch(stage.nodes_api(), "n", json!({ "spec": { "taints": other_effect } })).await;
    delete_and_run(&stage, 5).await;
    let node = stage.node("n").await.unwrap();
    let taints: Vec<String> =
        node.spec.unwrap().taints.unwrap().iter().map(|taint| format!("{}:{}", taint.key, taint.effect)).collect();
    assert_eq!(taints, ["own:NoSchedule", "karpenter.sh/disrupted:NoSchedule"]);
    assert_eq!(node.metadata.labels.unwrap()[names::LABEL_EXCLUDE_BALANCERS], "karpenter");
}

#[tokio::test(start_paused = true)]
async fn g2_a_pod_is_evicted_and_waited_for_until_it_is_gone() {
    let stage = with_node(json!({})).await;
    stage.add_pod(("n", "web"), json!({})).await;
    delete_and_run(&stage, 20).await;
    assert!(stage.is_leaving("web").await);
    assert_eq!((evictions(&stage, 200).await, stage.told("web", "Evicted").await.len()), (1, 1), "once");
    assert_eq!(stage.condition("n", "Drained").await.1, "Draining");
    let told = stage.told("n", "FailedDraining").await;
    assert!(told.iter().any(|note| note.contains("1 pod is waiting to be evicted")), "{told:?}");
    stage.end_pod("web").await;
    stage.run("n", 60).await;
    assert!(stage.is_gone("n").await);
}

#[tokio::test(start_paused = true)]
async fn g2_a_pod_that_nobody_would_start_again_is_evicted_too() {
    let stage = with_node(json!({})).await;
    stage.add_pod(("n", "lonely"), json!({})).await;
    assert!(stage.pod("lonely").await.unwrap().owner_references().is_empty());
    delete_and_run(&stage, 5).await;
    assert!(stage.is_leaving("lonely").await);
}

#[tokio::test(start_paused = true)]
async fn g2_pods_leave_group_by_group_each_when_the_one_before_is_gone() {
    let stage = with_node(json!({})).await;
    let of_daemon = json!({ "metadata": { "ownerReferences": [daemon_set(&stage).await] } });
    let critical = json!({ "spec": { "priorityClassName": "system-cluster-critical" } });
    let mut both = of_daemon.clone();
    super::test_stage::merge(&mut both, critical.clone());
    for (name, more) in [("a", both), ("b", critical), ("c", of_daemon), ("d", json!({}))] {
        stage.add_pod(("n", name), more).await;
    }
    stage.delete(stage.claims_api(), "n").await;
    for (round, name) in ["d", "c", "b", "a"].into_iter().enumerate() {
        stage.run("n", 5).await;
        assert!(stage.is_leaving(name).await, "{name}");
        assert_eq!(evictions(&stage, 200).await, u64::try_from(round).unwrap() + 1, "nobody else");
        stage.end_pod(name).await;
    }
    stage.run("n", 60).await;
    assert!(stage.is_gone("n").await);
}

#[tokio::test(start_paused = true)]
async fn g2_a_pod_whose_kubelet_does_not_answer_is_not_waited_for() {
    let stage = with_node(json!({})).await;
    stage.add_pod(("n", "web"), grace(10)).await;
    delete_and_run(&stage, 60).await;
    assert!(!stage.is_gone("n").await, "its ten seconds and a minute are not over");
    stage.run("n", 60).await;
    assert!(stage.is_gone("n").await);
    assert!(stage.pod("web").await.is_some(), "nobody confirmed its end");
}

#[tokio::test(start_paused = true)]
async fn g3_a_drain_lasts_five_seconds_even_if_there_is_no_pod() {
    let stage = with_node(json!({})).await;
    delete_and_run(&stage, 4).await;
    assert_eq!(stage.condition("n", "Drained").await.1, "Draining");
    // It was bound just before the taint was seen.
    stage.add_pod(("n", "late"), json!({})).await;
    stage.run("n", 5).await;
    assert!(stage.is_leaving("late").await && stage.vms() == [20_000]);
}

#[tokio::test(start_paused = true)]
async fn g2_a_budget_that_allows_no_eviction_holds_the_drain_up_and_one_that_does_lets_it_go_on() {
    let stage = with_node(json!({})).await;
    stage.add_pod(("n", "held"), json!({})).await;
    stage.add_pod(("n", "free"), json!({})).await;
    add_budget(&stage, ("none", "held"), 0).await;
    add_budget(&stage, ("one", "free"), 1).await;
    delete_and_run(&stage, 20).await;
    assert!(!stage.is_leaving("held").await && stage.is_leaving("free").await);
    assert!(evictions(&stage, 429).await > 1, "it is tried again");
    let told = stage.told("n", "FailedDraining").await;
    assert!(told.iter().any(|note| note.contains("Eviction of pod default/held from Node n is blocked")), "{told:?}");
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(stage.client.clone(), "default");
    stage.delete(budgets, "none").await;
    stage.run("n", 20).await;
    assert!(stage.is_leaving("held").await);
}

#[tokio::test(start_paused = true)]
async fn g6_a_pod_with_two_budgets_is_reported_and_tried_again() {
    let stage = with_node(json!({})).await;
    stage.add_pod(("n", "web"), json!({})).await;
    add_budget(&stage, ("first", "web"), 1).await;
    add_budget(&stage, ("second", "web"), 1).await;
    delete_and_run(&stage, 20).await;
    assert!(!stage.is_leaving("web").await && evictions(&stage, 500).await > 1);
    let told = stage.told("n", "FailedDraining").await;
    assert!(told.iter().any(|note| note.contains("more than one PodDisruptionBudget")), "{told:?}");
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(stage.client.clone(), "default");
    stage.delete(budgets, "second").await;
    stage.run("n", 20).await;
    assert!(stage.is_leaving("web").await);
}

/// The pod as a drain read it a moment ago.
async fn read_before(stage: &ClaimStage, name: &str) -> tenon_api::kube_objects::Pod {
    let api: Api<tenon_api::kube_objects::WirePod> = Api::namespaced(stage.client.clone(), "default");
    api.get(name).await.unwrap().into()
}

fn removal() -> Removal {
    Removal { node: "n".to_owned(), reason: None, counted_as: String::new() }
}

#[tokio::test(start_paused = true)]
async fn g6_a_pod_that_is_gone_needs_no_eviction() {
    let stage = ClaimStage::new().await;
    stage.add_pod(("n", "web"), json!({})).await;
    let pod = read_before(&stage, "web").await;
    stage.end_pod("web").await;
    assert!(evict_pod(&stage.context, &pod, &removal()).await.unwrap().is_none());
    delete_pod(&stage.context, &pod, &removal(), None).await.unwrap();
    assert_eq!(evictions(&stage, 404).await, 1);
    assert!(stage.told("web", "Evicted").await.is_empty() && stage.told("web", "Disrupted").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn g6_a_new_pod_with_the_name_of_the_old_one_is_left_alone() {
    let stage = ClaimStage::new().await;
    stage.add_pod(("n", "db-0"), json!({})).await;
    let old = read_before(&stage, "db-0").await;
    stage.end_pod("db-0").await;
    stage.add_pod(("other", "db-0"), json!({})).await;
    assert!(evict_pod(&stage.context, &old, &removal()).await.unwrap().is_none());
    delete_pod(&stage.context, &old, &removal(), None).await.unwrap();
    assert_eq!(evictions(&stage, 409).await, 1);
    assert!(!stage.is_leaving("db-0").await);
}

#[tokio::test(start_paused = true)]
async fn g6_a_pod_that_is_deleted_at_the_last_moment_has_a_second() {
    let stage = ClaimStage::new().await;
    for (name, left, expected) in [("late", -100, 1), ("now", 0, 1), ("soon", 7, 7)] {
        stage.add_pod(("n", name), grace(300)).await;
        let deadline = stage.context.clock.now() + jiff::SignedDuration::from_secs(left);
        delete_pod(&stage.context, &read_before(&stage, name).await, &removal(), Some(deadline)).await.unwrap();
        let pod = stage.pod(name).await.unwrap();
        assert_eq!(pod.metadata.deletion_grace_period_seconds, Some(expected), "{name}");
    }
}

/// Seconds from now until a pod is to have ended.
async fn ends_in(stage: &ClaimStage, pod: &str) -> i64 {
    let until = stage.pod(pod).await.unwrap().metadata.deletion_timestamp.unwrap().0;
    until.as_second() - stage.context.clock.now().as_second()
}

#[tokio::test(start_paused = true)]
async fn g3_pods_are_deleted_in_time_for_the_deadline_whatever_protects_them() {
    let stage = with_node(json!({ "spec": { "terminationGracePeriod": "100s" } })).await;
    stage.add_pod(("n", "held"), grace(30)).await;
    add_budget(&stage, ("none", "held"), 0).await;
    stage.add_pod(("n", "mine"), protected()).await;
    delete_and_run(&stage, 60).await;
    assert!(!stage.is_leaving("held").await && !stage.is_leaving("mine").await, "each needs thirty seconds");
    stage.run("n", 15).await;
    for name in ["held", "mine"] {
        assert!(stage.is_leaving(name).await && ends_in(&stage, name).await <= 27, "{name}");
        assert!(stage.told(name, "Disrupted").await[0].contains("terminationGracePeriod ends"));
    }
    assert!(!stage.is_gone("n").await, "they have their time");
}

#[tokio::test(start_paused = true)]
async fn g3_a_pod_that_needs_longer_than_the_deadline_leaves_before_its_group() {
    let stage = with_node(json!({ "spec": { "terminationGracePeriod": "60s" } })).await;
    stage.add_pod(("n", "plain"), protected()).await;
    let critical =
        json!({ "spec": { "priorityClassName": "system-node-critical", "terminationGracePeriodSeconds": 600 } });
    stage.add_pod(("n", "critical"), critical).await;
    delete_and_run(&stage, 5).await;
    assert!(stage.is_leaving("critical").await && !stage.is_leaving("plain").await);
    assert!((50..=60).contains(&ends_in(&stage, "critical").await), "{}", ends_in(&stage, "critical").await);
}

#[tokio::test(start_paused = true)]
async fn g3_a_terminating_pod_that_would_outlast_the_deadline_gets_less_time_and_another_keeps_its_own() {
    let stage = with_node(json!({ "spec": { "terminationGracePeriod": "60s" } })).await;
    for (name, seconds) in [("long", 600), ("short", 20)] {
        stage.add_pod(("n", name), grace(seconds)).await;
        stage.delete(stage.pods_api(), name).await;
    }
    let before = stage.pod("short").await.unwrap().metadata.deletion_timestamp;
    assert!(ends_in(&stage, "long").await > 590);
    delete_and_run(&stage, 5).await;
    assert!(ends_in(&stage, "long").await <= 60);
    assert_eq!(stage.pod("short").await.unwrap().metadata.deletion_timestamp, before);
    assert_eq!(evictions(&stage, 200).await, 0);
}

#[tokio::test(start_paused = true)]
async fn g2_the_pods_of_a_not_ready_node_without_a_vm_are_not_waited_for() {
    let stage = with_node(json!({})).await;
    stage.add_pod(("n", "web"), protected()).await;
    stage.estate.remove_vm(20_000).unwrap();
    stage
        .patch_status(stage.nodes_api(), "n", json!({ "conditions": [{ "type": "Ready", "status": "Unknown" }] }))
        .await;
    delete_and_run(&stage, 30).await;
    assert!(stage.is_gone("n").await && stage.node("n").await.is_none());
}

#[tokio::test(start_paused = true)]
async fn g6_the_reason_a_node_is_removed_for_reaches_its_pods() {
    let stage = with_node(json!({})).await;
    stage.add_pod(("n", "web"), json!({})).await;
    let told = json!({ "type": "DisruptionReason", "status": "True", "reason": "Drifted", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let mut conditions = serde_json::to_value(stage.claim("n").await.status.unwrap().conditions).unwrap();
    conditions.as_array_mut().unwrap().push(told);
    stage.patch_status(stage.claims_api(), "n", json!({ "conditions": conditions })).await;
    delete_and_run(&stage, 5).await;
    assert_eq!(stage.told("web", "Evicted").await, ["Evicted: Node n is being removed (Drifted)"]);
}

#[tokio::test(start_paused = true)]
async fn g5_drained_nodes_and_pods_are_counted() {
    let stage = with_node(json!({})).await;
    stage.add_pod(("n", "web"), json!({})).await;
    let told = json!({ "type": "DisruptionReason", "status": "True", "reason": "Drifted", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let mut conditions = serde_json::to_value(stage.claim("n").await.status.unwrap().conditions).unwrap();
    conditions.as_array_mut().unwrap().push(told);
    stage.patch_status(stage.claims_api(), "n", json!({ "conditions": conditions })).await;
    delete_and_run(&stage, 10).await;
    assert_eq!(stage.counted("karpenter_nodes_drained_total", &[]), 0);
    stage.end_pod("web").await;
    stage.run("n", 60).await;
    assert_eq!(stage.counted("karpenter_nodes_drained_total", &["nodepool=\"default\""]), 1);
    assert_eq!(stage.counted("karpenter_pods_drained_total", &["reason=\"Drifted\""]), 1);

    stage.add_initialized("m", json!({})).await;
    stage.add_pod(("m", "db"), json!({})).await;
    stage.delete(stage.claims_api(), "m").await;
    stage.run("m", 10).await;
    assert_eq!(stage.counted("karpenter_pods_drained_total", &["reason=\"Forceful Termination\""]), 1);
}

#[tokio::test(start_paused = true)]
async fn g2_a_pod_that_ended_is_not_waited_for() {
    let stage = with_node(json!({})).await;
    for (name, phase) in [("done", "Succeeded"), ("failed", "Failed")] {
        stage.add_pod(("n", name), json!({ "status": { "phase": phase } })).await;
    }
    delete_and_run(&stage, 60).await;
    assert!(stage.is_gone("n").await && evictions(&stage, 200).await == 0);
    assert!(!stage.is_leaving("done").await && !stage.is_leaving("failed").await, "their logs can still be read");
}
