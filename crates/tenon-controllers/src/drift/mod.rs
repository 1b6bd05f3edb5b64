//! Which nodes are not what their pool, class and template say any more? They are told of; nothing is replaced here.
//!
//! What is compared and in which order is decided in `tenon_api::drift`, which hashes are written in
//! `tenon_api::hash_stamp`. Here: `outside` (what Proxmox says of sizes and images, remembered for a while), `stamp`
//! (hashes onto pools, classes and claims), `report` (the condition and an event), all of it in `pass`, written with a `pen`
//! that runs dry.

mod outside;
mod pass;
mod pen;
mod report;
mod stamp;

pub(crate) use pass::run;
