//! From pods that fit nowhere to NodeClaims with a launch written into them.
//!
//! Read in this order: `gather` (one look at Kubernetes and Proxmox), `snapshot` (the engine's view of it), then the
//! engine, then `claims` (each new node as an object).

mod claims;
mod gather;
mod hosts;
mod snapshot;

pub use claims::{ClaimError, to_claims};
pub use gather::{Gathered, ProvisionContext, gather};
pub use snapshot::to_snapshot;
