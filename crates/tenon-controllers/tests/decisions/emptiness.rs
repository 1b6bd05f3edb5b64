//! Which empty nodes go, and why the others stay.

use serde_json::{Value, json};
use tenon_controllers::disruption::{Consolidatable, Keep, PoolBudget, Protected};

use crate::quiet_nodes::{NOW, OwnedNode, condition, kept, kept_in, now, pool, quiet, verdict};

fn patient(after: &str) -> Value {
    json!({ "spec": { "disruption": { "consolidateAfter": after } } })
}

fn budget(nodes: &str) -> Value {
    json!({ "spec": { "disruption": { "budgets": [{ "nodes": nodes }] } } })
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
fn an_empty_node_goes_under_every_policy() {
    for policy in ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] {
        let pool = pool("default", &json!({ "spec": { "disruption": { "consolidationPolicy": policy } } }));
        assert_eq!(kept_in(&pool, &quiet("a")), None, "{policy}");
    }
}

#[test]
fn a_node_whose_vm_another_controller_made_stays() {
    let made_elsewhere = quiet("a").with_claim(&json!({ "status": { "providerID": "proxmox://lab/20001" } }));
    assert_eq!(kept_in(&pool("default", &json!({})), &made_elsewhere), Some(Keep::Foreign));
    let record = json!({ "metadata": { "annotations": { "tenon.dev/launch": "{}" } } });
    assert_eq!(kept_in(&pool("default", &json!({})), &made_elsewhere.with_claim(&record)), None);
}

#[test]
fn an_empty_node_goes_after_its_pool_s_patience() {
    // It was initialised ten minutes ago.
    assert_eq!(kept_in(&pool("default", &patient("10m")), &quiet("a")), None);
    let keep = kept_in(&pool("default", &patient("10m1s")), &quiet("a")).unwrap();
    assert_eq!(keep, Keep::TooRecent { until: "2026-03-11T10:10:01Z".parse().unwrap() });
    assert!(keep.to_string().contains("it may go at 2026-03-11T10:10:01Z"), "{keep}");
}

#[test]
fn a_pod_event_starts_the_wait_anew() {
    let visited = quiet("a").with_claim(&json!({ "status": { "lastPodEventTime": "2026-03-11T10:08:00Z" } }));
    assert_eq!(kept_in(&pool("default", &patient("2m")), &visited), None);
    let until = "2026-03-11T10:13:00Z".parse().unwrap();
    assert_eq!(kept_in(&pool("default", &patient("5m")), &visited), Some(Keep::TooRecent { until }));
}

#[test]
fn a_pool_that_never_consolidates_keeps_its_empty_nodes() {
    let off = Keep::ConsolidationOff { pool: "default".to_owned() };
    assert_eq!(kept_in(&pool("default", &patient("Never")), &quiet("a")), Some(off));
    let text = "soon".to_owned();
    let unreadable = Keep::PatienceUnreadable { pool: "default".to_owned(), text };
    assert_eq!(kept_in(&pool("default", &patient("soon")), &quiet("a")), Some(unreadable));
    let long = kept_in(&pool("default", &patient("99999999999999999999h")), &quiet("a"));
    assert!(matches!(long, Some(Keep::TooRecent { .. })), "{long:?}");
}

#[test]
fn a_claim_without_a_node_stays() {
    let claim = OwnedNode { node: None, ..quiet("a") };
    assert_eq!(kept(&claim), Some(Keep::NodeMissing));
    assert_eq!(kept(&claim.with_claim(&gone())), Some(Keep::NodeMissing));
}

#[test]
fn what_is_going_is_left_to_go() {
    assert_eq!(kept(&quiet("a").with_claim(&gone())), Some(Keep::Deleting));
    assert_eq!(kept(&quiet("a").with_node(&gone())), Some(Keep::Deleting));
    let conditions = json!([condition("Initialized", "True"), condition("InstanceTerminating", "True")]);
    let terminating = quiet("a").with_claim(&json!({ "status": { "conditions": conditions } }));
    assert_eq!(kept(&terminating), Some(Keep::Deleting));
}

#[test]
fn a_node_that_is_not_initialised_stays() {
    let unlabelled = quiet("a").with_node(&json!({ "metadata": { "labels": { "karpenter.sh/initialized": "no" } } }));
    assert_eq!(kept(&unlabelled), Some(Keep::NotInitialized));
    let unsaid = json!({ "status": { "conditions": [condition("Initialized", "Unknown")] } });
    assert_eq!(kept(&quiet("a").with_claim(&unsaid)), Some(Keep::NotInitialized));
}

#[test]
fn a_node_that_pods_were_promised_to_stays() {
    assert_eq!(kept(&OwnedNode { nominated: true, ..quiet("a") }), Some(Keep::Nominated));
}

#[test]
fn a_node_or_claim_that_must_not_be_disrupted_stays() {
    let on = |on| Some(Keep::DoNotDisrupt { on });
    assert_eq!(kept(&quiet("a").with_node(&forbidden())), on(Protected::Node("node-a".to_owned())));
    let keep = kept(&quiet("a").with_claim(&forbidden()));
    assert_eq!(keep, on(Protected::Claim("a".to_owned())));
    assert_eq!(
        keep.unwrap().to_string(),
        "NodeClaim a has the annotation karpenter.sh/do-not-disrupt; remove it to let the node go."
    );
    let allowed = json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "false" } } });
    assert_eq!(kept(&quiet("a").with_node(&allowed).with_claim(&allowed)), None);
}

#[test]
fn a_node_without_a_living_pool_stays() {
    let labelled =
        |pool: &str| quiet("a").with_node(&json!({ "metadata": { "labels": { "karpenter.sh/nodepool": pool } } }));
    assert_eq!(kept(&labelled("other")), Some(Keep::NoPool { pool: Some("other".to_owned()) }));
    assert_eq!(kept(&labelled("")), Some(Keep::NoPool { pool: None }));
    let keep = kept_in(&pool("default", &gone()), &quiet("a"));
    assert_eq!(keep, Some(Keep::NoPool { pool: Some("default".to_owned()) }));
}

#[test]
fn a_pool_with_a_fixed_number_keeps_its_nodes() {
    let fixed = pool("default", &json!({ "spec": { "replicas": 0 } }));
    assert_eq!(kept_in(&fixed, &quiet("a")), Some(Keep::StaticPool { pool: "default".to_owned() }));
    assert_eq!(verdict(&[fixed], &[quiet("a")], now()).consolidatable, []);
}

#[test]
fn the_first_reason_decides() {
    let mut node = quiet("a").with_node(&forbidden()).with_pod(&forbidden());
    node.nominated = true;
    let off = pool("default", &patient("Never"));
    assert_eq!(kept_in(&off, &node), Some(Keep::Nominated));
    node.nominated = false;
    assert_eq!(kept_in(&off, &node), Some(Keep::DoNotDisrupt { on: Protected::Node("node-a".to_owned()) }));
    let pod = quiet("a").with_pod(&forbidden());
    assert_eq!(kept_in(&off, &pod), Some(Keep::DoNotDisrupt { on: Protected::Pod("shop/cart-0".to_owned()) }));
    let busy = quiet("a").with_pod(&json!({}));
    assert_eq!(kept_in(&off, &busy), Some(Keep::ConsolidationOff { pool: "default".to_owned() }));
    let soon = kept_in(&pool("default", &patient("1h")), &busy);
    assert!(matches!(soon, Some(Keep::Busy { pods: 1, .. })), "{soon:?}");
}

#[test]
fn a_budget_of_ten_percent_lets_one_of_three_go() {
    let verdict = verdict(&[pool("default", &budget("10%"))], &[quiet("c"), quiet("a"), quiet("b")], now());
    assert_eq!(verdict.remove, names(&["a"]));
    let keep = Keep::Budget { pool: "default".to_owned(), allowed: 1, disrupting: 1 };
    assert_eq!(verdict.keep, [("b".to_owned(), keep.clone()), ("c".to_owned(), keep)]);
    let pool = PoolBudget { pool: "default".to_owned(), allowed: 1, disrupting: 0, total: 3, faults: vec![] };
    assert_eq!(verdict.pools, [pool]);
}

#[test]
fn the_oldest_go_first() {
    let born = |name: &str, time: &str| quiet(name).with_claim(&json!({ "metadata": { "creationTimestamp": time } }));
    let nodes = [
        born("a", "2026-03-11T09:30:00Z"),
        born("c", "2026-03-11T08:00:00Z"),
        born("b", "2026-03-11T08:00:00Z"),
        born("d", "2026-03-11T07:00:00Z").with_pod(&json!({})),
    ];
    assert_eq!(verdict(&[pool("default", &budget("2"))], &nodes, now()).remove, names(&["b", "c"]));
    assert_eq!(verdict(&[pool("default", &budget("9"))], &nodes, now()).remove, names(&["b", "c", "a"]));
}

#[test]
fn nodes_that_are_going_or_not_ready_use_up_the_budget() {
    for gone_one in [quiet("x").with_claim(&gone()), quiet("x").with_node(&gone()), quiet("x").with_node(&not_ready())]
    {
        let busy = gone_one.with_pod(&json!({}));
        let nodes = [quiet("a"), quiet("b"), busy];
        let verdict = verdict(&[pool("default", &budget("2"))], &nodes, now());
        assert_eq!(verdict.remove, names(&["a"]));
        assert_eq!((verdict.pools[0].disrupting, verdict.pools[0].total), (1, 3));
    }
}

#[test]
fn a_budget_is_never_below_nothing() {
    let nodes = [quiet("x").with_claim(&gone()), quiet("y").with_node(&not_ready()), quiet("a")];
    let verdict = verdict(&[pool("default", &budget("1"))], &nodes, now());
    assert_eq!(verdict.remove, names(&[]));
    let keep = Keep::Budget { pool: "default".to_owned(), allowed: 1, disrupting: 2 };
    assert_eq!(verdict.keep[0], ("a".to_owned(), keep));
}

#[test]
fn nodes_that_never_took_pods_or_lose_their_vm_are_not_counted() {
    let conditions = json!([condition("Initialized", "True"), condition("InstanceTerminating", "True")]);
    let losing = quiet("y").with_claim(&gone()).with_claim(&json!({ "status": { "conditions": conditions } }));
    let fresh = quiet("x").with_node(&json!({ "metadata": { "labels": { "karpenter.sh/initialized": "" } } }));
    let nodes = [fresh.with_node(&not_ready()), losing, OwnedNode { node: None, ..quiet("z") }, quiet("a")];
    let verdict = verdict(&[pool("default", &budget("100%"))], &nodes, now());
    assert_eq!((verdict.pools[0].allowed, verdict.pools[0].disrupting, verdict.pools[0].total), (1, 0, 1));
    assert_eq!(verdict.remove, names(&["a"]));
}

#[test]
fn each_pool_has_its_own_budget() {
    let red = json!({ "metadata": { "labels": { "karpenter.sh/nodepool": "red" } } });
    let of_red = |name: &str| quiet(name).with_node(&red);
    let pools = [pool("red", &budget("1")), pool("default", &budget("0")), pool("idle", &budget("10%"))];
    let verdict = verdict(&pools, &[of_red("a"), of_red("b"), quiet("c")], now());
    assert_eq!(verdict.remove, names(&["a"]));
    assert_eq!(verdict.pools.iter().map(|budget| budget.pool.as_str()).collect::<Vec<_>>(), ["default", "idle", "red"]);
    let closed = &verdict.keep.iter().find(|(name, _)| name == "c").unwrap().1;
    assert!(closed.to_string().contains("let no node go now"), "{closed}");
}

#[test]
fn a_budget_nobody_can_read_keeps_every_node_and_says_so() {
    let verdict = verdict(&[pool("default", &budget("many"))], &[quiet("a")], now());
    assert_eq!(verdict.remove, names(&[]));
    assert!(verdict.pools[0].faults[0].contains("budgets[0]"), "{:?}", verdict.pools);
}

#[test]
fn a_node_is_consolidatable_when_its_wait_is_over_busy_or_not() {
    let state = |after: &str, node: OwnedNode| {
        let found = verdict(&[pool("default", &patient(after))], &[node], now()).consolidatable;
        found.into_iter().next().map(|(_, state)| state)
    };
    let lacking = |until: Option<&str>| {
        let until = until.map(|text| text.parse().unwrap());
        Some(Consolidatable::Lacking { until })
    };
    assert_eq!(state("10m", quiet("a").with_pod(&json!({}))), Some(Consolidatable::Holds));
    assert_eq!(state("11m", quiet("a")), lacking(Some("2026-03-11T10:11:00Z")));
    assert_eq!(state("Never", quiet("a")), lacking(None));
    let unsaid = json!({ "status": { "conditions": [condition("Initialized", "False")] } });
    assert_eq!(state("0s", quiet("a").with_claim(&unsaid)), lacking(None));
    assert_eq!(state("0s", quiet("a").with_claim(&gone())), None);
    let stray = json!({ "metadata": { "labels": { "karpenter.sh/nodepool": "other" } } });
    assert_eq!(state("0s", quiet("a").with_node(&stray)), None);
}
