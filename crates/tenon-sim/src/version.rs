//! Which Proxmox VE the estate is, and what follows from it besides the schema.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

/// A release of Proxmox VE that can be simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PveVersion {
    /// 8.4, on Debian 12.
    V8_4,
    /// 9.2, on Debian 13.
    #[default]
    V9_2,
}

/// A release that is not simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not simulated; known: 8.4, 9.2")]
pub struct UnknownVersion(String);

impl FromStr for PveVersion {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        match text {
            "8.4" => Ok(Self::V8_4),
            "9.2" => Ok(Self::V9_2),
            _ => Err(UnknownVersion(text.into())),
        }
    }
}

impl fmt::Display for PveVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.release())
    }
}

impl PveVersion {
    pub(crate) fn release(self) -> &'static str {
        match self {
            Self::V8_4 => "8.4",
            Self::V9_2 => "9.2",
        }
    }

    /// Version of the manager, and the commit it was built from.
    pub(crate) fn manager(self) -> (&'static str, &'static str) {
        match self {
            Self::V8_4 => ("8.4.14", "b502d23c55afcba1"),
            Self::V9_2 => ("9.2.11", "5f1c7a9e0b3d2846"),
        }
    }

    pub(crate) fn kernel(self) -> &'static str {
        match self {
            Self::V8_4 => "6.8.12-15-pve",
            Self::V9_2 => "7.0.2-1-pve",
        }
    }

    /// Version of the QEMU that new VMs remember.
    pub(crate) fn qemu(self) -> &'static str {
        match self {
            Self::V8_4 => "9.2.0",
            Self::V9_2 => "10.0.13",
        }
    }

    /// Takes out of a row about a VM what came with 9.0: pressure, and the memory a VM takes on its host.
    pub(crate) fn trim_vm(self, row: &mut Map<String, Value>) {
        if self == Self::V8_4 {
            row.retain(|key, _| key != "memhost" && !key.starts_with("pressure"));
        }
    }
}
