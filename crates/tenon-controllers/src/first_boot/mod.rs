//! What a new VM reads on its first boot: gathered from class, claim, Secrets and Proxmox, rendered by `tenon-cloudinit`.

mod inspection;
mod kubelet;
mod network;
pub mod sample;
mod seed;
mod sources;

pub use inspection::NoFirstBoot;
pub(crate) use inspection::{Inspection, Subject, inspect};
pub use network::interfaces;
pub use seed::{SeedFacts, VmFacts, provider_id, render_seed, seed_input};
pub use sources::{NoSources, NodeSecrets, SecretData, Sources};
