//! Which IPv6 address does a guest give itself in a network?
//!
//! The hardware address, spread over 64 bits, fills what the prefix leaves free. With a prefix longer than 64 its upper
//! part is cut off, which still gives the address that existing set-ups expect.

use std::net::{IpAddr, Ipv6Addr};

/// A longer prefix cuts a hardware address beyond use.
pub(crate) const LONGEST_PREFIX: u32 = 112;
/// A shorter prefix than the first leaves more bits than a hardware address fills.
const PREFIXES: std::ops::RangeInclusive<u32> = 64..=LONGEST_PREFIX;

/// The address with its prefix length, or nothing if `mac` or `network` cannot be read or the prefix does not fit.
pub fn address(mac: &str, network: &str) -> Option<String> {
    let (base, prefix) = network.split_once('/')?;
    let base = u128::from(base.parse::<Ipv6Addr>().ok()?);
    let prefix: u32 = prefix.parse().ok().filter(|prefix| PREFIXES.contains(prefix))?;
    let host_bits = (1_u128 << (128 - prefix)) - 1;
    let address = (base & !host_bits) | (u128::from(interface_id(mac)?) & host_bits);
    Some(format!("{}/{prefix}", Ipv6Addr::from(address)))
}

/// The address that templates get: the hardware address fills whole bytes, also one that the prefix reaches into, and
/// free bytes before it are zero. An IPv4 address in an IPv6 one stands alone, with what is left of the prefix.
pub(crate) fn in_network(mac: &[u8], network: Ipv6Addr, prefix: u32) -> String {
    let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or_default();
    let mut address = Ipv6Addr::from(u128::from(network) & mask).octets();
    let id = if let [a, b, c, d, e, f, ..] = *mac { [a ^ 0b10, b, c, 0xff, 0xfe, d, e, f] } else { [0; 8] };
    let filled = usize::try_from(prefix / 8).unwrap_or_default().max(8);
    for (byte, id) in address.iter_mut().skip(8).zip(id).skip(filled - 8) {
        *byte = id;
    }
    match Ipv6Addr::from(address).to_canonical() {
        IpAddr::V4(address) => format!("{address}/{}", prefix.saturating_sub(96)),
        IpAddr::V6(address) => format!("{address}/{prefix}"),
    }
}

/// A hardware address of 6, 8 or 20 bytes: digits in pairs between colons or dashes, in fours between dots, or in a row.
pub(crate) fn parse_mac(text: &str) -> Option<Vec<u8>> {
    let separator = text.chars().find(|c| !c.is_ascii_hexdigit());
    let groups: Vec<&str> = text.split(|c| Some(c) == separator).collect();
    let width = match separator {
        Some(':' | '-') => 2,
        Some('.') => 4,
        Some(_) => return None,
        None => text.len(),
    };
    if groups.iter().any(|group| group.len() != width) {
        return None;
    }
    let digits = groups.concat();
    let pairs = (0..digits.len()).step_by(2).map(|at| digits.get(at..at + 2));
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bytes: Vec<u8> = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect::<Option<_>>()?;
    (is_number && matches!(bytes.len(), 6 | 8 | 20)).then_some(bytes)
}

/// The modified EUI-64 of a hardware address.
fn interface_id(mac: &str) -> Option<u64> {
    let bytes: Vec<u8> = mac.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect::<Option<_>>()?;
    let [a, b, c, d, e, f] = bytes.try_into().ok()?;
    // The flipped bit says that the address is unique by its maker, as hardware addresses are.
    Some(u64::from_be_bytes([a ^ 0b10, b, c, 0xff, 0xfe, d, e, f]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: &str = "00:1A:2B:3C:4D:5E";

    #[test]
    fn the_hardware_address_fills_what_the_prefix_leaves_free() {
        let made = |network| address(MAC, network).unwrap();
        assert_eq!(made("2001:db8:1::/64"), "2001:db8:1:0:21a:2bff:fe3c:4d5e/64");
        assert_eq!(made("2001:db8:1:2:3::1/80"), "2001:db8:1:2:3:2bff:fe3c:4d5e/80");
        assert_eq!(made("2001:db8:1:2:3::/112"), "2001:db8:1:2:3::4d5e/112");
    }

    #[test]
    fn what_cannot_be_read_gives_no_address() {
        for (mac, network) in [("", "fd00::/64"), (MAC, "fd00::"), (MAC, "fd00::/48"), (MAC, "fd00::/120")] {
            assert_eq!(address(mac, network), None, "{mac} {network}");
        }
        assert_eq!(address("00:1a:2b:3c:4d:5e:6f", "fd00::/64"), None);
    }

    #[test]
    fn hardware_addresses_are_read_in_every_usual_form() {
        let bytes = Some(vec![0, 0x1a, 0x2b, 0x3c, 0x4d, 0x5e]);
        for text in [MAC, "00-1a-2b-3c-4d-5e", "001a.2b3c.4d5e", "001A2B3C4D5E"] {
            assert_eq!(parse_mac(text), bytes, "{text}");
        }
        for text in ["", "00:1a-2b:3c:4d:5e", "0:1a:2b:3c:4d:5e", "00:1a:2b:3c:4d", "00:1a:2b:3c:4d:5g", "é", "00 1a"]
        {
            assert_eq!(parse_mac(text), None, "{text}");
        }
    }

    #[test]
    fn templates_get_whole_bytes_of_the_hardware_address() {
        let mac = parse_mac(MAC).unwrap();
        let made = |network: &str, prefix| in_network(&mac, network.parse().unwrap(), prefix);
        assert_eq!(made("2001:db8:1::1", 48), "2001:db8:1:0:21a:2bff:fe3c:4d5e/48");
        assert_eq!(made("2001:db8:1:2:f000::", 68), "2001:db8:1:2:21a:2bff:fe3c:4d5e/68");
        assert_eq!(made("2001:db8:1:2:3::", 80), "2001:db8:1:2:3:2bff:fe3c:4d5e/80");
    }
}
