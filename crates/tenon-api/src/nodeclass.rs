//! ProxmoxNodeClass: what the VMs of a pool are made of.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenon_model::Quantity;

use crate::absent_spec::may_be_absent;
use crate::condition::Condition;
use crate::kubelet::KubeletConfiguration;
use crate::quantity::{ResourceMap, disk_size, quantity_of, read_amount, read_amounts, resources};

/// What the VMs of a pool are made of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "karpenter.proxmox.sinextra.dev",
    version = "v1alpha1",
    kind = "ProxmoxNodeClass",
    plural = "proxmoxnodeclasses",
    category = "karpenter",
    status = "ProxmoxNodeClassStatus",
    doc = "A ProxmoxNodeClass says what the VMs of its NodePools are made of: template, disk, network rules, first-boot data, and where they may run.",
    printcolumn(name = "Zones", type_ = "string", json_path = ".status.resources.zones"),
    printcolumn(name = "Balance", type_ = "string", json_path = ".spec.placementStrategy.zoneBalance"),
    printcolumn(name = "Template", type_ = "string", json_path = ".spec.instanceTemplateRef.name"),
    printcolumn(name = "Metadata", type_ = "string", json_path = ".spec.metadataOptions.type"),
    printcolumn(name = "Disk", type_ = "string", json_path = ".spec.bootDevice.size"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase", remote = "Self")]
pub struct ProxmoxNodeClassSpec {
    /// The Proxmox cluster to make VMs in, by its region in the cloud config. Unset allows all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub region: Option<String>,
    /// How VMs are spread over zones and hosts.
    #[serde(default)]
    #[schemars(extend("default" = { "zoneBalance": "Balanced" }))]
    pub placement_strategy: PlacementStrategy,
    /// The template object that says what VMs are copied from.
    pub instance_template_ref: InstanceTemplateRef,
    /// Settings for the kubelet of the nodes. Unset ones keep the kubelet's own default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet_configuration: Option<KubeletConfiguration>,
    /// The disk a VM boots from. Default 30G on the template's own storage.
    #[serde(default)]
    pub boot_device: BootDevice,
    /// Tags the VMs get in Proxmox, at most ten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10))]
    pub tags: Option<Vec<String>>,
    /// How a VM gets its first-boot data.
    #[serde(default)]
    #[schemars(extend("default" = { "type": "none" }))]
    pub metadata_options: MetadataOptions,
    /// Proxmox firewall groups for the VMs' network cards, at most ten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10))]
    pub security_groups: Option<Vec<SecurityGroup>>,
    /// The Proxmox resource pool the VMs join, with at most three levels such as `team/prod/k8s`. Unset for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^[a-zA-Z0-9][a-zA-Z0-9._-]*(/[a-zA-Z0-9][a-zA-Z0-9._-]*){0,2}$"))]
    pub resource_pool: Option<String>,
    /// Tenon's own: how a VM's disk comes about. Linked shares the template's blocks, Full copies them, Auto links where
    /// Proxmox can and `bootDevice.storage` is the template's own. Unset is Auto.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "CloneMode")]
    pub clone_mode: Option<CloneMode>,
}

may_be_absent!(ProxmoxNodeClassSpec);

impl ProxmoxNodeClassSpec {
    /// Whether the object has no spec at all, which the schema allows. One that has a spec names a template.
    pub fn is_absent(&self) -> bool {
        self.instance_template_ref.name.is_empty()
    }
}

/// How a VM's disk comes about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CloneMode {
    /// Linked where that is possible, else full.
    #[default]
    Auto,
    /// It shares the template's blocks.
    Linked,
    /// It is a copy of its own.
    Full,
}

/// How VMs are spread over zones and hosts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlacementStrategy {
    /// How zones are chosen. Balanced: evenly. AvailabilityFirst: wherever there is room. Default Balanced.
    #[serde(default)]
    pub zone_balance: ZoneBalance,
    /// Tenon's own: how a host is chosen among those with room. Spread: the one with the fewest VMs of the pool. MaxMemory:
    /// the one with the most free memory. MaxCPU: the one with the most free CPU. BalancedLoad: the one that is least busy.
    /// RoundRobin: one after the other. Unset leaves it to the planner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HostChoice")]
    pub hosts: Option<HostChoice>,
}

/// How a host is chosen among those with room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HostChoice {
    /// The one with the fewest VMs of the pool.
    Spread,
    /// The one with the most free memory.
    MaxMemory,
    /// The one with the most free CPU.
    MaxCPU,
    /// The one that is least busy.
    BalancedLoad,
    /// One after the other.
    RoundRobin,
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

/// The template object that says what VMs are copied from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceTemplateRef {
    /// ProxmoxUnmanagedTemplate for a template that is already in Proxmox, ProxmoxTemplate for one that is made and kept from
    /// an image.
    pub kind: InstanceTemplateKind,
    /// The name of the template object.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// Who keeps a template.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InstanceTemplateKind {
    /// We do.
    ProxmoxTemplate,
    /// Somebody else does.
    #[default]
    ProxmoxUnmanagedTemplate,
}

/// The disk a VM boots from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BootDevice {
    /// Its size in whole `G`, `T`, `Gi` or `Ti`, or in bytes as a number. If the template's disk is larger, that is kept.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amount")]
    #[schemars(schema_with = "disk_size")]
    pub size: Option<IntOrString>,
    /// The Proxmox storage it lies on. Unset keeps the template's own; VMs are only made on hosts that have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 30))]
    pub storage: Option<String>,
}

impl Default for BootDevice {
    fn default() -> BootDevice {
        BootDevice { size: Some(IntOrString::String("30G".to_owned())), storage: None }
    }
}

/// How a VM gets its first-boot data.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MetadataOptions {
    /// `cdrom` attaches cloud-init files as a CD-ROM; `none` leaves it to the template. Default `none`.
    #[serde(default, rename = "type")]
    pub type_: MetadataType,
    /// The Secret with templates for the CD-ROM's files: keys user-data, meta-data, vendor-data and network-config. Unset
    /// uses the built-in ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub templates_ref: Option<SecretReference>,
    /// The Secret whose values those templates can use.
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
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct SecretReference {
    /// The name of the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The namespace of the Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// A firewall group for one network card.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecurityGroup {
    /// The network card, such as `net0`. Default `net0`.
    #[serde(default = "first_card")]
    #[schemars(regex(pattern = r"net[0-9]+"))]
    pub interface: String,
    /// The name of the security group in Proxmox.
    #[schemars(length(max = 30))]
    pub name: String,
}

fn first_card() -> String {
    "net0".to_owned()
}

/// Where VMs can be made. Written by the autoscaler.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProxmoxNodeClassStatus {
    /// What is true of the class now. `Ready` needs InstanceTemplateReady and InstanceMetadataOptionsReady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// `zones`: on how many hosts VMs can be made.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amounts")]
    #[schemars(schema_with = "resources")]
    pub resources: Option<ResourceMap>,
    /// Where VMs can be made, each as `region/host/template vmid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_zones: Option<Vec<String>>,
}

impl BootDevice {
    /// The disk's size in decimal gigabytes, rounded up; nothing if it does not say.
    pub fn size_gigabytes(&self) -> u64 {
        let bytes = self.size.as_ref().and_then(quantity_of).map_or(0, Quantity::value);
        u64::try_from(bytes).unwrap_or_default().div_ceil(1_000_000_000)
    }
}
