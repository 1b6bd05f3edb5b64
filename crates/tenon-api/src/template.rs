//! ProxmoxTemplate: a template that is made from an image and kept as it is described.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::absent_spec::may_be_absent;
use crate::template_devices::{Agent, Cpu, NetworkCard, PciDevice, Tpm, Vga};
use crate::template_status::ProxmoxTemplateStatus;

/// The template to create in Proxmox.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, JsonSchema)]
#[kube(
    group = "karpenter.proxmox.sinextra.dev",
    version = "v1alpha1",
    kind = "ProxmoxTemplate",
    plural = "proxmoxtemplates",
    category = "karpenter",
    status = "ProxmoxTemplateStatus",
    doc = "A ProxmoxTemplate is a VM template that is created in Proxmox from an image and kept up to date with this spec.",
    printcolumn(name = "Zones", type_ = "string", json_path = ".status.resources.zones"),
    printcolumn(name = "Machine", type_ = "string", json_path = ".spec.machine"),
    printcolumn(name = "CPU", type_ = "string", json_path = ".spec.cpu.type"),
    printcolumn(name = "VGA", type_ = "string", json_path = ".spec.vga.type"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase", remote = "Self")]
pub struct ProxmoxTemplateSpec {
    /// The Proxmox cluster of the template: a region of the cloud config. Unset: all regions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub region: Option<String>,
    /// The notes of the template in Proxmox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub description: Option<String>,
    /// The disk image of the template. A change creates a new template.
    pub source_image: SourceImage,
    /// The Proxmox storages for the disk of the template, at least one. Each host uses the first storage that it has. A
    /// change creates a new template.
    #[serde(rename = "storageIDs")]
    #[schemars(length(min = 1))]
    pub storage_ids: Vec<String>,
    /// The QEMU machine type: `q35` or the older `pc`. Default `q35`.
    #[serde(default)]
    pub machine: Machine,
    /// The firmware: `seabios`, or `ovmf` for UEFI. Default `seabios`. A change creates a new template.
    #[serde(default)]
    pub bios: Bios,
    /// A TPM for the VMs. Unset: no TPM. A change creates a new template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpm: Option<Tpm>,
    /// The QEMU guest agent. Unset: the Proxmox default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// The virtual CPU of the VMs.
    #[serde(default)]
    #[schemars(extend("default" = { "type": "x86-64-v2-AES" }))]
    pub cpu: Cpu,
    /// The display of the VMs. Unset: the Proxmox default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vga: Option<Vga>,
    /// The network devices of the VMs, from one to six.
    #[schemars(length(min = 1, max = 6))]
    pub network: Vec<NetworkCard>,
    /// PCI devices of the host that are passed through to the VMs, at most six.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 6))]
    pub pci_devices: Option<Vec<PciDevice>>,
    /// Tags of the template in Proxmox, at most ten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10))]
    pub tags: Option<Vec<String>>,
    /// The Proxmox resource pool of the template, with at most three levels, such as `team/prod/k8s`. Unset: no
    /// resource pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^[a-zA-Z0-9][a-zA-Z0-9._-]*(/[a-zA-Z0-9][a-zA-Z0-9._-]*){0,2}$"))]
    pub resource_pool: Option<String>,
    /// Whether the VMs start together with their host. Unset: the Proxmox default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_boot: Option<bool>,
}

may_be_absent!(ProxmoxTemplateSpec);

/// The disk image of the template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceImage {
    /// The URL from which Proxmox downloads the image: http or https, a host name without a port, and a path.
    #[schemars(regex(pattern = r"^https?://[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}(/\S*)?$"))]
    pub url: String,
    /// The file name of the image on the storage, with an extension such as `.qcow2`, up to 64 characters. Unset: the
    /// name in the URL.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub image_name: Option<String>,
    /// The checksum of the image in hexadecimal digits. Proxmox refuses an image with another checksum. Requires
    /// `checksumType`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 32, max = 128))]
    pub checksum: Option<String>,
    /// The algorithm of the checksum: md5, sha1, sha224, sha256, sha384 or sha512.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ChecksumType")]
    pub checksum_type: Option<ChecksumType>,
    /// Whether Proxmox downloads the image without checking the certificate of the server. Set a checksum then. Unset:
    /// the certificate is checked.
    #[serde(default, rename = "insecureSkipTLSVerify", skip_serializing_if = "Option::is_none")]
    pub insecure_skip_tls_verify: Option<bool>,
}

/// The algorithm of a checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChecksumType {
    /// MD5.
    Md5,
    /// SHA-1.
    Sha1,
    /// SHA-224.
    Sha224,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

/// The QEMU machine type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Machine {
    /// The older chipset.
    Pc,
    /// The chipset with PCI Express.
    #[default]
    Q35,
}

/// The firmware of a VM.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Bios {
    /// The classic BIOS.
    #[default]
    Seabios,
    /// UEFI.
    Ovmf,
}
