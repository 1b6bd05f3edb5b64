//! Which claim gets which volume? What the controller of persistent volumes does for claims and volumes that are there: volumes
//! that nobody made are not made here either.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tenon_model::Quantity;

use super::board::Board;

/// Binds claims to the volumes that name them; claims that wait for no pod also to any other that suits.
pub(crate) async fn keep(board: &Board) -> Result<(), kube::Error> {
    let mut taken: Vec<String> = Vec::new();
    for claim in board.claims.iter().filter(|claim| is_pending(claim)) {
        let is_free = |volume: &&PersistentVolume| {
            let is_unclaimed = volume.spec.as_ref().is_some_and(|spec| spec.claim_ref.is_none());
            is_unclaimed && !taken.contains(&volume.name_any()) && could_hold(volume, claim)
        };
        let waits = class_of(board, claim).is_some_and(waits_for_a_pod);
        let named = board.volumes.iter().find(|volume| is_claimed_by(volume, claim));
        let found = named.or_else(|| board.volumes.iter().find(is_free).filter(|_| !waits));
        if let Some(volume) = found {
            taken.push(volume.name_any());
            bind(board, claim, volume).await?;
        }
    }
    Ok(())
}

fn class_of<'b>(board: &'b Board, claim: &PersistentVolumeClaim) -> Option<&'b StorageClass> {
    let name = claim.spec.as_ref()?.storage_class_name.as_ref()?;
    board.classes.iter().find(|class| class.name_any() == *name)
}

async fn bind(board: &Board, claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Result<(), kube::Error> {
    let (params, spec) = (PatchParams::default(), volume.spec.clone().unwrap_or_default());
    let volumes: Api<PersistentVolume> = Api::all(board.client.clone());
    let claims: Api<PersistentVolumeClaim> =
        Api::namespaced(board.client.clone(), &claim.namespace().unwrap_or_default());
    let (of_volume, of_claim) = (volume.name_any(), claim.name_any());
    let named = json!({ "spec": { "claimRef": claim_reference(claim) } });
    volumes.patch(&of_volume, &params, &Patch::Merge(named)).await?;
    let phase = json!({ "status": { "phase": "Bound" } });
    volumes.patch_status(&of_volume, &params, &Patch::Merge(phase)).await?;
    let told = json!({
        "metadata": { "annotations": { "pv.kubernetes.io/bind-completed": "yes" } }, "spec": { "volumeName": of_volume },
    });
    claims.patch(&of_claim, &params, &Patch::Merge(told)).await?;
    let status = json!({ "status": { "phase": "Bound", "accessModes": spec.access_modes, "capacity": spec.capacity } });
    claims.patch_status(&of_claim, &params, &Patch::Merge(status)).await.map(drop)
}

/// How a volume names its claim.
pub(super) fn claim_reference(claim: &PersistentVolumeClaim) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": claim.namespace(), "name": claim.name_any(),
        "uid": claim.uid(),
    })
}

/// Whether a claim has no volume yet.
pub(super) fn is_pending(claim: &PersistentVolumeClaim) -> bool {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Bound")
}

/// Whether volumes of a class are bound only once a pod needs them.
pub(super) fn waits_for_a_pod(class: &StorageClass) -> bool {
    class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
}

/// Whether a volume names a claim.
pub(super) fn is_claimed_by(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let named = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
    named.is_some_and(|named| {
        let is_this = named.name.as_deref() == Some(&claim.name_any()) && named.namespace == claim.namespace();
        is_this && named.uid.as_ref().is_none_or(|uid| Some(uid) == claim.uid().as_ref())
    })
}

/// Whether a volume is of the class and as large as a claim asks, and can be used as it asks.
pub(super) fn could_hold(volume: &PersistentVolume, claim: &PersistentVolumeClaim) -> bool {
    let (Some(has), Some(asks)) = (&volume.spec, &claim.spec) else { return false };
    let size = |text: Option<&String>| text.and_then(|text| text.parse::<Quantity>().ok()).unwrap_or_default();
    let offered = size(has.capacity.iter().flatten().find(|(name, _)| *name == "storage").map(|(_, amount)| &amount.0));
    let requests = asks.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let asked = size(requests.and_then(|requests| requests.get("storage")).map(|amount| &amount.0));
    let modes = || has.access_modes.iter().flatten();
    let is_usable = asks.access_modes.iter().flatten().all(|mode| modes().any(|offered| offered == mode));
    let class = |name: &Option<String>| name.clone().unwrap_or_default();
    class(&has.storage_class_name) == class(&asks.storage_class_name) && offered >= asked && is_usable
}
