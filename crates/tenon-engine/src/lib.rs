//! Decides. No clock, no network, no randomness: the same snapshot gives the same plan, byte for byte.
//!
//! [`plan`] packs pods onto nodes and nodes onto hosts; [`check`] reads a finished plan again and says what is wrong
//! with it, knowing nothing of how it was made; [`sound_part`] leaves that out.

mod addresses;
mod attempts;
mod axes;
mod bits;
mod bug;
mod catalog_index;
mod checker;
pub mod claim;
mod daemons;
mod desk;
pub mod disruption;
pub mod drain;
mod effective_zone;
mod eligibility;
mod existing;
mod explain;
mod finish;
mod hosts;
mod improve;
mod interner;
mod label_index;
pub mod launch;
mod launch_choice;
mod launch_clone;
mod open_claim;
mod packing;
pub mod registration_health;
mod reservations;
pub mod static_pool;
mod static_victims;
mod stock;
mod template;

pub use addresses::{NoAddress, give};
pub use catalog_index::Indexes;
pub use checker::{CheckedPlan, Subject, Violation, check, sound_part};
pub use effective_zone::effective_zones;
pub use launch_choice::{LaunchRefusal, launches};
pub use packing::{Prepared, plan};
pub use static_pool::StaticCounts;
pub use static_victims::{Sparing, StaticNode, StaticPod, StaticStage, lifetime_remaining};
