//! The pods of the demo: a mix of small and large ones, as people have them.

use anyhow::Context as _;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tenon_api::{NodePool, ProxmoxNodeClass, ProxmoxUnmanagedTemplate, names};
use tenon_model::resources::CPU;
use tenon_model::{InstanceType, Quantity};

/// Name, cores and memory of each deployment; pods are dealt out to them in turn.
const DEPLOYMENTS: [(&str, &str, &str); 3] = [("web", "500m", "512Mi"), ("api", "3", "4Gi"), ("cache", "1", "12Gi")];

/// Nodes are no larger than this, so that there is more than one to see.
const CORES_AT_MOST: i64 = 8;

const NAMESPACE: &str = "default";

/// A template, a class and a pool, as a user would write them.
pub(crate) async fn apply_rules(client: &Client) -> anyhow::Result<()> {
    let template: ProxmoxUnmanagedTemplate = read(json!({
        "apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1", "kind": "ProxmoxUnmanagedTemplate",
        "metadata": { "name": "debian" }, "spec": { "templateName": "debian-13" },
    }))?;
    Api::all(client.clone())
        .create(&PostParams::default(), &template)
        .await
        .context("cannot create ProxmoxUnmanagedTemplate debian")?;
    let class: ProxmoxNodeClass = read(json!({
        "apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1", "kind": "ProxmoxNodeClass",
        "metadata": { "name": "default" },
        "spec": {
            "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" },
            "metadataOptions": { "type": "cdrom" },
        },
    }))?;
    Api::all(client.clone())
        .create(&PostParams::default(), &class)
        .await
        .context("cannot create ProxmoxNodeClass default")?;
    let pool: NodePool = read(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "default" },
        "spec": {
            "template": { "spec": {
                "requirements": [{ "key": names::LABEL_INSTANCE_TYPE, "operator": "In", "values": sizes() }],
                "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
            } },
            "disruption": { "consolidationPolicy": "WhenEmpty", "consolidateAfter": "5s", "budgets": [{ "nodes": "100%" }] },
        },
    }))?;
    Api::all(client.clone()).create(&PostParams::default(), &pool).await.context("cannot create NodePool default")?;
    Ok(())
}

/// As many pods as asked for.
pub(crate) async fn apply(client: &Client, pods: u32) -> anyhow::Result<()> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let kinds = u32::try_from(DEPLOYMENTS.len()).unwrap_or(1);
    for (index, (name, cpu, memory)) in (0..kinds).zip(DEPLOYMENTS) {
        let replicas = pods / kinds + u32::from(index < pods % kinds);
        let deployment: Deployment = read(json!({
            "metadata": { "name": name },
            "spec": {
                "replicas": replicas, "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": {
                        "terminationGracePeriodSeconds": 2,
                        "containers": [{ "name": name, "image": format!("registry.example/{name}:1"),
                            "resources": { "requests": { "cpu": cpu, "memory": memory } } }],
                    },
                },
            },
        }))?;
        api.create(&PostParams::default(), &deployment)
            .await
            .with_context(|| format!("cannot create Deployment {name}"))?;
    }
    Ok(())
}

/// Nobody needs the pods any more.
pub(crate) async fn scale_to_zero(client: &Client) -> anyhow::Result<()> {
    let api: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    for deployment in api.list(&ListParams::default()).await?.items {
        let name = deployment.metadata.name.unwrap_or_default();
        let patch = Patch::Merge(json!({ "spec": { "replicas": 0 } }));
        api.patch(&name, &PatchParams::default(), &patch)
            .await
            .with_context(|| format!("cannot scale Deployment {name}"))?;
    }
    Ok(())
}

/// The sizes of a pool of smaller nodes.
fn sizes() -> Vec<String> {
    let fits = |size: &InstanceType| size.capacity.get(CPU) <= Quantity::whole(CORES_AT_MOST);
    InstanceType::built_in().into_iter().filter(fits).map(|size| size.name).collect()
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> anyhow::Result<T> {
    serde_json::from_value(value).context("cannot read an object of the demo")
}
