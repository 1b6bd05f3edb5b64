//! A node that does not come says why: each cause is provoked, and named on the NodeClaim with the next step.

use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tenon_api::{NodeClaim, NodePool, names};
use tenon_model::{LaunchRecord, LaunchStep};
use tenon_sim::{GuestConfig, GuestFault, GuestFaultRule, GuestMatch};

use crate::bench::{from_json, quick_guests};
use crate::ground::Kind;
use crate::joining::unbind;
use crate::world::World;

const NODE_CLIENT: &str = "system:certificates.k8s.io:certificatesigningrequests:nodeclient";

/// A world whose guests all have this fault, and a claim whose VM runs. The templates have the guest agent.
async fn with_fault(fault: Option<GuestFault>) -> anyhow::Result<(World, NodeClaim, LaunchRecord)> {
    let faults = fault.into_iter().map(|fault| GuestFaultRule { when: GuestMatch::default(), fault }).collect();
    let guests = GuestConfig { faults, ..quick_guests() };
    let mut world = World::new(Kind::Embedded, guests).await?.context("an embedded world is always there")?;
    for (host, vmid) in [("pve1", 9001), ("pve2", 9002), ("pve3", 9003)] {
        world.proxmox("PUT", &format!("/nodes/{host}/qemu/{vmid}/config"), &[("agent", "1")]).await?;
    }
    world.add_rules().await?;
    world.start_controller()?;
    world.until_condition::<NodePool>(("default", "NodeClassReady"), ("True", "NodeClassReady")).await?;
    world.deploy("web", 1).await?;
    let (claim, record) = world.until_launch("a VM runs", |record| record.step == LaunchStep::Launched).await?;
    Ok((world, claim, record))
}

/// Waits until the claim names this cause, in its condition and in an event; what it says.
async fn until_named(world: &World, claim: &NodeClaim, reason: &str) -> anyhow::Result<String> {
    let name = claim.name_any();
    let said = world
        .until_within(Duration::from_secs(400), &format!("{name} says {reason}"), async || {
            let found = world.condition::<NodeClaim>(&name, "Registered").await?;
            Ok(found.filter(|told| told.reason == reason).map(|told| (told.status, told.message)))
        })
        .await?;
    assert_eq!(format!("{:?}", said.0), "Unknown");
    let sentence = said.1.split(". Last lines").next().unwrap_or_default().to_owned();
    world.until_told(("NodeClaim", &name), "NodeNotJoined", &sentence).await?;
    Ok(said.1)
}

async fn end_of(world: World) -> anyhow::Result<()> {
    world.scale("web", 0).await?;
    for claim in world.claims().await? {
        world.delete_claim(&claim.name_any()).await?;
    }
    let nodes: Api<Node> = Api::all(world.admin.clone());
    nodes.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

#[tokio::test(start_paused = true)]
async fn embedded_a_kubelet_that_never_asks_is_named_with_the_boot_log_until_the_end() -> anyhow::Result<()> {
    let (world, claim, record) = with_fault(Some(GuestFault::NeverJoins)).await?;
    let said = until_named(&world, &claim, "CertificateRequestNotFound").await?;
    let (vmid, host) = (record.vmid, record.host());
    assert!(said.contains(&format!("after VM {vmid} on host {host} started: its kubelet has not requested")), "{said}");
    assert!(said.contains("Last lines of the boot log: ") && said.ends_with("the kubelet does not start"), "{said}");
    // The deadline comes, and the last diagnosis is repeated.
    let words = "last seen: Node";
    let note = world
        .until_within(Duration::from_secs(1200), "the claim is given up", async || {
            Ok(world.events("RegistrationFailed").await?.into_iter().find(|note| note.contains(words)))
        })
        .await?;
    assert!(note.contains("its kubelet has not requested a certificate"), "{note}");
    // One event for the cause, however often it was looked at.
    let of_claim = format!("Node {} has not joined", claim.name_any());
    let told = world.events("NodeNotJoined").await?;
    assert_eq!(told.iter().filter(|note| note.starts_with(&of_claim)).count(), 1, "{told:#?}");
    end_of(world).await
}

#[tokio::test(start_paused = true)]
async fn embedded_a_guest_that_hangs_is_named() -> anyhow::Result<()> {
    let (world, claim, _) = with_fault(Some(GuestFault::Hangs { after: Duration::ZERO })).await?;
    let said = until_named(&world, &claim, "GuestNotResponding").await?;
    assert!(said.ends_with("the guest agent does not answer; look at the VM's console"), "{said}");
    end_of(world).await
}

#[tokio::test(start_paused = true)]
async fn embedded_a_vm_that_joins_under_another_name_is_named() -> anyhow::Result<()> {
    let (world, claim, record) = with_fault(Some(GuestFault::WrongName { name: None })).await?;
    let said = until_named(&world, &claim, "NodeNameMismatch").await?;
    let (name, vmid) = (claim.name_any(), record.vmid);
    assert!(said.contains(&format!("joined as Node vm-{vmid} instead of {name}; correct the host name")), "{said}");
    end_of(world).await
}

#[tokio::test(start_paused = true)]
async fn embedded_a_vm_that_qemu_has_paused_is_named() -> anyhow::Result<()> {
    let (world, claim, record) = with_fault(Some(GuestFault::Hangs { after: Duration::ZERO })).await?;
    let (vmid, host) = (record.vmid, record.host());
    world.proxmox("POST", &format!("/nodes/{host}/qemu/{vmid}/status/suspend"), &[]).await?;
    let said = until_named(&world, &claim, "VMNotRunning").await?;
    assert!(said.contains(&format!("VM {vmid} on host {host} does not run (QEMU status paused)")), "{said}");
    assert!(said.contains(&format!("run: qm status {vmid} --verbose")), "{said}");
    end_of(world).await
}

#[tokio::test(start_paused = true)]
async fn embedded_a_token_that_somebody_deleted_is_named() -> anyhow::Result<()> {
    let (world, claim, _) = with_fault(Some(GuestFault::NeverJoins)).await?;
    let secrets: Api<Secret> = Api::namespaced(world.admin.clone(), "kube-system");
    let ours = ListParams::default().labels(&format!("{}=true", names::LABEL_BOOTSTRAP_TOKEN));
    let token = secrets.list(&ours).await?.items.pop().context("no token")?.name_any();
    secrets.delete(&token, &DeleteParams::default()).await?;
    let said = until_named(&world, &claim, "BootstrapTokenInvalid").await?;
    let next = format!("(Secret kube-system/{token}) was deleted; delete NodeClaim {} to try again", claim.name_any());
    assert!(said.contains(&next), "{said}");
    end_of(world).await
}

#[tokio::test(start_paused = true)]
async fn embedded_a_request_that_nobody_approves_or_somebody_denies_is_named() -> anyhow::Result<()> {
    let slow = GuestFault::BootsSlowly { by: Duration::from_secs(20) };
    let (world, claim, _) = with_fault(Some(slow)).await?;
    unbind(&world, &[NODE_CLIENT]).await?;
    let said = until_named(&world, &claim, "CertificateRequestPending").await?;
    let requests: Api<CertificateSigningRequest> = Api::all(world.admin.clone());
    let request = requests.list(&ListParams::default()).await?.items.pop().context("no request")?.name_any();
    assert!(said.contains(&format!("{request} is not approved; run: kubectl certificate approve {request}")), "{said}");
    let denied = json!({ "status": { "conditions": [
        { "type": "Denied", "status": "True", "reason": "NotAllowed", "message": "unknown node" },
    ] } });
    let patch = Patch::Merge(denied);
    requests.patch_subresource("approval", &request, &PatchParams::default(), &patch).await?;
    let said = until_named(&world, &claim, "CertificateRequestDenied").await?;
    assert!(said.contains(&format!("{request} was denied (NotAllowed: unknown node); find out who")), "{said}");
    end_of(world).await
}

#[tokio::test(start_paused = true)]
async fn embedded_bindings_that_were_deleted_since_are_named() -> anyhow::Result<()> {
    let slow = GuestFault::BootsSlowly { by: Duration::from_secs(20) };
    let (world, claim, _) = with_fault(Some(slow)).await?;
    unbind(&world, &["system:node-bootstrapper", NODE_CLIENT]).await?;
    // What was granted is believed for five minutes; until then only the request is missing.
    let said = until_named(&world, &claim, "BootstrapBindingsMissing").await?;
    assert!(said.contains("run: kubectl create clusterrolebinding tenon-node-bootstrapper"), "{said}");
    end_of(world).await
}

#[tokio::test(start_paused = true)]
async fn embedded_another_machine_of_the_same_name_and_a_vm_that_stops_are_named() -> anyhow::Result<()> {
    let (world, claim, record) = with_fault(Some(GuestFault::NeverJoins)).await?;
    let (name, nodes) = (claim.name_any(), Api::<Node>::all(world.admin.clone()));
    let info = json!({
        "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "",
        "kubeletVersion": "", "machineID": "", "operatingSystem": "linux", "osImage": "",
        "systemUUID": "00000000-0000-0000-0000-00000000beef",
    });
    let other: Node = from_json(json!({ "metadata": { "name": name } }))?;
    nodes.create(&PostParams::default(), &other).await?;
    let status = Patch::Merge(json!({ "status": { "nodeInfo": info } }));
    nodes.patch_status(&name, &PatchParams::default(), &status).await?;
    let said = world.until_condition::<NodeClaim>((&name, "Registered"), ("Unknown", "NodeMismatch")).await?;
    assert!(said.contains("another machine joined under this name"), "{said}");
    nodes.delete(&name, &DeleteParams::default()).await?;
    until_named(&world, &claim, "CertificateRequestNotFound").await?;
    let (vmid, host) = (record.vmid, record.host());
    world.proxmox("POST", &format!("/nodes/{host}/qemu/{vmid}/status/stop"), &[]).await?;
    let said = world.until_condition::<NodeClaim>((&name, "Registered"), ("Unknown", "VMStopped")).await?;
    assert_eq!(said, format!("VM {vmid} on host {host} is stopped, and Node {name} has not joined"));
    world.until_told(("NodeClaim", &name), "VMStopped", "stopped before Node").await?;
    end_of(world).await
}
