//! Do pods get nodes that have to be spread, kept apart, or near their volumes; and do the nodes go with them?

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};

use crate::bench::from_json;
use crate::ground::{Kind, scenarios};
use crate::world::{NAMESPACE, World};

const ZONE: &str = "topology.kubernetes.io/zone";
const HOSTNAME: &str = "kubernetes.io/hostname";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

scenarios! {
    a_deployment_that_is_spread_over_zones_gets_a_node_in_each_and_frees_them,
    pods_that_keep_apart_get_a_node_each_and_free_them,
}

/// What a container asks for: little, so that only constraints make more than one node.
fn little() -> Value {
    json!({ "resources": { "requests": { "cpu": "100m", "memory": "64Mi" } } })
}

impl World {
    /// The values of a label on the nodes of all pods of an app.
    async fn values_at(&self, app: &str, label: &str) -> anyhow::Result<BTreeSet<String>> {
        let pods: Api<Pod> = Api::namespaced(self.admin.clone(), NAMESPACE);
        let list = pods.list(&ListParams::default().labels(&format!("app={app}"))).await?.items;
        let names: BTreeSet<String> = list.into_iter().filter_map(|pod| pod.spec?.node_name).collect();
        let nodes = self.nodes().await?.into_iter().filter(|node| names.contains(&node.name_any()));
        Ok(nodes.filter_map(|node| node.labels().get(label).cloned()).collect())
    }

    /// Makes the volumes of claims that are told their node, each in the zone of that node, as a driver does.
    async fn provision(&self, class: &str) -> anyhow::Result<()> {
        let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.admin.clone(), NAMESPACE);
        let volumes: Api<PersistentVolume> = Api::all(self.admin.clone());
        for claim in claims.list(&ListParams::default()).await?.items {
            let Some(node) = claim.annotations().get(SELECTED_NODE) else { continue };
            let name = format!("volume-of-{}", claim.name_any());
            if volumes.get_opt(&name).await?.is_some() {
                continue;
            }
            let nodes = self.nodes().await?;
            let zone = nodes.iter().find(|known| known.name_any() == *node).and_then(|node| node.labels().get(ZONE));
            let term = json!({ "matchExpressions": [{ "key": ZONE, "operator": "In", "values": [zone] }] });
            let volume: PersistentVolume = from_json(json!({
                "metadata": { "name": name },
                "spec": {
                    "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "storageClassName": class,
                    "persistentVolumeReclaimPolicy": "Retain", "csi": { "driver": "csi.example", "volumeHandle": name },
                    "nodeAffinity": { "required": { "nodeSelectorTerms": [term] } },
                    "claimRef": { "namespace": NAMESPACE, "name": claim.name_any(), "uid": claim.uid() },
                },
            }))?;
            volumes.create(&PostParams::default(), &volume).await?;
        }
        Ok(())
    }
}

async fn a_deployment_that_is_spread_over_zones_gets_a_node_in_each_and_frees_them(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = World::running(kind).await? else { return Ok(()) };
    // Without minDomains, kube-scheduler spreads over the zones that have a node already: whichever joins first may get all.
    let spread = json!({ "topologySpreadConstraints": [{
        "maxSkew": 1, "minDomains": 3, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "app": "web" } },
    }] });
    world.deploy_pods(("web", 3), little(), spread).await?;
    world.until_running("web", 3).await?;
    let zones = world.values_at("web", ZONE).await?;
    assert_eq!((zones.len(), world.nodes().await?.len()), (3, 3), "{zones:?}\n{}", world.tail());
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn pods_that_keep_apart_get_a_node_each_and_free_them(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = World::running(kind).await? else { return Ok(()) };
    let term = json!({ "topologyKey": HOSTNAME, "labelSelector": { "matchLabels": { "app": "db" } } });
    let apart =
        json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } } });
    world.deploy_pods(("db", 3), little(), apart).await?;
    world.until_running("db", 3).await?;
    assert_eq!(world.values_at("db", HOSTNAME).await?.len(), 3, "{}", world.tail());
    world.scale("db", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

/// Only a real control plane makes pods and claims of a StatefulSet.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stateful_set_gets_nodes_where_its_volumes_can_be_and_frees_them() -> anyhow::Result<()> {
    let Some(world) = World::running(Kind::Real).await? else { return Ok(()) };
    let class: StorageClass = from_json(json!({
        "metadata": { "name": "zonal" }, "provisioner": "csi.example", "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{ "matchLabelExpressions": [{ "key": ZONE, "values": ["pve2", "pve3"] }] }],
    }))?;
    Api::<StorageClass>::all(world.admin.clone()).create(&PostParams::default(), &class).await?;
    let container = json!({
        "name": "c", "image": "registry.example/c:1", "resources": little()["resources"],
        "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
    });
    // Volumes leave two of three zones, so evenness can only be a wish.
    let spread = json!({
        "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": { "matchLabels": { "app": "store" } },
    });
    let claim = json!({
        "metadata": { "name": "data" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "zonal", "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    let set: StatefulSet = from_json(json!({
        "metadata": { "name": "store" },
        "spec": {
            "serviceName": "store", "replicas": 2, "podManagementPolicy": "Parallel",
            "selector": { "matchLabels": { "app": "store" } }, "volumeClaimTemplates": [claim],
            "template": {
                "metadata": { "labels": { "app": "store" } },
                "spec": {
                    "terminationGracePeriodSeconds": 1, "containers": [container],
                    "topologySpreadConstraints": [spread],
                },
            },
        },
    }))?;
    let sets: Api<StatefulSet> = Api::namespaced(world.admin.clone(), NAMESPACE);
    sets.create(&PostParams::default(), &set).await?;
    let pods: Api<Pod> = Api::namespaced(world.admin.clone(), NAMESPACE);
    world
        .until("both pods of the StatefulSet run", async || {
            world.provision("zonal").await?;
            let list = pods.list(&ListParams::default().labels("app=store")).await?.items;
            let is_running = |pod: &&Pod| pod.status.as_ref().and_then(|told| told.phase.as_deref()) == Some("Running");
            Ok((list.iter().filter(is_running).count() == 2).then_some(()))
        })
        .await?;
    let zones = world.values_at("store", ZONE).await?;
    assert!(zones.iter().all(|zone| ["pve2", "pve3"].contains(&zone.as_str())), "{zones:?}\n{}", world.tail());
    sets.delete("store", &DeleteParams::default()).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}
