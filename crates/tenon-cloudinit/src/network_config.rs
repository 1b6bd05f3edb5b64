//! How does the guest set up its interfaces?
//!
//! Version 2 of cloud-init's network configuration, for networkd. The guest's kernel names its devices itself, so each
//! entry finds its device by the hardware address.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::network::{Interface, Network};
use crate::yaml::to_yaml;
use crate::{Error, slaac};

const ANYWHERE_4: &str = "0.0.0.0/0";
const ANYWHERE_6: &str = "::/0";

/// The file `network-config`, or nothing for a VM without interfaces: cloud-init then falls back to DHCP.
pub(crate) fn render(network: &Network) -> Result<Option<String>, Error> {
    if network.interfaces.is_empty() {
        return Ok(None);
    }
    let mut ethernets = BTreeMap::new();
    for interface in &network.interfaces {
        if ethernets.insert(interface.name.as_str(), ethernet(interface, network)).is_some() {
            return Err(Error::DuplicateInterface { name: interface.name.clone() });
        }
    }
    let file = File { network: Version2 { version: 2, renderer: "networkd", ethernets } };
    to_yaml("network-config", &file).map(Some)
}

fn ethernet<'a>(interface: &'a Interface, network: &'a Network) -> Ethernet<'a> {
    let made = interface.slaac.then(|| made_address(interface)).flatten();
    // Only where no address can be made beforehand does the guest have to wait for a router's word.
    let accept_ra = interface.slaac && made.is_none();
    let mut addresses: Vec<String> = interface.addresses4.iter().chain(&interface.addresses6).cloned().collect();
    let mut routes = Vec::new();
    let via_4 = interface.gateway4.as_deref().filter(|_| !interface.addresses4.is_empty());
    routes.extend(via_4.map(|via| Route { to: ANYWHERE_4, via }));
    let via_6 = interface.gateway6.as_deref().filter(|_| !interface.addresses6.is_empty());
    let via_6 = via_6.or(made.as_ref().map(|made| made.via));
    routes.extend(via_6.map(|via| Route { to: ANYWHERE_6, via }));
    addresses.extend(made.map(|made| made.address));
    Ethernet {
        matching: Match { macaddress: interface.mac.to_ascii_lowercase() },
        mtu: interface.mtu,
        dhcp4: interface.dhcp4,
        dhcp6: interface.dhcp6,
        accept_ra,
        addresses,
        routes,
        nameservers: Nameservers { addresses: &network.name_servers, search: &network.search_domains },
    }
}

/// An address known beforehand, and the way out.
struct Made<'a> {
    address: String,
    via: &'a str,
}

/// The address that the guest would give itself in the network of the host's bridge.
fn made_address(interface: &Interface) -> Option<Made<'_>> {
    let bridge = interface.node_address6.as_deref()?;
    let address = slaac::address(&interface.mac, bridge)?;
    let via = bridge.split('/').next()?;
    Some(Made { address, via })
}

#[derive(Serialize)]
struct File<'a> {
    network: Version2<'a>,
}

#[derive(Serialize)]
struct Version2<'a> {
    version: u8,
    renderer: &'a str,
    ethernets: BTreeMap<&'a str, Ethernet<'a>>,
}

#[derive(Serialize)]
struct Ethernet<'a> {
    #[serde(rename = "match")]
    matching: Match,
    #[serde(skip_serializing_if = "crate::yaml::is_zero")]
    mtu: u32,
    #[serde(skip_serializing_if = "crate::yaml::is_false")]
    dhcp4: bool,
    #[serde(skip_serializing_if = "crate::yaml::is_false")]
    dhcp6: bool,
    #[serde(rename = "accept-ra", skip_serializing_if = "crate::yaml::is_false")]
    accept_ra: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    routes: Vec<Route<'a>>,
    #[serde(skip_serializing_if = "Nameservers::is_empty")]
    nameservers: Nameservers<'a>,
}

#[derive(Serialize)]
struct Match {
    macaddress: String,
}

#[derive(Serialize)]
struct Route<'a> {
    to: &'a str,
    via: &'a str,
}

#[derive(Serialize)]
struct Nameservers<'a> {
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    addresses: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    search: &'a [String],
}

impl Nameservers<'_> {
    fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.search.is_empty()
    }
}
