//! The estate answers like Proxmox VE: exact statuses, reason phrases and bodies, in memory and over HTTPS.
#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

mod bench;
mod clones;
mod configs;
mod creation;
mod downloads;
mod drives;
mod fault_files;
mod faults;
mod fleet;
mod https;
mod lives;
mod oddities;
mod related;
mod storages;
mod tasks;
mod versions;
mod wire;
mod worlds;
