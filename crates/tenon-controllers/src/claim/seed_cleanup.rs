//! Once a node is initialized: its first-boot data and token are deleted, and incomplete clones are reported until removed.

use std::time::Duration;

use kube::ResourceExt;
use serde_json::json;
use tenon_api::condition_reasons::ADOPTED;
use tenon_api::names;
use tenon_engine::launch::ObservedVm;
use tenon_model::LaunchRecord;
use tenon_pve::ProvenVm;

use super::gather::{Observed, is_true};
use super::launch::write_record;
use super::launch_failure::incomplete_clone;
use super::outcome::Outcome;
use super::seed_file::{DRIVE, SEED_TAG, attached, attached_by_id, delete_file, seed_file};
use super::termination::seed_left;
use super::{ClaimError, observe, token};
use crate::context::Context;
use crate::writes::{self, Written};

/// A VM that cannot be reached or is held by somebody is looked at again after this long.
const LOOK_LATER: Duration = Duration::from_secs(30);

/// How often it is checked whether incomplete clones are still there.
const CLONES_EVERY: Duration = Duration::from_secs(300);

/// What an empty drive is set to: the drive stays, so that the guest's hardware does not change.
const EMPTY_DRIVE: &str = "none,media=cdrom";

/// Takes the seed out of the drive; in the next pass off its storage, with the token.
pub(crate) async fn delete_seed(
    context: &Context,
    observed: &Observed,
    record: &LaunchRecord,
) -> Result<Outcome, ClaimError> {
    let Ok(pve) = context.region(&record.place.region) else { return Ok(Outcome::after(LOOK_LATER)) };
    // First of all nobody else joins with it, whatever becomes of the image it stands in.
    token::delete(context, &observed.claim).await?;
    let owner = context.owner(&observed.claim);
    let mut events = Vec::new();
    let file = seed_file(&owner, record);
    // The Go provider left a tag on its VMs, and perhaps no more than that.
    if file.is_some() || is_true(&observed.claim, &ADOPTED) {
        let found = observe::vm(&pve, &owner, record).await?;
        let (ObservedVm::Ours { .. }, Some(vm)) = (&found.vm, found.proven) else {
            return Ok(Outcome::after(LOOK_LATER));
        };
        let by_id = attached_by_id(vm.config(), vm.vmid());
        let is_attached =
            by_id.is_some() || file.as_ref().is_some_and(|file| attached(vm.config()).as_ref() == Some(&file.volume));
        let keys = detached(&vm, is_attached);
        if !keys.is_empty() {
            // Once it is out of the drive nothing proves that a file named by the id was this VM's, so the file goes first.
            if let Some(volume) = by_id {
                events.extend(delete_file(&pve, vm.host(), &volume).await.err().map(|left| seed_left(&left)));
            }
            pve.configure_vm(vm.host(), vm.vmid(), &keys).await?;
            return Ok(Outcome { events, ..Outcome::again() });
        }
        if let Some(file) = file {
            match delete_file(&pve, vm.host(), &file.volume).await {
                Err(left) if left.may_help => return Ok(Outcome::after(LOOK_LATER).with_event(seed_left(&left))),
                Err(left) => events.push(seed_left(&left)),
                Ok(()) => {}
            }
        }
        context.memory.seen.file_deleted();
    }
    let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_CLOUDINIT_STATUS: "Initialized" } } });
    let written = writes::merge(&context.workload, &observed.claim, patch).await;
    Ok(match written.map_err(|source| ClaimError::kube("annotate the NodeClaim: seed deleted", source))? {
        Written::Done(_) => {
            tracing::info!(claim = observed.claim.name_any(), vmid = %record.vmid, "deleted seed image and bootstrap token");
            Outcome { events, ..Outcome::again() }
        }
        Written::Outdated => Outcome::outdated(),
    })
}

/// What a VM is without its seed: an empty drive, and no tag of a VM that has one. Nothing, if it is so already.
fn detached(vm: &ProvenVm, is_attached: bool) -> Vec<(&'static str, String)> {
    let drive = is_attached.then(|| (DRIVE, EMPTY_DRIVE.to_owned()));
    let mut tags = vm.config().tags();
    let tags = tags.has(SEED_TAG).then(|| {
        tags.remove(SEED_TAG);
        tags.to_params()
    });
    let keys: Vec<_> = drive.into_iter().chain(tags).collect();
    let digest = vm.config().digest().filter(|_| !keys.is_empty()).map(|digest| ("digest", digest.to_owned()));
    keys.into_iter().chain(digest).collect()
}

/// Reports incomplete clones until somebody has removed them.
pub(crate) async fn check_incomplete_clones(
    context: &Context,
    observed: &Observed,
    record: &LaunchRecord,
) -> Result<Outcome, ClaimError> {
    let Ok(pve) = context.region(&record.place.region) else { return Ok(Outcome::default()) };
    let mut left = Vec::new();
    for vmid in &record.incomplete {
        // A host that does not answer says nothing of a claim that is settled.
        if observe::is_incomplete_clone(&pve, &context.owner(&observed.claim), record, *vmid).await.unwrap_or(true) {
            left.push(*vmid);
        }
    }
    if left.len() < record.incomplete.len() {
        return write_record(context, &observed.claim, &LaunchRecord { incomplete: left, ..record.clone() }).await;
    }
    let events = left.into_iter().map(|vmid| incomplete_clone(record, vmid, "it still exists"));
    Ok(Outcome { events: events.collect(), ..Outcome::after(CLONES_EVERY) })
}
