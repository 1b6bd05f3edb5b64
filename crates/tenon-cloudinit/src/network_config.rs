//! How does the guest set up its interfaces?
//!
//! Version 2 of cloud-init's network configuration, for networkd, or version 1 for guests that read only that. The guest's
//! kernel names its devices itself, so each entry finds its device by the hardware address. The lines are those that
//! existing guests were given, to the byte.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use tenon_gotemplate::format::quote;

use crate::network::{Interface, Network};
use crate::{Error, slaac};

/// Which form of cloud-init's network configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NetworkConfigVersion {
    /// A list of devices with their subnets.
    One,
    /// Netplan's form.
    #[default]
    Two,
}

/// The file `network-config`; empty for a VM without interfaces: cloud-init then falls back to DHCP.
pub(crate) fn render(network: &Network, version: NetworkConfigVersion) -> Result<String, Error> {
    let mut names = BTreeSet::new();
    if let Some(twice) = network.interfaces.iter().find(|interface| !names.insert(&interface.name)) {
        return Err(Error::DuplicateInterface { name: twice.name.clone() });
    }
    let mut text = Lines::default();
    match version {
        _ if network.interfaces.is_empty() => {}
        NetworkConfigVersion::One => text.version_1(network),
        NetworkConfigVersion::Two => text.version_2(network),
    }
    Ok(text.0)
}

#[derive(Default)]
struct Lines(String);

impl Lines {
    fn add(&mut self, line: impl std::fmt::Display) {
        // Writing to a string never fails.
        let _ = writeln!(self.0, "{line}");
    }

    fn version_2(&mut self, network: &Network) {
        self.add("network:\n  version: 2\n  renderer: networkd\n  ethernets:");
        for interface in &network.interfaces {
            self.add(format_args!("    {}:\n      match:", interface.name));
            self.add(format_args!("        macaddress: {}", quoted(&interface.mac.to_lowercase())));
            if interface.mtu != 0 {
                self.add(format_args!("      mtu: {}", interface.mtu));
            }
            if interface.dhcp4 || is_silent(interface) {
                self.add("      dhcp4: true");
            }
            if interface.dhcp6 {
                self.add("      dhcp6: true");
            }
            self.addresses_2(interface);
            self.resolvers_2(network);
        }
    }

    fn addresses_2(&mut self, interface: &Interface) {
        let fixed = interface.addresses4.iter().chain(&interface.addresses6);
        let made = made_address(interface);
        let addresses: Vec<&str> =
            fixed.map(String::as_str).chain(made.iter().map(|made| made.address.as_str())).collect();
        if addresses.is_empty() {
            return;
        }
        self.add("      addresses:");
        self.list(6, &addresses);
        let via_6 = interface.gateway6.as_deref().or(made.as_ref().map(|made| made.via));
        let via_4 = interface.gateway4.as_deref().filter(|_| made.is_none());
        if via_4.is_some() || via_6.is_some() {
            self.add("      routes:");
        }
        for (to, via) in [("0.0.0.0/0", via_4), ("::/0", via_6)] {
            if let Some(via) = via {
                self.add(format_args!("      - to: \"{to}\"\n        via: {}", quoted(via)));
            }
        }
    }

    fn resolvers_2(&mut self, network: &Network) {
        let parts = [("addresses", &network.name_servers), ("search", &network.search_domains)];
        if parts.iter().any(|(_, items)| !items.is_empty()) {
            self.add("      nameservers:");
        }
        for (key, items) in parts.into_iter().filter(|(_, items)| !items.is_empty()) {
            self.add(format_args!("        {key}:"));
            self.list(8, items);
        }
    }

    fn version_1(&mut self, network: &Network) {
        self.add("version: 1\nconfig:");
        for interface in &network.interfaces {
            self.add(format_args!("- type: physical\n  name: {}", interface.name));
            self.add(format_args!("  mac_address: {}", quoted(&interface.mac.to_lowercase())));
            if interface.mtu != 0 {
                self.add(format_args!("  mtu: {}", interface.mtu));
            }
            self.add("  subnets:");
            self.subnets_1(interface);
        }
        if !network.name_servers.is_empty() {
            self.add("- type: nameserver\n  address:");
            self.list(2, &network.name_servers);
            if !network.search_domains.is_empty() {
                self.add("  search:");
                self.list(2, &network.search_domains);
            }
        }
    }

    fn subnets_1(&mut self, interface: &Interface) {
        if interface.dhcp4 || is_silent(interface) {
            self.add("  - type: dhcp");
        } else {
            self.static_1("static", &interface.addresses4, interface.gateway4.as_deref());
        }
        if interface.dhcp6 {
            self.add("  - type: dhcp6");
        } else if !interface.addresses6.is_empty() {
            self.static_1("static6", &interface.addresses6, interface.gateway6.as_deref());
        } else if let Some(made) = made_address(interface) {
            self.static_1("static6", &[made.address], Some(made.via));
        } else if interface.slaac {
            self.add("  - type: ipv6_slaac");
        }
    }

    fn static_1(&mut self, kind: &str, addresses: &[String], gateway: Option<&str>) {
        for address in addresses {
            self.add(format_args!("  - type: {kind}\n    address: {}", quoted(address)));
            if let Some(gateway) = gateway {
                self.add(format_args!("    gateway: {}", quoted(gateway)));
            }
        }
    }

    fn list(&mut self, indent: usize, items: &[impl AsRef<str>]) {
        for item in items {
            self.add(format_args!("{:indent$}- {}", "", quoted(item.as_ref())));
        }
    }
}

/// Whether nothing was said about its addresses. Proxmox takes that for DHCP, and without it the guest would be cut off.
fn is_silent(interface: &Interface) -> bool {
    let has_address = !interface.addresses4.is_empty() || !interface.addresses6.is_empty();
    !(interface.dhcp4 || interface.dhcp6 || interface.slaac || has_address)
}

/// An address known beforehand, and the way out.
struct Made<'a> {
    address: String,
    via: &'a str,
}

/// The address that the guest would give itself in the network of the host's bridge, if it has no other.
fn made_address(interface: &Interface) -> Option<Made<'_>> {
    let has_address = !interface.addresses4.is_empty() || !interface.addresses6.is_empty();
    let bridge = interface.node_address6.as_deref().filter(|_| interface.slaac && !has_address)?;
    let address = slaac::address(&interface.mac, bridge)?;
    let via = bridge.split('/').next()?;
    Some(Made { address, via })
}

fn quoted(text: &str) -> String {
    String::from_utf8_lossy(&quote(text.as_bytes())).into_owned()
}
