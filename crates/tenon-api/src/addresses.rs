//! Static addresses in a ProxmoxNodeClass: as they are written, and as they are meant.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenon_model::AddressRange;

/// Static addresses for network card `net0`. What a ProxmoxNodeClass does not say, the `ipconfig0` of the template says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Addresses {
    /// Addresses that VMs are given, one each of every family that occurs here: networks such as `10.0.0.0/24`, ranges
    /// such as `10.0.0.10-10.0.0.60/24`, or single addresses such as `10.0.0.5/24`, each with the prefix length of the
    /// network. Network, broadcast and gateway addresses, and addresses in use, are left out. Unset: the networks in
    /// `ipconfigN` of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), inner(regex(pattern = r"^[0-9a-fA-F.:/-]{1,100}$")))]
    pub ranges: Option<Vec<String>>,
    /// Addresses that VMs of this class are never given, neither from `ranges` nor from the networks of the template:
    /// networks, ranges or single addresses. The prefix length is optional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256), inner(regex(pattern = r"^[0-9a-fA-F.:/-]{1,100}$")))]
    pub exclude: Option<Vec<String>>,
    /// The IPv4 gateway. Unset: `gw` in `ipconfig0` of the template, or else the gateway of the host's bridge or the
    /// address of the bridge, if that is in the same network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9.]{7,15}$"))]
    pub gateway: Option<String>,
    /// The IPv6 gateway. Unset: `gw6` in `ipconfig0` of the template, or else the gateway of the host's bridge or the
    /// address of the bridge, if that is in the same network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9a-fA-F.:]{2,45}$"))]
    pub gateway6: Option<String>,
    /// DNS servers of the VMs. Unset: `nameserver` of the template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8), inner(regex(pattern = r"^[0-9a-fA-F.:]{2,45}$")))]
    pub dns: Option<Vec<String>>,
}

/// Static addresses of a class, as they are meant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressRules {
    /// Addresses that are given, in this order.
    pub ranges: Vec<AddressRange>,
    /// Addresses that are never given.
    pub excluded: Vec<AddressRange>,
    /// The IPv4 gateway.
    pub gateway: Option<IpAddr>,
    /// The IPv6 gateway.
    pub gateway6: Option<IpAddr>,
    /// DNS servers.
    pub dns: Vec<IpAddr>,
}

impl Addresses {
    /// What is meant, or which field says nothing and why.
    pub fn read(&self) -> Result<AddressRules, String> {
        let ranges: Vec<AddressRange> = texts(self.ranges.as_ref(), |text| {
            text.parse().map_err(|error| format!("spec.addresses.ranges: {error}"))
        })?;
        let excluded = texts(self.exclude.as_ref(), |text| {
            AddressRange::excluded(text).map_err(|error| format!("spec.addresses.exclude: {error}"))
        })?;
        let dns = texts(self.dns.as_ref(), |text| {
            text.parse().map_err(|_| format!("spec.addresses.dns: `{text}` is not an IP address"))
        })?;
        let gateway = gateway(self.gateway.as_ref(), "gateway", IpAddr::is_ipv4)?;
        let gateway6 = gateway6(self)?;
        let rules = AddressRules { ranges, excluded, gateway, gateway6, dns };
        rules.checked()
    }
}

impl AddressRules {
    /// A gateway that no range can reach is a mistake.
    fn checked(self) -> Result<AddressRules, String> {
        for (field, gateway) in [("gateway", self.gateway), ("gateway6", self.gateway6)] {
            let Some(gateway) = gateway else { continue };
            let of_family = self.ranges.iter().filter(|range| range.is_ipv4() == gateway.is_ipv4());
            // A link-local gateway is reached from every network, and one address alone has no network to reach it in.
            let is_far = |range: &&AddressRange| !range.network().contains(gateway) && !range.is_alone();
            if let Some(far) = of_family.into_iter().find(is_far)
                && !is_link_local(gateway)
            {
                return Err(format!(
                    "spec.addresses.{field}: {gateway} is not in the network of range {far}; correct the gateway or the \
                     prefix length of the range"
                ));
            }
        }
        Ok(self)
    }
}

fn texts<T>(texts: Option<&Vec<String>>, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    texts.into_iter().flatten().map(|text| read(text)).collect()
}

fn gateway6(addresses: &Addresses) -> Result<Option<IpAddr>, String> {
    gateway(addresses.gateway6.as_ref(), "gateway6", IpAddr::is_ipv6)
}

fn gateway(text: Option<&String>, field: &str, is_family: impl Fn(&IpAddr) -> bool) -> Result<Option<IpAddr>, String> {
    let family = if field == "gateway" { "IPv4" } else { "IPv6" };
    let bad = |text: &str| format!("spec.addresses.{field}: `{text}` is not an {family} address");
    text.map(|text| text.parse().ok().filter(&is_family).ok_or_else(|| bad(text))).transpose()
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts_of(items: &[&str]) -> Option<Vec<String>> {
        Some(items.iter().map(|item| (*item).to_owned()).collect())
    }

    #[test]
    fn what_is_written_is_read() {
        let addresses = Addresses {
            ranges: texts_of(&["10.0.0.0/24", "fd00::5-fd00::9/64"]),
            exclude: texts_of(&["10.0.0.7", "10.0.0.32/29", "10.0.0.50-10.0.0.52", "fd00::5"]),
            gateway: Some("10.0.0.1".to_owned()),
            gateway6: Some("fe80::1".to_owned()),
            dns: texts_of(&["10.0.0.2", "fd00::2"]),
        };
        let rules = addresses.read().unwrap();
        assert_eq!(rules.ranges.len(), 2);
        let is_excluded = |text: &str| rules.excluded.iter().any(|range| range.contains(text.parse().unwrap()));
        for text in ["10.0.0.7", "10.0.0.32", "10.0.0.39", "10.0.0.51", "fd00::5"] {
            assert!(is_excluded(text), "{text}");
        }
        for text in ["10.0.0.8", "10.0.0.40", "10.0.0.53", "fd00::6"] {
            assert!(!is_excluded(text), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_meant_names_its_field() {
        let of = |addresses: Addresses| addresses.read().unwrap_err();
        let ranges = |items: &[&str]| Addresses { ranges: texts_of(items), ..Addresses::default() };
        assert!(of(ranges(&["10.0.0.0"])).starts_with("spec.addresses.ranges: "));
        let exclude = Addresses { exclude: texts_of(&["10.0.0"]), ..Addresses::default() };
        assert!(of(exclude).starts_with("spec.addresses.exclude: "));
        let dns = Addresses { dns: texts_of(&["10.0.0.2/24"]), ..Addresses::default() };
        assert!(of(dns).starts_with("spec.addresses.dns: "));
        let wrong = Addresses { gateway: Some("fd00::1".to_owned()), ..Addresses::default() };
        assert_eq!(of(wrong), "spec.addresses.gateway: `fd00::1` is not an IPv4 address");
        let far = Addresses { gateway: Some("10.0.1.1".to_owned()), ..ranges(&["10.0.0.0/24"]) };
        assert!(of(far).contains("not in the network of range 10.0.0.0/24"));
    }
}
