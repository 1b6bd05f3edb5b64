//! Does every launch and every release end, whatever Proxmox does, with its cause told and nothing left behind?

use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tenon_api::{NodeClaim, ProxmoxNodeClass, names};
use tenon_model::LaunchRecord;
use tenon_sim::{FaultEffect, FaultKind, FaultMatch, FaultRule, FaultSpec, TemplateSpec, VmSpec};

use crate::bench::quick_guests;
use crate::ground::{Kind, scenarios};
use crate::world::{World, record_of};

scenarios! {
    a_launch_that_proxmox_refuses_for_an_unknown_reason_ends_and_its_pods_are_planned_again,
    a_host_that_dies_under_a_clone_ends_the_launch_and_another_host_is_used,
    protection_of_the_template_a_lost_start_and_suspension_do_not_keep_a_vm,
    a_vm_that_ha_moved_off_a_dead_host_is_found_and_removed,
    a_vm_that_is_stopped_or_destroyed_before_its_node_joins_is_noticed,
    a_freed_vm_id_is_not_used_again_after_a_restart,
    a_foreign_vm_that_takes_an_id_and_is_locked_by_a_backup_is_left_alone,
    a_claim_that_is_deleted_without_its_vm_takes_its_node_and_its_seed_along,
    a_node_that_reports_another_machine_is_drained_with_its_claim_and_its_class_waits,
}

/// A world whose launches may stand still for a few seconds only.
async fn impatient(kind: Kind) -> anyhow::Result<Option<World>> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(None) };
    world.limit_launch(Duration::from_secs(5));
    world.add_rules().await?;
    world.start_controller()?;
    Ok(Some(world))
}

fn refuse(method: &str, path: &str, text: &str) -> FaultRule {
    FaultRule::new(FaultMatch::call(method, path), FaultEffect::Refuse { status: 500, text: text.to_owned() })
}

async fn until_claim(world: &World) -> anyhow::Result<(NodeClaim, LaunchRecord)> {
    world.until_launch("a claim is made", |_| true).await
}

/// The only claim whose node takes pods.
async fn ready_claim(world: &World, app: &str) -> anyhow::Result<(NodeClaim, LaunchRecord)> {
    world.until_running(app, 1).await?;
    let claim = world.claims().await?.into_iter().next().context("no claim is left")?;
    let record = record_of(&claim)?;
    Ok((claim, record))
}

async fn a_launch_that_proxmox_refuses_for_an_unknown_reason_ends_and_its_pods_are_planned_again(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(world) = impatient(kind).await? else { return Ok(()) };
    world.estate.add_fault(refuse("POST", "/nodes/*/qemu/*/clone", "the moon is in the wrong house"));
    world.deploy("web", 1).await?;
    let (first, _) = until_claim(&world).await?;
    let words = "the moon is in the wrong house. Its pods are planned again";
    let told = world.until_event("InsufficientCapacityError", words).await?;
    assert!(told.contains("Cannot create a node on host"), "{told}");
    world.estate.remove_faults();
    world.until_running("web", 1).await?;
    assert!(world.claims().await?.iter().all(|claim| claim.uid() != first.uid()), "{}", world.tail());
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn a_host_that_dies_under_a_clone_ends_the_launch_and_another_host_is_used(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = impatient(kind).await? else { return Ok(()) };
    world.estate.hold_tasks("qmclone");
    world.deploy("web", 1).await?;
    let (claim, record) = world.until_launch("a clone runs", |record| record.upid.is_some()).await?;
    world.estate.set_host_online(record.host().as_str(), false)?;
    world.estate.release_tasks();
    world.until_event("InsufficientCapacityError", &format!("host {} did not answer", record.host())).await?;
    world.until_running("web", 1).await?;
    let others: Vec<_> =
        world.claims().await?.iter().filter(|other| other.uid() != claim.uid()).map(record_of).collect();
    assert!(others.iter().flatten().all(|other| other.host() != record.host()), "{}", world.tail());
    // The worker died with its host, and left a clone that only an operator can remove: it is reported when the host is back.
    world.estate.set_host_online(record.host().as_str(), true)?;
    world.estate.unlock(record.vmid.get())?;
    world.estate.remove_vm(record.vmid.get())?;
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn protection_of_the_template_a_lost_start_and_suspension_do_not_keep_a_vm(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = World::running(kind).await? else { return Ok(()) };
    for (host, vmid) in [("pve1", 9001), ("pve2", 9002), ("pve3", 9003)] {
        let path = format!("/nodes/{host}/qemu/{vmid}/config");
        world.proxmox("PUT", &path, &[("protection", "1")]).await?;
    }
    world.estate.fail_next(FaultSpec::new("POST", "/status/start", FaultKind::DropReply));
    world.deploy("web", 1).await?;
    let (claim, record) = ready_claim(&world, "web").await?;
    assert_eq!(world.clones().len(), 1, "a lost reply to start costs no VM: {}", world.tail());
    let vm = world.estate.vm(record.vmid.get()).context("there is no VM")?;
    assert_eq!(vm.config.get("protection").map_or("0", String::as_str), "0");

    let path = format!("/nodes/{}/qemu/{}/status/suspend", record.host(), record.vmid);
    world.proxmox("POST", &path, &[("todisk", "1")]).await?;
    world
        .until("the VM is suspended", async || {
            let vm = world.estate.vm(record.vmid.get());
            Ok(vm.filter(|vm| vm.lock.as_deref() == Some("suspended") && vm.status == "stopped").map(drop))
        })
        .await?;
    world.scale("web", 0).await?;
    world.delete_claim(&claim.name_any()).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn a_vm_that_ha_moved_off_a_dead_host_is_found_and_removed(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = World::running(kind).await? else { return Ok(()) };
    world.deploy("web", 1).await?;
    let (claim, record) = ready_claim(&world, "web").await?;
    let other = if record.host().as_str() == "pve2" { "pve3" } else { "pve2" };
    world.estate.set_host_online(record.host().as_str(), false)?;
    world.estate.migrate(record.vmid.get(), other)?;
    world.scale("web", 0).await?;
    world.delete_claim(&claim.name_any()).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn a_vm_that_is_stopped_or_destroyed_before_its_node_joins_is_noticed(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::running(kind).await? else { return Ok(()) };
    world.replace_guests(None).await;
    world.deploy("web", 1).await?;
    for is_destroyed in [false, true] {
        let launched = async || {
            let claims = world.claims().await?;
            let is_waiting = |claim: &&NodeClaim| claim.metadata.deletion_timestamp.is_none();
            let claim = claims.iter().find(is_waiting).cloned();
            let record = claim.as_ref().and_then(|claim| record_of(claim).ok());
            Ok(claim.zip(record).filter(|(_, record)| record.step == tenon_model::LaunchStep::Launched))
        };
        let (claim, record) = world.until("a VM runs", launched).await?;
        let name = claim.name_any();
        world.until_condition::<NodeClaim>((&name, "Registered"), ("Unknown", "NodeNotFound")).await?;
        let (vmid, host) = (record.vmid, record.host());
        let (reason, words) = if is_destroyed {
            world.estate.remove_vm(vmid.get())?;
            ("VMNotFound", format!("VM {vmid} was destroyed before Node {name} joined"))
        } else {
            world.proxmox("POST", &format!("/nodes/{host}/qemu/{vmid}/status/stop"), &[]).await?;
            ("VMStopped", format!("VM {vmid} on host {host} stopped before Node {name} joined"))
        };
        world
            .until_within(Duration::from_secs(60), &words, async || {
                Ok(world.events(reason).await?.into_iter().find(|note| note.contains(&words)))
            })
            .await?;
        world
            .until("the claim is gone", async || {
                Ok(world.claims().await?.iter().all(|other| other.uid() != claim.uid()).then_some(()))
            })
            .await?;
    }
    world.scale("web", 0).await?;
    for claim in world.claims().await? {
        world.delete_claim(&claim.name_any()).await?;
    }
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn a_freed_vm_id_is_not_used_again_after_a_restart(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::running(kind).await? else { return Ok(()) };
    world.deploy("first", 1).await?;
    let (_, first) = ready_claim(&world, "first").await?;
    world.scale("first", 0).await?;
    world.until_nothing_is_left().await?;
    world.kill_controller()?;
    world.start_controller()?;
    world.deploy("second", 1).await?;
    let (_, second) = ready_claim(&world, "second").await?;
    assert!(second.vmid > first.vmid, "{} came after {}", second.vmid, first.vmid);
    let maps: Api<ConfigMap> = Api::namespaced(world.admin.clone(), "kube-system");
    let book = maps.get("tenon-vm-ids").await?.data.unwrap_or_default();
    assert!(book["regions.json"].contains(&format!("\"{}\":", first.vmid)), "{book:?}");
    world.scale("second", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn a_foreign_vm_that_takes_an_id_and_is_locked_by_a_backup_is_left_alone(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = World::running(kind).await? else { return Ok(()) };
    // Nothing is cloned before the other VM is there.
    world.estate.add_fault(refuse("POST", "/nodes/*/qemu/*/clone", "not yet"));
    world.deploy("web", 1).await?;
    let (_, record) = until_claim(&world).await?;
    let vmid = record.vmid.get();
    let base = TemplateSpec { host: "pve2".into(), vmid, name: "mail".into(), ..TemplateSpec::default() };
    world.estate.add_vm(&VmSpec { base, running: true })?;
    world.estate.lock(vmid, "backup")?;
    let foreign = world.estate.vm(vmid);
    world.estate.remove_faults();
    let (_, launched) = ready_claim(&world, "web").await?;
    assert!(launched.vmid != record.vmid && launched.incomplete.is_empty(), "{launched:?}");
    assert!(world.events("IncompleteClone").await?.is_empty(), "{}", world.tail());
    assert_eq!(world.estate.vm(vmid), foreign);
    world.estate.remove_vm(vmid)?;
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn a_claim_that_is_deleted_without_its_vm_takes_its_node_and_its_seed_along(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::running(kind).await? else { return Ok(()) };
    world.replace_guests(None).await;
    world.deploy("web", 1).await?;
    let (claim, record) =
        world.until_launch("a VM runs", |record| record.step == tenon_model::LaunchStep::Launched).await?;
    world.scale("web", 0).await?;
    // Its operator destroys the VM, and its seed stays on the storage.
    world.estate.remove_vm(record.vmid.get())?;
    let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_SKIP_VM_DELETION: "true" } } });
    let claims: Api<NodeClaim> = Api::all(world.admin.clone());
    claims.patch(&claim.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    world.delete_claim(&claim.name_any()).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn a_node_that_reports_another_machine_is_drained_with_its_claim_and_its_class_waits(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(mut world) = World::running(kind).await? else { return Ok(()) };
    world.deploy("web", 1).await?;
    let (claim, _) = ready_claim(&world, "web").await?;
    let name = claim.name_any();
    let classes: Api<ProxmoxNodeClass> = Api::all(world.admin.clone());
    world
        .until("the class is kept", async || {
            let class = classes.get("default").await?;
            Ok(class.finalizers().iter().any(|name| name == names::CLASS_FINALIZER).then_some(()))
        })
        .await?;
    // Nobody writes the node's status but the test from here on.
    world.replace_guests(None).await;
    let nodes: Api<Node> = Api::all(world.admin.clone());
    let status = json!({ "status": { "nodeInfo": { "systemUUID": "0f0f0f0f-0000-4000-8000-000000000001" } } });
    nodes.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await?;
    classes.delete("default", &kube::api::DeleteParams::default()).await?;
    world.until_event("WaitingOnNodeClaimTermination", "1 NodeClaim uses it").await?;

    world.scale("web", 0).await?;
    world.delete_claim(&name).await?;
    world.until_nothing_is_left().await?;
    world.until("the class is gone", async || Ok(classes.get_opt("default").await?.is_none().then_some(()))).await?;
    world.end().await
}

/// A clone that lands under an id that its claim has left is collected; another VM with the claim's mark is not.
#[tokio::test(start_paused = true)]
async fn a_clone_that_lands_late_under_an_id_its_claim_has_left_is_collected() -> anyhow::Result<()> {
    let Some(world) = World::running(Kind::Embedded).await? else { return Ok(()) };
    world.deploy("web", 1).await?;
    let (claim, record) = ready_claim(&world, "web").await?;
    let claims: Api<NodeClaim> = Api::all(world.admin.clone());
    let left = LaunchRecord { retired: vec![20_777_u32.try_into()?], ..record.clone() };
    let text = tenon_api::launch_record::write(&left);
    let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_LAUNCH: text } } });
    claims.patch(&claim.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    let description = world.estate.vm(record.vmid.get()).context("there is no VM")?.config["description"].clone();
    for vmid in [20_777, 20_778] {
        let mark = description.replace(&format!("vmid={}", record.vmid), &format!("vmid={vmid}"));
        let config = [("description".to_owned(), mark)].into();
        let base =
            TemplateSpec { vmid, name: "late".into(), cloudinit_drive: false, config, ..TemplateSpec::default() };
        world.estate.add_vm(&VmSpec { base, running: false })?;
    }
    world
        .until_within(Duration::from_secs(240), "the late clone is collected", async || {
            Ok(world.estate.vm(20_777).is_none().then_some(()))
        })
        .await?;
    for _ in 0..3 {
        world.let_pass(Duration::from_secs(60)).await?;
    }
    assert_eq!(world.vms(), [record.vmid.get(), 20_778], "{}", world.tail());
    world.estate.remove_vm(20_778)?;
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

/// A storage that hangs under every upload: each call takes its whole time, and nothing says no.
#[tokio::test(start_paused = true)]
async fn a_storage_that_never_answers_an_upload_ends_the_launch_with_that_cause() -> anyhow::Result<()> {
    let Some(world) = impatient(Kind::Embedded).await? else { return Ok(()) };
    let upload = FaultMatch::call("POST", "/nodes/*/storage/*/upload");
    world.estate.add_fault(FaultRule::new(upload, FaultEffect::TimeoutBefore));
    world.deploy("web", 1).await?;
    let (claim, record) = until_claim(&world).await?;
    let words = format!("host {} does not answer", record.host());
    world
        .until_within(Duration::from_secs(300), &words, async || {
            Ok(world.events("InsufficientCapacityError").await?.into_iter().find(|note| note.contains(&words)))
        })
        .await?;
    world.estate.remove_faults();
    world
        .until_within(Duration::from_secs(300), "the pod runs", async || {
            Ok(world.claims().await?.iter().all(|other| other.uid() != claim.uid()).then_some(()))
        })
        .await?;
    world.until_running("web", 1).await?;
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}
