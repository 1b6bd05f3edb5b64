//! Applies what a ProxmoxNodeClass may change while its VMs run: tags, security groups and resource pool.
//!
//! A VM is found by its id and proof wherever it is by now, so one that was migrated is changed too. What is applied is
//! written down when all of it succeeded; after a crash the rest is done again, which changes nothing twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use serde_json::json;
use tenon_api::{NodeClaim, ProxmoxNodeClass, condition_reasons, event_reasons, hash, names};
use tenon_model::LaunchRecord;
use tenon_pve::{Client, Error, PoolChange, ProvenVm, Tags};

use crate::claim::{ClaimError, SEED_TAG, VmFirewall, filtered_cards, is_true, observe_vm};
use crate::context::{Context, is_ours};
use crate::events::Event;
use crate::metrics::Loop;
use crate::moments::after;
use crate::panics::caught;
use crate::provision::record_of;
use crate::settled::{REFRESHED_RARELY, Settled, Version};
use crate::stop::Stop;
use crate::writes::{self, Written};

/// How often classes and NodeClaims are looked at. They are compared only if one of them changed.
const EVERY: Duration = Duration::from_secs(5);

/// VMs that are changed at the same time.
const AT_ONCE: usize = 8;

/// A VM that could not be changed is tried again after this long.
const AGAIN_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// Applies until stopped.
pub(crate) async fn run(context: Arc<Context>, mut stop: Stop) {
    let mut failed: BTreeMap<String, Timestamp> = BTreeMap::new();
    let mut settled = Settled::new("nodeclaim.inplaceupdate", REFRESHED_RARELY);
    loop {
        tokio::select! {
            biased;
            () = tokio::time::sleep(EVERY) => {}
            () = stop.wait() => return,
        }
        let inputs = (Version::shown(&context.watched.claims), Version::shown(&context.watched.classes));
        if !settled.skips(&context, &inputs) {
            let found = pass(&context, &mut failed).await;
            settled.note(inputs, found == 0);
        }
    }
}

/// A VM that is not as its class says any more.
struct Outdated {
    claim: Arc<NodeClaim>,
    record: LaunchRecord,
    class: Arc<ProxmoxNodeClass>,
}

/// Returns how many VMs were found that are not as their class says.
async fn pass(context: &Context, failed: &mut BTreeMap<String, Timestamp>) -> usize {
    let now = context.clock.now();
    let outdated: Vec<Outdated> =
        context.watched.claims.state().into_iter().filter_map(|claim| outdated(context, claim)).collect();
    let names: BTreeSet<String> = outdated.iter().map(|one| one.claim.name_any()).collect();
    failed.retain(|name, at| names.contains(name) && after(*at, AGAIN_AFTER) > now);
    let due: Vec<&Outdated> = outdated.iter().filter(|one| !failed.contains_key(&one.claim.name_any())).collect();
    let updates: Vec<_> = due.into_iter().map(|one| updated(context, one)).collect();
    let mut ended = stream::iter(updates).buffer_unordered(AT_ONCE);
    while let Some((one, outcome)) = ended.next().await {
        let why = match outcome {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => error.full_message(),
            Err(panic) => panic,
        };
        failed.insert(one.claim.name_any(), now);
        context.metrics.errors.get_or_create(&Loop { controller: "nodeclaim.inplaceupdate" }).inc();
        let note = format!(
            "Cannot apply tags, security groups and resource pool of ProxmoxNodeClass {} to VM {}: {why}; retrying",
            one.class.name_any(),
            one.record.vmid
        );
        context.events.publish(one.claim.as_ref(), &Event::new(&event_reasons::IN_PLACE_UPDATE_FAILED, note)).await;
    }
    names.len()
}

/// One VM, and what came of it. A panic about one is said of that one.
async fn updated<'a>(context: &Context, one: &'a Outdated) -> (&'a Outdated, Result<Result<(), ClaimError>, String>) {
    (one, caught(update(context, one)).await)
}

/// A claim whose VM runs, and whose class says something else than was last applied.
fn outdated(context: &Context, claim: Arc<NodeClaim>) -> Option<Outdated> {
    let runs = is_true(&claim, &condition_reasons::LAUNCHED) && claim.metadata.deletion_timestamp.is_none();
    if !is_ours(&claim) || !runs {
        return None;
    }
    let class = context.watched.classes.get(&ObjectRef::new(&claim.spec.node_class_ref.name))?;
    let applied = claim.annotations().get(names::ANNOTATION_IN_PLACE_HASH)?;
    if *applied == hash::of_class_in_place(&class) {
        return None;
    }
    Some(Outdated { record: record_of(&claim)?, claim, class })
}

async fn update(context: &Context, one: &Outdated) -> Result<(), ClaimError> {
    let Outdated { claim, record, class } = one;
    let Ok(pve) = context.region(&record.place.region) else { return Ok(()) };
    // A VM that is not proven to be ours, or that cannot be reached, is not changed.
    let Some(vm) = observe_vm(&pve, &context.owner(claim), record).await?.proven else { return Ok(()) };
    configure(&pve, &vm, class).await?;
    let groups = class.spec.security_groups.clone().unwrap_or_default();
    VmFirewall { pve: &pve, host: vm.host(), vmid: vm.vmid() }.settle(&groups).await?;
    let pool = class.spec.resource_pool.clone().filter(|pool| !pool.is_empty());
    move_to_pool(context, &pve, one, pool.as_deref()).await?;
    let applied = json!({
        names::ANNOTATION_IN_PLACE_HASH: hash::of_class_in_place(class),
        names::ANNOTATION_RESOURCE_POOL: pool.unwrap_or_default(),
    });
    let patch = json!({ "metadata": { "annotations": applied } });
    let written = writes::merge(&context.workload, claim.as_ref(), patch).await;
    let written = written.map_err(|source| ClaimError::kube("annotate the NodeClaim: updated in place", source))?;
    if matches!(written, Written::Outdated) {
        // What was changed stays changed; the next pass finds that and writes it down.
        return Ok(());
    }
    tracing::info!(claim = claim.name_any(), vmid = %record.vmid, "updated tags, security groups and resource pool of VM");
    Ok(())
}

/// Tags, and the firewall of cards that are in a security group. One write, refused if the VM was changed meanwhile.
async fn configure(pve: &Client, vm: &ProvenVm, class: &ProxmoxNodeClass) -> Result<(), Error> {
    let present = vm.config().tags();
    let seed_tag = Some(SEED_TAG.to_owned()).filter(|tag| present.has(tag));
    let words: Vec<String> = class.spec.tags.iter().flatten().cloned().chain(seed_tag).collect();
    let tags = Tags::read(&words.join(";"));
    let mut keys: Vec<(String, String)> = filtered_cards(class.spec.security_groups.iter().flatten(), vm.config());
    match tags {
        tags if tags == present => {}
        // An empty text would be kept as a blank.
        tags if tags == Tags::default() => keys.push(("delete".to_owned(), "tags".to_owned())),
        tags => keys.push(("tags".to_owned(), tags.to_string())),
    }
    if keys.is_empty() {
        return Ok(());
    }
    keys.extend(vm.config().digest().map(|digest| ("digest".to_owned(), digest.to_owned())));
    let keys: Vec<(&str, String)> = keys.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    pve.configure_vm(vm.host(), vm.vmid(), &keys).await
}

/// A VM is taken only out of a pool that we put it into.
async fn move_to_pool(context: &Context, pve: &Client, one: &Outdated, wanted: Option<&str>) -> Result<(), Error> {
    let Outdated { claim, record, .. } = one;
    let put_into = claim.annotations().get(names::ANNOTATION_RESOURCE_POOL).filter(|pool| !pool.is_empty());
    let listing = context.regions.look_now().await;
    let shown = listing.regions.get(&record.place.region).and_then(|view| view.as_ref().ok());
    let row = shown.and_then(|resources| resources.guests.iter().find(|guest| guest.id == record.vmid));
    // To a token without Pool.Audit no pool is shown.
    let is_in = row.and_then(|row| row.pool.as_ref()).or(put_into);
    let (pool, change) = match (wanted, is_in) {
        (Some(wanted), Some(pool)) if wanted == pool => return Ok(()),
        (Some(wanted), _) => (wanted, PoolChange::Move),
        (None, Some(pool)) if put_into == Some(pool) => (pool.as_str(), PoolChange::Remove),
        (None, _) => return Ok(()),
    };
    match pve.change_pool(pool, &[record.vmid], change).await {
        // A change before this one was made, and what was to be written down of it was not.
        Err(error) if change.is_done_already(&error) => Ok(()),
        outcome => outcome,
    }
}
