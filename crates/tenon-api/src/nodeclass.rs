//! ProxmoxNodeClass: what the VMs of a pool are made of.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenon_model::Quantity;

use crate::condition::Condition;
use crate::quantity::{ResourceMap, disk_size, resources};

/// What the VMs of a pool are made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "karpenter.proxmox.sinextra.dev",
    version = "v1alpha1",
    kind = "ProxmoxNodeClass",
    plural = "proxmoxnodeclasses",
    category = "karpenter",
    status = "ProxmoxNodeClassStatus",
    doc = "What the VMs of a pool are made of.",
    printcolumn(name = "Zones", type_ = "string", json_path = ".status.resources.zones"),
    printcolumn(name = "Balance", type_ = "string", json_path = ".spec.placementStrategy.zoneBalance"),
    printcolumn(name = "Template", type_ = "string", json_path = ".spec.instanceTemplateRef.name"),
    printcolumn(name = "Metadata", type_ = "string", json_path = ".spec.metadataOptions.type"),
    printcolumn(name = "Disk", type_ = "string", json_path = ".spec.bootDevice.size"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ProxmoxNodeClassSpec {
    /// The Proxmox cluster; all if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub region: Option<String>,
    /// How VMs are spread over hosts.
    #[serde(default)]
    pub placement_strategy: PlacementStrategy,
    /// What VMs are copied from.
    pub instance_template_ref: InstanceTemplateRef,
    /// Settings for the kubelet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet_configuration: Option<KubeletConfiguration>,
    /// The disk a VM boots from.
    #[serde(default)]
    pub boot_device: BootDevice,
    /// Tags for the VMs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10))]
    pub tags: Option<Vec<String>>,
    /// How a VM learns who it is.
    #[serde(default)]
    pub metadata_options: MetadataOptions,
    /// Firewall groups for the VMs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10))]
    pub security_groups: Option<Vec<SecurityGroup>>,
    /// The Proxmox pool the VMs join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^[a-zA-Z0-9][a-zA-Z0-9._-]*(/[a-zA-Z0-9][a-zA-Z0-9._-]*){0,2}$"))]
    pub resource_pool: Option<String>,
}

/// How VMs are spread over hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStrategy {
    /// Evenly, or wherever there is room.
    #[serde(default)]
    pub zone_balance: ZoneBalance,
}

/// How zones are chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ZoneBalance {
    /// Evenly.
    #[default]
    Balanced,
    /// Wherever there is room.
    AvailabilityFirst,
}

/// What VMs are copied from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceTemplateRef {
    /// Whether we keep the template or somebody else does.
    pub kind: InstanceTemplateKind,
    /// Its name.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// Who keeps a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InstanceTemplateKind {
    /// We do.
    ProxmoxTemplate,
    /// Somebody else does.
    ProxmoxUnmanagedTemplate,
}

/// The disk a VM boots from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BootDevice {
    /// Its size; a larger template or instance type wins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "disk_size")]
    pub size: Option<IntOrString>,
    /// The storage it lies on; the template's if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 30))]
    pub storage: Option<String>,
}

impl Default for BootDevice {
    fn default() -> BootDevice {
        BootDevice { size: Some(IntOrString::String("30G".to_owned())), storage: None }
    }
}

/// How a VM learns who it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetadataOptions {
    /// From a CD-ROM, or by means of its own.
    #[serde(default, rename = "type")]
    pub type_: MetadataType,
    /// A Secret with templates for the CD-ROM's files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub templates_ref: Option<SecretReference>,
    /// A Secret with values for those templates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values_ref: Option<SecretReference>,
}

/// Where a VM's data comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetadataType {
    /// Nothing is handed over but Proxmox's own cloud-init settings.
    #[default]
    None,
    /// A CD-ROM with cloud-init files.
    Cdrom,
}

/// A Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretReference {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// A firewall group for one network card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecurityGroup {
    /// The card.
    #[serde(default = "first_card")]
    #[schemars(regex(pattern = r"net[0-9]+"))]
    pub interface: String,
    /// The group.
    #[schemars(length(max = 30))]
    pub name: String,
}

fn first_card() -> String {
    "net0".to_owned()
}

/// Settings for the kubelet.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeletConfiguration {
    /// `static` gives whole cores to pods that ask for whole cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "cpu_manager_policy")]
    pub cpu_manager_policy: Option<String>,
    /// Whether CPU limits are enforced.
    #[serde(rename = "cpuCFSQuota", skip_serializing_if = "Option::is_none")]
    pub cpu_cfs_quota: Option<bool>,
    /// Over which time CPU limits are counted.
    #[serde(rename = "cpuCFSQuotaPeriod", skip_serializing_if = "Option::is_none")]
    pub cpu_cfs_quota_period: Option<String>,
    /// How strictly CPUs and devices of one pod must be near each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "topology_manager_policy")]
    pub topology_manager_policy: Option<String>,
    /// Whether nearness is meant for a pod or for each container.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "topology_manager_scope")]
    pub topology_manager_scope: Option<String>,
    /// The disk usage above which images are always removed.
    #[serde(rename = "imageGCHighThresholdPercent", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_high_threshold_percent: Option<i32>,
    /// The disk usage below which images are never removed.
    #[serde(rename = "imageGCLowThresholdPercent", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_low_threshold_percent: Option<i32>,
    /// How long a shutdown waits for pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown_grace_period: Option<String>,
    /// Sysctls pods may set although they can harm others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_unsafe_sysctls: Option<Vec<String>>,
    /// Name servers for pods.
    #[serde(rename = "clusterDNS", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 3))]
    pub cluster_dns: Option<Vec<String>>,
    /// How many pods a node takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 250))]
    pub max_pods: Option<i32>,
    /// Whether the kubelet refuses to run with swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_swap_on: Option<bool>,
}

fn words(words: &[&str]) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "enum": words })
}

fn cpu_manager_policy(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    words(&["none", "static"])
}

fn topology_manager_policy(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    words(&["restricted", "best-effort", "none", "single-numa-node"])
}

fn topology_manager_scope(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    words(&["container", "pod"])
}

/// Where VMs can be made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProxmoxNodeClassStatus {
    /// What is true of it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Option<Vec<Condition>>,
    /// `zones`: on how many hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "resources")]
    pub resources: Option<ResourceMap>,
    /// Each as `region/host/template vmid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_zones: Option<Vec<String>>,
}

impl BootDevice {
    /// The disk's size in decimal gigabytes, rounded up; nothing if it does not say.
    pub fn size_gigabytes(&self) -> u64 {
        let bytes = match &self.size {
            Some(IntOrString::Int(bytes)) => i64::from(*bytes),
            Some(IntOrString::String(text)) => text.parse().map_or(0, Quantity::value),
            None => 0,
        };
        u64::try_from(bytes).unwrap_or_default().div_ceil(1_000_000_000)
    }
}
