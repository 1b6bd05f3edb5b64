//! Is a reboot asked for once, with the right time for pods, and is a node replaced that reboots did not help?

use std::time::Duration;

use serde_json::{Value, json};
use tenon_api::NodeClaim;
use tenon_api::plan_options::{FeatureGates, PlanOptions};

use super::test_site::Site;
use crate::settings::Settings;

const BOUND: &str = "karpenter.sh/reboot-termination-grace-period";

/// A policy that reboots nodes that are silent, and the fallback.
fn policies(bound: &str) -> String {
    format!(
        "[{{conditionType: Ready, conditionStatus: 'False', tolerationDuration: 15m, action: ReplaceNode}},
          {{conditionType: Ready, conditionStatus: Unknown, reasonRegex: NodeStatusUnknown, tolerationDuration: 2m,
            {bound} priority: 10, action: RebootNode}}]"
    )
}

async fn site(bound: &str) -> Site {
    site_with(bound, Value::Null).await
}

/// The same with this `terminationGracePeriod` on the NodeClaim.
async fn site_with(bound: &str, grace: Value) -> Site {
    let feature_gates = FeatureGates { node_repair: true, ..FeatureGates::default() };
    let mut planning = PlanOptions { feature_gates, ..PlanOptions::default() };
    planning.set("repair-policies", &policies(bound)).unwrap();
    let site = Site::with(Settings { planning, ..Settings::default() }).await;
    site.change_pool(json!({ "disruption": { "budgets": [{ "nodes": "1" }], "consolidateAfter": "Never" } })).await;
    site.add_node_with("old", &["600m"], grace).await;
    site
}

/// What the Node says: another boot ID for every boot.
async fn says(site: &Site, boot_id: &str, status: &str, reason: &str) {
    let since = site.stage.context.clock.time();
    let ready = json!({ "type": "Ready", "status": status, "reason": reason, "lastTransitionTime": since });
    let status = json!({ "nodeInfo": { "bootID": boot_id }, "conditions": [ready] });
    site.stage.patch_status(site.stage.nodes_api(), "old", status).await;
}

async fn break_node(site: &Site, boot_id: &str) {
    says(site, boot_id, "Unknown", "NodeStatusUnknown").await;
}

fn rebooted(site: &Site) -> usize {
    let ledger = site.stage.estate.ledger();
    ledger.iter().filter(|entry| entry.method == "POST" && entry.path.ends_with("/status/reboot")).count()
}

async fn bound(site: &Site) -> Option<String> {
    let claim: NodeClaim = site.stage.claim("old").await;
    claim.metadata.annotations.unwrap_or_default().get(BOUND).cloned()
}

/// Lets the VM be rebooted, and the node come back. The VM's own system does nothing here.
async fn reboot_through(site: &mut Site, (before, after): (&str, &str)) {
    break_node(site, before).await;
    tokio::time::sleep(Duration::from_secs(130)).await;
    site.run(60).await;
    assert_eq!(site.stage.condition("old", "Rebooting").await.0, "True", "{}", site.told().await);
    says(site, after, "True", "KubeletReady").await;
    site.run(40).await;
    assert_eq!(site.stage.condition("old", "Rebooting").await.1, "RebootSucceeded", "{}", site.told().await);
}

#[tokio::test(start_paused = true)]
async fn j3_a_silent_node_is_rebooted_and_nothing_comes_for_it() {
    let mut site = site("terminationGracePeriod: 1m,").await;
    break_node(&site, "one").await;
    site.run(100).await;
    assert_eq!((rebooted(&site), site.stage.condition("old", "Rebooting").await.0.as_str()), (0, ""));
    site.run(40).await;
    let (status, reason, message) = site.stage.condition("old", "Rebooting").await;
    assert_eq!((status.as_str(), reason.starts_with("Reboot")), ("True", true), "{}", site.told().await);
    assert!(message.starts_with("Rebooting: Node old is unhealthy (condition Ready=Unknown since"), "{message}");
    assert_eq!(site.stage.condition("old", "DisruptionReason").await.1, "Unhealthy");
    assert_eq!(bound(&site).await.as_deref(), Some("1m0s"));
    site.run(80).await;
    assert_eq!((site.staying().await.len(), rebooted(&site)), (1, 1), "{}", site.told().await);
    assert_eq!(site.stage.condition("old", "DisruptionReason").await.1, "Unhealthy", "it keeps the reason meanwhile");
    says(&site, "two", "True", "KubeletReady").await;
    site.run(60).await;
    assert_eq!(site.stage.condition("old", "Rebooting").await.1, "RebootSucceeded");
    assert_eq!(site.stage.condition("old", "Initialized").await.0, "True");
    assert_eq!(
        site.stage.condition("old", "DisruptionReason").await.0,
        "",
        "once it is over nothing is wrong any more"
    );
    assert_eq!((site.staying().await, rebooted(&site)), (vec!["old".to_owned()], 1));
    let decided = ["decision=\"reboot\"", "reason=\"unhealthy\""];
    assert_eq!(site.stage.counted("karpenter_voluntary_disruption_decisions_total", &decided), 1);
    let unhealthy = ["condition=\"ready\"", "termination_mode=\"eventual\""];
    assert_eq!(site.stage.counted("karpenter_nodeclaims_unhealthy_disrupted_total", &unhealthy), 1);
    assert_eq!(site.stage.counted("karpenter_nodeclaims_disrupted_total", &["reason=\"unhealthy\""]), 1);
}

#[tokio::test(start_paused = true)]
async fn j3_the_bound_is_that_of_the_policy_or_of_the_claim_and_an_old_one_is_removed() {
    for (policy, grace, expected) in [
        ("terminationGracePeriod: 0s,", json!(null), Some("0s")),
        ("terminationGracePeriod: 1m,", json!("30s"), Some("30s")),
        ("", json!("30s"), Some("30s")),
        ("", json!(null), None),
    ] {
        let mut site = site_with(policy, grace.clone()).await;
        let spec = json!({ "metadata": { "annotations": { BOUND: "7h" } } });
        site.stage.patch(site.stage.claims_api(), "old", spec).await;
        break_node(&site, "one").await;
        tokio::time::sleep(Duration::from_secs(130)).await;
        assert!(site.disrupt().await);
        assert_eq!(site.stage.condition("old", "Rebooting").await.1, "RebootRequested", "{policy} {grace}");
        assert_eq!(bound(&site).await.as_deref(), expected, "{policy} {grace}");
    }
}

#[tokio::test(start_paused = true)]
async fn j3_a_node_that_two_reboots_did_not_help_is_replaced_and_a_day_later_rebooted_again() {
    let mut site = site("terminationGracePeriod: 0s,").await;
    says(&site, "0", "True", "KubeletReady").await;
    reboot_through(&mut site, ("0", "1")).await;
    reboot_through(&mut site, ("1", "2")).await;
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    reboot_through(&mut site, ("2", "3")).await;
    reboot_through(&mut site, ("3", "4")).await;
    assert_eq!(rebooted(&site), 4);
    break_node(&site, "4").await;
    tokio::time::sleep(Duration::from_secs(130)).await;
    site.run(180).await;
    assert_eq!(rebooted(&site), 4, "no third one within a day");
    let staying = site.staying().await;
    assert!(staying.len() == 1 && staying[0] != "old", "{staying:?}: {}", site.told().await);
}

#[tokio::test(start_paused = true)]
async fn j3_a_controller_that_dies_while_it_asks_for_a_reboot_asks_again_and_only_once() {
    for writes in 0..3 {
        let mut site = site("terminationGracePeriod: 0s,").await;
        break_node(&site, "one").await;
        tokio::time::sleep(Duration::from_secs(130)).await;
        site.kill_after(writes);
        site.disrupt().await;
        site.restart();
        site.run(90).await;
        assert_eq!((rebooted(&site), site.staying().await.len()), (1, 1), "{writes}: {}", site.told().await);
        assert_eq!(bound(&site).await.as_deref(), Some("0s"));
    }
}
