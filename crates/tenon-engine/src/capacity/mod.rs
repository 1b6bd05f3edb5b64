//! What is left of hosts, of reservations, of places for volumes, and of what a pool may have, while a plan is made.

mod attachments;
mod hosts;
mod limits;
mod reservations;

pub(crate) use attachments::{Attached, Attachments, VolumeCount, attach, counted, with_one_more};
pub(crate) use hosts::{HeldSize, HostRoom, Hosts};
pub(crate) use limits::{Allowance, Limits};
pub(crate) use reservations::{Held, Reservations, Reserved};
