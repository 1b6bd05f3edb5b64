//! How does a VM reach the world?
//!
//! The serialized names are those of `/etc/karpenter.yaml`; what the guest's network is set up with is in
//! `network_config`.

use serde::Serialize;

/// All interfaces of a VM and how it resolves names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Network {
    /// In the order of the VM's devices.
    pub interfaces: Vec<Interface>,
    /// Domains that are tried for short names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub search_domains: Vec<String>,
    /// Addresses of resolvers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub name_servers: Vec<String>,
}

/// One network device. What is empty or false was not asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// `eth<N>` for device `net<N>`. A key, not what the guest's kernel calls it.
    pub name: String,
    /// How the guest finds the device.
    #[serde(rename = "mac_address")]
    pub mac: String,
    /// Ask for an IPv4 address.
    #[serde(skip_serializing_if = "crate::yaml::is_false")]
    pub dhcp4: bool,
    /// Ask for an IPv6 address.
    #[serde(skip_serializing_if = "crate::yaml::is_false")]
    pub dhcp6: bool,
    /// Make an IPv6 address from the device's own and the network's.
    #[serde(skip_serializing_if = "crate::yaml::is_false")]
    pub slaac: bool,
    /// IPv4 addresses with prefix length.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses4: Vec<String>,
    /// IPv6 addresses with prefix length.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub addresses6: Vec<String>,
    /// Where IPv4 leaves the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway4: Option<String>,
    /// Where IPv6 leaves the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway6: Option<String>,
    /// The largest frame; 0 leaves it to the guest.
    #[serde(skip_serializing_if = "crate::yaml::is_zero")]
    pub mtu: u32,
    /// The host's own IPv4 address on this bridge, with prefix length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_address4: Option<String>,
    /// The host's own IPv6 address on this bridge, with prefix length.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_address6: Option<String>,
    /// Where the host's IPv4 leaves this bridge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_gateway4: Option<String>,
    /// Where the host's IPv6 leaves this bridge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_gateway6: Option<String>,
}
