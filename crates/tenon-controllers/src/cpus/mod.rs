//! CPUs of hosts, where VMs are bound to them (node policy `static`).
//!
//! `survey` looks at what Proxmox says of hosts and guests, with `reads`; `guest_binding` what the options of a guest bind it to; `book` what is
//! left of each host by that. Which CPUs a new VM gets is decided in the engine.

mod book;
mod guest_binding;
mod reads;
mod survey;
#[cfg(test)]
mod survey_tests;

pub use book::CpuBook;
pub(crate) use book::HostUse;
pub(crate) use guest_binding::is_capacity_vm;
pub use guest_binding::{binding, capacity_vm};
pub(crate) use survey::{CpuSurvey, Surveyed};
