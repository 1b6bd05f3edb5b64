//! Is something that changed seen by the next look, and is what a look found told?

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::Api;
use serde_json::json;

use super::test_site::Site;

#[tokio::test(start_paused = true)]
async fn h8_a_node_that_a_pod_disruption_budget_held_goes_within_a_minute_of_its_change() {
    let mut site = Site::new().await;
    site.change_pool(json!({ "disruption": { "budgets": [{ "nodes": "1" }] } })).await;
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(site.stage.client.clone(), "default");
    for name in ["a", "b"] {
        site.add_node(name, &["100m"]).await;
        let pod = format!("{name}-0");
        let labels = json!({ "app": pod });
        site.stage.patch(site.stage.pods_api(), &pod, json!({ "metadata": { "labels": labels } })).await;
        let spec = json!({ "maxUnavailable": 0, "selector": { "matchLabels": labels } });
        site.stage.create(budgets.clone(), json!({ "metadata": { "name": name }, "spec": spec })).await;
    }
    // Longer than a look that found nothing is believed.
    site.run(400).await;
    assert_eq!((site.staying().await.len(), site.disrupted().await), (2, 0), "{}", site.told().await);
    for name in ["a", "b"] {
        site.stage.delete(budgets.clone(), name).await;
    }
    site.run(60).await;
    assert_eq!(site.disrupted().await + 2 - site.stage.claims().await.len(), 1, "{}", site.told().await);
}

#[tokio::test(start_paused = true)]
async fn h14_a_move_that_balanced_approves_is_told_and_counted() {
    let mut site = Site::new().await;
    let disruption = json!({ "budgets": [{ "nodes": "1" }], "consolidationPolicy": "Balanced" });
    site.change_pool(json!({ "disruption": disruption })).await;
    site.add_node("a", &["100m"]).await;
    site.add_node("b", &["100m"]).await;
    site.run(60).await;
    let told =
        [site.stage.told("a", "ConsolidationApproved").await, site.stage.told("b", "ConsolidationApproved").await]
            .concat();
    assert!(!told.is_empty(), "{}", site.told().await);
    let saves =
        "it saves 50.0 % of the cost of NodePool default for 50.0 % of its disruption cost (score 1.00, at least 0.50)";
    assert!(told.iter().all(|note| note.ends_with(saves)), "{told:?}");
    let approved = ["decision=\"approved\"", "policy=\"Balanced\""];
    assert_eq!(site.stage.counted("karpenter_consolidation_moves_total", &approved), 1);
    assert_eq!(site.stage.counted("karpenter_consolidation_score_count", &approved), 1);
    // Every method of a look has a duration of its own.
    let text = site.stage.context.metrics.text();
    for (reason, kind) in [
        ("empty", "empty"),
        ("drifted", ""),
        ("underutilized", "multi"),
        ("underutilized", "single"),
        ("unhealthy", ""),
    ] {
        let of =
            format!("decision_evaluation_duration_seconds_count{{reason=\"{reason}\",consolidation_type=\"{kind}\"}}");
        assert!(text.contains(&of), "{of}: {text}");
    }
}
