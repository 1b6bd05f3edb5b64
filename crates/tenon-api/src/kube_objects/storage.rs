//! Volumes, the claims on them, how they are created, and where they can be attached.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{TopologySelectorTerm, VolumeNodeAffinity};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::meta::{metadata, or_default, resource};

/// A volume.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PersistentVolume {
    /// Its name.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// What it is, and where it can be used.
    #[serde(deserialize_with = "or_default")]
    pub spec: PersistentVolumeSpec,
}

resource!(PersistentVolume, ClusterResourceScope, "", "v1", "persistentvolumes");

/// What a volume is, and where it can be used.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolumeSpec {
    /// Set if it is a disk of AWS, written as before CSI.
    pub aws_elastic_block_store: Option<IgnoredAny>,
    /// Set if a CSI driver provides it.
    pub csi: Option<CSIPersistentVolumeSource>,
    /// Set if it is a folder of a node.
    pub host_path: Option<IgnoredAny>,
    /// Set if it is a disk of a node.
    pub local: Option<IgnoredAny>,
    /// Which nodes can use it.
    pub node_affinity: Option<VolumeNodeAffinity>,
}

/// A volume of a CSI driver.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CSIPersistentVolumeSource {
    /// The driver.
    #[serde(deserialize_with = "or_default")]
    pub driver: String,
}

/// A claim on a volume.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PersistentVolumeClaim {
    /// Its name.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// What it claims.
    pub spec: Option<PersistentVolumeClaimSpec>,
    /// What became of it.
    pub status: Option<PersistentVolumeClaimStatus>,
}

resource!(PersistentVolumeClaim, NamespaceResourceScope, "", "v1", "persistentvolumeclaims");

/// What a claim claims.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolumeClaimSpec {
    /// How its volume is created; an empty name means that nobody creates one. One that does not say gets the default.
    pub storage_class_name: Option<String>,
    /// The volume it has.
    pub volume_name: Option<String>,
}

/// What became of a claim.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PersistentVolumeClaimStatus {
    /// `Pending`, `Bound` or `Lost`.
    pub phase: Option<String>,
}

/// A way to create volumes.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageClass {
    /// Its name.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// Where its volumes can be created; anywhere if nothing is said.
    pub allowed_topologies: Option<Vec<TopologySelectorTerm>>,
    /// Who creates them.
    #[serde(deserialize_with = "or_default")]
    pub provisioner: String,
    /// Whether a volume is created at once, or when a pod needs it.
    pub volume_binding_mode: Option<String>,
}

resource!(StorageClass, ClusterResourceScope, "storage.k8s.io", "v1", "storageclasses");

/// The storage drivers of a node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CSINode {
    /// The name of the node.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// Its drivers.
    #[serde(deserialize_with = "or_default")]
    pub spec: CSINodeSpec,
}

resource!(CSINode, ClusterResourceScope, "storage.k8s.io", "v1", "csinodes");

/// The storage drivers of a node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CSINodeSpec {
    /// Each driver that registered there.
    #[serde(deserialize_with = "or_default")]
    pub drivers: Vec<CSINodeDriver>,
}

/// A storage driver of a node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CSINodeDriver {
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// What it can do there.
    pub allocatable: Option<VolumeNodeResources>,
}

/// What a storage driver can do on a node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct VolumeNodeResources {
    /// How many volumes it can attach.
    pub count: Option<i32>,
}

/// A claim that is created with a pod.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EphemeralVolumeSource {
    /// What the claim is created from.
    pub volume_claim_template: Option<PersistentVolumeClaimTemplate>,
}

/// What a claim is created from.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PersistentVolumeClaimTemplate {
    /// What it claims.
    pub spec: Option<PersistentVolumeClaimSpec>,
}

/// A volume on a node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct VolumeAttachment {
    /// Its name.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// What is attached where.
    #[serde(deserialize_with = "or_default")]
    pub spec: VolumeAttachmentSpec,
}

resource!(VolumeAttachment, ClusterResourceScope, "storage.k8s.io", "v1", "volumeattachments");

/// What is attached where.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeAttachmentSpec {
    /// The node.
    #[serde(deserialize_with = "or_default")]
    pub node_name: String,
    /// The volume.
    #[serde(deserialize_with = "or_default")]
    pub source: VolumeAttachmentSource,
}

/// What is attached.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeAttachmentSource {
    /// A volume of the cluster.
    pub persistent_volume_name: Option<String>,
}

impl PersistentVolumeClaim {
    /// The volume it has, or is meant to have.
    pub fn volume_name(&self) -> Option<&str> {
        self.spec.as_ref()?.volume_name.as_deref().filter(|name| !name.is_empty())
    }

    /// The storage class it names; an empty name is the wish for none.
    pub fn storage_class_name(&self) -> Option<&str> {
        self.spec.as_ref()?.storage_class_name.as_deref()
    }

    /// Whether an annotation is set, whatever it says.
    pub fn has_annotation(&self, name: &str) -> bool {
        self.metadata.annotations.as_ref().is_some_and(|annotations: &BTreeMap<_, _>| annotations.contains_key(name))
    }
}
