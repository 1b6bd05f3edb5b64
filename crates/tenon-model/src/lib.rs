//! The values Tenon thinks in.
//!
//! A value is checked once, where it enters, and is plain data from there on. This crate knows no wire format, no
//! client and no time of day; the crates that decide build on it.

mod host;
mod quantity;
mod requirement;
#[cfg(test)]
mod requirement_tests;
mod requirements;
pub mod resources;
mod vmid;

pub use host::{HostName, HostNameError};
pub use quantity::{Quantity, QuantityError};
pub use requirement::{Operator, Requirement};
pub use requirements::{Incompatible, Requirements};
pub use resources::{Resources, Shortage};
pub use vmid::{VmId, VmIdError, VmIdRange};
