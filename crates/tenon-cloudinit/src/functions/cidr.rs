//! Which addresses does a network have?

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tenon_gotemplate::{Failure, Limits, Value};

use super::arguments;
use crate::slaac;

/// `cidrhost`: the address as it was given, or the one with that number in its network; negative numbers count from
/// the end.
pub(super) fn host(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let network = Network::parse(arguments::string(arguments, 0)?)?;
    if arguments.len() < 2 {
        return Ok(Value::string(shown(network.address)));
    }
    let number = arguments::int(arguments, 1)?;
    let host_bits = network.width() - network.prefix;
    let last = if host_bits == 128 { u128::MAX } else { (1 << host_bits) - 1 };
    let from_edge = if number < 0 { number.unsigned_abs() - 1 } else { number.unsigned_abs() };
    if u128::from(from_edge) > last {
        let prefix = network.prefix;
        return Err(Failure::new(format!("prefix of {prefix} does not accommodate a host numbered {number}")));
    }
    let number = if number < 0 { last - u128::from(from_edge) } else { u128::from(from_edge) };
    Ok(Value::string(shown(network.with_host(number, last))))
}

/// `cidrslaac`: the address with prefix that a guest with that hardware address gives itself.
pub(super) fn slaac(_: &Limits, arguments: &[Value]) -> Result<Value, Failure> {
    let (mac, network) = arguments::two_strings(arguments)?;
    let network = Network::parse(network)?;
    let IpAddr::V6(address) = network.address else {
        return Err(Failure::new(format!("{} is not an IPv6 network", shown(network.address))));
    };
    let mac = std::str::from_utf8(mac).ok().and_then(slaac::parse_mac);
    let mac = mac.ok_or_else(|| Failure::new("the hardware address cannot be read"))?;
    if network.prefix > slaac::LONGEST_PREFIX {
        return Err(Failure::new(format!("a prefix of {} leaves too few bits for an address", network.prefix)));
    }
    let address = slaac::in_network(&mac, address, network.prefix);
    Ok(Value::string(address))
}

/// An address and how many of its bits name the network.
struct Network {
    address: IpAddr,
    prefix: u32,
}

impl Network {
    fn parse(text: &[u8]) -> Result<Network, Failure> {
        let read = || {
            let (address, prefix) = std::str::from_utf8(text).ok()?.split_once('/')?;
            let address: IpAddr = address.parse().ok()?;
            // Zeros in front are fine, a sign is not.
            let prefix = prefix.bytes().all(|byte| byte.is_ascii_digit()).then(|| prefix.parse::<u32>().ok())??;
            let network = Network { address, prefix };
            (prefix <= network.width()).then_some(network)
        };
        read().ok_or_else(|| Failure::new("invalid CIDR address"))
    }

    fn width(&self) -> u32 {
        if self.address.is_ipv4() { Ipv4Addr::BITS } else { Ipv6Addr::BITS }
    }

    /// The address in the network whose host bits, those of `mask`, are `number`.
    fn with_host(&self, number: u128, mask: u128) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => {
                let bits = (u128::from(u32::from(address)) & !mask) | number;
                IpAddr::V4(Ipv4Addr::from(u32::try_from(bits).unwrap_or_default()))
            }
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from((u128::from(address) & !mask) | number)),
        }
    }
}

/// An address as Go prints it: an IPv4 address in an IPv6 one stands alone.
fn shown(address: IpAddr) -> String {
    address.to_canonical().to_string()
}
