//! IP addresses of VMs: one in its network, ranges of them, and the next that is free.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address and how long the prefix of its network is: `10.0.0.5/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetAddress {
    address: IpAddr,
    prefix: u8,
}

impl NetAddress {
    /// An address in a network with a prefix of this length; `None` if the family has no such prefix.
    pub fn new(address: IpAddr, prefix: u8) -> Option<NetAddress> {
        (prefix <= bits(address)).then_some(NetAddress { address, prefix })
    }

    /// The address alone.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// The length of the prefix.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// The first address of its network, which names the network.
    pub fn network(&self) -> IpAddr {
        with_number(self.address, number(self.address) & !self.host_mask())
    }

    /// Whether it names the whole network rather than a host in it. In a network of one or two addresses each is a host's.
    pub fn is_network(&self) -> bool {
        !self.is_small() && self.address == self.network()
    }

    /// Whether its network has no address of its own, only hosts.
    fn is_small(&self) -> bool {
        bits(self.address) - self.prefix <= 1
    }

    /// Whether an address is in its network.
    pub fn contains(&self, other: IpAddr) -> bool {
        other.is_ipv4() == self.address.is_ipv4() && number(other) & !self.host_mask() == number(self.network())
    }

    /// Whether all of another network is in its network.
    pub fn covers(&self, other: &NetAddress) -> bool {
        other.prefix >= self.prefix && self.contains(other.address)
    }

    /// Every address a host in its network may have: not the network's own, nor an IPv4 broadcast address. Networks of one
    /// or two addresses have neither.
    pub fn hosts(&self) -> AddressRange {
        let (first, last) = (number(self.network()), number(self.network()) | self.host_mask());
        let is_small = self.is_small();
        let first = if is_small { first } else { first + 1 };
        let last = if is_small || self.address.is_ipv6() { last } else { last - 1 };
        let at = |number| with_number(self.address, number);
        AddressRange { first: at(first), last: at(last), prefix: self.prefix }
    }

    /// The last address of its network, which in IPv4 goes to all hosts.
    pub fn last(&self) -> IpAddr {
        with_number(self.address, number(self.network()) | self.host_mask())
    }

    /// Every address of its network.
    fn whole(&self) -> AddressRange {
        AddressRange { first: self.network(), last: self.last(), prefix: self.prefix }
    }

    fn host_mask(&self) -> u128 {
        let free = u32::from(bits(self.address) - self.prefix);
        1_u128.checked_shl(free).map_or(u128::MAX, |above| above - 1)
    }
}

impl fmt::Display for NetAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl FromStr for NetAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<NetAddress, AddressError> {
        let bad = || AddressError::new(text, "use an address and the length of its prefix, such as 10.0.0.5/24");
        let (address, prefix) = text.split_once('/').ok_or_else(bad)?;
        let is_plain = !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = prefix.parse().ok().filter(|_| is_plain).ok_or_else(bad)?;
        NetAddress::new(address.parse().map_err(|_| bad())?, prefix).ok_or_else(bad)
    }
}

/// Addresses of one network, from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AddressRange {
    first: IpAddr,
    last: IpAddr,
    prefix: u8,
}

impl AddressRange {
    /// One address.
    pub fn only(address: NetAddress) -> AddressRange {
        AddressRange { first: address.address, last: address.address, prefix: address.prefix }
    }

    /// What a text leaves out: a network with all its addresses, a range or an address, with or without prefix.
    pub fn excluded(text: &str) -> Result<AddressRange, AddressError> {
        let bad = || AddressError::new(text, "use an address, a range of addresses, or a network such as 10.0.0.0/29");
        let address = |text: &str| text.parse::<IpAddr>().map_err(|_| bad());
        let bare = text.split('/').next().unwrap_or_default();
        if let Some((first, last)) = bare.split_once('-') {
            let (first, last) = (address(first)?, address(last)?);
            let is_range = first.is_ipv4() == last.is_ipv4() && first <= last;
            return is_range.then_some(AddressRange { first, last, prefix: 0 }).ok_or_else(bad);
        }
        if bare == text {
            let address = address(text)?;
            return Ok(AddressRange::only(NetAddress { address, prefix: bits(address) }));
        }
        let one: NetAddress = text.parse().map_err(|_| bad())?;
        Ok(if one.address == one.network() { one.whole() } else { AddressRange::only(one) })
    }

    /// Whether its network is one address.
    pub fn is_alone(&self) -> bool {
        self.prefix == bits(self.first)
    }

    /// Whether it is of IPv4.
    pub fn is_ipv4(&self) -> bool {
        self.first.is_ipv4()
    }

    /// Whether an address is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.is_ipv4() && (self.first..=self.last).contains(&address)
    }

    /// The network it lies in.
    pub fn network(&self) -> NetAddress {
        let first = NetAddress { address: self.first, prefix: self.prefix };
        NetAddress { address: first.network(), prefix: self.prefix }
    }

    /// The part of it that hosts may have.
    fn usable(&self) -> AddressRange {
        let hosts = self.network().hosts();
        AddressRange { first: self.first.max(hosts.first), last: self.last.min(hosts.last), prefix: self.prefix }
    }

    /// The first address of it from `start` on that is not taken and not in any of `excluded`.
    pub fn first_free(
        &self,
        start: IpAddr,
        is_taken: &dyn Fn(IpAddr) -> bool,
        excluded: &[AddressRange],
    ) -> Option<NetAddress> {
        let AddressRange { first, last, prefix } = self.usable();
        let mut at = number(first.max(start));
        // Each turn passes over an address that is taken or a range that is excluded, so there are not many.
        while at <= number(last) {
            let address = with_number(first, at);
            let passed = if is_taken(address) {
                at
            } else {
                match excluded.iter().find(|range| range.contains(address)) {
                    Some(range) => number(range.last),
                    None => return Some(NetAddress { address, prefix }),
                }
            };
            at = passed.checked_add(1)?;
        }
        None
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.network() {
            network if network.hosts() == *self && self.first != self.last => write!(f, "{network}"),
            _ if self.first == self.last => write!(f, "{}/{}", self.first, self.prefix),
            _ => write!(f, "{}-{}/{}", self.first, self.last, self.prefix),
        }
    }
}

impl FromStr for AddressRange {
    type Err = AddressError;

    /// A network (`10.0.0.0/24`), one address (`10.0.0.5/24`), or a range (`10.0.0.10-10.0.0.60/24`).
    fn from_str(text: &str) -> Result<AddressRange, AddressError> {
        let bad = |hint| AddressError::new(text, hint);
        let Some((first, rest)) = text.split_once('-') else {
            let one: NetAddress = text.parse().map_err(|_| bad(FORMS))?;
            if one.prefix < SHORTEST {
                return Err(bad(TOO_SHORT));
            }
            return Ok(if one.address == one.network() { one.hosts() } else { AddressRange::only(one) });
        };
        let last: NetAddress = rest.parse().map_err(|_| bad(FORMS))?;
        if last.prefix < SHORTEST {
            return Err(bad(TOO_SHORT));
        }
        let first: IpAddr = first.parse().map_err(|_| bad(FORMS))?;
        if !last.contains(first) {
            return Err(bad("its first and last address are not in one network of that prefix"));
        }
        if first > last.address {
            return Err(bad("its first address comes after its last"));
        }
        Ok(AddressRange { first, last: last.address, prefix: last.prefix })
    }
}

/// Proxmox refuses shorter prefixes.
const SHORTEST: u8 = 8;
const TOO_SHORT: &str = "Proxmox accepts prefix lengths of 8 and more";

const FORMS: &str = "use a network such as 10.0.0.0/24, an address such as 10.0.0.5/24, or a range such as \
                     10.0.0.10-10.0.0.60/24";

/// Why a text is no address, network or range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an address range: {hint}")]
pub struct AddressError {
    /// What was given.
    text: String,
    hint: &'static str,
}

impl AddressError {
    fn new(text: &str, hint: &'static str) -> AddressError {
        AddressError { text: text.to_owned(), hint }
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

/// The address with this number, of the same family as another.
fn with_number(like: IpAddr, number: u128) -> IpAddr {
    match like {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from(u32::try_from(number).unwrap_or(u32::MAX))),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from(number)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn range(text: &str) -> AddressRange {
        text.parse().unwrap()
    }

    fn free(text: &str, taken: &[&str]) -> Option<String> {
        let taken: BTreeSet<IpAddr> = taken.iter().map(|text| text.parse().unwrap()).collect();
        let range = range(text);
        range.first_free(range.first, &|address| taken.contains(&address), &[]).map(|found| found.to_string())
    }

    #[test]
    fn a_network_has_hosts_but_for_its_own_address_and_the_broadcast_address() {
        let of = |text: &str| {
            let hosts = text.parse::<NetAddress>().unwrap().hosts();
            (hosts.first.to_string(), hosts.last.to_string())
        };
        let pair = |first: &str, last: &str| (first.to_owned(), last.to_owned());
        assert_eq!(of("10.0.0.0/24"), pair("10.0.0.1", "10.0.0.254"));
        assert_eq!(of("10.0.0.77/27"), pair("10.0.0.65", "10.0.0.94"));
        assert_eq!(of("10.0.0.4/31"), pair("10.0.0.4", "10.0.0.5"));
        assert_eq!(of("10.0.0.4/32"), pair("10.0.0.4", "10.0.0.4"));
        assert_eq!(of("0.0.0.0/0"), pair("0.0.0.1", "255.255.255.254"));
        assert_eq!(of("fd00::/64"), pair("fd00::1", "fd00::ffff:ffff:ffff:ffff"));
        assert_eq!(of("::/0"), pair("::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
    }

    #[test]
    fn a_range_never_gives_the_network_s_own_address_or_the_broadcast_address() {
        assert_eq!(free("10.0.0.0-10.0.0.1/24", &["10.0.0.1"]), None);
        assert_eq!(free("10.0.0.254-10.0.0.255/24", &["10.0.0.254"]), None);
        assert_eq!(free("10.0.0.0/30", &["10.0.0.1"]).as_deref(), Some("10.0.0.2/30"));
        assert_eq!(free("fd00::-fd00::1/64", &[]).as_deref(), Some("fd00::1/64"));
    }

    #[test]
    fn what_is_taken_or_excluded_is_passed_over() {
        let taken: BTreeSet<IpAddr> = ["10.0.0.1", "10.0.0.2", "10.0.0.9"].map(|text| text.parse().unwrap()).into();
        let is_taken = |address| taken.contains(&address);
        let excluded = [range("10.0.0.3-10.0.0.8/24")];
        let first = |start: &str| {
            let found = range("10.0.0.0/24").first_free(start.parse().unwrap(), &is_taken, &excluded);
            found.map(|found| found.to_string())
        };
        assert_eq!(first("10.0.0.0").as_deref(), Some("10.0.0.10/24"));
        assert_eq!(first("10.0.0.200").as_deref(), Some("10.0.0.200/24"));
        assert_eq!(first("10.0.1.0"), None);
        let all = ["0.0.0.0-255.255.255.255", "::/0"].map(|text| AddressRange::excluded(text).unwrap());
        assert_eq!(range("10.0.0.0/24").first_free("10.0.0.0".parse().unwrap(), &|_| false, &all), None);
        assert_eq!(range("fd00::/64").first_free("fd00::".parse().unwrap(), &|_| false, &all), None);
    }

    #[test]
    fn texts_that_are_no_range_are_refused_with_the_reason() {
        for text in
            ["", "10.0.0.5", "10.0.0.0/33", "10.0.0.5-10.0.0.9", "10.0.0.0/+8", "fd00::/129", "a/24", "10.0.0.0/24/8"]
        {
            assert!(text.parse::<AddressRange>().unwrap_err().to_string().contains("such as"), "{text}");
        }
        let said = |text: &str| text.parse::<AddressRange>().unwrap_err().to_string();
        assert!(said("10.0.0.5-10.0.1.9/24").contains("not in one network"));
        assert!(said("10.0.0.5-fd00::1/64").contains("not in one network"));
        assert!(said("10.0.0.9-10.0.0.5/24").contains("comes after"));
        assert!(said("10.0.0.0/7").contains("8 and more"));
        assert!(said("10.0.0.1-10.0.0.2/7").contains("8 and more"));
    }

    #[test]
    fn in_a_network_of_two_addresses_both_are_hosts() {
        for (text, both) in
            [("10.0.0.4/31", ["10.0.0.4/31", "10.0.0.5/31"]), ("fd00::2/127", ["fd00::2/127", "fd00::3/127"])]
        {
            assert!(!text.parse::<NetAddress>().unwrap().is_network(), "{text}");
            assert_eq!(free(text, &[]).as_deref(), Some(both[0]));
            let first = both[0].split('/').next().unwrap();
            assert_eq!(free(text, &[first]).as_deref(), Some(both[1]));
        }
        assert_eq!(free("10.0.0.4/32", &[]).as_deref(), Some("10.0.0.4/32"));
        assert_eq!(free("10.0.0.4/32", &["10.0.0.4"]), None);
    }

    #[test]
    fn what_is_excluded_may_be_written_with_and_without_prefix() {
        let has = |text: &str, address: &str| AddressRange::excluded(text).unwrap().contains(address.parse().unwrap());
        assert!(has("10.0.0.7", "10.0.0.7") && !has("10.0.0.7", "10.0.0.8"));
        assert!(has("10.0.0.7/24", "10.0.0.7") && !has("10.0.0.7/24", "10.0.0.8"));
        assert!(has("10.0.0.32/29", "10.0.0.32") && has("10.0.0.32/29", "10.0.0.39"));
        assert!(has("10.0.0.5-10.0.0.6", "10.0.0.6") && has("10.0.0.5-10.0.0.6/24", "10.0.0.5"));
        for text in ["", "10.0.0.6-10.0.0.5", "10.0.0.1-fd00::1", "10.0.0.1-", "a"] {
            assert!(AddressRange::excluded(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_range_is_printed_as_it_is_written() {
        for text in ["10.0.0.0/24", "10.0.0.5/24", "10.0.0.10-10.0.0.60/24", "fd00::/64", "fd00::5-fd00::9/64"] {
            assert_eq!(range(text).to_string(), text);
        }
    }
}
