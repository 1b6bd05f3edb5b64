//! Which CPUs and which memory of its host is a VM bound to? Only where an operator wants VMs to be bound.
//!
//! `layout` says how the CPUs of a host lie, by the word of an operator, of the host itself (`capacity_vm`) or of its CPU model
//! (`prediction`); `usable` what of a host VMs may have; `room` what is left of it; `cells` which NUMA nodes a VM is put on;
//! `memory` how much of its memory each of them has; `take` which of their CPUs it gets; `pin` all of it for one VM.

mod capacity_vm;
mod cells;
mod layout;
mod memory;
mod pin;
mod prediction;
mod room;
mod take;
mod usable;

pub use capacity_vm::{CapacityVm, CapacityVmError, GuestCell};
pub use layout::{Layout, LayoutSource};
pub(crate) use pin::{Need, Unpinnable, fits, pin, shortage};
pub use prediction::CpuFacts;
pub use room::{Bound, PinnedRoom, room};
pub use usable::{Usable, usable};
