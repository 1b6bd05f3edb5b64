//! Which nodes are not what their pool, class and template say any more? They are reported; nothing is replaced here.
//!
//! What is compared and in which order is decided in `tenon_api::drift`, which hashes are written in
//! `tenon_api::hash_stamp`. Here: `proxmox` (instance types and images, cached for a while), `stamp` (hashes onto pools,
//! classes and claims), `report` (the condition and an event), all of it in `pass`, written by a `writer` that makes a bounded
//! number of writes a pass.

mod pass;
mod proxmox;
mod report;
mod stamp;
mod writer;

pub(crate) use pass::run;
