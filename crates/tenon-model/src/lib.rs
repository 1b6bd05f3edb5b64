//! The values Tenon thinks in.
//!
//! A value is checked once, where it enters, and is plain data from there on. This crate knows no wire format, no
//! client and no time of day; the crates that decide build on it.

mod host;
mod vmid;

pub use host::{HostName, HostNameError};
pub use vmid::{VmId, VmIdError, VmIdRange};
