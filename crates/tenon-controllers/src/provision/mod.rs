//! From pods that fit nowhere to NodeClaims with a launch written into them.
//!
//! Read in this order: `gather` (one look at Kubernetes and Proxmox), `snapshot` (the engine's view of it), then the
//! engine, then `claims` (each new node as an object), all of it in `pass`, which begins when `window` says so, asks `recheck`
//! before it makes anything, and tells pods by `report`. `by_hand` does the same for claims that are there already.

mod by_hand;
#[cfg(test)]
mod by_hand_tests;
mod claims;
mod gather;
mod hosts;
mod pass;
#[cfg(test)]
mod pass_tests;
mod recheck;
mod report;
mod snapshot;
#[cfg(test)]
mod test_stage;
mod window;

pub use by_hand::decide;
pub use claims::{ClaimError, to_claims};
pub(crate) use claims::{entry, owner};
pub use gather::Gathered;
pub(crate) use gather::is_being_emptied;
pub(crate) use hosts::{record_of, records_in};
pub(crate) use pass::run;
pub use recheck::Usage;
pub(crate) use snapshot::requirements;
pub use snapshot::to_snapshot;
