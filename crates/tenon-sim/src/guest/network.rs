//! Which addresses does a guest give its cards? Those of the seed's `network-config`, in either version of it, or those of
//! Proxmox' own cloud-init drive.

use std::net::IpAddr;

use serde_json::Value;

use crate::vm::Vm;

/// Static addresses in a `network-config`, without their prefixes.
pub(crate) fn of_seed(network_config: &[u8]) -> Vec<IpAddr> {
    let text = String::from_utf8_lossy(network_config);
    let Ok(whole) = serde_saphyr::from_str::<Value>(&text) else { return Vec::new() };
    let config = whole.get("network").unwrap_or(&whole);
    let cards = config["ethernets"].as_object().into_iter().flatten().flat_map(|(_, card)| items(&card["addresses"]));
    let devices = items(&config["config"]).flat_map(|device| items(&device["subnets"]));
    let subnets = devices.map(|subnet| &subnet["address"]);
    cards.chain(subnets).filter_map(Value::as_str).filter_map(host).collect()
}

/// Static addresses in the options of a VM.
pub(crate) fn of_options(vm: &Vm) -> Vec<IpAddr> {
    let options = vm.config.iter().filter(|(key, _)| key.starts_with("ipconfig"));
    let parts = options.flat_map(|(_, option)| option.split(','));
    let addresses = parts.filter_map(|part| part.strip_prefix("ip=").or_else(|| part.strip_prefix("ip6=")));
    addresses.filter_map(host).collect()
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn host(text: &str) -> Option<IpAddr> {
    text.split('/').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(config: &str) -> Vec<String> {
        of_seed(config.as_bytes()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn both_versions_of_a_network_config_are_read() {
        let two = "network:\n  version: 2\n  ethernets:\n    eth0:\n      addresses: [\"10.0.0.5/24\", \"fd00::5/64\"]\n    eth1: {dhcp4: true}\n";
        assert_eq!(texts(two), ["10.0.0.5", "fd00::5"]);
        let one = "version: 1\nconfig:\n- type: physical\n  subnets:\n  - {type: static, address: 10.0.0.6/24}\n  - type: dhcp6\n";
        assert_eq!(texts(one), ["10.0.0.6"]);
        assert_eq!(texts("}"), Vec::<String>::new());
    }
}
