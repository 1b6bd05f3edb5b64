//! Which addresses the cards of a VM are to have, where they come from, and which it was given.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::address::{AddressRange, NetAddress};
use crate::place::Place;

/// Where the addresses of new VMs come from, and which are in use by anybody.
#[derive(Debug, Clone, Default)]
pub struct AddressSite {
    /// What the cards of a new VM of each NodePool are given, on each host. A host that is missing gives nothing: its VMs
    /// ask for their addresses by DHCP or have none.
    pub wanted: BTreeMap<String, BTreeMap<Place, Vec<CardWish>>>,
    /// Every address that a claim, a node, a guest, a host or a gateway has.
    pub taken: BTreeSet<IpAddr>,
}

/// What a card of a new VM is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CardWish {
    /// The number of the card: 0 for `net0`.
    pub card: u32,
    /// Where its IPv4 address comes from.
    pub v4: Option<AddressPool>,
    /// Where its IPv6 address comes from.
    pub v6: Option<Source6>,
}

/// Where an IPv6 address comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source6 {
    /// The next free one.
    Pool(AddressPool),
    /// Made from the card's hardware address, in this network.
    FromMac {
        /// The network.
        network: NetAddress,
        /// Where traffic leaves it.
        gateway: Option<IpAddr>,
    },
}

/// Addresses that are given one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressPool {
    /// They are taken from these, in this order.
    pub ranges: Vec<AddressRange>,
    /// Never from these.
    pub excluded: Vec<AddressRange>,
    /// Those from here on are given first.
    pub start: Option<IpAddr>,
    /// Where traffic leaves their network.
    pub gateway: Option<IpAddr>,
}

impl AddressPool {
    /// The next free address.
    pub fn next_free(&self, is_taken: &dyn Fn(IpAddr) -> bool) -> Option<NetAddress> {
        let first = self.start.and_then(|start| self.first_from(start, is_taken));
        first.or_else(|| self.ranges.iter().find_map(|range| self.first_in(range, lowest(range), is_taken)))
    }

    fn first_from(&self, start: IpAddr, is_taken: &dyn Fn(IpAddr) -> bool) -> Option<NetAddress> {
        let near = self.ranges.iter().filter(|range| range.contains(start));
        near.filter_map(|range| self.first_in(range, start, is_taken)).next()
    }

    fn first_in(&self, range: &AddressRange, start: IpAddr, is_taken: &dyn Fn(IpAddr) -> bool) -> Option<NetAddress> {
        let is_out = |address| Some(address) == self.gateway || is_taken(address);
        range.first_free(start, &is_out, &self.excluded)
    }

    /// The ranges as a person writes them.
    pub fn words(&self) -> String {
        self.ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

fn lowest(range: &AddressRange) -> IpAddr {
    range.network().address()
}

/// The addresses that a card of a VM was given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CardAddresses {
    /// The number of the card.
    pub card: u32,
    /// Its IPv4 address.
    pub v4: Option<GivenAddress>,
    /// Its IPv6 address; a network stands for the address that its hardware address makes in it.
    pub v6: Option<GivenAddress>,
}

impl CardAddresses {
    /// The addresses that nobody else may have.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let given = [&self.v4, &self.v6].into_iter().flatten().map(|given| given.address);
        given.filter(|address| !address.is_network()).map(|address| address.address())
    }
}

/// An address that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenAddress {
    /// The address.
    pub address: NetAddress,
    /// Where traffic leaves its network.
    pub gateway: Option<IpAddr>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(ranges: &[&str], start: Option<&str>, gateway: Option<&str>) -> AddressPool {
        AddressPool {
            ranges: ranges.iter().map(|text| text.parse().unwrap()).collect(),
            excluded: Vec::new(),
            start: start.map(|text| text.parse().unwrap()),
            gateway: gateway.map(|text| text.parse().unwrap()),
        }
    }

    fn given(pool: &AddressPool, count: usize) -> Vec<String> {
        let mut taken = BTreeSet::new();
        let next = |_| {
            let next = pool.next_free(&|address| taken.contains(&address))?;
            taken.insert(next.address());
            Some(next.to_string())
        };
        (0..count).map_while(next).collect()
    }

    #[test]
    fn addresses_ascend_from_the_start_and_then_begin_anew() {
        let pool = pool(&["10.0.0.0/29"], Some("10.0.0.4"), Some("10.0.0.1"));
        let all = ["10.0.0.4/29", "10.0.0.5/29", "10.0.0.6/29", "10.0.0.2/29", "10.0.0.3/29"];
        assert_eq!(given(&pool, 9), all);
    }

    #[test]
    fn ranges_are_used_in_the_order_they_are_written() {
        let pool = pool(&["10.0.1.7-10.0.1.8/24", "10.0.0.0/30"], None, None);
        assert_eq!(given(&pool, 9), ["10.0.1.7/24", "10.0.1.8/24", "10.0.0.1/30", "10.0.0.2/30"]);
    }

    #[test]
    fn a_range_whose_only_address_is_the_gateway_gives_nothing() {
        assert_eq!(given(&pool(&["10.0.0.1/24"], None, Some("10.0.0.1")), 9), Vec::<String>::new());
    }
}
