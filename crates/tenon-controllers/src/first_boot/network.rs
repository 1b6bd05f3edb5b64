//! The network of a VM, from what Proxmox says of its cards and of the host's bridges.

use tenon_cloudinit::{Interface, Network};
use tenon_pve::VmConfig;

/// What a card has that was told nothing, on a bridge of which nothing is known.
const USUAL_MTU: u32 = 1500;

/// The network of a VM. `bridges` are those of its host that are known.
pub(super) fn network(config: &VmConfig, bridges: &[tenon_pve::Interface]) -> Network {
    let words = |key: &str| config.get(key).into_iter().flat_map(|text| text.split(' ')).map(str::to_owned).collect();
    Network {
        interfaces: interfaces(config, bridges),
        search_domains: words("searchdomain"),
        name_servers: words("nameserver"),
    }
}

/// Every card of a VM in the order of their numbers, with what Proxmox was told about its addresses.
pub fn interfaces(config: &VmConfig, bridges: &[tenon_pve::Interface]) -> Vec<Interface> {
    let mut numbered: Vec<(u32, Interface)> = Vec::new();
    for (key, card) in config.network_cards() {
        let Some((_, mac)) = card.network_card() else { continue };
        let Ok(number) = key.trim_start_matches("net").parse::<u32>() else { continue };
        let told = config.properties(&format!("ipconfig{number}")).unwrap_or_default();
        let address = |name: &str| told.get(name).filter(|value| !matches!(*value, "dhcp" | "auto")).map(str::to_owned);
        let bridge = bridges.iter().find(|bridge| bridge.active && Some(bridge.iface.as_str()) == card.get("bridge"));
        numbered.push((
            number,
            Interface {
                name: format!("eth{number}"),
                mac: mac.to_owned(),
                dhcp4: told.get("ip") == Some("dhcp"),
                dhcp6: told.get("ip6") == Some("dhcp"),
                slaac: told.get("ip6") == Some("auto"),
                addresses4: address("ip").into_iter().collect(),
                addresses6: address("ip6").into_iter().collect(),
                gateway4: told.get("gw").map(str::to_owned),
                gateway6: told.get("gw6").map(str::to_owned),
                mtu: mtu(card.get("mtu"), bridge),
                node_address4: bridge.and_then(|bridge| bridge.cidr.clone()),
                node_address6: bridge.and_then(|bridge| bridge.cidr6.clone()),
                node_gateway4: bridge.and_then(|bridge| bridge.gateway.clone()),
                node_gateway6: bridge.and_then(|bridge| bridge.gateway6.clone()),
            },
        ));
    }
    numbered.sort_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, interface)| interface).collect()
}

/// 0 and 1 stand for the bridge's own.
fn mtu(told: Option<&str>, bridge: Option<&tenon_pve::Interface>) -> u32 {
    let told = told.and_then(|mtu| mtu.parse().ok()).filter(|mtu| *mtu > 1);
    let of_bridge = || bridge.and_then(|bridge| bridge.mtu).and_then(|mtu| u32::try_from(mtu).ok());
    told.or_else(of_bridge).unwrap_or(USUAL_MTU)
}
