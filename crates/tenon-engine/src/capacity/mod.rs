//! What is left of hosts, of reservations, of places for volumes, and of what a pool may have, while a plan is made.

mod attachments;
mod hosts;
mod limits;
mod placement_strategy;
mod reservations;

pub(crate) use attachments::{Attached, Attachments, VolumeCount, attach, counted, with_one_more};
pub(crate) use hosts::{HeldSize, HostRoom, Hosts};
pub(crate) use limits::{Allowance, Limits};
pub(crate) use placement_strategy::{HostChoice, Rank, Spot, Turns};
pub(crate) use reservations::{Held, Reservations, Reserved};
