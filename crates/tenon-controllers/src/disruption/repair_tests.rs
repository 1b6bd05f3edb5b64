//! Is a broken node replaced before it goes, and left alone where too many are broken?

use std::time::Duration;

use kube::ResourceExt;
use serde_json::json;
use tenon_api::plan_options::{FeatureGates, PlanOptions};

use super::test_site::Site;
use crate::settings::Settings;

/// Long enough for a replacement to be launched, to join, and for the old node to be drained and gone.
const MOVED: u64 = 180;

const DEADLINE: &str = "karpenter.sh/nodeclaim-termination-timestamp";

async fn site(names: &[&str]) -> Site {
    let feature_gates = FeatureGates { node_repair: true, ..FeatureGates::default() };
    let planning = PlanOptions { feature_gates, ..PlanOptions::default() };
    let site = Site::with(Settings { planning, ..Settings::default() }).await;
    site.change_pool(json!({ "disruption": { "budgets": [{ "nodes": "1" }], "consolidateAfter": "Never" } })).await;
    for name in names {
        site.add_node(name, &["600m"]).await;
    }
    site
}

/// Its kubelet does not answer any more, and its time is over.
async fn break_node(site: &Site, name: &str) {
    let since = site.stage.context.clock.time();
    let ready = json!({ "type": "Ready", "status": "Unknown", "lastTransitionTime": since });
    site.stage.patch_status(site.stage.nodes_api(), name, json!({ "conditions": [ready] })).await;
}

#[tokio::test(start_paused = true)]
async fn j2_a_broken_node_goes_only_once_its_replacement_takes_pods_and_is_counted() {
    let mut site = site(&["old"]).await;
    break_node(&site, "old").await;
    site.run(30).await;
    assert_eq!(site.staying().await, ["old"], "a kubelet may come back");
    tokio::time::sleep(Duration::from_secs(900)).await;
    site.is_broken = |claim| claim.name_any() != "old";
    site.run(60).await;
    let claims = site.staying().await;
    assert_eq!(claims.len(), 2, "{claims:?}: {}", site.told().await);
    let new = claims.into_iter().find(|name| name != "old").unwrap();
    assert_eq!(site.stage.condition("old", "DisruptionReason").await.1, "Unhealthy");
    site.is_broken = |_| false;
    site.run(MOVED).await;
    assert_eq!(site.staying().await, std::slice::from_ref(&new), "{}", site.told().await);
    let told = site.stage.told("old", "DisruptionTerminating").await;
    assert_eq!(told, [format!("Deleting NodeClaim old: Node old is unhealthy; replacement NodeClaim {new} is ready")]);
    assert_eq!(site.stage.counted("karpenter_nodeclaims_disrupted_total", &["reason=\"unhealthy\""]), 1);
    let unhealthy = ["condition=\"ready\"", "termination_mode=\"graceful\""];
    assert_eq!(site.stage.counted("karpenter_nodeclaims_unhealthy_disrupted_total", &unhealthy), 1);
}

#[tokio::test(start_paused = true)]
async fn j2_the_bound_of_a_policy_counts_from_when_the_replacement_is_ready_and_is_only_tightened() {
    for (written, expected_s) in [(None, 60), (Some(30), 30), (Some(3600), 60)] {
        let feature_gates = FeatureGates { node_repair: true, ..FeatureGates::default() };
        let mut planning = PlanOptions { feature_gates, ..PlanOptions::default() };
        let policy = "[{conditionType: Ready, conditionStatus: Unknown, tolerationDuration: 15m, \
                       terminationGracePeriod: 1m, action: ReplaceNode}]";
        planning.set("repair-policies", policy).unwrap();
        let mut site = Site::with(Settings { planning, ..Settings::default() }).await;
        site.change_pool(json!({ "disruption": { "consolidateAfter": "Never" } })).await;
        site.add_node("old", &["600m"]).await;
        break_node(&site, "old").await;
        tokio::time::sleep(Duration::from_secs(900)).await;
        site.is_broken = |claim| claim.name_any() != "old";
        site.run(60).await;
        let deadline = |claim: &tenon_api::NodeClaim| claim.annotations().get(DEADLINE).cloned();
        assert_eq!(
            deadline(&site.stage.claim("old").await),
            None,
            "nothing is stamped before the replacement is ready"
        );
        let text = |seconds| after_now(&site, seconds);
        if let Some(seconds) = written {
            let annotations = json!({ "metadata": { "annotations": { DEADLINE: text(seconds) } } });
            site.stage.patch(site.stage.claims_api(), "old", annotations).await;
        }
        site.is_broken = |_| false;
        let mut stamped = None;
        for _ in 0..60 {
            site.run(1).await;
            let claims = site.stage.claims().await;
            let Some(old) = claims.iter().find(|claim| claim.name_any() == "old") else { break };
            if old.metadata.deletion_timestamp.is_some() {
                stamped = deadline(old).zip(old.metadata.deletion_timestamp.clone());
                break;
            }
        }
        let (stamped, deleted) = stamped.unwrap();
        let left = stamped.parse::<jiff::Timestamp>().unwrap().duration_since(deleted.0).as_secs();
        assert!((expected_s - 25..=expected_s + 1).contains(&left), "{written:?}: {left}: {}", site.told().await);
        let unhealthy = ["condition=\"ready\"", "termination_mode=\"eventual\""];
        assert_eq!(site.stage.counted("karpenter_nodeclaims_unhealthy_disrupted_total", &unhealthy), 1);
    }
}

fn after_now(site: &Site, seconds: i64) -> String {
    let by = site.stage.context.clock.now() + jiff::SignedDuration::from_secs(seconds);
    by.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[tokio::test(start_paused = true)]
async fn j2_where_too_many_nodes_are_broken_none_is_repaired_and_node_claim_and_pool_say_so() {
    let mut site = site(&["a", "b", "c"]).await;
    for name in ["a", "b"] {
        break_node(&site, name).await;
    }
    tokio::time::sleep(Duration::from_secs(910)).await;
    site.run(60).await;
    assert_eq!((site.staying().await.len(), site.disrupted().await), (3, 0), "{}", site.told().await);
    let told = site.stage.told("a", "NodeRepairBlocked").await;
    assert!(
        told.len() == 2 && told[0].starts_with("Cannot repair Node a: 2 of 3 nodes of NodePool default"),
        "{told:?}"
    );
    assert!(!site.stage.told("default", "NodeRepairBlocked").await.is_empty());
}
