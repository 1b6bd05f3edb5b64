//! The addresses of a VM's cards as Proxmox keeps them: options `ipconfigN`.

use tenon_model::{CardAddresses, GivenAddress, NetAddress};
use tenon_pve::{AddressConfig, VmConfig};

/// The options that give a VM's cards their addresses. What a card was not given stays as its template has it.
pub(super) fn options(cards: &[CardAddresses], config: &VmConfig) -> Vec<(String, String)> {
    cards.iter().map(|card| (key(card.card), option(card, config))).collect()
}

pub(super) fn key(card: u32) -> String {
    format!("ipconfig{card}")
}

fn option(card: &CardAddresses, config: &VmConfig) -> String {
    let told = config.option::<AddressConfig>(&key(card.card));
    let mac = mac_of(card.card, config);
    // A card that was told nothing asks for an IPv4 address.
    if told.is_none() && card.v4.is_none() {
        let v6 = family(["ip6", "gw6"], card.v6.as_ref(), &AddressConfig::default(), mac.as_deref());
        return ["ip=dhcp".to_owned()].into_iter().chain(v6).collect::<Vec<_>>().join(",");
    }
    let told = told.unwrap_or_default();
    let v4 = family(["ip", "gw"], card.v4.as_ref(), &told, mac.as_deref());
    let v6 = family(["ip6", "gw6"], card.v6.as_ref(), &told, mac.as_deref());
    v4.into_iter().chain(v6).collect::<Vec<_>>().join(",")
}

/// A card that would boot with an address, or a whole network, that nobody planned: its template was changed since.
pub(super) fn unplanned(cards: &[CardAddresses], config: &VmConfig) -> Option<String> {
    let keys = config.network_cards().into_iter().map(|(key, _)| key);
    let numbers = keys.filter_map(|key| key.trim_start_matches("net").parse::<u32>().ok());
    let is_static = |text: Option<&str>| text.is_some_and(|text| text.parse::<NetAddress>().is_ok());
    numbers.into_iter().find_map(|number| {
        let told = config.option::<AddressConfig>(&key(number))?;
        let given = cards.iter().find(|card| card.card == number);
        let is_left = |family: fn(&CardAddresses) -> bool| !given.is_some_and(family);
        let v4 = told.ip().filter(|text| is_static(Some(text)) && is_left(|card| card.v4.is_some()));
        let v6 = told.ip6().filter(|text| is_static(Some(text)) && is_left(|card| card.v6.is_some()));
        v4.or(v6).map(|text| format!("its template gives card net{number} {text}, which was not planned"))
    })
}

/// Address and gateway of one family: what was given, or else what the template has.
fn family(names: [&str; 2], given: Option<&GivenAddress>, told: &AddressConfig, mac: Option<&str>) -> Vec<String> {
    let [address, gateway] = match given {
        Some(given) => [Some(text(given, mac)), given.gateway.map(|gateway| gateway.to_string())],
        None => names.map(|name| told.get(name).filter(|text| !text.trim().is_empty()).map(str::to_owned)),
    };
    let pair = |(name, value): (&str, Option<String>)| Some(format!("{name}={}", value?));
    names.into_iter().zip([address, gateway]).filter_map(pair).collect()
}

/// A network stands for the address that the card's hardware address makes in it.
fn text(given: &GivenAddress, mac: Option<&str>) -> String {
    let network = given.address.to_string();
    let made = mac.filter(|_| given.address.is_network()).and_then(|mac| tenon_cloudinit::slaac_address(mac, &network));
    made.unwrap_or(network)
}

fn mac_of(card: u32, config: &VmConfig) -> Option<String> {
    let wanted = format!("net{card}");
    let (_, properties) = config.network_cards().into_iter().find(|(key, _)| *key == wanted)?;
    properties.network_card().map(|(_, mac)| mac.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(address: &str, gateway: Option<&str>) -> Option<GivenAddress> {
        let gateway = gateway.map(|text| text.parse().unwrap());
        Some(GivenAddress { address: address.parse().unwrap(), gateway })
    }

    fn written(card: CardAddresses, ipconfig: &str) -> String {
        let text = format!("net0: virtio=00:1A:2B:3C:4D:5E,bridge=vmbr0\nipconfig0: {ipconfig}");
        let config = VmConfig::from_lines(&text).unwrap();
        options(&[card], &config).remove(0).1
    }

    #[test]
    fn a_given_address_takes_the_place_of_the_template_s_network() {
        let card = CardAddresses { card: 0, v4: given("10.0.0.5/24", Some("10.0.0.1")), v6: None };
        assert_eq!(written(card.clone(), "ip=10.0.0.0/24"), "ip=10.0.0.5/24,gw=10.0.0.1");
        assert_eq!(written(card, "gw=10.9.0.1,ip=10.9.0.0/24,ip6=auto"), "ip=10.0.0.5/24,gw=10.0.0.1,ip6=auto");
    }

    #[test]
    fn a_gateway_that_was_not_given_is_not_left_behind() {
        let card = CardAddresses { card: 0, v4: given("10.0.0.5/24", None), v6: None };
        assert_eq!(written(card, "ip=10.9.0.0/24,gw=10.9.0.1"), "ip=10.0.0.5/24");
    }

    #[test]
    fn the_other_family_stays_as_the_template_has_it() {
        let card = CardAddresses { card: 0, v4: None, v6: given("fd00::5/64", Some("fe80::1")) };
        assert_eq!(written(card, "ip=dhcp"), "ip=dhcp,ip6=fd00::5/64,gw6=fe80::1");
    }

    #[test]
    fn a_card_that_was_told_nothing_still_asks_for_an_ipv4_address() {
        let card = CardAddresses { card: 0, v4: None, v6: given("fd00::5/64", None) };
        let config = VmConfig::from_lines("net0: virtio=00:1A:2B:3C:4D:5E,bridge=vmbr0").unwrap();
        assert_eq!(options(&[card], &config).remove(0).1, "ip=dhcp,ip6=fd00::5/64");
    }

    #[test]
    fn an_address_that_nobody_planned_is_noticed() {
        let text =
            "net0: virtio=00:1A:2B:3C:4D:5E,bridge=vmbr0\nnet1: virtio=00:1A:2B:3C:4D:5F,bridge=vmbr0\nipconfig0: ";
        let found = |cards: &[CardAddresses], ipconfig: &str| {
            unplanned(cards, &VmConfig::from_lines(&format!("{text}{ipconfig}")).unwrap())
        };
        let v4 = CardAddresses { card: 0, v4: given("10.0.0.5/24", None), v6: None };
        assert_eq!(found(&[], "ip=dhcp,ip6=auto"), None);
        assert_eq!(found(std::slice::from_ref(&v4), "ip=10.0.0.0/24"), None);
        let told = found(&[], "ip=10.0.0.0/24").unwrap();
        assert!(told.contains("net0 10.0.0.0/24"), "{told}");
        assert!(found(std::slice::from_ref(&v4), "ip=10.0.0.0/24,ip6=fd00::5/64").unwrap().contains("fd00::5/64"));
        assert!(found(&[v4], "ip=dhcp\nipconfig1: ip=10.0.0.50/24").unwrap().contains("net1 10.0.0.50/24"));
    }

    #[test]
    fn a_network_of_64_bits_gives_the_address_of_the_card() {
        let card = CardAddresses { card: 0, v4: None, v6: given("2001:db8:1::/64", None) };
        assert_eq!(written(card, "ip6=2001:db8:1::/64"), "ip6=2001:db8:1:0:21a:2bff:fe3c:4d5e/64");
    }
}
