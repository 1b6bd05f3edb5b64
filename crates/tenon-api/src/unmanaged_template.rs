//! ProxmoxUnmanagedTemplate: templates that somebody else made, found by name or tags.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::absent_spec::may_be_absent;
use crate::template_status::ProxmoxTemplateStatus;

/// Selects existing templates in Proxmox.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "karpenter.proxmox.sinextra.dev",
    version = "v1alpha1",
    kind = "ProxmoxUnmanagedTemplate",
    plural = "proxmoxunmanagedtemplates",
    category = "karpenter",
    status = "ProxmoxTemplateStatus",
    doc = "A ProxmoxUnmanagedTemplate names VM templates that are already in Proxmox, by name, tags or both.",
    printcolumn(name = "Zones", type_ = "string", json_path = ".status.resources.zones"),
    printcolumn(name = "Name", type_ = "string", json_path = ".spec.templateName"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.templateName) || has(self.tags)",
    "message": "set templateName, tags, or both",
}]))]
#[serde(rename_all = "camelCase", remote = "Self")]
pub struct ProxmoxUnmanagedTemplateSpec {
    /// The Proxmox cluster of the templates: a region of the cloud config. Unset: all regions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub region: Option<String>,
    /// The name of the template in Proxmox. At least one of templateName and tags is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub template_name: Option<String>,
    /// Tags that the template must have, from one to ten. The template must have all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10))]
    pub tags: Option<Vec<String>>,
}

may_be_absent!(ProxmoxUnmanagedTemplateSpec);
