//! The commands that need the simulator. A build without cargo feature `sim` has `without_sim.rs` in its place.

pub mod demo;
pub mod pve_sim;

/// Whether this build has the simulator.
pub const IS_INCLUDED: bool = true;
