//! Once a node is initialized: its first-boot data and token are deleted, and incomplete clones are reported until removed.

use std::time::Duration;

use kube::ResourceExt;
use serde_json::json;
use tenon_api::names;
use tenon_engine::launch::ObservedVm;
use tenon_model::LaunchRecord;

use super::desired_vm::seed_file;
use super::gather::Observed;
use super::launch::{incomplete_clone, write_record};
use super::outcome::Outcome;
use super::{ClaimError, observe, token};
use crate::context::Context;
use crate::writes::{self, Written};

/// A file is deleted within a second or two.
const TASK_WITHIN: Duration = Duration::from_secs(30);

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
    if let Some(file) = seed_file(record) {
        let found = observe::vm(pve, &context.owner(&observed.claim), record).await?;
        let (ObservedVm::Ours { .. }, Some(vm)) = (&found.vm, found.proven) else {
            return Ok(Outcome::after(LOOK_LATER));
        };
        if vm.config().get("ide2").is_some_and(|drive| drive.starts_with(&file.volume)) {
            let digest = vm.config().digest().map(|digest| ("digest", digest.to_owned()));
            let keys: Vec<_> = [("ide2", EMPTY_DRIVE.to_owned())].into_iter().chain(digest).collect();
            pve.configure_vm(vm.host(), vm.vmid(), &keys).await?;
            return Ok(Outcome::again());
        }
        let task = pve.delete_volume(vm.host(), &file.volume).await?;
        pve.await_task(&task, TASK_WITHIN).await?;
    }
    token::delete(context, &observed.claim).await?;
    let patch = json!({ "metadata": { "annotations": { names::ANNOTATION_CLOUDINIT_STATUS: "Initialized" } } });
    let written = writes::merge(&context.workload, &observed.claim, patch).await;
    Ok(match written.map_err(|source| ClaimError::kube("annotate the NodeClaim: seed deleted", source))? {
        Written::Done(_) => {
            tracing::info!(claim = observed.claim.name_any(), vmid = %record.vmid, "deleted seed image and bootstrap token");
            Outcome::again()
        }
        Written::Outdated => Outcome::outdated(),
    })
}

/// Reports incomplete clones until somebody has removed them.
pub(crate) async fn check_incomplete_clones(
    context: &Context,
    observed: &Observed,
    record: &LaunchRecord,
) -> Result<Outcome, ClaimError> {
    let Ok(pve) = context.region(&record.place.region) else { return Ok(Outcome::default()) };
    let mut left = Vec::new();
    for vmid in &record.retired {
        if observe::is_incomplete_clone(pve, record, *vmid).await? {
            left.push(*vmid);
        }
    }
    if left.len() < record.retired.len() {
        return write_record(context, &observed.claim, &LaunchRecord { retired: left, ..record.clone() }).await;
    }
    let events = left.into_iter().map(|vmid| incomplete_clone(record, vmid, "it still exists"));
    Ok(Outcome { events: events.collect(), ..Outcome::after(CLONES_EVERY) })
}
