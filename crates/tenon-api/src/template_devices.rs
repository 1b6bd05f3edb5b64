//! The devices of a ProxmoxTemplate: processor, display, network cards, and what is handed through.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::requirement::without_format;

/// A TPM for the VMs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tpm {
    /// Its version: `v1.2` or `v2.0`. Default `v2.0`.
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
    /// Whether Proxmox talks to the agent. The image must have it. Default false.
    #[serde(default)]
    pub enabled: bool,
    /// How Proxmox talks to it: `virtio` or `isa`. Default `virtio`.
    #[serde(default, rename = "type")]
    pub type_: AgentType,
    /// Whether file systems are frozen while a backup is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs_freeze_on_backup: Option<bool>,
    /// Whether unused blocks are given back after a disk was cloned or moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fs_trim_cloned_disks: Option<bool>,
}

/// How Proxmox talks to the guest agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AgentType {
    /// Over a VirtIO serial port.
    #[default]
    Virtio,
    /// Over an ISA serial port.
    Isa,
}

/// The processor VMs see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// The model: `host` for the machine's own, `kvm64`, or one of x86-64-v2, x86-64-v2-AES, x86-64-v3 and x86-64-v4.
    /// Default `x86-64-v2-AES`.
    #[serde(default, rename = "type")]
    pub type_: CpuType,
    /// Flags that are switched on or off, such as `+aes` or `-pcid`, at most ten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10))]
    pub flags: Option<Vec<String>>,
}

/// The model of a processor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CpuType {
    /// The machine's own.
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
    /// What is shown where: `none`, `serial0` for a serial console, `std` or `vmware`. Default `std`.
    #[serde(default, rename = "type")]
    pub type_: VgaType,
    /// The display's memory in MiB, from 4 to 512. Unset leaves it to Proxmox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 4, max = 512), transform = without_format)]
    pub memory: Option<i64>,
}

/// The kind of a display.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VgaType {
    /// No display.
    None,
    /// The serial console.
    Serial0,
    /// The standard one.
    #[default]
    Std,
    /// VMware's.
    Vmware,
}

/// A network card of the VMs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkCard {
    /// The card's name, `net0` and so on. Unset numbers the cards in the order they are listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub name: Option<String>,
    /// The bridge of the host the card is plugged into, such as `vmbr0`.
    #[schemars(length(min = 1))]
    pub bridge: String,
    /// The model VMs see: e1000, e1000e, rtl8139, virtio or vmxnet3. Default `virtio`.
    #[serde(default)]
    pub model: CardModel,
    /// The largest packet in bytes, from 576 to 65520; 1 takes the bridge's. Default 1500.
    #[serde(default = "default_mtu")]
    #[schemars(transform = without_format)]
    #[x_kube(validation = "self == 1 || ( self >= 576 && self <= 65520)")]
    pub mtu: i64,
    /// The VLAN the card is in, from 1 to 4094. Unset for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4094), transform = without_format)]
    pub vlan: Option<i64>,
    /// Whether the Proxmox firewall guards the card. Unset leaves it as Proxmox has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firewall: Option<bool>,
    /// The card's IPv4 address with its prefix length, such as `10.0.0.5/24`, or `dhcp`. Unset for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub address4: Option<String>,
    /// The card's IPv6 address with its prefix length, or `dhcp` or `auto`. Unset for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub address6: Option<String>,
    /// The IPv4 gateway. Unset for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub gateway4: Option<String>,
    /// The IPv6 gateway. Unset for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub gateway6: Option<String>,
    /// Addresses of the name servers, at least one if given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub dns_servers: Option<Vec<String>>,
}

/// The model of a network card.
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

/// A device of the host that VMs get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PciDevice {
    /// The name of the resource mapping in Proxmox that says which device it is on each host.
    #[schemars(length(min = 1))]
    pub mapping: String,
    /// The type of mediated device to make of it, such as `nvidia-63`. Unset hands over the whole device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mdev: Option<String>,
    /// Whether it appears as a PCI Express device, which needs machine `q35`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pcie: Option<bool>,
    /// Whether it is the VM's primary display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xvga: Option<bool>,
}
