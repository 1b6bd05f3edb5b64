//! Whether a node can be chosen for a pod with this claim now; if not, why, and the next step.
//!
//! The cases are those that kube-scheduler rejects as well: a node would not help.

use super::{Source, VolumeIndex};
use crate::kube_objects::{PersistentVolume, PersistentVolumeClaim, StorageClass};
use crate::objects::Kind;

/// On claims whose binding to a volume is complete, from both sides.
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

/// The phase of a claim whose volume was deleted.
const LOST: &str = "Lost";

/// The binding mode of classes that create a volume before any pod needs it.
const IMMEDIATE: &str = "Immediate";

impl VolumeIndex {
    /// Where the data of a claim is, or will be. A sentence if no node can be chosen for its pod yet.
    pub(super) fn checked(&self, key: &str, is_ephemeral: bool) -> Result<Source<'_>, String> {
        self.readable(Kind::PersistentVolumeClaim)?;
        let claim = self.claim(key).ok_or_else(|| missing(key, is_ephemeral))?;
        if claim.metadata.deletion_timestamp.is_some() {
            return Err(format!("PersistentVolumeClaim {key} is being deleted; create the claim and the pod again"));
        }
        if claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some(LOST) {
            let volume = claim.volume_name().unwrap_or("of the claim");
            return Err(format!(
                "PersistentVolumeClaim {key} is in phase Lost: PersistentVolume {volume} no longer exists; restore the \
                 volume, or create the claim again"
            ));
        }
        match claim.volume_name() {
            Some(volume) => self.bound(key, claim, volume).map(Source::Volume),
            None => self.unbound(key, claim).map(Source::Class),
        }
    }

    fn bound(&self, key: &str, claim: &PersistentVolumeClaim, name: &str) -> Result<&PersistentVolume, String> {
        self.readable(Kind::PersistentVolume)?;
        let volume = self.volume(name).ok_or_else(|| {
            format!(
                "PersistentVolume {name} of PersistentVolumeClaim {key} does not exist; restore the volume, or create \
                 the claim again"
            )
        })?;
        if volume.metadata.deletion_timestamp.is_some() {
            return Err(format!(
                "PersistentVolume {name} of PersistentVolumeClaim {key} is being deleted; create the claim and the pod \
                 again"
            ));
        }
        if !claim.has_annotation(BIND_COMPLETED) {
            return Err(format!(
                "PersistentVolumeClaim {key} names PersistentVolume {name} but is not bound to it: annotation \
                 {BIND_COMPLETED} is missing; check that the volume is free and fits the claim"
            ));
        }
        Ok(volume)
    }

    fn unbound(&self, key: &str, claim: &PersistentVolumeClaim) -> Result<&StorageClass, String> {
        self.readable(Kind::StorageClass)?;
        let name = self.class_name(claim).ok_or_else(|| {
            format!(
                "PersistentVolumeClaim {key} is not bound and has no storage class; set spec.storageClassName, or \
                 create a PersistentVolume for the claim"
            )
        })?;
        let class = self.class(name).ok_or_else(|| {
            format!("StorageClass {name} of PersistentVolumeClaim {key} does not exist; create the StorageClass")
        })?;
        if class.volume_binding_mode.as_deref() == Some(IMMEDIATE) {
            return Err(format!(
                "PersistentVolumeClaim {key} is not bound yet, and StorageClass {name} has volumeBindingMode Immediate: \
                 provisioner {} has to create the volume before a node is chosen; check the events of the claim",
                class.provisioner
            ));
        }
        Ok(class)
    }
}

fn missing(key: &str, is_ephemeral: bool) -> String {
    if is_ephemeral {
        format!(
            "PersistentVolumeClaim {key} of an ephemeral volume does not exist yet; check that kube-controller-manager \
             creates it"
        )
    } else {
        format!("PersistentVolumeClaim {key} does not exist; create the claim")
    }
}
