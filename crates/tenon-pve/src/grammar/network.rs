//! A VM's network cards (`netN`) and the addresses cloud-init gives them (`ipconfigN`).

use super::option_type;
use super::shape::{ADDRESS, NETWORK};
use crate::properties::{Properties, PropertiesError};

option_type!(
    /// A network card: `virtio=BC:24:11:…,bridge=vmbr0`, or `model=virtio,macaddr=…`, of any model there is or will be.
    ///
    /// Its address is what the guest, the switch and our records know it by, so nothing here changes it.
    NetworkCard,
    NETWORK
);

impl NetworkCard {
    /// The model and the address, if the card has one already.
    pub fn model_and_mac(&self) -> Option<(&str, &str)> {
        self.0.network_card()
    }

    /// Its address.
    pub fn mac(&self) -> Option<&str> {
        self.model_and_mac().map(|(_, mac)| mac)
    }

    /// Its model.
    pub fn model(&self) -> Option<&str> {
        self.model_and_mac().map(|(model, _)| model).or_else(|| self.get("model"))
    }

    /// The bridge it hangs on.
    pub fn bridge(&self) -> Option<&str> {
        self.get("bridge")
    }

    /// Sets a property where it stands, or at the end. Refused for the model and the address.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), PropertiesError> {
        let is_identity = matches!(name, "model" | "macaddr")
            || self.0.iter().any(|(key, value)| key == Some(name) && is_mac(value))
            || is_mac(value);
        if is_identity {
            return Err(PropertiesError::refusing(&format!("{name}={value}")));
        }
        self.0.set(name, value)
    }

    /// The same card as another model, under its address if it has one.
    pub fn with_model(&self, model: &str) -> Result<NetworkCard, PropertiesError> {
        let first = match self.mac() {
            Some(mac) => format!("{model}={mac}"),
            None => model.to_owned(),
        };
        let mut properties: Properties = first.parse()?;
        let is_identity = |key: Option<&str>, value: &str| key.is_none_or(|key| key == "model") || is_mac(value);
        for (key, value) in self.0.iter().filter(|(key, value)| !is_identity(*key, value)) {
            properties.set(key.unwrap_or_default(), value)?;
        }
        Ok(NetworkCard(properties))
    }
}

option_type!(
    /// What cloud-init tells a card about its addresses: `ip=dhcp,ip6=auto`, `ip=10.0.0.5/24,gw=10.0.0.1`.
    AddressConfig,
    ADDRESS
);

impl AddressConfig {
    /// The IPv4 address with its prefix, or `dhcp`.
    pub fn ip(&self) -> Option<&str> {
        self.get("ip").filter(|text| !text.trim().is_empty())
    }

    /// The IPv6 address with its prefix, `dhcp` or `auto`.
    pub fn ip6(&self) -> Option<&str> {
        self.get("ip6")
    }

    /// Sets a property where it stands, or at the end.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), PropertiesError> {
        self.0.set(name, value)
    }
}

/// Six octets, divided by colons.
pub(crate) fn is_mac(text: &str) -> bool {
    let octets: Vec<&str> = text.split(':').collect();
    octets.len() == 6
        && octets.iter().all(|octet| octet.len() == 2 && octet.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: &str = "BC:24:11:5C:2F:10";

    #[test]
    fn no_change_touches_the_address_of_a_card() {
        for model in ["virtio", "e1000", "e1000-82545em", "vmxnet3", "rtl8139", "i82551", "ne2k_pci", "future9"] {
            let mut card: NetworkCard = format!("{model}={MAC},bridge=vmbr0,rate=12.5,unknown=x").parse().unwrap();
            card.set("queues", "4").unwrap();
            card.set("bridge", "vmbr1").unwrap();
            assert_eq!(card.to_string(), format!("{model}={MAC},bridge=vmbr1,rate=12.5,unknown=x,queues=4"));
            assert_eq!(card.model_and_mac(), Some((model, MAC)));
            for (name, value) in
                [("macaddr", "BC:24:11:00:00:01"), (model, "BC:24:11:00:00:01"), ("e1000e", MAC), ("model", "x")]
            {
                assert!(card.set(name, value).is_err(), "{name}={value}");
            }
        }
    }

    #[test]
    fn another_model_keeps_the_address() {
        for text in [format!("virtio={MAC},bridge=b,tag=7"), format!("model=virtio,macaddr={MAC},bridge=b,tag=7")] {
            let card: NetworkCard = text.parse().unwrap();
            assert_eq!(card.with_model("e1000e").unwrap().to_string(), format!("e1000e={MAC},bridge=b,tag=7"));
        }
        let without: NetworkCard = "virtio,bridge=b".parse().unwrap();
        assert_eq!((without.model(), without.mac()), (Some("virtio"), None));
        assert_eq!(without.with_model("e1000").unwrap().to_string(), "e1000,bridge=b");
    }

    #[test]
    fn addresses_are_read_and_an_emptied_option_has_none() {
        let config: AddressConfig = "ip=198.51.100.60/24,gw=198.51.100.10,ip6=auto".parse().unwrap();
        assert_eq!(
            (config.ip(), config.ip6(), config.get("gw")),
            (Some("198.51.100.60/24"), Some("auto"), Some("198.51.100.10"))
        );
        // What Proxmox stores for an empty value.
        assert_eq!(" ".parse::<AddressConfig>().unwrap().ip(), None);
    }
}
