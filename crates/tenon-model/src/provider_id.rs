//! Which VM a Node or NodeClaim names: `proxmox://<region>/<vmid>`.

use std::fmt;
use std::str::FromStr;

use crate::vmid::VmId;

const SCHEME: &str = "proxmox://";

/// A VM in a Proxmox cluster. The region may be empty: then the label for the region says which it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProviderId {
    region: String,
    vmid: VmId,
}

impl ProviderId {
    /// The id of a VM. The name of a region has no slash; an id with one could not be read again.
    pub fn new(region: &str, vmid: VmId) -> ProviderId {
        ProviderId { region: region.to_owned(), vmid }
    }

    /// The Proxmox cluster, if it is said.
    pub fn region(&self) -> Option<&str> {
        (!self.region.is_empty()).then_some(self.region.as_str())
    }

    /// The VM.
    pub fn vmid(&self) -> VmId {
        self.vmid
    }
}

impl FromStr for ProviderId {
    type Err = ProviderIdError;

    fn from_str(text: &str) -> Result<ProviderId, ProviderIdError> {
        let parts = text.strip_prefix(SCHEME).and_then(|rest| rest.split_once('/'));
        let read = parts.and_then(|(region, vmid)| Some(ProviderId::new(region, vmid.parse().ok()?)));
        read.ok_or_else(|| ProviderIdError { text: text.to_owned() })
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.region, self.vmid)
    }
}

/// A text that names no VM of Proxmox.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not the provider ID of a Proxmox VM; the form is proxmox://<region>/<vmid>")]
pub struct ProviderIdError {
    /// What was given.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_a_region_and_a_vm_make_an_id() {
        for (text, region, vmid) in [
            ("proxmox://lab/20001", Some("lab"), 20_001),
            ("proxmox:///100", None, 100),
            ("proxmox://a b/999", Some("a b"), 999),
        ] {
            let id: ProviderId = text.parse().unwrap();
            assert_eq!((id.region(), id.vmid().get()), (region, vmid), "{text}");
            assert_eq!(id.to_string(), text);
        }
        for text in [
            "",
            "proxmox://",
            "proxmox://lab",
            "proxmox://lab/",
            "proxmox://lab/x",
            "proxmox://lab/99",
            "proxmox://lab/0100",
            "proxmox://lab/100/1",
            "proxmox://8f8a3c1e-0000-4000-8000-000000000000",
            "aws:///100",
            "Proxmox://lab/100",
            " proxmox://lab/100",
        ] {
            assert!(text.parse::<ProviderId>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn printing_and_reading_agree(region in "[^/]{0,12}", vmid in 100_u32..=999_999_999) {
            let id = ProviderId::new(&region, VmId::try_from(vmid).unwrap());
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }
    }
}
