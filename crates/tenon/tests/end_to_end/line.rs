//! The line, end to end: pods that fit nowhere become VMs that join and run them, and everything goes away again.

use std::time::Instant;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;
use tenon_api::{NodeClaim, names};
use tenon_sim::LedgerEntry;

use crate::bench::from_json;
use crate::ground::{Kind, scenarios};
use crate::world::World;

scenarios! {
    three_pods_become_nodes_and_all_of_it_goes_away_again,
    a_claim_made_by_hand_gets_a_vm_where_it_asks_and_goes_when_it_is_deleted,
}

async fn three_pods_become_nodes_and_all_of_it_goes_away_again(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = World::running(kind).await? else { return Ok(()) };
    let begun = Instant::now();
    let say = |what: &str| println!("{:5.1} s  {what}", begun.elapsed().as_secs_f64());
    say("a cluster without nodes, an estate of three hosts, and the controller are up; three pods come");
    world.deploy("web", 3).await?;
    world.until("three claims are written", async || Ok((world.claims().await?.len() == 3).then_some(()))).await?;
    say("they fit nowhere: three NodeClaims are written");
    world.until_running("web", 3).await?;
    let (claims, nodes, vms) = (world.claims().await?, world.nodes().await?, world.vms());
    say(&format!("{} VMs run, {} nodes joined, all pods run", vms.len(), nodes.len()));
    assert_eq!((claims.len(), nodes.len(), vms.len()), (3, 3, 3));
    assert!(nodes.iter().all(is_well_labelled), "{nodes:#?}");
    let made = world.estate.ledger();

    world.scale("web", 0).await?;
    say("the pods go");
    world.until_nothing_is_left().await?;
    say("no VM, disk, ISO, token, NodeClaim or Node is left");
    print_requests(&made, &world.estate.ledger());
    world.end().await
}

async fn a_claim_made_by_hand_gets_a_vm_where_it_asks_and_goes_when_it_is_deleted(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = World::running(kind).await? else { return Ok(()) };
    let claim: NodeClaim = from_json(json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": "mine" },
        "spec": {
            "requirements": [{ "key": names::LABEL_ZONE, "operator": "In", "values": ["pve3"] }],
            "resources": { "requests": { "cpu": "1", "memory": "1Gi" } },
            "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
        },
    }))?;
    let claims: Api<NodeClaim> = Api::all(world.admin.clone());
    claims.create(&PostParams::default(), &claim).await?;
    let node = world
        .until("its node takes pods", async || {
            let nodes = world.nodes().await?;
            Ok(nodes.into_iter().find(|node| node.labels().contains_key(names::LABEL_INITIALIZED)))
        })
        .await?;
    assert_eq!((node.name_any().as_str(), node.labels()[names::LABEL_HOST].as_str()), ("mine", "pve3"));
    assert!(!node.labels().contains_key(names::LABEL_NODEPOOL), "it belongs to no pool");
    claims.delete("mine", &DeleteParams::default()).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

/// A node says where it is and whose it is, and nothing of how it was made.
fn is_well_labelled(node: &Node) -> bool {
    let label = |name: &str| node.labels().get(name).map(String::as_str);
    label(names::LABEL_REGISTERED) == Some("true")
        && label(names::LABEL_NODEPOOL) == Some("default")
        && label(names::LABEL_ZONE) == label(names::LABEL_HOST)
        && !node.annotations().contains_key(names::ANNOTATION_LAUNCH)
}

/// Requests that name a VM, its seed or one of its tasks are the VM's; the rest are looks at the whole estate.
fn print_requests(made: &[LedgerEntry], all: &[LedgerEntry]) {
    let is_look = |entry: &&LedgerEntry| entry.path == "/cluster/resources";
    let count = |entries: &[LedgerEntry]| {
        let changes = entries.iter().filter(|entry| entry.method != "GET").count();
        (entries.iter().filter(|entry| !is_look(entry)).count(), changes)
    };
    let ((up, up_changes), (total, changes)) = (count(made), count(all));
    println!(
        "requests per VM: {} to make it ({} changes), {} to take it away ({} changes); {} looks at the estate",
        up / 3,
        up_changes / 3,
        (total - up) / 3,
        (changes - up_changes) / 3,
        all.iter().filter(is_look).count()
    );
}
