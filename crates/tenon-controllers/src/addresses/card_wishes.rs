//! What the cards of a class's VMs are given on a host: by the class, or else by the template.

use std::net::IpAddr;

use tenon_api::AddressRules;
use tenon_model::{AddressPool, CardWish, NetAddress, Source6};
use tenon_pve::{AddressConfig, Interface, VmConfig};

/// The card that a class gives addresses to.
const CARD_OF_CLASS: u32 = 0;

/// A prefix that leaves as many bits as a hardware address fills.
const SLAAC_PREFIX: u8 = 64;

/// What each card that is given addresses is given; why that cannot be told. `bridges` are those of the host, if they could be
/// read.
pub(super) fn card_wishes(
    rules: &AddressRules,
    template: &VmConfig,
    bridges: Option<&[Interface]>,
) -> Result<Vec<CardWish>, String> {
    let mut cards: Vec<u32> = Vec::new();
    let mut wishes = Vec::new();
    for (key, properties) in template.network_cards() {
        let Ok(card) = key.trim_start_matches("net").parse::<u32>() else { continue };
        let is_its = |bridge: &&Interface| Some(bridge.iface.as_str()) == properties.get("bridge");
        let bridge = bridges.unwrap_or_default().iter().find(is_its);
        let told = template.option::<AddressConfig>(&format!("ipconfig{card}")).unwrap_or_default();
        let look = Card { rules, told: &told, bridge, is_of_class: card == CARD_OF_CLASS };
        cards.push(card);
        let wish = CardWish { card, v4: look.v4(), v6: look.v6() };
        wishes.extend(Some(wish).filter(|wish| wish.v4.is_some() || wish.v6.is_some()));
    }
    if !rules.ranges.is_empty() && !cards.contains(&CARD_OF_CLASS) {
        return Err("the template has no network card net0, for which spec.addresses.ranges are".to_owned());
    }
    if bridges.is_none() && wishes.iter().any(|wish| !has_gateways(wish)) {
        return Err(
            "the network interfaces of the host cannot be read yet, and the gateway may depend on them".to_owned()
        );
    }
    wishes.sort_by_key(|wish| wish.card);
    Ok(wishes)
}

/// Whether nothing about its way out depends on the host.
fn has_gateways(wish: &CardWish) -> bool {
    let of_v6 = wish.v6.as_ref().is_none_or(|source| match source {
        Source6::Pool(pool) => pool.gateway.is_some(),
        Source6::FromMac { gateway, .. } => gateway.is_some(),
    });
    of_v6 && wish.v4.as_ref().is_none_or(|pool| pool.gateway.is_some())
}

/// All that is known of one card.
struct Card<'a> {
    rules: &'a AddressRules,
    told: &'a AddressConfig,
    bridge: Option<&'a Interface>,
    is_of_class: bool,
}

impl Card<'_> {
    fn v4(&self) -> Option<AddressPool> {
        let told =
            self.told.ip().and_then(|text| text.parse::<NetAddress>().ok()).filter(|told| told.address().is_ipv4());
        self.of_class(true).or_else(|| told.map(|told| self.of_template(told)))
    }

    fn v6(&self) -> Option<Source6> {
        if let Some(pool) = self.of_class(false) {
            return Some(Source6::Pool(pool));
        }
        let told: NetAddress = self.told.ip6()?.parse().ok()?;
        Some(match self.of_template(told) {
            pool if told.is_network() && told.prefix() == SLAAC_PREFIX => {
                Source6::FromMac { network: told, gateway: pool.gateway }
            }
            pool => Source6::Pool(pool),
        })
    }

    /// The ranges of the class, of one family.
    fn of_class(&self, is_ipv4: bool) -> Option<AddressPool> {
        let ranges = self.rules.ranges.iter().filter(|range| range.is_ipv4() == is_ipv4);
        let ranges: Vec<_> = ranges.copied().filter(|_| self.is_of_class).collect();
        let reaches = |gateway: &IpAddr| ranges.iter().all(|range| range.network().contains(*gateway));
        let gateway = self.gateway_of_class(is_ipv4).or_else(|| self.gateway_told(is_ipv4).filter(reaches));
        let gateway = gateway.or_else(|| self.way_out(is_ipv4, &reaches));
        let excluded = self.rules.excluded.clone();
        (!ranges.is_empty()).then_some(AddressPool { ranges, excluded, start: None, gateway })
    }

    /// A network of the template, or its only address. Where the host has a part of that network to itself, addresses of
    /// that part come first, and the way out of its bridge is theirs.
    fn of_template(&self, told: NetAddress) -> AddressPool {
        let is_ipv4 = told.address().is_ipv4();
        let bridge = self.bridge_address(is_ipv4).filter(|bridge| told.covers(bridge)).map(|bridge| bridge.address());
        let range = if told.is_network() { told.hosts() } else { tenon_model::AddressRange::only(told) };
        let of_class = self.gateway_of_class(is_ipv4).filter(|_| self.is_of_class);
        let way_out = || bridge.and_then(|_| self.way_out(is_ipv4, &|gateway| told.contains(*gateway)));
        AddressPool {
            ranges: vec![range],
            excluded: self.rules.excluded.clone(),
            start: bridge,
            gateway: of_class.or_else(|| self.gateway_told(is_ipv4)).or_else(way_out),
        }
    }

    /// Where the host's own traffic leaves through this bridge; without that, through the bridge itself.
    fn way_out(&self, is_ipv4: bool, reaches: &dyn Fn(&IpAddr) -> bool) -> Option<IpAddr> {
        let bridge = self.bridge?;
        let gateway = if is_ipv4 { bridge.gateway.as_deref() } else { bridge.gateway6.as_deref() };
        let gateway = gateway.and_then(|text| text.parse().ok());
        gateway.filter(reaches).or_else(|| Some(self.bridge_address(is_ipv4)?.address()).filter(reaches))
    }

    fn gateway_of_class(&self, is_ipv4: bool) -> Option<IpAddr> {
        if is_ipv4 { self.rules.gateway } else { self.rules.gateway6 }
    }

    fn gateway_told(&self, is_ipv4: bool) -> Option<IpAddr> {
        self.told.get(if is_ipv4 { "gw" } else { "gw6" })?.parse().ok()
    }

    fn bridge_address(&self, is_ipv4: bool) -> Option<NetAddress> {
        let bridge = self.bridge?;
        let text = if is_ipv4 { bridge.cidr.as_deref() } else { bridge.cidr6.as_deref() };
        text?.parse().ok()
    }
}
