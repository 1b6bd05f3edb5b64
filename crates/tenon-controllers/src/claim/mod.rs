//! One NodeClaim's VM: from a written intent to a machine that runs, and back to nothing.
//!
//! A pass starts from the record as it was last written down, looks at Proxmox, lets the engine decide, makes at most one
//! change, and hands back the record to be written next. Whoever calls keeps the record; dying between any two lines
//! costs a look, never a VM.

mod launch;
mod observe;
mod order;
mod release;
mod seed;

pub use launch::{LaunchPass, pass};
pub use order::{Order, SeedFile, SeedSource};
pub use release::{ReleasePass, release};
pub use seed::{SeedFacts, provider_id, seed_image};
