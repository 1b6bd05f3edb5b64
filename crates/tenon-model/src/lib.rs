//! The values Tenon thinks in.
//!
//! A value is checked once, where it enters, and is plain data from there on. This crate knows no wire format, no
//! client and no time of day; the crates that decide build on it.

mod host;
mod instance_type;
mod launch;
mod plan;
mod quantity;
mod requirement;
#[cfg(test)]
mod requirement_tests;
mod requirements;
pub mod resources;
mod snapshot;
mod taint;
mod vmid;

pub use host::{HostName, HostNameError};
pub use instance_type::{CapacityType, InstanceType, Overhead};
pub use launch::{LaunchRecord, LaunchStep, Seconds};
pub use plan::{NewNode, Placement, Plan, PoolRefusal, Reason, Unplaced};
pub use quantity::{Quantity, QuantityError};
pub use requirement::{Operator, Requirement};
pub use requirements::{Incompatible, Requirements};
pub use resources::{Resources, Shortage};
pub use snapshot::{Host, Node, Place, Pod, PodKey, Pool, Snapshot};
pub use taint::{Effect, Taint, Tolerated, Toleration};
pub use vmid::{VmId, VmIdError, VmIdRange};
