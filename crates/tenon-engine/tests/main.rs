//! What the engine decides: how pods are packed, which nodes are disrupted, what a launch does next.
//!
//! One binary for all of them: each further one would compile the generic code it uses again, and link it again.

mod claim;
mod disruption;
mod packing;
mod templates;
