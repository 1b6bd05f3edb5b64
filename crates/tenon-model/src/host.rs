//! The name of a Proxmox machine.

use std::fmt;
use std::str::FromStr;

/// The longest name a DNS label can carry.
const MAX_LENGTH: usize = 63;

/// A Proxmox machine, which Proxmox calls a node and we call a host, because Kubernetes has nodes too.
///
/// Invariant: a DNS label. It is put into URL paths and label values as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

impl HostName {
    /// The plain text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = HostNameError;

    fn from_str(text: &str) -> Result<HostName, HostNameError> {
        let bytes = text.as_bytes();
        let at_the_edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let inside = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
        if bytes.len() <= MAX_LENGTH
            && at_the_edge(bytes.first())
            && at_the_edge(bytes.last())
            && bytes.iter().all(inside)
        {
            Ok(HostName(text.to_owned()))
        } else {
            Err(HostNameError { text: text.to_owned() })
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a text is no [`HostName`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a host name: use 1 to {MAX_LENGTH} letters, digits and dashes, without a dash at either end \
     (the short name, as `pvesh get /nodes` prints it)"
)]
pub struct HostNameError {
    /// What was given.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_name_is_one_dns_label() {
        let longest = "a".repeat(63);
        for good in ["pve1", "PVE-2", "0", longest.as_str()] {
            assert_eq!(good.parse::<HostName>().unwrap().as_str(), good);
        }
        let too_long = "a".repeat(64);
        for bad in ["", "-pve", "pve-", "pve.lan", "pve/1", "pve 1", "pvé", "../x", too_long.as_str()] {
            assert!(bad.parse::<HostName>().is_err(), "{bad}");
        }
    }
}
