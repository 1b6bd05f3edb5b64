//! After a node takes pods: its first-boot data goes, token and all, and ids lost to half-made copies are kept in mind.

use std::time::Duration;

use kube::ResourceExt;
use serde_json::json;
use tenon_api::names;
use tenon_engine::launch::VmSeen;
use tenon_model::LaunchRecord;

use super::gather::Observed;
use super::making::{husk_told, write_record};
use super::order::seed_file;
use super::outcome::Outcome;
use super::{ClaimError, observe, token};
use crate::context::Context;
use crate::events::Saying;
use crate::writes::{self, Written};

/// A file is deleted within a second or two.
const TASK_WITHIN: Duration = Duration::from_secs(30);

/// A VM that cannot be reached or is held by somebody is looked at again after this long.
const LOOK_LATER: Duration = Duration::from_secs(30);

/// How often ids that were lost to half-made copies are looked at.
const HUSKS_EVERY: Duration = Duration::from_secs(300);

/// What an empty drive is set to: the drive stays, so that the guest's hardware does not change.
const EMPTY_DRIVE: &str = "none,media=cdrom";

/// Takes the seed out of the drive; in the next pass off its storage, with the token.
pub(crate) async fn seed(context: &Context, observed: &Observed, record: &LaunchRecord) -> Result<Outcome, ClaimError> {
    let Ok(pve) = context.region(&record.place.region) else { return Ok(Outcome::after(LOOK_LATER)) };
    if let Some(file) = seed_file(record) {
        let seen = observe::vm(pve, &context.owner(&observed.claim), record).await?;
        let (VmSeen::Ours { .. }, Some(vm)) = (&seen.vm, seen.proven) else {
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
    Ok(match written.map_err(|source| ClaimError::kube("note that the seed is gone", source))? {
        Written::Done(_) => {
            tracing::info!(claim = observed.claim.name_any(), vmid = %record.vmid, "first-boot data removed");
            Outcome::again()
        }
        Written::Outdated => Outcome::outdated(),
    })
}

/// Tells of half-made copies until somebody has removed them.
pub(crate) async fn look_after_husks(
    context: &Context,
    observed: &Observed,
    record: &LaunchRecord,
) -> Result<Outcome, ClaimError> {
    let Ok(pve) = context.region(&record.place.region) else { return Ok(Outcome::default()) };
    let mut left = Vec::new();
    for husk in &record.retired {
        if observe::is_husk(pve, record, *husk).await? {
            left.push(*husk);
        }
    }
    if left.len() < record.retired.len() {
        return write_record(context, &observed.claim, &LaunchRecord { retired: left, ..record.clone() }).await;
    }
    let told = |husk| Saying::warning("HalfMadeVm", husk_told(record, husk, "it is still there"));
    Ok(Outcome { sayings: left.into_iter().map(told).collect(), ..Outcome::after(HUSKS_EVERY) })
}
