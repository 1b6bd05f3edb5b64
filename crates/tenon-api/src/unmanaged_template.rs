//! ProxmoxUnmanagedTemplate: templates that somebody else made, found by name or tags.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::quantity::{ResourceMap, resources};

/// Which templates are meant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "karpenter.proxmox.sinextra.dev",
    version = "v1alpha1",
    kind = "ProxmoxUnmanagedTemplate",
    plural = "proxmoxunmanagedtemplates",
    category = "karpenter",
    status = "ProxmoxTemplateStatus",
    doc = "Templates that somebody else made, found by name or tags.",
    printcolumn(name = "Zones", type_ = "string", json_path = ".status.resources.zones"),
    printcolumn(name = "Name", type_ = "string", json_path = ".spec.templateName"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(validation = Rule::new("has(self.templateName) || has(self.tags)").message("give templateName, tags, or both"))]
#[serde(rename_all = "camelCase")]
pub struct ProxmoxUnmanagedTemplateSpec {
    /// The Proxmox cluster to look in; all if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub region: Option<String>,
    /// The name of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub template_name: Option<String>,
    /// Tags the template must all have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10))]
    pub tags: Option<Vec<String>>,
}

/// Where templates were found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProxmoxTemplateStatus {
    /// What is true of it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Option<Vec<Condition>>,
    /// `zones`: on how many hosts one was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "resources")]
    pub resources: Option<ResourceMap>,
    /// Each as `region/host/vmid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<Vec<String>>,
    /// What tells this image from a later one.
    #[serde(default, rename = "imageID", skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
}
