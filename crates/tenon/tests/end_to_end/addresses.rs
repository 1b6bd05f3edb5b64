//! Static addresses: each VM gets one that nobody else has, and waits with the reason where none is free.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use tenon_api::{NodeClaim, names};
use tenon_sim::{TemplateSpec, VmSpec};

use crate::bench::{from_json, quick_guests};
use crate::ground::{Kind, scenarios};
use crate::world::World;

scenarios! {
    thirty_claims_on_a_full_network_wait_with_the_reason_and_come_as_addresses_are_freed,
    nodes_with_both_families_have_the_addresses_they_were_given,
    an_address_that_somebody_gave_to_a_vm_by_hand_is_avoided,
}

/// Claims that a person makes; small, so that hosts have room for all of them.
async fn add_claims(world: &World, count: usize) -> anyhow::Result<()> {
    let claims: Api<NodeClaim> = Api::all(world.admin.clone());
    for index in 0..count {
        let claim: NodeClaim = from_json(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": format!("n{index:02}") },
            "spec": {
                "requirements": [{ "key": names::LABEL_INSTANCE_TYPE, "operator": "In", "values": ["c1.1VCPU-2GB"] }],
                "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
            },
        }))?;
        claims.create(&PostParams::default(), &claim).await?;
    }
    Ok(())
}

/// A world whose VMs are given addresses; without pods.
async fn world(kind: Kind, addresses: Value) -> anyhow::Result<Option<World>> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(None) };
    world.add_template("debian-13").await?;
    world.add_class(json!({ "addresses": addresses })).await?;
    world.start_controller()?;
    Ok(Some(world))
}

/// The addresses of nodes that are initialized, by node.
async fn addresses(world: &World) -> anyhow::Result<BTreeMap<String, BTreeSet<String>>> {
    let is_up = |node: &Node| node.labels().get(names::LABEL_INITIALIZED).is_some_and(|value| value == "true");
    let of = |node: &Node| {
        let told = node.status.iter().flat_map(|status| status.addresses.iter().flatten());
        told.filter(|told| told.type_ == "InternalIP").map(|told| told.address.clone()).collect()
    };
    Ok(world.nodes().await?.iter().filter(|node| is_up(node)).map(|node| (node.name_any(), of(node))).collect())
}

async fn until_nodes(world: &World, count: usize) -> anyhow::Result<BTreeMap<String, BTreeSet<String>>> {
    world
        .until_within(std::time::Duration::from_secs(180), &format!("{count} nodes are initialized"), async || {
            let found = addresses(world).await?;
            Ok((found.len() == count).then_some(found))
        })
        .await
}

fn numbers(found: &BTreeMap<String, BTreeSet<String>>) -> Vec<u8> {
    let last = |address: &String| address.rsplit('.').next()?.parse().ok();
    let mut numbers: Vec<u8> = found.values().flatten().filter_map(last).collect();
    numbers.sort_unstable();
    numbers
}

async fn thirty_claims_on_a_full_network_wait_with_the_reason_and_come_as_addresses_are_freed(
    kind: Kind,
) -> anyhow::Result<()> {
    // A /27 has 30 hosts; one is the gateway and five are reserved: 24 are left.
    let addresses = json!({
        "ranges": ["10.20.0.0/27"], "gateway": "10.20.0.1", "exclude": ["10.20.0.10-10.20.0.14"], "dns": ["10.20.9.9"],
    });
    let Some(mut world) = world(kind, addresses).await? else { return Ok(()) };
    add_claims(&world, 30).await?;
    let first = until_nodes(&world, 24).await?;
    let usable: Vec<u8> = (2..=30).filter(|number| !(10..=14).contains(number)).collect();
    assert_eq!(numbers(&first), usable);
    let told = world.until_event("FailedScheduling", "no free IP address for card net0 in 10.20.0.0/27").await?;
    assert!(told.contains("widen the range"), "{told}");
    assert_eq!(world.vms().len(), 24, "no VM is made for a claim without an address");
    // What is known of addresses does not depend on what a controller remembers.
    world.kill_controller()?;
    world.start_controller()?;
    let going: Vec<String> = first.keys().take(6).cloned().collect();
    for name in &going {
        world.delete_claim(name).await?;
    }
    let gone = |found: &BTreeMap<String, BTreeSet<String>>| going.iter().all(|name| !found.contains_key(name));
    let all = world.until_within(std::time::Duration::from_secs(180), "the others come", async || {
        let found = self::addresses(&world).await?;
        Ok((found.len() == 24 && gone(&found)).then_some(found))
    });
    assert_eq!(numbers(&all.await?), usable, "each address is used once");
    for claim in world.claims().await? {
        world.delete_claim(&claim.name_any()).await?;
    }
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn nodes_with_both_families_have_the_addresses_they_were_given(kind: Kind) -> anyhow::Result<()> {
    let addresses = json!({
        "ranges": ["10.20.0.0/24", "fd00:20::10-fd00:20::20/64"],
        "gateway": "10.20.0.1", "gateway6": "fd00:20::1", "dns": ["10.20.9.9"],
    });
    let Some(world) = world(kind, addresses).await? else { return Ok(()) };
    add_claims(&world, 2).await?;
    let found = until_nodes(&world, 2).await?;
    let all: BTreeSet<String> = found.values().flatten().cloned().collect();
    let expected = ["10.20.0.2", "10.20.0.3", "fd00:20::10", "fd00:20::11"].map(str::to_owned);
    assert_eq!(all, expected.into());
    for vm in world.estate.vms().iter().filter(|vm| vm.vmid >= 20_000) {
        let own = &found[&vm.name];
        let option = &vm.config["ipconfig0"];
        assert!(own.iter().all(|address| option.contains(address)), "{own:?} is not in {option}");
        assert!(option.contains("gw=10.20.0.1") && option.contains("gw6=fd00:20::1"), "{option}");
        assert_eq!(vm.config["nameserver"], "10.20.9.9");
    }
    for claim in world.claims().await? {
        world.delete_claim(&claim.name_any()).await?;
    }
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn an_address_that_somebody_gave_to_a_vm_by_hand_is_avoided(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = world(kind, json!({ "ranges": ["10.20.0.0/28"], "gateway": "10.20.0.1" })).await? else {
        return Ok(());
    };
    let by_hand = TemplateSpec {
        vmid: 500,
        name: "by-hand".into(),
        host: "pve2".into(),
        config: [("ipconfig0".to_owned(), "ip=10.20.0.2/28,gw=10.20.0.1".to_owned())].into(),
        ..TemplateSpec::default()
    };
    world.estate.add_vm(&VmSpec { base: by_hand, running: false })?;
    add_claims(&world, 1).await?;
    let found = until_nodes(&world, 1).await?;
    assert_eq!(numbers(&found), [3], "10.20.0.2 is a VM's that does not even run");
    for claim in world.claims().await? {
        world.delete_claim(&claim.name_any()).await?;
    }
    world.until("the node is gone", async || Ok(world.nodes().await?.is_empty().then_some(()))).await?;
    world.end().await
}
