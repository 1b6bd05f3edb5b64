//! When may a pod be asked to leave?

use serde_json::{Value, json};
use testbed::eventually;

use crate::ground::Ground;
use crate::reply::{condition, number, text, uid, version};

fn path(ground: &Ground, name: &str) -> String {
    format!("{}/{name}", ground.here("pods"))
}

async fn evict(ground: &Ground, name: &str, options: Value) -> anyhow::Result<crate::reply::Reply> {
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name }, "deleteOptions": options,
    });
    ground.post(&format!("{}/eviction", path(ground, name)), eviction).await
}

/// A budget and what a controller makes of it.
struct Budget {
    spec: Value,
    healthy: i64,
    desired: i64,
    pods: i64,
}

/// A budget for the pods of app `a`, of which one is healthy and there are no others.
async fn budget(ground: &Ground, name: &str, at_least: i64) -> anyhow::Result<String> {
    let spec = json!({ "minAvailable": at_least, "selector": { "matchLabels": { "app": "a" } } });
    make(ground, name, &Budget { spec, healthy: 1, desired: at_least, pods: 1 }).await
}

/// Makes a budget and waits until its status is right. Where there is no controller we write what it would.
async fn make(ground: &Ground, name: &str, budget: &Budget) -> anyhow::Result<String> {
    let budgets = ground.here("policy/poddisruptionbudgets");
    let path = format!("{budgets}/{name}");
    ground.made(&budgets, json!({ "metadata": { "name": name }, "spec": budget.spec })).await?;
    let wanted = json!({
        "observedGeneration": 1, "currentHealthy": budget.healthy, "desiredHealthy": budget.desired,
        "expectedPods": budget.pods, "disruptionsAllowed": (budget.healthy - budget.desired).max(0),
    });
    eventually("the budget knows its pods", async || {
        let found = ground.get(&path).await?.expect(200)?;
        let is_told = wanted.as_object().into_iter().flatten().all(|(key, value)| found["status"][key] == *value);
        if !is_told {
            // Refused where the controller is faster, and then not needed.
            let meta = json!({ "resourceVersion": version(&found) });
            ground.merge(&format!("{path}/status"), json!({ "metadata": meta, "status": wanted })).await?;
        }
        Ok(is_told.then_some(()))
    })
    .await?;
    Ok(path)
}

/// Makes a pod of app `a` that runs and is not ready.
async fn ailing(ground: &Ground, name: &str) -> anyhow::Result<()> {
    ground.running_pod(name).await?;
    let conditions = json!([{ "type": "Ready", "status": "False" }, { "type": "PodScheduled", "status": "True" }]);
    let patch = json!({ "status": { "conditions": conditions } });
    ground.merge(&format!("{}/status", path(ground, name)), patch).await?.expect(200)?;
    ground.merge(&path(ground, name), json!({ "metadata": { "labels": { "app": "a" } } })).await?.expect(200)?;
    Ok(())
}

pub(crate) async fn a_pod_without_a_budget_leaves(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    let told = evict(ground, "a", json!({})).await?.expect(201)?;
    assert_eq!((text(&told, "/kind"), text(&told, "/status")), ("Status", "Success"));
    let left = ground.get(&path(ground, "a")).await?.expect(200)?;
    assert_eq!(number(&left, "/metadata/deletionGracePeriodSeconds"), 30);
    let disrupted = condition(&left, "DisruptionTarget").cloned().unwrap_or_default();
    assert_eq!((text(&disrupted, "/status"), text(&disrupted, "/reason")), ("True", "EvictionByEvictionAPI"));
    Ok(())
}

pub(crate) async fn an_unbound_pod_is_evicted_at_once(ground: &Ground) -> anyhow::Result<()> {
    ground.pod("a", json!({})).await?;
    evict(ground, "a", json!({})).await?.expect(201)?;
    ground.get(&path(ground, "a")).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn an_eviction_may_set_the_grace(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    evict(ground, "a", json!({ "gracePeriodSeconds": 7 })).await?.expect(201)?;
    let left = ground.get(&path(ground, "a")).await?.expect(200)?;
    assert_eq!(number(&left, "/metadata/deletionGracePeriodSeconds"), 7);
    Ok(())
}

pub(crate) async fn a_budget_without_room_refuses(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    budget(ground, "keep", 1).await?;
    let told = evict(ground, "a", json!({})).await?.refused(429, "TooManyRequests")?;
    assert_eq!(text(&told, "/message"), "Cannot evict pod as it would violate the pod's disruption budget.");
    let cause = &told["details"]["causes"][0];
    assert_eq!(text(cause, "/reason"), "DisruptionBudget");
    assert_eq!(text(cause, "/message"), "The disruption budget keep needs 1 healthy pods and has 1 currently");
    let kept = ground.get(&path(ground, "a")).await?.expect(200)?;
    assert_eq!((kept["metadata"].get("deletionTimestamp"), condition(&kept, "DisruptionTarget")), (None, None));
    Ok(())
}

pub(crate) async fn a_budget_with_room_is_spent(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    let budget = budget(ground, "keep", 0).await?;
    evict(ground, "a", json!({})).await?.expect(201)?;
    let spent = ground.get(&budget).await?.expect(200)?;
    assert_eq!(number(&spent, "/status/disruptionsAllowed"), 0, "{spent:#}");
    let left = ground.get(&path(ground, "a")).await?.expect(200)?;
    assert!(!text(&left, "/metadata/deletionTimestamp").is_empty());
    Ok(())
}

pub(crate) async fn two_budgets_for_a_pod_are_an_error(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    budget(ground, "one", 0).await?;
    budget(ground, "two", 0).await?;
    let told = evict(ground, "a", json!({})).await?.expect(500)?;
    let message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    assert_eq!((text(&told, "/message"), number(&told, "/code"), told.get("reason")), (message, 500, None));
    Ok(())
}

pub(crate) async fn a_pending_pod_needs_no_budget(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    budget(ground, "keep", 1).await?;
    ground.pod("b", json!({ "metadata": { "labels": { "app": "a" } } })).await?;
    evict(ground, "b", json!({})).await?.expect(201)?;
    ground.get(&path(ground, "b")).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn a_pod_that_goes_already_needs_no_budget(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    budget(ground, "keep", 1).await?;
    ground.delete(&path(ground, "a"), json!(null)).await?.expect(200)?;
    evict(ground, "a", json!({})).await?.expect(201)?;
    Ok(())
}

pub(crate) async fn an_eviction_of_another_uid_is_a_conflict(ground: &Ground) -> anyhow::Result<()> {
    let made = ground.running_pod("a").await?;
    let other = json!({ "preconditions": { "uid": "00000000-0000-0000-0000-000000000000" } });
    evict(ground, "a", other).await?.refused(409, "Conflict")?;
    let kept = ground.get(&path(ground, "a")).await?.expect(200)?;
    assert_eq!((uid(&kept), kept["metadata"].get("deletionTimestamp")), (uid(&made), None));
    evict(ground, "a", json!({ "preconditions": { "uid": uid(&made) } })).await?.expect(201)?;
    Ok(())
}

pub(crate) async fn a_missing_pod_is_not_evicted(ground: &Ground) -> anyhow::Result<()> {
    let told = evict(ground, "a", json!({})).await?.refused(404, "NotFound")?;
    assert_eq!(told["details"], json!({ "name": "a", "kind": "pods" }));
    Ok(())
}

pub(crate) async fn an_eviction_must_name_its_pod(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    let eviction = json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "b" } });
    ground.post(&format!("{}/eviction", path(ground, "a")), eviction).await?.refused(400, "BadRequest")?;
    Ok(())
}

pub(crate) async fn an_ailing_pod_leaves_while_enough_are_well(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    ailing(ground, "b").await?;
    let spec = json!({ "minAvailable": 1, "selector": { "matchLabels": { "app": "a" } } });
    make(ground, "keep", &Budget { spec, healthy: 1, desired: 1, pods: 2 }).await?;
    evict(ground, "a", json!({})).await?.refused(429, "TooManyRequests")?;
    evict(ground, "b", json!({})).await?.expect(201)?;
    Ok(())
}

pub(crate) async fn an_ailing_pod_stays_while_too_few_are_well(ground: &Ground) -> anyhow::Result<()> {
    ailing(ground, "b").await?;
    let spec = json!({ "minAvailable": 1, "selector": { "matchLabels": { "app": "a" } } });
    make(ground, "keep", &Budget { spec, healthy: 0, desired: 1, pods: 1 }).await?;
    let told = evict(ground, "b", json!({})).await?.refused(429, "TooManyRequests")?;
    let why = "The disruption budget keep needs 1 healthy pods and has 0 currently";
    assert_eq!(text(&told, "/details/causes/0/message"), why);
    Ok(())
}

pub(crate) async fn an_ailing_pod_leaves_where_its_budget_always_lets_it(ground: &Ground) -> anyhow::Result<()> {
    ailing(ground, "b").await?;
    let spec = json!({
        "minAvailable": 1, "selector": { "matchLabels": { "app": "a" } }, "unhealthyPodEvictionPolicy": "AlwaysAllow",
    });
    make(ground, "keep", &Budget { spec, healthy: 0, desired: 1, pods: 1 }).await?;
    evict(ground, "b", json!({})).await?.expect(201)?;
    Ok(())
}

pub(crate) async fn a_budget_with_an_empty_selector_covers_every_pod(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    let spec = json!({ "minAvailable": 1, "selector": {} });
    make(ground, "keep", &Budget { spec, healthy: 1, desired: 1, pods: 1 }).await?;
    evict(ground, "a", json!({})).await?.refused(429, "TooManyRequests")?;
    Ok(())
}

pub(crate) async fn a_budget_may_select_by_expressions(ground: &Ground) -> anyhow::Result<()> {
    ground.running_pod("a").await?;
    ground.running_pod("b").await?;
    let expressions = json!([
        { "key": "app", "operator": "In", "values": ["a", "c"] }, { "key": "none", "operator": "DoesNotExist" },
        { "key": "app", "operator": "Exists" }, { "key": "other", "operator": "NotIn", "values": ["x"] },
    ]);
    let spec = json!({ "minAvailable": 1, "selector": { "matchExpressions": expressions } });
    make(ground, "keep", &Budget { spec, healthy: 1, desired: 1, pods: 1 }).await?;
    evict(ground, "a", json!({})).await?.refused(429, "TooManyRequests")?;
    evict(ground, "b", json!({})).await?.expect(201)?;
    Ok(())
}
