//! The pods of the demo: a mix of small and large ones, as people have them.

use anyhow::Context as _;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, Resource, ResourceExt};
use serde_json::{Value, json};
use tenon_api::kube_objects::Deployment;
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
    create::<ProxmoxUnmanagedTemplate>(
        client,
        json!({
            "apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1", "kind": "ProxmoxUnmanagedTemplate",
            "metadata": { "name": "debian" }, "spec": { "templateName": "debian-13" },
        }),
    )
    .await?;
    create::<ProxmoxNodeClass>(
        client,
        json!({
            "apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1", "kind": "ProxmoxNodeClass",
            "metadata": { "name": "default" },
            "spec": {
                "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" },
                "metadataOptions": { "type": "cdrom" },
            },
        }),
    )
    .await?;
    create::<NodePool>(client, json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": { "name": "default" },
        "spec": {
            "template": { "spec": {
                "requirements": [{ "key": names::LABEL_INSTANCE_TYPE, "operator": "In", "values": sizes() }],
                "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
            } },
            "disruption": { "consolidationPolicy": "WhenEmpty", "consolidateAfter": "5s", "budgets": [{ "nodes": "100%" }] },
        },
    })).await
}

/// As many pods as asked for.
pub(crate) async fn apply(client: &Client, pods: u32) -> anyhow::Result<()> {
    let kinds = u32::try_from(DEPLOYMENTS.len()).unwrap_or(1);
    for (index, (name, cpu, memory)) in (0..kinds).zip(DEPLOYMENTS) {
        let replicas = pods / kinds + u32::from(index < pods % kinds);
        create::<Deployment>(
            client,
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name, "namespace": NAMESPACE },
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
            }),
        )
        .await?;
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

/// Creates an object as it is written here.
async fn create<K: Resource<DynamicType = ()>>(client: &Client, object: Value) -> anyhow::Result<()> {
    let kind = ApiResource::erase::<K>(&());
    let object: DynamicObject = serde_json::from_value(object).context("cannot read an object of the demo")?;
    let api = match object.namespace() {
        Some(namespace) => Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    let outcome = api.create(&PostParams::default(), &object).await;
    outcome.map(drop).with_context(|| format!("cannot create {} {}", kind.kind, object.name_any()))
}
