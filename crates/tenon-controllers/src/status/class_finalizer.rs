//! A ProxmoxNodeClass that NodeClaims use is not deleted under them: VMs are released and seeds deleted by what it says.

use kube::{Client, ResourceExt};
use serde_json::json;
use tenon_api::{ProxmoxNodeClass, event_reasons, names};

use crate::events::Event;
use crate::writes::{self, Written};

/// The finalizers a class should have, if it should have others than it has.
pub fn finalizers(class: &ProxmoxNodeClass, claims: usize) -> Option<Vec<String>> {
    let present = class.finalizers();
    let has = present.iter().any(|name| name == names::CLASS_FINALIZER);
    let is_deleted = class.metadata.deletion_timestamp.is_some();
    match (claims > 0, has) {
        // The API server takes no new finalizer on what is being deleted.
        (true, false) if !is_deleted => {
            Some(present.iter().cloned().chain([names::CLASS_FINALIZER.to_owned()]).collect())
        }
        (false, true) => Some(present.iter().filter(|name| *name != names::CLASS_FINALIZER).cloned().collect()),
        _ => None,
    }
}

/// How many NodeClaims use a class.
pub(super) fn claims_of(class: &ProxmoxNodeClass, used_classes: &[String]) -> usize {
    let name = class.name_any();
    used_classes.iter().filter(|used| **used == name).count()
}

/// Sets or removes the finalizer; the class as it is then. `None` if it is gone.
pub(super) async fn keep(
    workload: &Client,
    class: &ProxmoxNodeClass,
    claims: usize,
) -> Result<Option<ProxmoxNodeClass>, kube::Error> {
    let Some(finalizers) = finalizers(class, claims) else { return Ok(Some(class.clone())) };
    let patch = json!({ "metadata": { "finalizers": finalizers } });
    match writes::merge(workload, class, patch).await? {
        // The last finalizer of a deleted class deletes it.
        Written::Done(done) if done.metadata.deletion_timestamp.is_some() && done.finalizers().is_empty() => Ok(None),
        Written::Done(done) => Ok(Some(*done)),
        // The next pass looks again.
        Written::Outdated => Ok(Some(class.clone())),
    }
}

/// What is said about a class that is deleted and still in use.
pub(super) fn still_in_use(class: &ProxmoxNodeClass, claims: usize) -> Option<Event> {
    let is_deleted = class.metadata.deletion_timestamp.is_some();
    let noun = if claims == 1 { "NodeClaim uses" } else { "NodeClaims use" };
    (is_deleted && claims > 0).then(|| {
        let note = format!(
            "ProxmoxNodeClass {} is being deleted: {claims} {noun} it; it is deleted after them",
            class.name_any()
        );
        Event::new(&event_reasons::WAITING_ON_NODE_CLAIM_TERMINATION, note)
    })
}
