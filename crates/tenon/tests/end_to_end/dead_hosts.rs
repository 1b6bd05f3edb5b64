//! A host dies with nodes on it: do their pods run elsewhere, are its VMs left alone as long as it is away, and is nothing left once it
//! is back, or gone for good?

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use tenon_api::NodeClaim;
use tenon_sim::LedgerEntry;

use crate::bench::quick_guests;
use crate::ground::Kind;
use crate::world::{NAMESPACE, World, record_of};

/// A quarter of an hour of toleration, and one replacement after the other; time costs nothing here.
const PATIENCE: Duration = Duration::from_secs(3600);

const PODS: u32 = 9;

/// A world in which a host died with at least three of nine nodes, more than node repair does anything about; the host, and the claims that were there.
async fn with_dead_host() -> anyhow::Result<(World, String, Vec<NodeClaim>)> {
    let world = World::new(Kind::Embedded, quick_guests()).await?;
    let mut world = world.context("an embedded world is always there")?;
    world.add_rules().await?;
    world.switch("NodeRepair=true");
    world.repair_offline_hosts();
    world.start_controller()?;
    world.disrupt_with(json!({ "consolidateAfter": "Never", "budgets": [{ "nodes": "2" }] })).await?;
    world.deploy_pods(("web", PODS), small(), apart()).await?;
    world.until_running("web", PODS as usize).await?;
    let mut by_host: BTreeMap<String, Vec<NodeClaim>> = BTreeMap::new();
    for claim in world.claims().await? {
        by_host.entry(record_of(&claim)?.host().to_string()).or_default().push(claim);
    }
    let (host, lost) = by_host.into_iter().max_by_key(|(_, claims)| claims.len()).context("there are no nodes")?;
    assert!(lost.len() >= 3, "more than a fifth of the nodes are on {host}");
    world.estate.set_host_online(&host, false)?;
    Ok((world, host, lost))
}

fn small() -> Value {
    json!({ "resources": { "requests": { "cpu": "500m", "memory": "256Mi" } } })
}

/// Every pod gets a node of its own.
fn apart() -> Value {
    let term = json!({ "labelSelector": { "matchLabels": { "app": "web" } }, "topologyKey": "kubernetes.io/hostname" });
    json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [term] } } })
}

/// Waits until other nodes run all pods, and every lost claim says which host it waits for.
async fn until_replaced(world: &World, host: &str, lost: &[NodeClaim]) -> anyhow::Result<()> {
    let old: BTreeSet<String> = lost.iter().map(ResourceExt::name_any).collect();
    world
        .until_within(PATIENCE, "all nodes of the dead host are replaced", async || {
            let claims = world.claims().await?;
            let is_ready = |claim: &&NodeClaim| {
                let mut conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
                !old.contains(&claim.name_any())
                    && conditions.any(|told| told.type_ == "Initialized" && format!("{:?}", told.status) == "True")
            };
            Ok((claims.iter().filter(is_ready).count() >= PODS as usize).then_some(()))
        })
        .await?;
    for claim in lost {
        let told = ("True", "HostOffline");
        let message = world
            .until_within(PATIENCE, "the claim names its host", async || {
                let found = world.condition::<NodeClaim>(&claim.name_any(), "InstanceTerminating").await?;
                let is_it = |found: &tenon_api::Condition| {
                    (format!("{:?}", found.status).as_str(), found.reason.as_str()) == told
                };
                Ok(found.filter(is_it).map(|found| found.message))
            })
            .await?;
        assert!(message.contains(&format!("host {host} is offline")), "{message}");
    }
    until_running(world).await
}

/// Waits until so many pods run that nobody ends. Those of silent nodes are ended, and stay for as long as their Node does.
async fn until_running(world: &World) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::namespaced(world.admin.clone(), NAMESPACE);
    world
        .until_within(PATIENCE, "as many pods run as should", async || {
            let list = pods.list(&ListParams::default()).await?.items;
            let runs = |pod: &&Pod| {
                let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
                pod.metadata.deletion_timestamp.is_none() && phase == Some("Running")
            };
            Ok((list.iter().filter(runs).count() == PODS as usize).then_some(()))
        })
        .await
}

/// What was asked of VMs of a host, and might have changed them.
fn changes(world: &World, host: &str, begin: usize) -> Vec<LedgerEntry> {
    let of_host = format!("/nodes/{host}/qemu/");
    let is_change = |entry: &LedgerEntry| entry.method != "GET" && entry.path.contains(&of_host);
    world.estate.ledger().into_iter().skip(begin).filter(is_change).collect()
}

#[tokio::test(start_paused = true)]
async fn a_host_that_dies_has_its_nodes_replaced_and_its_vms_are_destroyed_once_it_is_back() -> anyhow::Result<()> {
    let (world, host, lost) = with_dead_host().await?;
    let (begin, vms) = (world.estate.ledger().len(), world.vms());
    world.estate.set_quorum_lost(true);
    for _ in 0..30 {
        world.let_pass(Duration::from_secs(60)).await?;
    }
    let old: BTreeSet<String> = lost.iter().map(ResourceExt::name_any).collect();
    let stays = |claim: &&NodeClaim| claim.metadata.deletion_timestamp.is_none() && old.contains(&claim.name_any());
    let kept = world.claims().await?.iter().filter(stays).count();
    assert_eq!(kept, lost.len(), "without quorum nobody knows which hosts are away\n{}", world.tail());
    world.estate.set_quorum_lost(false);
    until_replaced(&world, &host, &lost).await?;
    for _ in 0..10 {
        world.let_pass(Duration::from_secs(60)).await?;
    }
    assert!(changes(&world, &host, begin).is_empty(), "{:?}", changes(&world, &host, begin));
    assert!(vms.iter().all(|vmid| world.vms().contains(vmid)), "no VM goes while its host is away");
    let begin = world.estate.ledger().len();
    world.estate.set_host_online(&host, true)?;
    world
        .until_within(PATIENCE, "the old VMs are destroyed", async || {
            let (claims, vms) = (world.claims().await?.len(), world.vms().len());
            Ok(((claims, vms) == (PODS as usize, PODS as usize)).then_some(()))
        })
        .await?;
    for claim in &lost {
        let path = format!("/nodes/{host}/qemu/{}", record_of(claim)?.vmid);
        let destroyed = changes(&world, &host, begin).into_iter();
        let destroyed = destroyed.filter(|entry| entry.method == "DELETE" && entry.path.ends_with(&path));
        assert_eq!(destroyed.count(), 1, "{path}\n{}", world.tail());
    }
    until_running(&world).await?;
    world.disrupt_with(json!({ "consolidateAfter": "1s", "budgets": [{ "nodes": "100%" }] })).await?;
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_removed_from_its_cluster_takes_its_vms_along_and_no_claim_waits() -> anyhow::Result<()> {
    let (world, host, lost) = with_dead_host().await?;
    let begin = world.estate.ledger().len();
    until_replaced(&world, &host, &lost).await?;
    world.estate.remove_host(&host)?;
    world
        .until_within(PATIENCE, "the claims of the lost host are gone", async || {
            Ok((world.claims().await?.len() == PODS as usize).then_some(()))
        })
        .await?;
    assert!(changes(&world, &host, begin).is_empty(), "{:?}", changes(&world, &host, begin));
    assert_eq!(world.nodes().await?.len(), PODS as usize, "{}", world.tail());
    until_running(&world).await?;
    world.disrupt_with(json!({ "consolidateAfter": "1s", "budgets": [{ "nodes": "100%" }] })).await?;
    world.scale("web", 0).await?;
    world
        .until_within(PATIENCE, "nothing is left", async || {
            let left = world.claims().await?.len() + world.nodes().await?.len() + world.vms().len();
            Ok((left == 0).then_some(()))
        })
        .await?;
    world.end().await
}
