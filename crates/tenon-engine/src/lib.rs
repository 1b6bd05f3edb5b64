//! Decides. No clock, no network, no randomness: the same snapshot gives the same plan, byte for byte.
//!
//! [`plan`] packs pods onto nodes and nodes onto hosts; [`check`] reads a finished plan again and says what is wrong
//! with it, knowing nothing of how it was made.

mod checker;
pub mod claim;
mod eligibility;
mod hosts;
mod labels;
pub mod launch;
mod open_node;
mod packing;

pub use checker::{Violation, check};
pub use packing::plan;
