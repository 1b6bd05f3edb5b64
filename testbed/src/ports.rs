//! Chooses loopback ports that nobody uses.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};

use crate::error::{Error, Result};

/// Below the range the kernel takes for outgoing connections: a component that is killed and started again must find
/// its port still free.
const RANGE: std::ops::Range<u16> = 10_000..32_000;

/// More tries than any crowded machine should need.
const TRIES: usize = 1_000;

/// `N` different ports that were free a moment ago. Another process may still take one first; the caller tries again.
pub(crate) fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut found = BTreeSet::new();
    let mut ports = [0; N];
    for tried in 0..TRIES {
        if found.len() == N {
            for (port, free) in ports.iter_mut().zip(&found) {
                *port = *free;
            }
            return Ok(ports);
        }
        // Each `RandomState` has keys of its own, which is all the randomness this needs.
        let random = RandomState::new().hash_one(tried);
        let width = u64::from(RANGE.end - RANGE.start);
        let port = RANGE.start + u16::try_from(random % width).unwrap_or_default();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            found.insert(port);
        }
    }
    Err(Error::NoPort { tried: TRIES })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_different_free_and_outside_the_outgoing_range() {
        let ports = free_ports::<5>().unwrap();
        assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), 5);
        for port in ports {
            assert!(RANGE.contains(&port));
            assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok());
        }
    }
}
