//! Evictions and the budgets that forbid them.

use serde_json::{Value, json};

use crate::cluster::{Asker, MERGE, PODS, admin, pod_on};

const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

async fn running_pod(asker: &Asker, name: &str, is_ready: bool) {
    asker.make(PODS, pod_on(name, "n1")).await;
    let ready = if is_ready { "True" } else { "False" };
    let status = json!({ "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": ready }] } });
    asker.patch(&format!("{PODS}/{name}/status"), (MERGE, status)).await;
}

async fn budget(asker: &Asker, name: &str, status: Value) {
    let spec = json!({ "minAvailable": 1, "selector": { "matchLabels": { "app": "x" } } });
    let budget =
        json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": name }, "spec": spec });
    asker.make(BUDGETS, budget).await;
    asker.patch(&format!("{BUDGETS}/{name}/status"), (MERGE, json!({ "status": status }))).await;
}

async fn evict(asker: &Asker, name: &str) -> (u16, Value) {
    let eviction = json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name } });
    asker.post(&format!("{PODS}/{name}/eviction"), eviction).await
}

#[tokio::test]
async fn a_pod_without_a_budget_leaves() {
    let asker = admin();
    running_pod(&asker, "a", true).await;
    assert_eq!(evict(&asker, "a").await.0, 201);
    let (_, pod) = asker.get(&format!("{PODS}/a")).await;
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(pod["status"]["conditions"][1]["reason"], "EvictionByEvictionAPI");
    assert_eq!(evict(&asker, "none").await.0, 404);
}

#[tokio::test]
async fn a_budget_with_nothing_left_forbids() {
    let asker = admin();
    running_pod(&asker, "a", true).await;
    budget(&asker, "one", json!({ "observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1 })).await;
    let (code, status) = evict(&asker, "a").await;
    assert_eq!((code, status["reason"].as_str()), (429, Some("TooManyRequests")));
    assert_eq!(status["message"], "Cannot evict pod as it would violate the pod's disruption budget.");
    let cause = json!({ "reason": "DisruptionBudget", "message": "The disruption budget one needs 1 healthy pods and has 1 currently" });
    assert_eq!(status["details"]["causes"][0], cause);
    assert!(asker.get(&format!("{PODS}/a")).await.1["metadata"].get("deletionTimestamp").is_none());
}

#[tokio::test]
async fn a_budget_is_spent() {
    let asker = admin();
    running_pod(&asker, "a", true).await;
    running_pod(&asker, "b", true).await;
    let status = json!({ "observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1 });
    budget(&asker, "one", status).await;
    assert_eq!(evict(&asker, "a").await.0, 201);
    let (_, spent) = asker.get(&format!("{BUDGETS}/one")).await;
    assert_eq!(spent["status"]["disruptionsAllowed"], 0);
    assert!(spent["status"]["disruptedPods"].get("a").is_some());
    assert_eq!(evict(&asker, "b").await.0, 429);
    assert_eq!(evict(&asker, "a").await.0, 201, "what leaves already costs nothing");
}

#[tokio::test]
async fn a_budget_nobody_has_looked_at_forbids() {
    let asker = admin();
    running_pod(&asker, "a", true).await;
    budget(&asker, "one", json!({ "disruptionsAllowed": 1 })).await;
    let (code, status) = evict(&asker, "a").await;
    assert_eq!((code, &status["details"]["retryAfterSeconds"]), (429, &json!(10)));
    let told = "The disruption budget one is still being processed by the server.";
    assert_eq!(status["details"]["causes"][0]["message"], told);
}

#[tokio::test]
async fn two_budgets_are_an_error() {
    let asker = admin();
    running_pod(&asker, "a", true).await;
    for name in ["one", "two"] {
        budget(&asker, name, json!({ "observedGeneration": 1, "disruptionsAllowed": 1 })).await;
    }
    let (code, status) = evict(&asker, "a").await;
    assert_eq!(code, 500);
    let told = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
    assert_eq!(status["message"], told);
}

#[tokio::test]
async fn pods_that_do_not_run_need_no_budget() {
    let asker = admin();
    budget(&asker, "one", json!({ "observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1 })).await;
    asker.make(PODS, pod_on("pending", "n1")).await;
    assert_eq!(evict(&asker, "pending").await.0, 201);
    running_pod(&asker, "unready", false).await;
    assert_eq!(evict(&asker, "unready").await.0, 201, "it is not counted, and enough others are");
}

#[tokio::test]
async fn only_the_pod_that_was_meant_is_evicted() {
    let asker = admin();
    running_pod(&asker, "a", true).await;
    let options = json!({ "preconditions": { "uid": "other" } });
    let eviction =
        json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "a" }, "deleteOptions": options });
    assert_eq!(asker.post(&format!("{PODS}/a/eviction"), eviction).await.0, 409);
}
