//! The devices of a ProxmoxTemplate: processor, display, network cards, and what is handed through.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::requirement::without_format;

/// A TPM for the VMs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tpm {
    /// The version of the TPM: `v1.2` or `v2.0`. Default `v2.0`.
    #[serde(default)]
    pub version: TpmVersion,
}

/// The version of a TPM.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TpmVersion {
    /// 1.2.
    #[serde(rename = "v1.2")]
    V1,
    /// 2.0.
    #[default]
    #[serde(rename = "v2.0")]
    V2,
}

/// The QEMU guest agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Whether Proxmox uses the guest agent. The image must contain the agent. Default false.
    #[serde(default)]
    pub enabled: bool,
    /// The connection to the guest agent: `virtio` or `isa`. Default `virtio`.
    #[serde(default, rename = "type")]
    pub type_: AgentType,
    /// Whether file systems are frozen during a backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs_freeze_on_backup: Option<bool>,
    /// Whether unused blocks are trimmed after a disk was cloned or moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs_trim_cloned_disks: Option<bool>,
}

/// The connection to the guest agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AgentType {
    /// Over a VirtIO serial port.
    #[default]
    Virtio,
    /// Over an ISA serial port.
    Isa,
}

/// The virtual CPU of the VMs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// The CPU model: `host` for that of the host, `kvm64`, or one of x86-64-v2, x86-64-v2-AES, x86-64-v3 and
    /// x86-64-v4. Default `x86-64-v2-AES`.
    #[serde(default, rename = "type")]
    pub type_: CpuType,
    /// CPU flags that are added or removed, such as `+aes` or `-pcid`, at most ten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10))]
    pub flags: Option<Vec<String>>,
}

/// The CPU model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CpuType {
    /// The CPU of the host.
    #[serde(rename = "host")]
    Host,
    /// The oldest.
    #[serde(rename = "kvm64")]
    Kvm64,
    /// Without AES.
    #[serde(rename = "x86-64-v2")]
    V2,
    /// What nearly every server has.
    #[default]
    #[serde(rename = "x86-64-v2-AES")]
    V2Aes,
    /// With AVX2.
    #[serde(rename = "x86-64-v3")]
    V3,
    /// With AVX-512.
    #[serde(rename = "x86-64-v4")]
    V4,
}

/// The display of the VMs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Vga {
    /// The type of the display: `none`, `serial0` for a serial console, `std` or `vmware`. Default `std`.
    #[serde(default, rename = "type")]
    pub type_: VgaType,
    /// The memory of the display in MiB, from 4 to 512. Unset: the Proxmox default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 4, max = 512), transform = without_format)]
    pub memory: Option<i64>,
}

/// The type of a display.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VgaType {
    /// No display.
    None,
    /// The serial console.
    Serial0,
    /// The standard VGA.
    #[default]
    Std,
    /// VMware's.
    Vmware,
}

/// A network device of the VMs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkCard {
    /// The name of the network device, `net0` and so on. Unset: numbered in the order of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// The bridge of the host to which the network device is connected, such as `vmbr0`.
    #[schemars(length(min = 1))]
    pub bridge: String,
    /// The model: e1000, e1000e, rtl8139, virtio or vmxnet3. Default `virtio`.
    #[serde(default)]
    pub model: CardModel,
    /// The MTU in bytes, from 576 to 65520; 1 uses the MTU of the bridge. Default 1500.
    #[serde(default = "default_mtu")]
    #[schemars(transform = without_format)]
    #[x_kube(validation = "self == 1 || ( self >= 576 && self <= 65520)")]
    pub mtu: i64,
    /// The VLAN tag, from 1 to 4094. Unset: no VLAN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4094), transform = without_format)]
    pub vlan: Option<i64>,
    /// Whether the Proxmox firewall is enabled for the network device. Unset: the Proxmox default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firewall: Option<bool>,
    /// The IPv4 address with its prefix length, such as `10.0.0.5/24`, or `dhcp`. Unset: no IPv4 address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub address4: Option<String>,
    /// The IPv6 address with its prefix length, or `dhcp` or `auto`. Unset: no IPv6 address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub address6: Option<String>,
    /// The IPv4 gateway. Unset: no gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub gateway4: Option<String>,
    /// The IPv6 gateway. Unset: no gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub gateway6: Option<String>,
    /// Addresses of the name servers, at least one if set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub dns_servers: Option<Vec<String>>,
}

/// The model of a network device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CardModel {
    /// Intel's, as old guests know it.
    E1000,
    /// The same with PCI Express.
    E1000e,
    /// Realtek's.
    Rtl8139,
    /// The fast one.
    #[default]
    Virtio,
    /// VMware's.
    Vmxnet3,
}

fn default_mtu() -> i64 {
    1500
}

/// A PCI device of the host that is passed through to the VMs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PciDevice {
    /// The name of the resource mapping in Proxmox, which names the device on each host.
    #[schemars(length(min = 1))]
    pub mapping: String,
    /// The type of the mediated device, such as `nvidia-63`. Unset: the whole device is passed through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mdev: Option<String>,
    /// Whether the device appears as a PCI Express device, which requires machine type `q35`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie: Option<bool>,
    /// Whether the device is the primary display of the VM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xvga: Option<bool>,
}
