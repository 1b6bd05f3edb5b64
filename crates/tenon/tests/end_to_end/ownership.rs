//! Is a VM that is not proven to be ours left alone, whatever happens to the claim that had its id?

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tenon_api::{Condition, ConditionStatus, NodeClaim, names};
use tenon_model::{LaunchRecord, LaunchStep, VmId};
use tenon_pve::OwnerMark;
use tenon_sim::{LedgerEntry, TemplateSpec, VmSpec};

use crate::bench::{from_json, quick_guests};
use crate::ground::{Kind, scenarios};
use crate::world::{NAMESPACE, World, record_of};

/// VMs without a claim are looked for every minute, and go when they are found a second time.
const TWO_LOOKS: Duration = Duration::from_secs(240);

/// Another Kubernetes cluster on the same Proxmox.
const OTHER_CLUSTER: &str = "5a0e34a1-0000-4000-8000-0000000000c2";
/// A claim that does not exist any more.
const GONE_CLAIM: &str = "5a0e34a1-0000-4000-8000-0000000000a1";

/// A VM whose claim is gone, but on which a node runs.
const LIVE: u32 = 20_000;

/// An orphan that somebody protects.
const PROTECTED: u32 = 20_005;

scenarios! {
    a_foreign_vm_under_a_claims_id_survives_and_the_claim_waits_until_it_is_let_go,
    a_copy_whose_worker_died_is_told_of_and_the_vm_is_made_under_another_id,
    a_vm_of_a_claim_that_is_gone_is_collected_and_no_other,
}

async fn a_foreign_vm_under_a_claims_id_survives_and_the_claim_waits_until_it_is_let_go(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    add_patient_rules(&world).await?;
    world.start_controller()?;
    let (claim, record) = idle_claim(&world).await?;
    let vmid = record.vmid.get();
    world.estate.remove_vm(vmid)?;
    add_vm(&world, vmid, "database", "nobody's business of yours")?;
    let (foreign, seen) = (world.estate.vm(vmid), world.estate.ledger().len());

    world.delete_claim(&claim.name_any()).await?;
    let told = world.until("the claim says why it stays", async || refusal(&world, &claim).await).await?;
    assert!(told.contains(names::ANNOTATION_SKIP_VM_DELETION) && told.contains(&vmid.to_string()), "{told}");
    let notes = warnings(&world, "FailedTermination").await?;
    assert!(notes.iter().any(|note| says_what_to_do(note, &record)), "{notes:#?}\n{}", world.tail());
    assert_eq!((world.claims().await?.len(), world.nodes().await?.len()), (1, 1), "{}", world.tail());
    assert_eq!((world.estate.vm(vmid), changes(&world, seen, vmid)), (foreign.clone(), vec![]), "{}", world.tail());

    let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_SKIP_VM_DELETION: "true" } } });
    let claims: Api<NodeClaim> = Api::all(world.admin.clone());
    claims.patch(&claim.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    world.until("claim and node are gone", async || is_empty(&world).await).await?;
    assert_eq!((world.estate.vm(vmid), changes(&world, seen, vmid)), (foreign, vec![]), "{}", world.tail());
    // But for the foreign VM, there is nothing.
    world.estate.remove_vm(vmid)?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn a_copy_whose_worker_died_is_told_of_and_the_vm_is_made_under_another_id(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = World::running(kind).await? else { return Ok(()) };
    world.estate.hold_tasks("qmclone");
    world.deploy("web", 1).await?;
    let (claim, begun) = world.until_launch("a copy runs", |record| record.upid.is_some()).await?;
    let husk = begun.vmid.get();
    assert!(world.estate.kill_worker(&begun.upid.context("the copy has no task")?));
    world.estate.release_tasks();

    let note = world.until_event("IncompleteClone", &format!("qm unlock {husk}")).await?;
    assert!(note.contains(&format!("qm destroy {husk}")) && note.contains(begun.place.host.as_str()), "{note}");
    assert!(warnings(&world, "IncompleteClone").await?.contains(&note), "{note} is no warning");
    world.until_running("web", 1).await?;
    let claims = world.claims().await?;
    assert_eq!(claims.iter().map(ResourceExt::uid).collect::<Vec<_>>(), [claim.uid()], "{}", world.tail());
    let record = record_of(&claims[0])?;
    assert_eq!(record.incomplete, [begun.vmid], "{}", world.tail());
    assert_ne!(record.vmid, begun.vmid);
    assert_eq!(world.vms(), [husk, record.vmid.get()], "{}", world.tail());
    let left = world.estate.vm(husk).context("the half-made copy is gone")?;
    assert_eq!(left.lock.as_deref(), Some("clone"), "{left:#?}");

    // The operator does as told, and somebody else takes the id. Whoever reads that a VM is to be destroyed does it, so it
    // must not be said of that one.
    world.estate.unlock(husk)?;
    world.estate.remove_vm(husk)?;
    add_vm(&world, husk, "database", "")?;
    let (foreign, seen) = (world.estate.vm(husk), world.estate.ledger().len());
    world.scale("web", 0).await?;
    world.until("claim and node are gone", async || is_empty(&world).await).await?;
    let notes = world.events("IncompleteClone").await?;
    assert!(!notes.iter().any(|note| note.contains("its NodeClaim was deleted")), "{notes:#?}\n{}", world.tail());
    assert_eq!((world.estate.vm(husk), changes(&world, seen, husk)), (foreign, vec![]), "{}", world.tail());
    world.estate.remove_vm(husk)?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn a_vm_of_a_claim_that_is_gone_is_collected_and_no_other(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    let namespaces: Api<Namespace> = Api::all(world.admin.clone());
    let cluster = namespaces.get("kube-system").await?.uid().context("kube-system has no uid")?;
    let mark = |cluster: &str, vmid: u32| -> anyhow::Result<String> {
        let mark = OwnerMark { cluster: cluster.into(), claim: GONE_CLAIM.into(), vmid: VmId::try_from(vmid)? };
        Ok(format!("Karpenter managed instance, class=default\n{mark}"))
    };
    // The one that goes has the highest id, so that the others would have gone before it.
    let strangers = [
        (20_001, "unmarked", "a VM of somebody who likes high ids".to_owned()),
        (20_002, "of-another-cluster", mark(OTHER_CLUSTER, 20_002)?),
        (20_003, "copy-of-ours", mark(&cluster, 20_009)?),
        (20_004, "speaks-of-ours", mark(&cluster, 20_004)?.replace('\n', " ")),
    ];
    for (vmid, name, description) in &strangers {
        add_vm(&world, *vmid, name, description)?;
    }
    add_vm(&world, LIVE, "of-a-live-node", &mark(&cluster, LIVE)?)?;
    add_node_on(&world, LIVE).await?;
    let before = world.estate.vms();
    // One that cannot be destroyed comes before it, and keeps nobody.
    add_protected_orphan(&world, &mark(&cluster, PROTECTED)?)?;
    add_vm(&world, 20_006, "orphan", &mark(&cluster, 20_006)?)?;
    world.start_controller()?;
    world
        .until_within(TWO_LOOKS, "the orphan is collected", async || {
            Ok(world.estate.vm(20_006).is_none().then_some(()))
        })
        .await?;
    let advice = format!("qm set {PROTECTED} --protection 0");
    world.until("it is said how", async || Ok(world.log().contains(&advice).then_some(()))).await?;
    world.estate.remove_vm(PROTECTED)?;
    assert_eq!(world.estate.vms(), before, "{}", world.tail());
    for (vmid, ..) in strangers {
        assert_eq!(changes(&world, 0, vmid), [], "{}", world.tail());
        world.estate.remove_vm(vmid)?;
    }
    assert_eq!(changes(&world, 0, LIVE), [], "{}", world.tail());
    world.estate.remove_vm(LIVE)?;
    Api::<Node>::all(world.admin.clone()).delete("restored", &DeleteParams::default()).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

/// A VM of ours without a claim that was configured and is protected since.
fn add_protected_orphan(world: &World, description: &str) -> anyhow::Result<()> {
    let config = [
        ("description", description),
        ("protection", "1"),
        ("smbios1", "base64=1,serial=aD14,uuid=9e01f0b4-0000-4000-8000-000000020005"),
    ];
    let config = config.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let name = "protected-orphan".to_owned();
    let base = TemplateSpec { vmid: PROTECTED, name, cloudinit_drive: false, config, ..TemplateSpec::default() };
    Ok(world.estate.add_vm(&VmSpec { base, running: false })?)
}

/// A node that nobody claims, as a cluster has it that was restored from a backup.
async fn add_node_on(world: &World, vmid: u32) -> anyhow::Result<()> {
    let vm = world.estate.vm(vmid).context("there is no such VM")?;
    let smbios = vm.config.get("smbios1").context("it has no SMBIOS fields")?;
    let uuid = smbios.split(',').find_map(|field| field.strip_prefix("uuid=")).context("it has no uuid")?;
    let nodes: Api<Node> = Api::all(world.admin.clone());
    let node: Node = from_json(json!({ "metadata": { "name": "restored" } }))?;
    nodes.create(&PostParams::default(), &node).await?;
    let texts = ["architecture", "bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion"];
    let more = ["kubeletVersion", "machineID", "operatingSystem", "osImage"];
    let mut info: serde_json::Map<String, serde_json::Value> =
        texts.into_iter().chain(more).map(|name| (name.to_owned(), json!("x"))).collect();
    info.insert("systemUUID".to_owned(), json!(uuid));
    let patch = Patch::Merge(json!({ "status": { "nodeInfo": info } }));
    nodes.patch_status("restored", &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Rules by which nodes stay when they are empty.
async fn add_patient_rules(world: &World) -> anyhow::Result<()> {
    world.add_template("debian-13").await?;
    world.add_class(json!({})).await?;
    world.add_pool(json!({ "disruption": { "consolidateAfter": "Never" } })).await
}

/// A claim whose node runs, has no pods and no first-boot data any more.
async fn idle_claim(world: &World) -> anyhow::Result<(NodeClaim, LaunchRecord)> {
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;
    world.scale("web", 0).await?;
    let pods: Api<Pod> = Api::namespaced(world.admin.clone(), NAMESPACE);
    world
        .until("the pod is gone and the seed is retired", async || {
            let is_gone = pods.list(&ListParams::default()).await?.items.is_empty();
            let claims = world.claims().await?;
            let is_idle = |claim: &NodeClaim| claim.annotations().contains_key(names::ANNOTATION_CLOUDINIT_STATUS);
            Ok((is_gone && claims.iter().all(is_idle)).then_some(()))
        })
        .await?;
    world.until_launch("the claim is launched", |record| record.step == LaunchStep::Launched).await
}

/// A running VM of somebody else.
fn add_vm(world: &World, vmid: u32, name: &str, description: &str) -> anyhow::Result<()> {
    let config = BTreeMap::from([("description".to_owned(), description.to_owned())]);
    let base = TemplateSpec { vmid, name: name.into(), cloudinit_drive: false, config, ..TemplateSpec::default() };
    Ok(world.estate.add_vm(&VmSpec { base, running: true })?)
}

/// What a claim says of a VM that it does not take away.
async fn refusal(world: &World, claim: &NodeClaim) -> anyhow::Result<Option<String>> {
    let claim = Api::<NodeClaim>::all(world.admin.clone()).get(&claim.name_any()).await?;
    let mut conditions = claim.status.into_iter().flat_map(|status| status.conditions.unwrap_or_default());
    let is_refusal = |told: &Condition| {
        told.type_ == "InstanceTerminating" && told.status == ConditionStatus::False && told.reason == "NotProvenOurs"
    };
    Ok(conditions.find(is_refusal).map(|told| told.message))
}

fn says_what_to_do(note: &str, record: &LaunchRecord) -> bool {
    let uuid = record.uuid.as_deref().unwrap_or("unknown");
    let words = [&record.vmid.to_string(), uuid, "another VM has this ID", "tenon.dev/skip-vm-deletion=true"];
    words.iter().all(|word| note.contains(word))
}

/// The notes of all warnings with this reason.
async fn warnings(world: &World, reason: &str) -> anyhow::Result<Vec<String>> {
    let list = Api::<Event>::all(world.admin.clone()).list(&ListParams::default()).await?.items;
    let is_asked = |event: &Event| event.type_.as_deref() == Some("Warning") && event.reason.as_deref() == Some(reason);
    Ok(list.into_iter().filter(is_asked).filter_map(|event| event.note).collect())
}

/// Everything but looks that was asked of a VM, from an entry of the ledger on.
fn changes(world: &World, from: usize, vmid: u32) -> Vec<LedgerEntry> {
    let (path, below) = (format!("/qemu/{vmid}"), format!("/qemu/{vmid}/"));
    let is_change =
        |entry: &LedgerEntry| entry.method != "GET" && (entry.path.ends_with(&path) || entry.path.contains(&below));
    world.estate.ledger().into_iter().skip(from).filter(is_change).collect()
}

async fn is_empty(world: &World) -> anyhow::Result<Option<()>> {
    Ok((world.claims().await?.is_empty() && world.nodes().await?.is_empty()).then_some(()))
}
