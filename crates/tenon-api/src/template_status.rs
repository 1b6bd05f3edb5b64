//! The status of both kinds of template: where VMs can be copied from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::quantity::{ResourceMap, read_amounts, resources};

/// Where the template exists. Written by the autoscaler.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProxmoxTemplateStatus {
    /// The conditions of the template. `Ready` requires ProxmoxVirtualMachineTemplateReady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// `zones`: the number of hosts that have the template.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amounts")]
    #[schemars(schema_with = "resources")]
    pub resources: Option<ResourceMap>,
    /// Where the template exists, each as `region/host/vmid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zones: Option<Vec<String>>,
    /// The ID of the image of the template.
    #[serde(default, rename = "imageID", skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
}
