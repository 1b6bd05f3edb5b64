//! The real scheduler and the real workload keepers.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::json;

use crate::support::{eventually, from_json, names, new_namespace, ready_node, shared_testbed};

fn deployment(name: &str, node_label: &str) -> anyhow::Result<Deployment> {
    from_json(json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": { "app": name } },
            "template": {
                "metadata": { "labels": { "app": name } },
                "spec": {
                    "nodeSelector": { "pool": node_label },
                    "containers": [{
                        "name": "main",
                        "image": "registry.example/main:1",
                        "resources": { "requests": { "cpu": "500m", "memory": "64Mi" } },
                    }],
                },
            },
        },
    }))
}

fn unschedulable_message(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let scheduled = conditions.iter().find(|condition| condition.type_ == "PodScheduled")?;
    (scheduled.status == "False" && scheduled.reason.as_deref() == Some("Unschedulable"))
        .then(|| scheduled.message.clone().unwrap_or_default())
}

#[tokio::test]
async fn pods_of_a_deployment_are_unschedulable_until_a_node_fits_them() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let client = testbed.admin().await?;
    let (namespace, node) = ("scheduling", "scheduling-node");
    new_namespace(&client, namespace).await?;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    deployments.create(&PostParams::default(), &deployment("web", node)?).await?;

    let waiting = eventually("two pods are unschedulable", async || {
        let list = pods.list(&ListParams::default().labels("app=web")).await?.items;
        let messages: Vec<String> = list.iter().filter_map(unschedulable_message).collect();
        Ok((messages.len() == 2).then_some(messages))
    })
    .await?;
    // "0/1 nodes are available: …", or "no nodes available …" while there is none at all.
    assert!(waiting.iter().all(|message| message.contains("available")), "{waiting:?}");

    ready_node(&client, node).await?;
    eventually("kube-scheduler binds both pods to the node", async || {
        let list = pods.list(&ListParams::default().labels("app=web")).await?.items;
        let on_node = |pod: &&Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node);
        Ok((list.iter().filter(on_node).count() == 2).then_some(()))
    })
    .await
}

#[tokio::test]
async fn what_a_deleted_deployment_owned_is_collected() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let client = testbed.admin().await?;
    let namespace = "collection";
    new_namespace(&client, namespace).await?;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let pods: Api<Pod> = Api::namespaced(client, namespace);
    deployments.create(&PostParams::default(), &deployment("web", "no-such-node")?).await?;
    eventually("the Deployment has its pods", async || {
        Ok((pods.list(&ListParams::default()).await?.items.len() == 2).then_some(()))
    })
    .await?;

    deployments.delete("web", &DeleteParams::background()).await?;
    eventually("its pods are collected", async || {
        let left = names(&pods.list(&ListParams::default()).await?.items);
        Ok(left.is_empty().then_some(()))
    })
    .await
}
