//! The static addresses that a guest's configuration gives it.

use std::net::IpAddr;

use tenon_model::NetAddress;
use tenon_pve::{AddressConfig, Properties, VmConfig};

/// Addresses of a VM: those that cloud-init gives its cards. A network is no address.
pub fn of_vm(config: &VmConfig) -> Vec<IpAddr> {
    let keys = config.iter().map(|(key, _)| key).filter(|key| is_numbered(key, "ipconfig"));
    let options = keys.filter_map(|key| config.option::<AddressConfig>(key));
    options.flat_map(|option| [option.ip().and_then(host), option.ip6().and_then(host)]).flatten().collect()
}

/// Addresses of a container: those of its cards.
pub fn of_container(config: &VmConfig) -> Vec<IpAddr> {
    let keys = config.iter().filter(|(key, _)| is_numbered(key, "net"));
    let cards = keys.filter_map(|(_, text)| text.parse::<Properties>().ok());
    cards.flat_map(|card| [card.get("ip").and_then(host), card.get("ip6").and_then(host)]).flatten().collect()
}

fn is_numbered(key: &str, name: &str) -> bool {
    key.strip_prefix(name).is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn host(text: &str) -> Option<IpAddr> {
    let address: NetAddress = text.trim().parse().ok()?;
    (!address.is_network()).then(|| address.address())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> VmConfig {
        VmConfig::from_lines(text).unwrap()
    }

    fn texts(addresses: &[IpAddr]) -> Vec<String> {
        addresses.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_vm_has_the_addresses_of_its_cards() {
        let vm = "ipconfig0: ip=10.0.0.5/24,gw=10.0.0.1,ip6=fd00::5/64\nipconfig1: ip=dhcp,ip6=auto\nipconfig12: ip=10.9.0.1/16";
        assert_eq!(texts(&of_vm(&config(vm))), ["10.0.0.5", "fd00::5", "10.9.0.1"]);
    }

    #[test]
    fn a_network_or_a_word_is_no_address() {
        assert!(of_vm(&config("ipconfig0: ip=10.0.0.0/24,ip6=fd00::/64\nipconfigx: ip=10.0.0.5/24")).is_empty());
    }

    #[test]
    fn a_container_has_its_addresses_on_its_cards() {
        let container = "net0: name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=10.0.0.9/24,ip6=fd00::9/64,type=veth\nnet1: name=eth1,ip=dhcp,ip6=manual";
        assert_eq!(texts(&of_container(&config(container))), ["10.0.0.9", "fd00::9"]);
    }
}
