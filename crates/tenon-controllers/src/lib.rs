//! Gathers, acts, reports. What the engine decided becomes true here, one outside change at a time.

pub mod addresses;
pub mod claim;
mod claim_list;
mod clock;
mod cluster_id;
mod context;
mod controllers;
pub mod cpus;
mod csr;
mod deletion_cost;
pub mod disruption;
mod drift;
pub mod election;
mod events;
pub mod first_boot;
mod follow;
mod garbage_collection;
#[cfg(test)]
mod garbage_collection_tests;
mod in_place;
pub mod join;
mod kept;
mod kube_error;
pub mod kube_rights;
mod memory;
mod metrics;
mod moments;
mod node_health;
mod overlays;
mod panics;
mod patience;
#[cfg(test)]
mod patience_tests;
pub mod provision;
mod proxmox_reads;
mod regions;
mod registration_book;
mod settings;
mod settled;
#[cfg(test)]
mod settled_tests;
pub mod static_pools;
pub mod status;
mod stop;
pub mod templates;
mod token_sweep;
mod vm_id_book;
mod watched;
mod writes;

pub use clock::Clock;
pub use controllers::{Clients, Controllers, Probe, RunError};
pub use metrics::{KubeMeter, Metric, MetricKind, MetricLabel, MetricOrigin, MetricUnit, Metrics};
pub use patience::{Bounded, NoReply, Patient};
pub use proxmox_reads::bridges;
pub use regions::{RegionChange, RegionSetup, Regions};
pub use registration_book::RegistrationBook;
pub use settings::{CloudControllerManager, CsrApprover, Settings};
