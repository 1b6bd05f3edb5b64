//! Collects what nobody owns any more, both ways: VMs of ours without a claim, claims whose VM is gone, nodes without either.
//!
//! A VM counts as ours only by the line in its description, and goes only after it was seen without a claim twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use serde_json::json;
use tenon_api::{NodeClaim, names};
use tenon_model::{LaunchRecord, LaunchStep, Place, VmId};
use tenon_pve::{GuestKind, GuestRow, OwnerMark, Resources, VmConfig};

use crate::claim::{ClaimError, Owner, ReleasePass, count_disrupted, is_ready, is_true, release};
use crate::context::{Context, is_ours};
use crate::events::Saying;
use crate::metrics::Loop;
use crate::provision::record_of;
use crate::status::Estate;
use crate::stop::Stop;
use crate::writes;

/// How often everything is looked through.
const EVERY: Duration = Duration::from_secs(60);

/// A VM as a listing row shows it: while that does not change, its configuration is not read again.
type Look = (String, Option<String>, Option<String>);

/// What is remembered from look to look.
#[derive(Default)]
struct Looks {
    /// VMs that are nobody's concern here, as they looked when they were read.
    foreign: BTreeMap<(String, VmId), Look>,
    /// VMs of ours that had no claim at the last look.
    orphans: BTreeSet<(String, VmId)>,
}

/// Collects until told to stop.
pub(crate) async fn run(context: Arc<Context>, mut stop: Stop) {
    let mut looks = Looks::default();
    loop {
        tokio::select! {
            biased;
            () = tokio::time::sleep(EVERY) => {}
            () = stop.wait() => return,
        }
        if let Err(error) = pass(&context, &mut looks).await {
            context.metrics.errors.get_or_create(&Loop { controller: "nodeclaim.garbagecollection" }).inc();
            tracing::warn!("collecting failed: {}", error.told());
        }
    }
}

async fn pass(context: &Context, looks: &mut Looks) -> Result<(), ClaimError> {
    let estate = Estate::look(&context.regions).await;
    // Not from the store: what is destroyed here is judged by what the API server says now.
    let api: Api<NodeClaim> = Api::all(context.workload.clone());
    let claims =
        api.list(&ListParams::default()).await.map_err(|source| ClaimError::kube("list claims", source))?.items;
    for (region, view) in &estate.regions {
        let (Ok(resources), Ok(pve)) = (view, context.region(region)) else { continue };
        let found = orphans(context, looks, (region, pve), (resources, &claims)).await?;
        for (vmid, orphan) in &found {
            // Seen twice: a claim that was being written during the first look is there by the second.
            if looks.orphans.contains(&(region.clone(), *vmid)) {
                collect(pve, orphan).await?;
            }
        }
        looks.orphans.retain(|(of, _)| of != region);
        looks.orphans.extend(found.into_keys().map(|vmid| (region.clone(), vmid)));
        for claim in claims.iter().filter(|claim| is_ours(claim)) {
            look_after(context, (region, pve), resources, claim).await?;
        }
    }
    free_nodes(context, &claims).await
}

/// A VM of ours without a claim.
struct Orphan {
    owner: Owner,
    record: LaunchRecord,
}

async fn orphans(
    context: &Context,
    looks: &mut Looks,
    (region, pve): (&String, &tenon_pve::Client),
    (resources, claims): (&Resources, &[NodeClaim]),
) -> Result<BTreeMap<VmId, Orphan>, ClaimError> {
    let uids: BTreeSet<String> = claims.iter().filter_map(NodeClaim::uid).collect();
    let records = claims.iter().filter_map(record_of).filter(|record| record.place.region == *region);
    let known: BTreeSet<VmId> = records.map(|record| record.vmid).collect();
    let mut found = BTreeMap::new();
    let is_candidate = |guest: &&GuestRow| {
        let is_vm = guest.kind == GuestKind::Qemu && !guest.template;
        is_vm && context.settings.ids.contains(guest.id) && !known.contains(&guest.id)
    };
    for guest in resources.guests.iter().filter(is_candidate) {
        let key = (region.clone(), guest.id);
        let look = (guest.host.to_string(), guest.name.clone(), guest.lock.clone());
        if looks.foreign.get(&key) == Some(&look) {
            continue;
        }
        // It may be gone already, or not ours to read: then it is not ours to remove either.
        let Ok(config) = pve.vm_config(&guest.host, guest.id).await else { continue };
        let mark = OwnerMark::find_in(config.description());
        match mark.filter(|mark| mark.cluster == context.cluster_id && mark.vmid == guest.id) {
            // After a cluster was restored from a backup its claims may be older than its VMs: what a node runs on stays.
            Some(mark) if !uids.contains(&mark.claim) && is_a_node(context, &config) => {
                tracing::warn!(vmid = %guest.id, "a vm of ours has no claim, but a node runs on it: it stays. Remove the node first");
            }
            Some(mark) if !uids.contains(&mark.claim) => {
                let owner = Owner { cluster: mark.cluster, claim_uid: mark.claim };
                let place = Place { region: region.clone(), host: guest.host.clone() };
                found.insert(guest.id, Orphan { owner, record: record(context, place, guest.id, &config) });
            }
            Some(_) => {}
            None => {
                looks.foreign.insert(key, look);
            }
        }
    }
    looks.foreign.retain(|(of, id), _| of != region || resources.guests.iter().any(|guest| guest.id == *id));
    Ok(found)
}

/// Whether a node of the cluster runs on a VM.
fn is_a_node(context: &Context, config: &VmConfig) -> bool {
    let Some(uuid) = config.uuid() else { return false };
    let runs_on = |node: &Node| {
        let info = node.status.as_ref().and_then(|status| status.node_info.as_ref());
        info.is_some_and(|info| info.system_uuid.eq_ignore_ascii_case(&uuid))
    };
    context.watched.nodes.find(runs_on).is_some()
}

/// What would have been written down of such a VM: enough to release it and its seed.
fn record(context: &Context, place: Place, vmid: VmId, config: &VmConfig) -> LaunchRecord {
    let name = format!(":iso/user-data-{vmid}.iso");
    let drive = config.get("ide2").and_then(|drive| drive.split(',').next());
    let seed_storage = drive.and_then(|volume| volume.strip_suffix(&name)).map(str::to_owned);
    let record = LaunchRecord::new(place, vmid, vmid, context.clock.seconds());
    LaunchRecord { step: LaunchStep::Launched, seed_storage, ..record }
}

async fn collect(pve: &tenon_pve::Client, orphan: &Orphan) -> Result<(), ClaimError> {
    let vmid = orphan.record.vmid;
    tracing::warn!(%vmid, host = %orphan.record.host(), claim_uid = orphan.owner.claim_uid, "a vm of ours has no claim: it goes");
    // Bounded: stop, destroy, look. What takes longer is left to the next round.
    for _ in 0..4 {
        match release(pve, &orphan.owner, &orphan.record).await? {
            ReleasePass::Again => {}
            ReleasePass::Released => {
                tracing::info!(%vmid, "a vm without a claim was removed");
                break;
            }
            ReleasePass::Wait(why) | ReleasePass::Locked(why) | ReleasePass::Refuse(why) => {
                tracing::warn!(%vmid, why, "a vm without a claim stays for now");
                break;
            }
        }
    }
    Ok(())
}

/// A claim whose VM is gone goes too, unless its node is alive; one whose VM was moved says where it is now.
async fn look_after(
    context: &Context,
    (region, pve): (&String, &tenon_pve::Client),
    resources: &Resources,
    claim: &NodeClaim,
) -> Result<(), ClaimError> {
    let Some(record) = record_of(claim).filter(|record| record.place.region == *region) else { return Ok(()) };
    if claim.metadata.deletion_timestamp.is_some() || !is_true(claim, "Registered") {
        return Ok(());
    }
    let node = context.watched.nodes.find(|node| node.name_any() == claim.name_any());
    match resources.guests.iter().find(|guest| guest.id == record.vmid) {
        Some(guest) => match node {
            Some(node) => publish_host(context, &node, guest.host.as_str()).await,
            None => Ok(()),
        },
        None if node.is_some_and(|node| is_ready(&node)) || !pve.is_id_free(record.vmid).await? => Ok(()),
        None => {
            let told = format!("vm {} is gone, so its claim goes too", record.vmid);
            context.events.say(claim, &Saying::warning("VmGone", told)).await;
            let api: Api<NodeClaim> = Api::all(context.workload.clone());
            writes::delete(&api, claim).await.map_err(|source| ClaimError::kube("delete the claim", source))?;
            count_disrupted(context, claim, "garbage_collected");
            Ok(())
        }
    }
}

/// The zone label stays what it was; this one says where the VM really is.
async fn publish_host(context: &Context, node: &Node, host: &str) -> Result<(), ClaimError> {
    if node.labels().get(names::LABEL_HOST).is_some_and(|told| told == host) {
        return Ok(());
    }
    let patch = json!({ "metadata": { "labels": { names::LABEL_HOST: host } } });
    let written = writes::merge(&context.workload, node, patch).await;
    written.map(drop).map_err(|source| ClaimError::kube("label the node with its host", source))
}

/// A node that is being deleted and waits for us, but has no claim any more, is let go.
async fn free_nodes(context: &Context, claims: &[NodeClaim]) -> Result<(), ClaimError> {
    let is_stuck = |node: &Node| {
        node.metadata.deletion_timestamp.is_some()
            && node.finalizers().iter().any(|name| name == names::FINALIZER)
            && node.labels().contains_key(names::LABEL_NODECLASS)
            && !claims.iter().any(|claim| claim.name_any() == node.name_any())
    };
    for node in context.watched.nodes.state_filter(is_stuck) {
        let rest: Vec<&String> = node.finalizers().iter().filter(|name| *name != names::FINALIZER).collect();
        let patch = json!({ "metadata": { "finalizers": rest } });
        let written = writes::merge(&context.workload, node.as_ref(), patch).await;
        written.map_err(|source| ClaimError::kube("let the node go", source))?;
        tracing::info!(node = node.name_any(), "a node without a claim was let go");
    }
    Ok(())
}
