//! Is a broken node replaced before it goes, and left alone where too many are broken?

use std::time::Duration;

use kube::ResourceExt;
use serde_json::json;
use tenon_api::plan_options::{FeatureGates, PlanOptions};

use super::test_site::Site;
use crate::settings::Settings;

/// Long enough for a replacement to be launched, to join, and for the old node to be drained and gone.
const MOVED: u64 = 180;

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
