//! What was packed, as a plan: what is to be created, why the rest waits, and the choices that are left.

mod addresses;
mod effective_zone;
mod finish;
mod improve;
mod launch_choice;
mod no_domain;
mod no_host;
mod no_volumes;
mod reasons;

pub use addresses::{NoAddress, give};
pub(crate) use effective_zone::effective_zones;
pub(crate) use finish::finished;
pub(crate) use improve::improve;
pub use launch_choice::{LaunchRefusal, launches};
