//! What of NodeClaims, Nodes and NodePools decides about empty nodes. The rules themselves are tested with the engine.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};
use tenon_api::timestamp;
use tenon_engine::disruption::{DisruptionBlocked, Protected};
use tenon_model::Timestamp;

use crate::decisions::candidates::{NOW, OwnedNode, blocked, blocked_in, condition, empty_node, now, pool, verdict};

fn patient(after: &str) -> Value {
    json!({ "spec": { "disruption": { "consolidateAfter": after } } })
}

fn budget(nodes: &str) -> Value {
    json!({ "spec": { "disruption": { "budgets": [{ "nodes": nodes }] } } })
}

fn at(text: &str) -> Timestamp {
    timestamp(&Time(text.parse().unwrap()))
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

fn gone() -> Value {
    json!({ "metadata": { "deletionTimestamp": NOW } })
}

fn forbidden() -> Value {
    json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } })
}

fn not_ready() -> Value {
    json!({ "status": { "conditions": [{ "type": "Ready", "status": "Unknown" }] } })
}

#[test]
fn an_empty_node_is_deleted_under_every_policy() {
    for policy in ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] {
        let pool = pool("default", &json!({ "spec": { "disruption": { "consolidationPolicy": policy } } }));
        assert_eq!(blocked_in(&pool, &empty_node("a")), None, "{policy}");
    }
}

#[test]
fn a_node_whose_vm_another_controller_created_is_not_disrupted() {
    let made_elsewhere = empty_node("a").with_claim(&json!({ "status": { "providerID": "proxmox://lab/20001" } }));
    assert_eq!(blocked_in(&pool("default", &json!({})), &made_elsewhere), Some(DisruptionBlocked::ForeignVm));
    let record = json!({ "metadata": { "annotations": { "tenon.dev/launch": "{}" } } });
    assert_eq!(blocked_in(&pool("default", &json!({})), &made_elsewhere.with_claim(&record)), None);
}

#[test]
fn an_empty_node_is_deleted_after_consolidate_after() {
    // It was initialized ten minutes ago.
    assert_eq!(blocked_in(&pool("default", &patient("10m")), &empty_node("a")), None);
    let keep = blocked_in(&pool("default", &patient("10m1s")), &empty_node("a")).unwrap();
    assert_eq!(keep, DisruptionBlocked::TooRecent { until: at("2026-03-11T10:10:01Z") });
    assert!(keep.to_string().contains("can be removed at 2026-03-11T10:10:01Z"), "{keep}");
}

#[test]
fn a_pod_event_starts_the_wait_again() {
    let visited = empty_node("a").with_claim(&json!({ "status": { "lastPodEventTime": "2026-03-11T10:08:00Z" } }));
    assert_eq!(blocked_in(&pool("default", &patient("2m")), &visited), None);
    let until = at("2026-03-11T10:13:00Z");
    assert_eq!(blocked_in(&pool("default", &patient("5m")), &visited), Some(DisruptionBlocked::TooRecent { until }));
}

#[test]
fn a_pool_that_never_consolidates_keeps_its_empty_nodes() {
    let off = DisruptionBlocked::ConsolidationDisabled { pool: "default".to_owned() };
    assert_eq!(blocked_in(&pool("default", &patient("Never")), &empty_node("a")), Some(off));
    let text = "soon".to_owned();
    let unreadable = DisruptionBlocked::InvalidConsolidateAfter { pool: "default".to_owned(), text };
    assert_eq!(blocked_in(&pool("default", &patient("soon")), &empty_node("a")), Some(unreadable));
    let long = blocked_in(&pool("default", &patient("99999999999999999999h")), &empty_node("a"));
    assert!(matches!(long, Some(DisruptionBlocked::TooRecent { .. })), "{long:?}");
}

#[test]
fn a_claim_without_a_node_is_not_disrupted() {
    let claim = OwnedNode { node: None, ..empty_node("a") };
    assert_eq!(blocked(&claim), Some(DisruptionBlocked::NodeMissing));
    assert_eq!(blocked(&claim.with_claim(&gone())), Some(DisruptionBlocked::NodeMissing));
}

#[test]
fn what_is_being_deleted_is_not_deleted_again() {
    assert_eq!(blocked(&empty_node("a").with_claim(&gone())), Some(DisruptionBlocked::Deleting));
    assert_eq!(blocked(&empty_node("a").with_node(&gone())), Some(DisruptionBlocked::Deleting));
    let conditions = json!([condition("Initialized", "True"), condition("InstanceTerminating", "True")]);
    let terminating = empty_node("a").with_claim(&json!({ "status": { "conditions": conditions } }));
    assert_eq!(blocked(&terminating), Some(DisruptionBlocked::Deleting));
}

#[test]
fn a_node_that_is_not_initialized_is_not_disrupted() {
    let unlabelled =
        empty_node("a").with_node(&json!({ "metadata": { "labels": { "karpenter.sh/initialized": "no" } } }));
    assert_eq!(blocked(&unlabelled), Some(DisruptionBlocked::NotInitialized));
    let unsaid = json!({ "status": { "conditions": [condition("Initialized", "Unknown")] } });
    assert_eq!(blocked(&empty_node("a").with_claim(&unsaid)), Some(DisruptionBlocked::NotInitialized));
}

#[test]
fn a_node_that_pods_are_nominated_to_is_not_disrupted() {
    assert_eq!(blocked(&OwnedNode { nominated: true, ..empty_node("a") }), Some(DisruptionBlocked::Nominated));
}

#[test]
fn a_node_or_claim_with_do_not_disrupt_is_not_disrupted() {
    let on = |on| Some(DisruptionBlocked::DoNotDisrupt { on });
    assert_eq!(blocked(&empty_node("a").with_node(&forbidden())), on(Protected::Node("node-a".to_owned())));
    let keep = blocked(&empty_node("a").with_claim(&forbidden()));
    assert_eq!(keep, on(Protected::Claim("a".to_owned())));
    assert_eq!(
        keep.unwrap().to_string(),
        "NodeClaim a has karpenter.sh/do-not-disrupt; remove the annotation to allow disruption"
    );
    let allowed = json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "false" } } });
    assert_eq!(blocked(&empty_node("a").with_node(&allowed).with_claim(&allowed)), None);
}

#[test]
fn a_node_without_a_living_pool_is_not_disrupted() {
    let labelled =
        |pool: &str| empty_node("a").with_node(&json!({ "metadata": { "labels": { "karpenter.sh/nodepool": pool } } }));
    assert_eq!(blocked(&labelled("other")), Some(DisruptionBlocked::NoPool { pool: Some("other".to_owned()) }));
    assert_eq!(blocked(&labelled("")), Some(DisruptionBlocked::NoPool { pool: None }));
    let keep = blocked_in(&pool("default", &gone()), &empty_node("a"));
    assert_eq!(keep, Some(DisruptionBlocked::NoPool { pool: Some("default".to_owned()) }));
}

#[test]
fn a_static_pool_keeps_its_nodes() {
    let fixed = pool("default", &json!({ "spec": { "replicas": 0 } }));
    assert_eq!(
        blocked_in(&fixed, &empty_node("a")),
        Some(DisruptionBlocked::StaticPool { pool: "default".to_owned() })
    );
    assert_eq!(verdict(&[fixed], &[empty_node("a")], now()).consolidatable, []);
}

#[test]
fn the_oldest_nodes_are_deleted_first() {
    let born =
        |name: &str, time: &str| empty_node(name).with_claim(&json!({ "metadata": { "creationTimestamp": time } }));
    let nodes = [
        born("a", "2026-03-11T09:30:00Z"),
        born("c", "2026-03-11T08:00:00Z"),
        born("b", "2026-03-11T08:00:00Z"),
        born("d", "2026-03-11T07:00:00Z").with_pod(&json!({})),
    ];
    assert_eq!(verdict(&[pool("default", &budget("2"))], &nodes, now()).delete, names(&["b", "c"]));
    assert_eq!(verdict(&[pool("default", &budget("9"))], &nodes, now()).delete, names(&["b", "c", "a"]));
}

#[test]
fn nodes_that_are_being_deleted_or_not_ready_use_up_the_budget() {
    for gone_one in [
        empty_node("x").with_claim(&gone()),
        empty_node("x").with_node(&gone()),
        empty_node("x").with_node(&not_ready()),
    ] {
        let busy = gone_one.with_pod(&json!({}));
        let nodes = [empty_node("a"), empty_node("b"), busy];
        let verdict = verdict(&[pool("default", &budget("2"))], &nodes, now());
        assert_eq!(verdict.delete, names(&["a"]));
        assert_eq!((verdict.pools[0].disrupting, verdict.pools[0].total), (1, 3));
    }
}

#[test]
fn a_budget_that_cannot_be_read_keeps_every_node_and_says_so() {
    let verdict = verdict(&[pool("default", &budget("many"))], &[empty_node("a")], now());
    assert_eq!(verdict.delete, names(&[]));
    assert!(verdict.pools[0].invalid[0].to_string().contains("budgets[0]"), "{:?}", verdict.pools);
}
