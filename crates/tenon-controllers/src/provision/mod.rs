//! From pods that fit nowhere to NodeClaims with a launch written into them.
//!
//! Read in this order: `gather` (one look at Kubernetes and Proxmox), `snapshot` (the engine's view of it), then the
//! engine, then `claims` (each new node as an object), all of it in `pass`, which begins when `batcher` says so, asks `recheck`
//! before it creates anything, and publishes events on pods by `report`. `replacements` says which nodes count as leaving. `standalone` does the same for claims that exist
//! already.

mod batcher;
mod claims;
mod gather;
mod host_facts;
mod host_load;
mod host_obstacles;
mod host_rules;
mod hosts;
mod launch_site;
#[cfg(test)]
mod overlay_tests;
mod overlays;
mod pass;
#[cfg(test)]
mod pass_tests;
mod recheck;
mod replacements;
mod report;
mod snapshot;
mod standalone;
#[cfg(test)]
mod standalone_tests;
#[cfg(test)]
mod storage_tests;
#[cfg(test)]
mod test_stage;

pub use claims::{ClaimError, decided, to_claims};
pub(crate) use claims::{entry, owner};
pub use gather::Gathered;
pub(crate) use gather::{gather, gather_for_disruption, is_being_emptied};
pub(crate) use host_facts::GuestId;
pub use host_facts::HostFacts;
pub(crate) use hosts::{instance_type_of, place_of, record_of, records_in};
pub use launch_site::LaunchSpot;
pub(crate) use launch_site::template_of;
pub use overlays::evaluate_overlays;
pub(crate) use overlays::with_promised;
pub(crate) use pass::run;
pub use recheck::Usage;
pub(crate) use report::nominate;
pub(crate) use snapshot::Lookout;
pub use snapshot::requirements;
pub use snapshot::to_snapshot;
pub use standalone::decide;
