//! Leases, disruption budgets and evictions, as drains and leader election will use them.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Client;
use kube::api::{Api, EvictParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::support::{
    assert_refused, bound, eventually, from_json, new_namespace, ready_node, report_running, shared_testbed,
};

#[tokio::test]
async fn a_lease_can_be_renewed_only_by_who_read_it_last() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let client = testbed.admin().await?;
    new_namespace(&client, "leases").await?;
    let leases: Api<Lease> = Api::namespaced(client, "leases");
    let lease = from_json(json!({
        "metadata": { "name": "leader" },
        "spec": { "holderIdentity": "one", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z" },
    }))?;
    let first = leases.create(&PostParams::default(), &lease).await?;

    let mut renewed = first.clone();
    if let Some(spec) = renewed.spec.as_mut() {
        spec.holder_identity = Some("two".to_owned());
    }
    let renewed = leases.replace("leader", &PostParams::default(), &renewed).await?;
    assert_ne!(renewed.metadata.resource_version, first.metadata.resource_version);
    // `first` is a memory of the past now.
    assert_refused(leases.replace("leader", &PostParams::default(), &first).await, 409);
    let holder = leases.get("leader").await?.spec.and_then(|spec| spec.holder_identity);
    assert_eq!(holder.as_deref(), Some("two"));
    Ok(())
}

/// Two running pods that a budget guards.
async fn guarded_pods(client: &Client, namespace: &str) -> anyhow::Result<Api<Pod>> {
    let node = format!("{namespace}-node");
    new_namespace(client, namespace).await?;
    ready_node(client, &node).await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    for name in ["a", "b"] {
        let pod = from_json(json!({
            "metadata": { "name": name, "labels": { "app": "guarded" } },
            "spec": {
                "nodeSelector": { "pool": node },
                "containers": [{ "name": "main", "image": "registry.example/main:1" }],
            },
        }))?;
        pods.create(&PostParams::default(), &pod).await?;
        bound(&pods, name).await?;
        report_running(&pods, name).await?;
    }
    Ok(pods)
}

#[tokio::test]
async fn an_eviction_waits_for_its_disruption_budget() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let client = testbed.admin().await?;
    let namespace = "evictions";
    let pods = guarded_pods(&client, namespace).await?;
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(client, namespace);
    let budget = from_json(json!({
        "metadata": { "name": "guard" },
        "spec": { "minAvailable": 2, "selector": { "matchLabels": { "app": "guarded" } } },
    }))?;
    budgets.create(&PostParams::default(), &budget).await?;
    let allowed = async |wanted: i32| {
        eventually("the budget counts its pods", async || {
            let status = budgets.get_status("guard").await?.status;
            Ok(status.filter(|status| status.current_healthy == Some(2) && status.disruptions_allowed == Some(wanted)))
        })
        .await
    };
    allowed(0).await?;
    assert_refused(pods.evict("a", &EvictParams::default()).await, 429);

    let relaxed = Patch::Merge(json!({ "spec": { "minAvailable": 1 } }));
    budgets.patch("guard", &PatchParams::default(), &relaxed).await?;
    allowed(1).await?;
    pods.evict("a", &EvictParams::default()).await?;
    assert!(pods.get("a").await?.metadata.deletion_timestamp.is_some());
    assert_refused(pods.evict("b", &EvictParams::default()).await, 429);
    Ok(())
}
