//! What a ProxmoxNodeClass says of its VMs is true of them in Proxmox: where they are, what they are copied from, who may
//! reach them; and how many requests that takes.

use std::time::Duration;

use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tenon_api::{NodeClaim, ProxmoxNodeClass, names};
use tenon_sim::VmView;

use crate::bench::quick_guests;
use crate::ground::{Kind, scenarios};
use crate::world::World;

scenarios! {
    a_template_on_a_shared_storage_serves_hosts_that_have_none,
    tags_security_groups_and_pool_are_as_the_class_says_at_launch_and_after,
    a_host_in_maintenance_mode_takes_no_vm_until_it_is_back,
    twelve_nodes_take_at_most_ten_requests_each,
}

/// VMs of ours.
fn views(world: &World) -> Vec<VmView> {
    world.estate.vms().into_iter().filter(|vm| vm.vmid >= 20_000).collect()
}

/// A deployment of pods that need so many cores each.
async fn deploy_sized(world: &World, replicas: u32, cores: &str) -> anyhow::Result<()> {
    let container = json!({ "resources": { "requests": { "cpu": cores, "memory": "1Gi" } } });
    world.deploy_pods(("web", replicas), container, json!({})).await
}

async fn a_template_on_a_shared_storage_serves_hosts_that_have_none(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    world.estate.remove_vm(9002)?;
    world.estate.remove_vm(9003)?;
    world.add_rules().await?;
    world.start_controller()?;
    world.until_condition::<ProxmoxNodeClass>(("default", "Ready"), ("True", "Ready")).await?;
    let class = Api::<ProxmoxNodeClass>::all(world.admin.clone()).get("default").await?;
    let zones = class.status.and_then(|status| status.selected_zones).unwrap_or_default();
    assert_eq!(zones, ["lab/pve1/9001", "lab/pve2/9001", "lab/pve3/9001"]);
    // Fourteen cores each: one host takes one such VM.
    deploy_sized(&world, 3, "14").await?;
    world.until_running("web", 3).await?;
    let mut hosts: Vec<String> = views(&world).iter().map(|vm| vm.host.clone()).collect();
    hosts.sort();
    assert_eq!(hosts, ["pve1", "pve2", "pve3"]);
    world.scale("web", 0).await?;
    world
        .until("nothing is left", async || {
            Ok((world.vms().is_empty() && world.claims().await?.is_empty()).then_some(()))
        })
        .await?;
    world.end().await
}

async fn tags_security_groups_and_pool_are_as_the_class_says_at_launch_and_after(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    for pool in ["team", "team/prod", "other"] {
        world.estate.add_pool(pool);
    }
    world.add_template("debian-13").await?;
    let groups = json!([{ "name": "web", "interface": "net0" }, { "name": "ssh" }]);
    world.add_class(json!({ "tags": ["k8s", "a"], "securityGroups": groups, "resourcePool": "team/prod" })).await?;
    world.add_pool(json!({})).await?;
    world.start_controller()?;
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;
    let vm = views(&world).remove(0);
    assert_eq!(rules(&world, &vm.host, vm.vmid).await?, ["web", "ssh"]);
    assert!(vm.config["net0"].contains("firewall=1"), "{}", vm.config["net0"]);
    assert_eq!((vm.config["tags"].as_str(), pool_of(&world, vm.vmid).await?.as_str()), ("a;k8s", "team/prod"));

    // Somebody moved it, and added a rule of their own: both stay as they are.
    world.estate.migrate(vm.vmid, "pve3")?;
    let by_hand = [("type", "in"), ("action", "ACCEPT"), ("enable", "1"), ("comment", "by hand")];
    world.proxmox("POST", &format!("/nodes/pve3/qemu/{}/firewall/rules", vm.vmid), &by_hand).await?;
    let changed = json!({ "spec": {
        "tags": ["k8s", "b"], "securityGroups": [{ "name": "ssh" }, { "name": "db" }], "resourcePool": "other",
    } });
    let classes = Api::<ProxmoxNodeClass>::all(world.admin.clone());
    classes.patch("default", &PatchParams::default(), &Patch::Merge(&changed)).await?;
    world
        .until("the VM is as the class says", async || {
            let claims = world.claims().await?;
            let pool =
                claims.first().and_then(|claim| claim.annotations().get(names::ANNOTATION_RESOURCE_POOL).cloned());
            Ok((pool.as_deref() == Some("other")).then_some(()))
        })
        .await?;
    assert_eq!(rules(&world, "pve3", vm.vmid).await?, ["ssh", "db", "ACCEPT"]);
    let moved = views(&world).remove(0);
    assert_eq!((moved.config["tags"].as_str(), pool_of(&world, vm.vmid).await?.as_str()), ("b;k8s", "other"));
    let drifted = |claim: &NodeClaim| {
        claim.status.iter().flat_map(|status| status.conditions.iter().flatten()).any(|one| one.type_ == "Drifted")
    };
    assert!(!world.claims().await?.iter().any(drifted), "what is changed in place does not replace nodes");
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

/// The rules of a VM, in their order.
async fn rules(world: &World, host: &str, vmid: u32) -> anyhow::Result<Vec<String>> {
    let found = world.proxmox("GET", &format!("/nodes/{host}/qemu/{vmid}/firewall/rules"), &[]).await?;
    let rows = found["data"].as_array().cloned().unwrap_or_default();
    Ok(rows.iter().map(|row| row["action"].as_str().unwrap_or_default().to_owned()).collect())
}

async fn pool_of(world: &World, vmid: u32) -> anyhow::Result<String> {
    let found = world.proxmox("GET", "/cluster/resources", &[]).await?;
    let rows = found["data"].as_array().cloned().unwrap_or_default();
    let row = rows.into_iter().find(|row| row["vmid"] == json!(vmid)).unwrap_or(Value::Null);
    Ok(row["pool"].as_str().unwrap_or_default().to_owned())
}

async fn a_host_in_maintenance_mode_takes_no_vm_until_it_is_back(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    world.estate.set_maintenance("pve1", true);
    world.estate.set_maintenance("pve2", true);
    world.add_rules().await?;
    world.start_controller()?;
    deploy_sized(&world, 2, "14").await?;
    world.until_running("web", 1).await?;
    assert_eq!(views(&world).iter().map(|vm| vm.host.as_str()).collect::<Vec<_>>(), ["pve3"]);
    world.until_event("FailedScheduling", "the host is in maintenance mode").await?;
    world.estate.set_maintenance("pve1", false);
    world.until_running("web", 2).await?;
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

/// Requests about one VM from its clone until its node is initialized, without looks at tasks and what is asked for all.
fn requests_of(world: &World, vmid: u32) -> Vec<String> {
    let about = format!("/qemu/{vmid}/");
    let ledger = world.estate.ledger();
    let is_its = |entry: &&tenon_sim::LedgerEntry| {
        let names_it = |key: &str| entry.params.get(key).is_some_and(|id| *id == vmid.to_string());
        let is_clone = entry.path.ends_with("/clone") && names_it("newid");
        let is_asked = entry.path == "/cluster/nextid" && names_it("vmid");
        let is_seed = entry.path.ends_with("/upload");
        format!("{}/", entry.path).contains(&about) || is_clone || is_asked || is_seed
    };
    let until_detached = ledger
        .iter()
        .filter(is_its)
        .take_while(|entry| entry.params.get("ide2").is_none_or(|drive| !drive.starts_with("none")));
    until_detached.map(|entry| format!("{} {}", entry.method, entry.path)).collect()
}

async fn twelve_nodes_take_at_most_ten_requests_each(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = World::running(kind).await? else { return Ok(()) };
    world.until_condition::<ProxmoxNodeClass>(("default", "Ready"), ("True", "Ready")).await?;
    let apart = json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
        { "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "app": "web" } } },
    ] } } });
    let container = json!({ "resources": { "requests": { "cpu": "500m", "memory": "64Mi" } } });
    world.deploy_pods(("web", 12), container, apart).await?;
    world.until_running("web", 12).await?;
    let vms = views(&world);
    assert_eq!(vms.len(), 12);
    let uploads = world.changes("/upload");
    let mut most = 0;
    for vm in &vms {
        let all = requests_of(&world, vm.vmid);
        // Uploads do not name a VM: each has one, and they are counted once here.
        let count = all.iter().filter(|one| !one.ends_with("/upload")).count() + 1;
        most = most.max(count);
        assert!(count <= 10, "VM {}: {count} requests: {all:#?}", vm.vmid);
    }
    let everything = world.estate.ledger().len();
    println!("at most {most} requests for a VM, {uploads} uploads, {everything} requests in all for 12 VMs");
    world.let_pass(Duration::from_secs(1)).await?;
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}
