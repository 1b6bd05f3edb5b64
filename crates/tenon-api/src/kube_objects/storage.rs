//! Volumes, the claims on them, and where they are attached.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::meta::{or_default, resource};

/// A volume. Only its existence matters yet.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PersistentVolume {
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub metadata: ObjectMeta,
}

resource!(PersistentVolume, ClusterResourceScope, "", "v1", "persistentvolumes");

/// A claim on a volume.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PersistentVolumeClaim {
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub metadata: ObjectMeta,
    /// What it claims.
    pub spec: Option<PersistentVolumeClaimSpec>,
}

resource!(PersistentVolumeClaim, NamespaceResourceScope, "", "v1", "persistentvolumeclaims");

/// What a claim claims.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolumeClaimSpec {
    /// The volume it has.
    pub volume_name: Option<String>,
}

/// A way to create volumes. Only its existence matters yet.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct StorageClass {
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub metadata: ObjectMeta,
}

resource!(StorageClass, ClusterResourceScope, "storage.k8s.io", "v1", "storageclasses");

/// The storage drivers of a node. Only its existence matters yet.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct CSINode {
    /// The name of the node.
    #[serde(deserialize_with = "or_default")]
    pub metadata: ObjectMeta,
}

resource!(CSINode, ClusterResourceScope, "storage.k8s.io", "v1", "csinodes");

/// A volume on a node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct VolumeAttachment {
    /// Its name.
    #[serde(deserialize_with = "or_default")]
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
