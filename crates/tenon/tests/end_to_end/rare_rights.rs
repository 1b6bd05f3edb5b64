//! Do rights suffice that only rare situations need? A published API server, a token that expires before its node has joined, a volume
//! of a pod that stays on its node.

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, Secret};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tenon_api::{ProxmoxNodeClass, names};

use crate::bench::{from_json, quick_guests};
use crate::ground::Kind;
use crate::world::{NAMESPACE, World};

/// What kubeadm publishes, with the server of this control plane: no VM of another machine could reach it.
async fn publish_server(world: &World) -> anyhow::Result<String> {
    let server = world.testbed()?.server().to_owned();
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "clusters": [{ "name": "", "cluster": { "server": server } }],
    });
    let map: ConfigMap = from_json(json!({
        "metadata": { "name": "cluster-info" }, "data": { "kubeconfig": kubeconfig.to_string() },
    }))?;
    let maps: Api<ConfigMap> = Api::namespaced(world.admin.clone(), "kube-public");
    maps.create(&PostParams::default(), &map).await?;
    Ok(server)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_published_api_server_that_vms_cannot_reach_is_named() -> anyhow::Result<()> {
    let Some(mut world) = World::new(Kind::Real, quick_guests()).await? else { return Ok(()) };
    let server = publish_server(&world).await?;
    world.add_rules().await?;
    world.real()?.knows_endpoint = false;
    world.start_controller()?;
    let told = world.until("the class says so", async || {
        let found = world.condition::<ProxmoxNodeClass>("default", "InstanceMetadataOptionsReady").await?;
        Ok(found.map(|told| told.message).filter(|message| message.contains("cluster-info")))
    });
    let told = told.await?;
    assert!(told.contains(&format!("names {server}, which VMs cannot reach; set --cluster-endpoint")), "{told}");
    world.end().await
}

/// The only bootstrap token there is.
async fn token(world: &World) -> anyhow::Result<Option<Secret>> {
    let ours = ListParams::default().labels(&format!("{}=true", names::LABEL_BOOTSTRAP_TOKEN));
    Ok(secrets(world).list(&ours).await?.items.pop())
}

fn secrets(world: &World) -> Api<Secret> {
    Api::namespaced(world.admin.clone(), "kube-system")
}

fn expiration(secret: &Secret) -> anyhow::Result<Timestamp> {
    let data = secret.data.as_ref().and_then(|data| data.get("expiration")).context("it never expires")?;
    Ok(std::str::from_utf8(&data.0)?.parse()?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_would_expire_before_its_node_joins_is_extended() -> anyhow::Result<()> {
    let Some(mut world) = World::new(Kind::Real, quick_guests()).await? else { return Ok(()) };
    world.replace_guests(None).await;
    world.add_rules().await?;
    world.start_controller()?;
    world.deploy("web", 1).await?;
    let made = world.until("there is a token", async || token(&world).await).await?;
    // Tokens are looked through once a minute.
    let soon = Timestamp::now() + SignedDuration::from_mins(4);
    let patch = json!({ "stringData": { "expiration": soon.strftime("%Y-%m-%dT%H:%M:%SZ").to_string() } });
    secrets(&world).patch(&made.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    let extended = world.until("it is extended", async || {
        let now = token(&world).await?.context("it is gone")?;
        Ok((expiration(&now)? > soon + SignedDuration::from_mins(1)).then_some(now.name_any()))
    });
    assert_eq!(extended.await?, made.name_any());
    world.replace_guests(Some(quick_guests())).await;
    world.until_running("web", 1).await?;
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

/// A pod of the node's own, which nothing drains, with a volume that is attached.
async fn add_volume_that_stays(world: &World, node: &str) -> anyhow::Result<()> {
    let post = PostParams::default();
    let volume: PersistentVolume = from_json(json!({
        "metadata": { "name": "kept" },
        "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "storageClassName": "none",
            "csi": { "driver": "csi.example", "volumeHandle": "kept" },
        },
    }))?;
    Api::all(world.admin.clone()).create(&post, &volume).await?;
    let claim: PersistentVolumeClaim = from_json(json!({
        "metadata": { "name": "kept" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
            "storageClassName": "none", "volumeName": "kept",
        },
    }))?;
    Api::namespaced(world.admin.clone(), NAMESPACE).create(&post, &claim).await?;
    let pod: Pod = from_json(json!({
        "metadata": { "name": "of-the-node" },
        "spec": {
            "nodeName": node, "tolerations": [{ "operator": "Exists" }], "terminationGracePeriodSeconds": 1,
            "containers": [{ "name": "c", "image": "registry.example/c:1" }],
            "volumes": [{ "name": "v", "persistentVolumeClaim": { "claimName": "kept" } }],
        },
    }))?;
    Api::namespaced(world.admin.clone(), NAMESPACE).create(&post, &pod).await?;
    let attachment: VolumeAttachment = from_json(json!({
        "metadata": { "name": "kept" },
        "spec": { "attacher": "csi.example", "nodeName": node, "source": { "persistentVolumeName": "kept" } },
    }))?;
    Api::all(world.admin.clone()).create(&post, &attachment).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_volume_of_a_pod_that_stays_does_not_keep_its_node() -> anyhow::Result<()> {
    let Some(mut world) = World::running(Kind::Real).await? else { return Ok(()) };
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;
    let node = world.nodes().await?.first().context("there is no node")?.name_any();
    add_volume_that_stays(&world, &node).await?;
    world.scale("web", 0).await?;
    world.delete_claim(&node).await?;
    world.until_nothing_is_left().await?;
    let attachments: Api<VolumeAttachment> = Api::all(world.admin.clone());
    assert!(attachments.get_opt("kept").await?.is_some(), "nothing was waited for");
    world.real()?.stop_controller()?;
    world.end().await
}
