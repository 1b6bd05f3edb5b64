//! Garbage collection, both ways: orphaned VMs of ours, claims whose VM no longer exists, nodes without either.
//!
//! A VM counts as ours only by the line in its description, and goes only after it was seen without a claim twice. A claim
//! that was launched under another id has left the old one: a clone that landed there late is an orphan, too.

mod stuck_nodes;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tenon_api::kube_objects::Node;

use futures::future::join_all;
use kube::ResourceExt;
use serde_json::json;
use tenon_api::{NodeClaim, condition_reasons, event_reasons, names};
use tenon_model::{LaunchRecord, LaunchStep, Place, VmId};
use tenon_pve::{GuestKind, GuestRow, OwnerMark, RefusalKind, Resources, VmConfig};
use tokio::time::Instant;

use self::stuck_nodes::{free_nodes, stuck_nodes};
use crate::claim::{
    ClaimError, DeletionReason, Owner, PowerOff, ReleasePass, attached_seed_storage, delete_claim, is_ready, is_true,
    release,
};
use crate::claim_list::list_claims;
use crate::context::{Context, is_ours};
use crate::events::Event;
use crate::kube_error;
use crate::metrics::{Attempt, Loop, ProviderError, Removed};
use crate::panics::caught;
use crate::provision::record_of;
use crate::regions::RegionFacts;
use crate::settled::{REFRESHED_RARELY, Settled, Version};
use crate::stop::Stop;
use crate::writes;

/// How often everything is looked through, unless nothing changed since it was found in order: a VM that somebody destroyed is
/// noticed within a minute, the pass included.
const EVERY: Duration = Duration::from_secs(45);

/// Once everything is in order, it is asked this often whether anything changed.
const ASKED_EVERY: Duration = Duration::from_secs(15);

/// A VM as a listing row shows it: while that does not change, its configuration is not read again.
#[derive(PartialEq, Eq)]
struct ListedVm {
    host: String,
    name: Option<String>,
    lock: Option<String>,
}

/// What is remembered of a region from pass to pass.
#[derive(Default)]
struct Previous {
    /// VMs that are not ours, as they were listed when they were read.
    foreign: BTreeMap<VmId, ListedVm>,
    /// Orphaned VMs of the last pass.
    orphans: BTreeSet<VmId>,
    /// Whether something was found in the last pass that is looked at again: an orphan, a VM that could not be read, a claim
    /// whose VM is not listed.
    is_open: bool,
}

/// Something that could not be done. The others are done all the same.
struct Failure {
    /// What it was about.
    object: String,
    why: String,
}

/// What is remembered from pass to pass.
#[derive(Default)]
struct Rounds {
    regions: BTreeMap<String, Previous>,
    /// What failed in the last pass, and why: the same again is no news.
    failed: BTreeMap<String, String>,
}

/// One region and what it shows.
struct Region<'a> {
    name: &'a String,
    pve: tenon_pve::Client,
    resources: &'a Resources,
}

/// Collects until stopped.
pub(crate) async fn run(context: Arc<Context>, mut stop: Stop) {
    let mut rounds = Rounds::default();
    let mut settled = Settled::new("nodeclaim.garbagecollection", REFRESHED_RARELY);
    let mut due = EVERY;
    loop {
        tokio::select! {
            biased;
            () = tokio::time::sleep(due) => {}
            () = stop.wait() => return,
        }
        let inputs = inputs(&context);
        if stuck_nodes(&context).is_empty() && settled.skips(&context, &inputs) {
            due = ASKED_EVERY;
            continue;
        }
        due = EVERY;
        let began = Instant::now();
        let failures = pass(&context, &mut rounds.regions).await;
        settled.note(inputs, failures.is_empty() && rounds.regions.values().all(|previous| !previous.is_open));
        let result = if failures.is_empty() { "success" } else { "error" };
        context.metrics.reconciled("nodeclaim.garbagecollection", began, result);
        rounds.failed = report(&context, &rounds.failed, failures);
    }
}

/// What a pass goes by, besides Nodes that are being deleted: of those there are none most of the time.
fn inputs(context: &Context) -> (RegionFacts, Version) {
    (context.regions.facts(), Version::shown(&context.watched.claims))
}

/// Counts what failed, and says so once for each cause. Returns what was said.
fn report(context: &Context, before: &BTreeMap<String, String>, failures: Vec<Failure>) -> BTreeMap<String, String> {
    for Failure { object, why } in &failures {
        context.metrics.errors.get_or_create(&Loop { controller: "nodeclaim.garbagecollection" }).inc();
        if before.get(object) != Some(why) {
            tracing::warn!(object, error = why, "garbage collection failed; retrying");
        }
    }
    failures.into_iter().map(|Failure { object, why }| (object, why)).collect()
}

/// One look at everything. Returns what could not be done.
async fn pass(context: &Context, previous: &mut BTreeMap<String, Previous>) -> Vec<Failure> {
    let began = Instant::now();
    let estate = context.regions.look_now().await;
    context.metrics.provided(Attempt::List, began.elapsed().as_secs_f64());
    for _ in estate.regions.values().filter(|view| view.is_err()) {
        context.metrics.not_provided(Attempt::List, ProviderError::Unknown, "");
    }
    // Not from the store: what is destroyed here is judged by what the API server says now.
    let claims = match list_claims(&context.workload, Some).await {
        Ok(claims) => claims,
        Err(error) => return vec![Failure { object: "NodeClaims".to_owned(), why: kube_error::message(&error) }],
    };
    let shown = estate.regions.iter().filter_map(|(name, view)| {
        let (Ok(resources), Ok(pve)) = (view, context.region(name)) else { return None };
        Some(Region { name, pve, resources })
    });
    let shown: Vec<Region<'_>> = shown.collect();
    previous.retain(|name, _| estate.regions.contains_key(name));
    for region in &shown {
        previous.entry(region.name.clone()).or_default();
    }
    let with_previous = previous
        .iter_mut()
        .filter_map(|(name, previous)| Some((shown.iter().find(|region| region.name == name)?, previous)));
    let rounds = with_previous.map(|(region, previous)| collect_in(context, region, previous, &claims));
    let mut failures: Vec<Failure> = join_all(rounds).await.into_iter().flatten().collect();
    free_nodes(context, &claims, &mut failures).await;
    report_without_region(context, &claims).await;
    failures
}

/// Names the claims whose region was taken out of the cloud config: nothing is done for them until it is back.
async fn report_without_region(context: &Context, claims: &[NodeClaim]) {
    for claim in claims.iter().filter(|claim| is_ours(claim)) {
        let Some(record) = record_of(claim) else { continue };
        if let Err(why) = context.region(&record.place.region) {
            let note = format!("VM {} of NodeClaim {} is kept and not touched: {why}", record.vmid, claim.name_any());
            context.events.publish(claim, &Event::new(&event_reasons::REGION_NOT_CONFIGURED, note)).await;
        }
    }
}

/// One region.
async fn collect_in(
    context: &Context,
    shown: &Region<'_>,
    previous: &mut Previous,
    claims: &[NodeClaim],
) -> Vec<Failure> {
    let mut failures = Vec::new();
    previous.is_open = claims.iter().any(|claim| is_without_vm(claim, shown));
    let found = orphans(context, previous, shown, claims).await;
    previous.is_open |= !found.is_empty();
    for (vmid, orphan) in &found {
        // Seen twice: a claim that was being written during the first look is there by the second.
        if previous.orphans.contains(vmid) {
            let host = orphan.record.host();
            let object = format!("orphaned VM {vmid} on host {host} in region {}", shown.name);
            let unprotect = format!("; on host {host} run: qm set {vmid} --protection 0");
            let why = attempt(collect(context, &shown.pve, orphan), &unprotect);
            failures.extend(why.await.map(|why| Failure { object, why }));
        }
    }
    previous.orphans = found.into_keys().collect();
    for claim in claims.iter().filter(|claim| is_ours(claim)) {
        if let Some(why) = attempt(check_claim(context, shown, claim), "").await {
            let note = failed_note(&claim.name_any(), &why);
            context.events.publish(claim, &Event::new(&event_reasons::FAILED_GARBAGE_COLLECTION, note)).await;
            failures.push(Failure { object: format!("NodeClaim {}", claim.name_any()), why });
        }
    }
    failures
}

/// Whether the VM that a claim should have is not listed.
fn is_without_vm(claim: &NodeClaim, shown: &Region<'_>) -> bool {
    let record = record_of(claim).filter(|record| is_ours(claim) && record.place.region == *shown.name);
    record.is_some_and(|record| !shown.resources.guests.iter().any(|guest| guest.id == record.vmid))
}

fn failed_note(claim: &str, why: &str) -> String {
    format!("Cannot check the VM of NodeClaim {claim}: {why}; retrying")
}

/// Does one thing; why it failed, if it did, with what to do about a VM that is protected.
async fn attempt(work: impl Future<Output = Result<(), ClaimError>>, unprotect: &str) -> Option<String> {
    match caught(work).await {
        Ok(Ok(())) => None,
        Ok(Err(ClaimError::Pve(error))) if error.refusal().is_some_and(|told| told.kind == RefusalKind::Protected) => {
            Some(format!("{}{unprotect}", error.full_message()))
        }
        Ok(Err(error)) => Some(error.full_message()),
        Err(panic) => Some(format!("panicked: {panic}; please report this bug")),
    }
}

/// An orphaned VM: ours, without a claim.
struct Orphan {
    owner: Owner,
    record: LaunchRecord,
}

async fn orphans(
    context: &Context,
    previous: &mut Previous,
    shown: &Region<'_>,
    claims: &[NodeClaim],
) -> BTreeMap<VmId, Orphan> {
    let (region, pve, resources) = (shown.name, &shown.pve, shown.resources);
    let uids: BTreeSet<String> = claims.iter().filter_map(NodeClaim::uid).collect();
    let records = claims.iter().filter_map(|claim| Some((claim.uid()?, record_of(claim)?)));
    let records: BTreeMap<String, LaunchRecord> =
        records.filter(|(_, record)| record.place.region == *region).collect();
    let known: BTreeSet<VmId> = records.values().map(|record| record.vmid).collect();
    let has_left = |uid: &str, id: VmId| records.get(uid).is_some_and(|record| record.retired.contains(&id));
    let mut found = BTreeMap::new();
    let is_candidate = |guest: &&GuestRow| {
        let is_vm = guest.kind == GuestKind::Qemu && !guest.template;
        is_vm && context.settings.ids.contains(guest.id) && !known.contains(&guest.id)
    };
    for guest in resources.guests.iter().map(AsRef::as_ref).filter(is_candidate) {
        let listed = ListedVm { host: guest.host.to_string(), name: guest.name.clone(), lock: guest.lock.clone() };
        if previous.foreign.get(&guest.id) == Some(&listed) {
            continue;
        }
        // It may be gone already, or not ours to read: then it is not ours to remove either.
        let Ok(config) = pve.vm_config(&guest.host, guest.id).await else {
            previous.is_open = true;
            continue;
        };
        let mark = OwnerMark::find_in(config.description());
        match mark.filter(|mark| mark.cluster == context.cluster_id && mark.vmid == guest.id) {
            // After a cluster was restored from a backup its claims may be older than its VMs: what a node runs on stays.
            Some(mark) if !uids.contains(&mark.claim) && is_a_node(context, &config) => {
                tracing::warn!(vmid = %guest.id, "keeping orphaned VM: Node is still registered on it; delete the Node first");
                previous.is_open = true;
            }
            Some(mark) if !uids.contains(&mark.claim) || has_left(&mark.claim, guest.id) => {
                let owner = Owner { cluster: mark.cluster, claim_uid: mark.claim };
                let place = Place { region: region.clone(), host: guest.host.clone() };
                let seed_storage = attached_seed_storage(&owner, &config);
                // Before it is configured, a clone has the protection of its template, and no serial of ours.
                let is_configured = config.get("smbios1").is_some_and(|smbios| smbios.contains("serial="));
                let step = if is_configured { LaunchStep::Launched } else { LaunchStep::Configure };
                let record = LaunchRecord { seed_storage, step, ..record(context, place, guest.id) };
                found.insert(guest.id, Orphan { owner, record });
            }
            // Another's, or of a claim that was made since: a claim that goes is a change.
            Some(_) => {}
            None => {
                previous.foreign.insert(guest.id, listed);
            }
        }
    }
    previous.foreign.retain(|id, _| resources.guests.iter().any(|guest| guest.id == *id));
    found
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
fn record(context: &Context, place: Place, vmid: VmId) -> LaunchRecord {
    LaunchRecord::new(place, vmid, vmid, context.clock.seconds())
}

async fn collect(context: &Context, pve: &tenon_pve::Client, orphan: &Orphan) -> Result<(), ClaimError> {
    let vmid = orphan.record.vmid;
    let (host, claim_uid) = (orphan.record.host(), &orphan.owner.claim_uid);
    tracing::warn!(%vmid, %host, claim_uid, "destroying orphaned VM: its NodeClaim no longer exists, or uses another VM ID");
    // Bounded: stop, destroy, look. What takes longer is left to the next round.
    for _ in 0..4 {
        match release(pve, &orphan.owner, &orphan.record, PowerOff::Stop).await? {
            ReleasePass::Again => {}
            ReleasePass::Released => {
                context.ids.free(&orphan.record.place.region, &[vmid], context.clock.seconds()).await;
                context.metrics.orphans_removed.get_or_create(&Removed { kind: "vm" }).inc();
                tracing::info!(%vmid, %host, "destroyed orphaned VM");
                break;
            }
            ReleasePass::Hidden | ReleasePass::Unreadable => break,
            ReleasePass::SeedLeft(left) => {
                context.metrics.orphans_removed.get_or_create(&Removed { kind: "vm" }).inc();
                tracing::warn!(%vmid, %host, volume = left.volume, error = left.why, "destroyed orphaned VM; cannot delete its seed image");
                break;
            }
            ReleasePass::Wait(why) | ReleasePass::Locked(why) | ReleasePass::Refuse(why) => {
                tracing::warn!(%vmid, %host, reason = why, "cannot destroy orphaned VM yet; retrying");
                break;
            }
        }
    }
    Ok(())
}

/// Deletes a claim whose VM no longer exists, unless its node is Ready; a VM that was migrated gets its node labelled.
async fn check_claim(context: &Context, shown: &Region<'_>, claim: &NodeClaim) -> Result<(), ClaimError> {
    let (region, pve, resources) = (shown.name, &shown.pve, shown.resources);
    let Some(record) = record_of(claim).filter(|record| record.place.region == *region) else { return Ok(()) };
    if claim.metadata.deletion_timestamp.is_some() || !is_true(claim, &condition_reasons::REGISTERED) {
        return Ok(());
    }
    let node = context.watched.nodes.find(|node| node.name_any() == claim.name_any());
    match resources.guests.iter().find(|guest| guest.id == record.vmid) {
        Some(guest) => match node {
            Some(node) => publish_host(context, &node, guest.host.as_str()).await,
            None => Ok(()),
        },
        None if !pve.is_id_free(record.vmid).await? => Ok(()),
        // A node that reports to Kubernetes runs somewhere. That its VM is gone is said all the same.
        None if node.is_some_and(|node| is_ready(&node)) => {
            let name = claim.name_any();
            let note = format!(
                "VM {} of NodeClaim {name} no longer exists; the NodeClaim is deleted when Node {name} is not Ready any more",
                record.vmid
            );
            context.events.publish(claim, &Event::new(&event_reasons::VM_NOT_FOUND, note)).await;
            Ok(())
        }
        None => {
            let note = format!("Deleting NodeClaim {}: VM {} no longer exists", claim.name_any(), record.vmid);
            context.events.publish(claim, &Event::new(&event_reasons::VM_NOT_FOUND, note)).await;
            delete_claim(context, claim, DeletionReason::VmNotFound).await?;
            context.metrics.orphans_removed.get_or_create(&Removed { kind: "nodeclaim" }).inc();
            Ok(())
        }
    }
}

/// The zone label stays what it was; this one says where the VM really is.
async fn publish_host(context: &Context, node: &Node, host: &str) -> Result<(), ClaimError> {
    if node.labels().get(names::LABEL_HOST).is_some_and(|label| label == host) {
        return Ok(());
    }
    let patch = json!({ "metadata": { "labels": { names::LABEL_HOST: host } } });
    let written = writes::merge(&context.workload, node, patch).await;
    written.map(drop).map_err(|source| ClaimError::kube("label the Node with its host", source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_failed_says_why() {
        let why = "cannot label the Node with its host: nodes \"default-x7\" is forbidden (Kubernetes API, HTTP 403)";
        assert_eq!(failed_note("default-x7", why), event_reasons::FAILED_GARBAGE_COLLECTION.example());
    }

    #[tokio::test]
    async fn a_panic_about_one_object_is_a_failure_of_that_object() {
        let why = attempt(async { panic!("index out of bounds") }, "").await;
        assert_eq!(why.as_deref(), Some("panicked: index out of bounds; please report this bug"));
        assert_eq!(attempt(async { Ok(()) }, "").await, None);
    }
}
