//! What is left of hosts, of reservations, and of what a pool may have, while a plan is made.

mod hosts;
mod limits;
mod reservations;

pub(crate) use hosts::{HostRoom, Hosts};
pub(crate) use limits::{Allowance, Limits};
pub(crate) use reservations::{Held, Reservations, Reserved};
