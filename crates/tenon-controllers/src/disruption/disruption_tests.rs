//! Does a command take its steps in order, does it go back where it fails, and does it survive the death of its controller after
//! every write?

use kube::ResourceExt;
use serde_json::json;
use tenon_api::names;

use super::test_site::Site;

/// Long enough for a replacement to be launched, to join, and for the old node to be drained and gone.
const MOVED: u64 = 180;

#[tokio::test(start_paused = true)]
async fn h6_a_drifted_node_goes_only_once_its_replacement_takes_pods() {
    let mut site = Site::new().await;
    site.add_node("old", &["600m"]).await;
    site.drift("old").await;
    site.is_broken = |claim| claim.name_any() != "old";
    site.run(60).await;
    let claims = site.staying().await;
    assert_eq!(claims.len(), 2, "{claims:?}: {}", site.told().await);
    let new = claims.into_iter().find(|name| name != "old").unwrap();
    assert!(site.is_tainted("old").await);
    assert_eq!(site.stage.condition("old", "DisruptionReason").await.1, "Drifted");
    let replaces = site.stage.claim(&new).await.annotations()[names::ANNOTATION_REPLACEMENT_FOR].clone();
    assert!(site.stage.claim("old").await.annotations()[names::ANNOTATION_DISRUPTION].contains(&replaces));
    assert_eq!(site.stage.told(&new, "DisruptionLaunching").await.len(), 1);
    assert_eq!(site.stage.told(&new, "DisruptionWaitingReadiness").await.len(), 1);

    site.is_broken = |_| false;
    site.run(MOVED).await;
    assert_eq!(site.staying().await, std::slice::from_ref(&new));
    assert!(site.stage.is_gone("old").await);
    let told = site.stage.told("old", "DisruptionTerminating").await;
    assert_eq!(told, [format!("Deleting NodeClaim old: Node old has drifted; replacement NodeClaim {new} is ready")]);
    assert_eq!(site.stage.counted("karpenter_pods_drained_total", &["reason=\"Drifted\""]), 1);
    let decided = ["decision=\"replace\"", "reason=\"drifted\""];
    assert_eq!(site.stage.counted("karpenter_voluntary_disruption_decisions_total", &decided), 1);
    assert_eq!(site.stage.counted("karpenter_nodeclaims_disrupted_total", &["reason=\"drifted\""]), 1);
}

#[tokio::test(start_paused = true)]
async fn h8_a_node_whose_pods_fit_on_another_is_deleted_after_it_was_confirmed_and_then_nothing_moves() {
    let mut site = Site::new().await;
    site.change_pool(json!({ "disruption": { "budgets": [{ "nodes": "1" }] } })).await;
    site.add_node("a", &["100m"]).await;
    site.add_node("b", &["100m"]).await;
    site.run(14).await;
    assert_eq!(site.disrupted().await, 0, "it is not confirmed yet");
    site.run(MOVED).await;
    let left = site.staying().await;
    assert_eq!(left.len(), 1, "{left:?}: {}", site.told().await);
    let gone = if left[0] == "a" { "b" } else { "a" };
    let told = site.stage.told(gone, "DisruptionTerminating").await;
    assert_eq!(told, [format!("Deleting NodeClaim {gone}: Node {gone} is underutilized")]);
    let disrupted = ["reason=\"underutilized\"", "consolidation_policy=\"when_empty_or_underutilized\""];
    assert_eq!(site.stage.counted("karpenter_nodeclaims_disrupted_total", &disrupted), 1);
    // The pod that was evicted runs on the other node.
    let before = site.stage.counted("karpenter_voluntary_disruption_decisions_total", &[]);
    site.run(1800).await;
    assert_eq!(site.stage.counted("karpenter_voluntary_disruption_decisions_total", &[]), before, "30 quiet minutes");
    assert_eq!(site.staying().await, left);
}

#[tokio::test(start_paused = true)]
async fn h9_a_pod_that_comes_before_a_move_is_confirmed_keeps_the_node() {
    let mut site = Site::new().await;
    site.add_node("a", &["100m"]).await;
    site.add_node("b", &["100m"]).await;
    site.run(12).await;
    let forbidden = json!({ "metadata": { "annotations": { names::ANNOTATION_DO_NOT_DISRUPT: "true" } } });
    for name in ["a", "b"] {
        site.stage.add_pod((name, &format!("{name}-guard")), forbidden.clone()).await;
    }
    site.run(60).await;
    assert_eq!((site.staying().await.len(), site.disrupted().await), (2, 0));
    let rejected = site.stage.counted("karpenter_voluntary_disruption_failed_validations_total", &[]);
    assert!(rejected >= 1, "{}", site.told().await);
    let told =
        [site.stage.told("a", "ConsolidationRejected").await, site.stage.told("b", "ConsolidationRejected").await];
    assert!(told.concat().iter().any(|note| note.contains("(churn)")), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn h6_budgets_count_nodes_of_running_commands_at_every_instant() {
    let mut site = Site::new().await;
    site.change_pool(json!({ "disruption": { "budgets": [{ "nodes": "1" }], "consolidateAfter": "Never" } })).await;
    for name in ["a", "b", "c"] {
        site.add_node(name, &["600m"]).await;
        site.drift(name).await;
    }
    site.run(3 * MOVED).await;
    assert_eq!(site.most_disrupted, 1, "{}", site.told().await);
    let staying = site.staying().await;
    assert!(staying.len() == 3 && !staying.iter().any(|name| name.len() == 1), "{staying:?}");
}

#[tokio::test(start_paused = true)]
async fn h12_a_replacement_that_never_joins_gives_the_node_back_and_halts_the_roll_out_until_the_pool_changes() {
    let mut site = Site::new().await;
    site.change_pool(json!({ "disruption": { "budgets": [{ "nodes": "1" }] } })).await;
    for name in ["a", "b"] {
        site.add_node(name, &["600m"]).await;
        site.drift(name).await;
    }
    site.is_broken = |claim| claim.name_any().len() > 1;
    site.run(30).await;
    assert_eq!(site.disrupted().await, 1);
    site.run(600).await;
    assert_eq!(site.disrupted().await, 0, "ten minutes are over");
    for name in ["a", "b"] {
        assert!(!site.is_tainted(name).await && !site.stage.is_deleting(name).await);
        assert_eq!(site.stage.condition(name, "DisruptionReason").await.0, "");
    }
    let failures = ["decision=\"replace\"", "reason=\"drifted\""];
    assert_eq!(site.stage.counted("karpenter_voluntary_disruption_queue_failures_total", &failures), 1);
    let halted = |pool: tenon_api::NodePool| {
        let conditions = pool.status.and_then(|status| status.conditions).unwrap_or_default();
        conditions.into_iter().find(|condition| condition.type_ == "DriftRolloutHalted").map(|found| found.reason)
    };
    assert_eq!(halted(site.pool().await).as_deref(), Some("ReplacementFailed"));
    assert_eq!(site.stage.told("default", "DriftRolloutHalted").await.len(), 1);

    // A restart remembers it, and so does a change that has nothing to do with it.
    site.restart();
    site.change_pool(json!({ "limits": { "cpu": "100" } })).await;
    site.run(1200).await;
    assert_eq!(site.most_disrupted, 1);
    assert_eq!(site.staying().await, ["a", "b"], "the replacement did not register in time");
    assert!(halted(site.pool().await).is_some());

    site.is_broken = |_| false;
    site.change_pool(json!({ "template": { "metadata": { "labels": { "mended": "yes" } } } })).await;
    site.run(2 * MOVED).await;
    assert_eq!(halted(site.pool().await), None);
    let staying = site.staying().await;
    assert!(staying.len() == 2 && staying.iter().all(|name| name.len() > 1), "{staying:?}");
}

#[tokio::test(start_paused = true)]
async fn h12_a_replacement_that_is_deleted_gives_the_node_back() {
    let mut site = Site::new().await;
    site.add_node("old", &["600m"]).await;
    site.drift("old").await;
    site.is_broken = |claim| claim.name_any() != "old";
    site.run(30).await;
    let new = site.staying().await.into_iter().find(|name| name != "old").unwrap();
    site.stage.delete(site.stage.claims_api(), &new).await;
    site.run(30).await;
    assert_eq!(site.staying().await, ["old"]);
    assert!(!site.is_tainted("old").await && site.disrupted().await == 0);
    let told = site.stage.told("old", "DisruptionBlocked").await;
    let expected = format!(
        "Stopped disruption of NodeClaim old: replacement NodeClaim {new} was deleted before it was ready; the Node stays"
    );
    assert!(told.contains(&expected), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn h12_a_replacement_that_was_late_goes_if_nothing_needs_it_although_empty_nodes_stay() {
    let mut site = Site::new().await;
    site.change_pool(json!({ "disruption": { "budgets": [{ "nodes": "1" }], "consolidateAfter": "Never" } })).await;
    site.add_node("old", &["600m"]).await;
    site.drift("old").await;
    site.is_broken = |claim| claim.name_any() != "old";
    site.run(640).await;
    assert_eq!((site.disrupted().await, site.staying().await.len()), (0, 2), "{}", site.told().await);
    // Now it joins, and what it came for has not drifted any more.
    site.undrift("old").await;
    site.is_broken = |_| false;
    site.add_node("empty", &[]).await;
    site.run(120).await;
    assert_eq!(site.staying().await.len(), 3, "another move may need it: {}", site.told().await);
    site.run(600).await;
    assert_eq!(site.staying().await, ["empty", "old"], "{}", site.told().await);
}

#[tokio::test(start_paused = true)]
async fn h4_marks_that_belong_to_no_command_are_removed() {
    let mut site = Site::new().await;
    site.add_node("a", &["600m"]).await;
    let taint = json!([{ "key": names::TAINT_DISRUPTED, "effect": "NoSchedule" }]);
    site.stage.patch(site.stage.nodes_api(), "a", json!({ "spec": { "taints": taint } })).await;
    let unreadable = json!({ "metadata": { "annotations": { names::ANNOTATION_DISRUPTION: "?" } } });
    site.stage.patch(site.stage.claims_api(), "a", unreadable).await;
    site.run(20).await;
    assert!(!site.is_tainted("a").await && site.disrupted().await == 0);
    assert_eq!(site.staying().await, ["a"]);
}

/// The controller dies after every single write of a command, and another one takes over: the move ends as if nothing had
/// happened, no node is marked for ever, and nothing is created twice.
#[tokio::test(start_paused = true)]
async fn h4_a_controller_that_dies_after_any_write_leaves_no_mark_and_no_replacement_behind() {
    let mut deaths = 0;
    for writes in 0.. {
        let mut site = Site::new().await;
        site.add_node("old", &["600m"]).await;
        site.drift("old").await;
        site.kill_after(writes);
        let mut is_dead = false;
        for _ in 0..MOVED {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            is_dead |= !site.disrupt().await;
            if is_dead || site.stage.is_gone("old").await || site.stage.is_deleting("old").await {
                break;
            }
            site.live_without_controller().await;
        }
        deaths += usize::from(is_dead);
        site.restart();
        site.run(2 * MOVED).await;
        let staying = site.staying().await;
        let told = site.told().await;
        assert!(staying.len() == 1 && staying[0] != "old", "after {writes} writes: {staying:?}: {told}");
        assert!(!site.is_tainted(&staying[0]).await && site.disrupted().await == 0, "after {writes} writes");
        assert_eq!(site.stage.vms().len(), 1, "after {writes} writes");
        if !is_dead {
            break;
        }
    }
    assert!(deaths >= 6, "it died {deaths} times");
}

#[tokio::test(start_paused = true)]
async fn h4_a_controller_that_dies_while_it_deletes_empty_nodes_leaves_no_mark_behind() {
    for writes in 0.. {
        let mut site = Site::new().await;
        site.change_pool(json!({ "disruption": { "budgets": [{ "nodes": "2" }] } })).await;
        site.add_node("a", &[]).await;
        site.add_node("b", &[]).await;
        site.kill_after(writes);
        let mut is_dead = false;
        for _ in 0..60 {
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            is_dead |= !site.disrupt().await;
            if is_dead || site.disrupted().await == 0 && site.staying().await.is_empty() {
                break;
            }
        }
        site.restart();
        site.run(MOVED).await;
        assert_eq!(site.staying().await, Vec::<String>::new(), "after {writes} writes");
        assert_eq!(site.disrupted().await, 0, "after {writes} writes");
        if !is_dead {
            break;
        }
    }
}
