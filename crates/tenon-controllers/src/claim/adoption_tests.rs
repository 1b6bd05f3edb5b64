//! VMs of the Go provider: which become ours, which are left alone and why, and what happens when we die half-way.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::ResourceExt;
use kube::api::Api;
use serde_json::{Value, json};
use tenon_api::{NodeClaim, names};
use tenon_model::LaunchStep;
use tenon_sim::{TemplateSpec, VmSpec};

use super::test_stage::{ClaimStage, merge, ready};

const NAME: &str = "default-4hx9z";
const VMID: u32 = 20_007;
const UUID: &str = "5f0c7a52-0000-4000-8000-000000020007";
const DESCRIPTION: &str = "Karpenter managed instance, class=default, capacity-type=on-demand";

/// The VM as the Go provider configures it, with other keys.
fn vm(other: &[(&str, &str)]) -> VmSpec {
    let serial = BASE64.encode(format!("h={NAME};i={VMID}"));
    let smbios = format!("uuid={UUID},base64=1,sku={},serial={serial}", BASE64.encode("s1.1VCPU-4GB"));
    let mut config =
        BTreeMap::from([("description".to_owned(), DESCRIPTION.to_owned()), ("smbios1".to_owned(), smbios)]);
    config.extend(other.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    let base = TemplateSpec {
        host: "pve1".to_owned(),
        vmid: VMID,
        name: NAME.to_owned(),
        tags: "karpenter".to_owned(),
        cloudinit_drive: false,
        config,
        ..TemplateSpec::default()
    };
    VmSpec { base, running: true }
}

fn renamed(name: &str) -> VmSpec {
    let VmSpec { base, running } = vm(&[]);
    VmSpec { base: TemplateSpec { name: name.to_owned(), ..base }, running }
}

/// A NodeClaim of the Go controllers, with more in it.
async fn add_claim(stage: &ClaimStage, more: Value) {
    let met = |type_: &str| {
        json!({ "type": type_, "status": "True", "reason": type_, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    let mut claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
        "metadata": {
            "name": NAME, "finalizers": [names::FINALIZER],
            "labels": {
                names::LABEL_NODEPOOL: "default", names::LABEL_NODECLASS: "default", names::LABEL_ZONE: "pve1",
                names::LABEL_REGION: "lab", names::LABEL_INSTANCE_TYPE: "s1.1VCPU-4GB",
                names::LABEL_CAPACITY_TYPE: "on-demand",
            },
            "annotations": { names::ANNOTATION_CLOUDINIT_STATUS: "Initialized" },
        },
        "spec": {
            "expireAfter": "Never", "requirements": [],
            "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
        },
        "status": {
            "providerID": format!("proxmox://lab/{VMID}"), "nodeName": NAME,
            "conditions": [met("Launched"), met("Registered"), met("Initialized"), met("Ready")],
        },
    });
    merge(&mut claim, more);
    stage.create::<NodeClaim>(stage.claims_api(), claim).await;
}

/// The Node of that claim, with more in it.
async fn add_node(stage: &ClaimStage, more: Value) {
    let claim = stage.claim(NAME).await;
    let mut node = json!({
        "metadata": {
            "name": NAME, "finalizers": [names::FINALIZER],
            "labels": { names::LABEL_NODECLASS: "default", "karpenter.sh/registered": "true" },
            "ownerReferences": [{
                "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": NAME, "uid": claim.uid(),
            }],
        },
        "spec": { "providerID": format!("proxmox://lab/{VMID}"), "taints": [] },
        "status": {
            "nodeInfo": { "systemUUID": UUID.to_uppercase() }, "allocatable": { "cpu": "1", "memory": "1Gi" },
            "conditions": ready("True"),
        },
    });
    merge(&mut node, more);
    stage.create::<Node>(stage.nodes_api(), node).await;
}

/// A node as the Go controllers leave it, with its VM.
async fn stage_with(vm: &VmSpec) -> ClaimStage {
    let stage = ClaimStage::new().await;
    stage.estate.add_vm(vm).unwrap();
    add_claim(&stage, json!({})).await;
    add_node(&stage, json!({})).await;
    stage
}

fn config(stage: &ClaimStage, key: &str) -> Option<String> {
    stage.estate.vm(VMID).unwrap().config.get(key).cloned()
}

fn changes(stage: &ClaimStage) -> Vec<String> {
    let ledger = stage.estate.ledger().into_iter().filter(|entry| entry.method != "GET");
    ledger.map(|entry| format!("{} {}", entry.method, entry.path)).collect()
}

async fn is_adopted(stage: &ClaimStage) -> bool {
    stage.claim(NAME).await.annotations().contains_key(names::ANNOTATION_LAUNCH)
}

#[tokio::test(start_paused = true)]
async fn a_vm_with_every_mark_becomes_ours_by_one_write_and_runs_on() {
    let stage = stage_with(&vm(&[])).await;
    stage.run(NAME, 30).await;
    let record = stage.record(NAME).await;
    assert_eq!((record.step, record.uuid.as_deref(), record.vmid.get()), (LaunchStep::Launched, Some(UUID), VMID));
    assert_eq!((record.place.region.as_str(), record.host().as_str()), ("lab", "pve1"));
    let uid = stage.claim(NAME).await.uid().unwrap();
    let marked = format!("{DESCRIPTION}\ntenon.dev/owner cluster=c claim={uid} vmid={VMID}");
    assert_eq!(config(&stage, "description").unwrap().trim_end(), marked);
    assert_eq!(changes(&stage).len(), 1, "{:?}", changes(&stage));
    assert_eq!(stage.condition(NAME, "Adopted").await.0, "True");
    assert_eq!(stage.told(NAME, "Adopted").await, [format!("Adopted VM {VMID} on host pve1")]);
    stage.run(NAME, 1200).await;
    assert_eq!((changes(&stage).len(), stage.vms()), (1, vec![VMID]));
}

#[tokio::test(start_paused = true)]
async fn an_adopted_node_is_drained_and_its_vm_destroyed_like_any_other() {
    let stage = stage_with(&vm(&[])).await;
    stage.run(NAME, 30).await;
    stage.delete(stage.nodes_api(), NAME).await;
    stage.run(NAME, 300).await;
    assert!(stage.is_gone(NAME).await && stage.node(NAME).await.is_none());
    assert_eq!(stage.vms(), Vec::<u32>::new());
}

/// Lets the collector run for so long.
async fn collect(stage: &ClaimStage, seconds: u64) {
    let (stopper, stop) = crate::stop::stop();
    let collector = tokio::spawn(crate::garbage_collection::run(stage.context.clone(), stop));
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    stopper.tell();
    collector.await.unwrap();
    stage.settle().await;
}

#[tokio::test(start_paused = true)]
async fn an_adopted_node_whose_vm_is_destroyed_is_told_of_within_a_minute_and_replaced_like_any_other() {
    let stage = stage_with(&vm(&[])).await;
    stage.run(NAME, 30).await;
    stage.estate.remove_vm(VMID).unwrap();
    collect(&stage, 60).await;
    assert!(stage.told(NAME, "VMNotFound").await[0].contains("is not Ready any more"));
    assert!(!stage.is_deleting(NAME).await, "its kubelet is alive");
    stage.patch_status(stage.nodes_api(), NAME, json!({ "conditions": ready("Unknown") })).await;
    collect(&stage, 60).await;
    assert!(stage.is_deleting(NAME).await);
    stage.run(NAME, 60).await;
    assert!(stage.is_gone(NAME).await && stage.node(NAME).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_adopted_vm_that_moves_is_followed_and_one_without_a_claim_is_destroyed_like_any_other() {
    let stage = stage_with(&vm(&[])).await;
    stage.run(NAME, 30).await;
    stage.estate.migrate(VMID, "pve2").unwrap();
    collect(&stage, 60).await;
    assert_eq!(stage.node(NAME).await.unwrap().labels()[names::LABEL_HOST], "pve2");
    // Somebody takes our finalizers off. The Node goes with its owner.
    let without = json!({ "metadata": { "finalizers": null } });
    stage.patch(stage.claims_api(), NAME, without.clone()).await;
    stage.patch(stage.nodes_api(), NAME, without).await;
    stage.delete(stage.claims_api(), NAME).await;
    assert_eq!(stage.vms(), [VMID]);
    collect(&stage, 180).await;
    assert_eq!(stage.vms(), Vec::<u32>::new());
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_deleted_before_it_is_adopted_is_adopted_and_released() {
    let stage = stage_with(&vm(&[])).await;
    stage.delete(stage.claims_api(), NAME).await;
    stage.run(NAME, 300).await;
    assert!(stage.is_gone(NAME).await);
    assert_eq!(stage.vms(), Vec::<u32>::new());
}

/// Leaves a node whose VM or claim or Node is other than it should be alone, says so once, and returns why.
async fn refusal(stage: &ClaimStage) -> (String, String) {
    stage.run(NAME, 600).await;
    let (status, reason, message) = stage.condition(NAME, "Adopted").await;
    assert_eq!(status, "False");
    assert_eq!(stage.told(NAME, "NotAdopted").await, std::slice::from_ref(&message), "told once");
    assert!(!is_adopted(stage).await && changes(stage).is_empty(), "{:?}", changes(stage));
    assert!(message.starts_with("Not adopted: ") && message.contains(';'), "a cause and a next step: {message}");
    (reason, message)
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_misses_a_mark_is_left_alone_with_the_reason() {
    let other_uuid = vm(&[]).base.config["smbios1"].replace("5f0c7a52", "99999999");
    let other_serial = vm(&[]).base.config["smbios1"].replace(",serial=", ",serial=AAAA");
    let foreign = format!("{DESCRIPTION}\ntenon.dev/owner cluster=other claim=u vmid={VMID}");
    for (key, value, reason, words) in [
        ("name", "web", "VMNameMismatch", "has name \"web\", expected default-4hx9z"),
        ("smbios1", &other_serial, "VMSerialMismatch", "expected h=default-4hx9z;i=20007"),
        ("smbios1", &other_uuid, "VMUUIDMismatch", "but the Node reports 5F0C7A52"),
        ("smbios1", "uuid=5f0c7a52-0000-4000-8000-000000020007", "VMSerialMismatch", "has SMBIOS serial \"\""),
        ("description", "my notes", "VMDescriptionMismatch", "begins with \"my notes\""),
        (
            "description",
            "Karpenter managed instance, class=default2, capacity-type=spot",
            "VMDescriptionMismatch",
            "expected \"Karpenter managed instance, class=default\"",
        ),
        ("description", &foreign, "OtherOwner", "names another owner"),
        ("lock", "backup", "VMLocked", "lock: backup"),
    ] {
        let stage = stage_with(&if key == "name" { renamed(value) } else { vm(&[(key, value)]) }).await;
        let (found, message) = refusal(&stage).await;
        assert_eq!(found, reason, "{message}");
        assert!(message.contains(words), "{message}");
        // Deleted, it waits for its operator, and the VM stays.
        stage.delete(stage.claims_api(), NAME).await;
        stage.run(NAME, 300).await;
        assert_eq!(stage.vms(), [VMID]);
        let told = stage.told(NAME, "FailedTermination").await;
        assert!(told[0].contains("is not adopted") && told[0].contains("skip-vm-deletion=true"), "{told:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_moved_and_a_claim_without_its_node_are_left_alone() {
    let mut elsewhere = vm(&[]);
    elsewhere.base.host = "pve2".to_owned();
    let (reason, message) = refusal(&stage_with(&elsewhere).await).await;
    assert_eq!(reason, "VMMoved");
    assert!(message.contains("on host pve2 has moved: the zone label of the NodeClaim says \"pve1\""), "{message}");

    let stage = ClaimStage::new().await;
    stage.estate.add_vm(&vm(&[])).unwrap();
    add_claim(&stage, json!({})).await;
    assert_eq!(refusal(&stage).await.0, "NodeNotFound");
    add_node(&stage, json!({ "spec": { "providerID": "proxmox://lab/1" } })).await;
    stage.run(NAME, 30).await;
    assert_eq!(stage.condition(NAME, "Adopted").await.1, "NodeMismatch");
}

#[tokio::test(start_paused = true)]
async fn a_vm_of_another_region_and_one_that_is_gone_are_told_of() {
    let stage = ClaimStage::new().await;
    let id = |id: &str| json!({ "status": { "providerID": id } });
    add_claim(&stage, id("proxmox://west/20007")).await;
    add_node(&stage, json!({ "spec": { "providerID": "proxmox://west/20007" } })).await;
    let (reason, message) = refusal(&stage).await;
    assert_eq!(reason, "RegionNotConfigured");
    assert!(message.contains("region west is not in the cloud config, which has lab; add the region"), "{message}");

    let stage = ClaimStage::new().await;
    add_claim(&stage, json!({})).await;
    add_node(&stage, json!({})).await;
    assert_eq!(refusal(&stage).await.0, "VMNotFound");
    stage.delete(stage.claims_api(), NAME).await;
    stage.run(NAME, 60).await;
    assert!(stage.is_gone(NAME).await, "nothing is left that could be destroyed");
}

#[tokio::test(start_paused = true)]
async fn what_is_mended_is_adopted_within_a_minute_and_the_condition_says_so() {
    let stage = stage_with(&renamed("web")).await;
    assert_eq!(refusal(&stage).await.0, "VMNameMismatch");
    let (pve, host) = (stage.context.region("lab").unwrap(), "pve1".parse().unwrap());
    pve.configure_vm(&host, VMID.try_into().unwrap(), &[("name", NAME.to_owned())]).await.unwrap();
    stage.run(NAME, 90).await;
    assert!(is_adopted(&stage).await);
    assert_eq!(stage.condition(NAME, "Adopted").await.0, "True");
}

/// A node of the Go provider that became Ready just before its controller ended: seed, tag and token are still there.
async fn unfinished() -> ClaimStage {
    let stage = ClaimStage::new().await;
    let mut vm = vm(&[("ide2", "local:iso/user-data-20007.iso,media=cdrom")]);
    vm.base.tags = "go-proxmox+cloud-init;karpenter".to_owned();
    stage.estate.add_vm(&vm).unwrap();
    stage.estate.put_iso("pve1", "local:iso/user-data-20007.iso", Bytes::from_static(b"seed")).unwrap();
    let token = json!({
        "metadata": {
            "name": "bootstrap-token-abcdef", "namespace": "kube-system",
            "labels": { names::LABEL_BOOTSTRAP_TOKEN: "true" },
        },
        "type": "bootstrap.kubernetes.io/token", "stringData": { "token-id": "abcdef", "token-secret": "0123456789abcdef" },
    });
    stage.create::<Secret>(Api::namespaced(stage.client.clone(), "kube-system"), token).await;
    let annotations = json!({ names::ANNOTATION_CLOUDINIT_STATUS: null, names::ANNOTATION_BOOTSTRAP_TOKEN: "abcdef" });
    add_claim(&stage, json!({})).await;
    stage.patch(stage.claims_api(), NAME, json!({ "metadata": { "annotations": annotations } })).await;
    add_node(&stage, json!({})).await;
    stage
}

#[tokio::test(start_paused = true)]
async fn seed_tag_and_token_of_the_go_provider_are_deleted_as_it_would_have() {
    let stage = unfinished().await;
    stage.run(NAME, 60).await;
    assert_eq!(config(&stage, "ide2").as_deref(), Some("none,media=cdrom"));
    assert_eq!(config(&stage, "tags").as_deref(), Some("karpenter"));
    assert!(!stage.estate.volumes().iter().any(|volume| volume.content == "iso"));
    let secrets: Api<Secret> = Api::namespaced(stage.client.clone(), "kube-system");
    assert!(secrets.get_opt("bootstrap-token-abcdef").await.unwrap().is_none());
    assert_eq!(stage.claim(NAME).await.annotations()[names::ANNOTATION_CLOUDINIT_STATUS], "Initialized");
    assert_eq!(stage.told(NAME, "SeedNotDeleted").await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn whoever_dies_between_mark_and_record_leaves_what_the_next_one_goes_on_from() {
    let mut stage = stage_with(&vm(&[])).await;
    // The record cannot be written: as if we had died each time before it.
    stage.forbid(|method, path| method == "PATCH" && path.ends_with(NAME));
    stage.run(NAME, 60).await;
    assert!(!is_adopted(&stage).await);
    assert_eq!(changes(&stage).len(), 1, "marked once: {:?}", changes(&stage));
    stage.forbid(|_, _| false);
    stage.run(NAME, 120).await;
    assert!(is_adopted(&stage).await);
    assert_eq!(changes(&stage).len(), 1);
}
