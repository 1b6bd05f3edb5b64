//! ProxmoxNodeClass: what the VMs of a pool are made of.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::absent_spec::may_be_absent;
use crate::addresses::Addresses;
use crate::class_sizes::gigabytes;
use crate::class_timeouts::ClassTimeouts;
use crate::condition::Condition;
use crate::kubelet::KubeletConfiguration;
use crate::placement_strategy::PlacementStrategy;
use crate::quantity::{ResourceMap, disk_size, quantity_of, read_amount, read_amounts, resources};

/// How the VMs of a NodePool are created.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "karpenter.proxmox.sinextra.dev",
    version = "v1alpha1",
    kind = "ProxmoxNodeClass",
    plural = "proxmoxnodeclasses",
    category = "karpenter",
    status = "ProxmoxNodeClassStatus",
    doc = "A ProxmoxNodeClass defines the VMs of its NodePools: template, disk, network rules, first-boot data, and where they can run.",
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
    /// The Proxmox cluster in which VMs are created: a region of the cloud config. Unset allows all regions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub region: Option<String>,
    /// How VMs are distributed over zones and hosts.
    #[serde(default)]
    #[schemars(extend("default" = { "zoneBalance": "Balanced" }))]
    pub placement_strategy: PlacementStrategy,
    /// The template object from which VMs are cloned.
    pub instance_template_ref: InstanceTemplateRef,
    /// Kubelet settings of the nodes. Unset fields keep the kubelet's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet_configuration: Option<KubeletConfiguration>,
    /// The boot disk of the VMs. Default 30G on the storage of the template.
    #[serde(default)]
    pub boot_device: BootDevice,
    /// Tags that the VMs get in Proxmox, at most ten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10))]
    pub tags: Option<Vec<String>>,
    /// How a VM gets its first-boot data.
    #[serde(default)]
    #[schemars(extend("default" = { "type": "none" }))]
    pub metadata_options: MetadataOptions,
    /// Tenon extension: static addresses for network card `net0` of the VMs, each given to one VM at a time. Unset: what
    /// `ipconfig0` of the template says. A change does not touch VMs that exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Addresses>,
    /// Proxmox firewall security groups for the network devices of the VMs, at most ten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10))]
    pub security_groups: Option<Vec<SecurityGroup>>,
    /// The Proxmox resource pool of the VMs, with at most three levels, such as `team/prod/k8s`. Unset: no resource
    /// pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^[a-zA-Z0-9][a-zA-Z0-9._-]*(/[a-zA-Z0-9][a-zA-Z0-9._-]*){0,2}$"))]
    pub resource_pool: Option<String>,
    /// Tenon extension: how the disk of a VM is cloned. Linked shares the blocks of the template, Full copies them,
    /// Auto makes a linked clone if Proxmox supports it and `bootDevice.storage` is the storage of the template. Unset
    /// means Auto.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "CloneMode")]
    pub clone_mode: Option<CloneMode>,
    /// Tenon extension: how long VMs of this class have to launch and to join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<ClassTimeouts>,
}

may_be_absent!(ProxmoxNodeClassSpec);

impl ProxmoxNodeClassSpec {
    /// Whether the object has no spec at all, which the schema allows. One that has a spec names a template.
    pub fn is_absent(&self) -> bool {
        self.instance_template_ref.name.is_empty()
    }
}

/// How the disk of a VM is cloned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CloneMode {
    /// A linked clone if possible, otherwise a full clone.
    #[default]
    Auto,
    /// A linked clone, which shares the blocks of the template.
    Linked,
    /// A full clone.
    Full,
}

/// The template object from which VMs are cloned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InstanceTemplateRef {
    /// ProxmoxUnmanagedTemplate for a template that exists in Proxmox, ProxmoxTemplate for a template that is created
    /// from an image.
    pub kind: InstanceTemplateKind,
    /// The name of the template object.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// Who manages a template.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum InstanceTemplateKind {
    /// The autoscaler.
    ProxmoxTemplate,
    /// The operator of Proxmox.
    #[default]
    ProxmoxUnmanagedTemplate,
}

/// The boot disk of the VMs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BootDevice {
    /// The size of the disk in whole `G`, `T`, `Gi` or `Ti`, or in bytes as a number. The disk is at least as large as the
    /// ephemeral storage of the instance type; both are rounded up to decimal gigabytes, which Proxmox reads as GiB. So
    /// `2G` with an instance type of 30Gi gives a disk of 33 GiB. A larger disk of the template keeps its size.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amount")]
    #[schemars(schema_with = "disk_size")]
    pub size: Option<IntOrString>,
    /// The Proxmox storage of the disk. VMs are created only on hosts that have this storage. Unset: the storage of the
    /// template.
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
    /// `cdrom`: Tenon attaches a CD-ROM with cloud-init files. `none`: the template brings its own first-boot data.
    /// Default `none`.
    #[serde(default, rename = "type")]
    pub type_: MetadataType,
    /// The Secret with templates of the CD-ROM files: keys user-data, meta-data, vendor-data and network-config. Unset:
    /// the built-in templates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub templates_ref: Option<SecretReference>,
    /// The Secret with values for these templates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values_ref: Option<SecretReference>,
    /// Which form of cloud-init's network configuration the built-in network-config has: 1 or 2. Default 2. A key
    /// network-config in the Secret of templatesRef wins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2))]
    pub network_config_version: Option<i32>,
}

/// How a VM gets its first-boot data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetadataType {
    /// Only the cloud-init settings of Proxmox.
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

/// A firewall security group for one network device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecurityGroup {
    /// The network device, such as `net0`. Default `net0`.
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

/// Where VMs can be created. Written by the autoscaler.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProxmoxNodeClassStatus {
    /// The conditions of the class. `Ready` requires InstanceTemplateReady and InstanceMetadataOptionsReady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// `zones`: the number of hosts on which VMs can be created.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amounts")]
    #[schemars(schema_with = "resources")]
    pub resources: Option<ResourceMap>,
    /// Where VMs can be created, each as `region/host/template VM ID`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_zones: Option<Vec<String>>,
}

impl BootDevice {
    /// The disk's size in decimal gigabytes, rounded up; nothing if it does not say.
    pub fn size_gigabytes(&self) -> u64 {
        gigabytes(self.size.as_ref().and_then(quantity_of).unwrap_or_default())
    }
}
