//! One NodeClaim: from a written intent to a node that takes pods, and back to nothing.
//!
//! `rota` says whose turn it is, `reconcile` is the way in. `gather` looks, the engine decides, then one of these acts: `making` (with `launch`, `order`,
//! `seed`, `token`, `join`) makes the VM, `arrive` makes its node the claim's own, `retire` takes first-boot data away, `drain`
//! (with `evict`) empties the node, `depart` (with `release`) takes everything away. `outcome` tells.
//!
//! A pass starts from the record as it was last written down and makes at most one outside change. Dying between any two
//! lines costs a look, never a VM.

mod arrive;
mod depart;
mod drain;
mod evict;
mod gather;
mod health;
mod image;
mod join;
mod launch;
mod making;
mod observe;
mod order;
mod outcome;
mod reconcile;
mod release;
mod retire;
mod rota;
mod seed;
mod token;

pub(crate) use drain::{is_ready, pods_on};
pub(crate) use gather::is_true;
pub(crate) use image::image_id;
pub use launch::{LaunchPass, pass};
pub use order::{FirstBoot, Order, Owner, Render, SeedFile, seed_file};
pub(crate) use outcome::count_disrupted;
pub(crate) use reconcile::ClaimError;
pub use release::{ReleasePass, release};
pub(crate) use rota::run;
pub use seed::{SeedFacts, provider_id, seed_image};
