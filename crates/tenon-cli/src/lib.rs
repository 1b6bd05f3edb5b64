//! The verbs for people: what each prints, and nothing about how the command line is spelled.
//!
//! Every verb writes to the writer it is given, so that the binary alone knows about standard output; only the log of
//! one that runs on goes there by itself.

pub mod adopt;
mod alert_reference;
pub mod cloud_config;
pub mod completions;
pub mod controller;
pub mod crds;
pub mod go_flags;
pub mod instance_types;
pub mod kind_reference;
mod kube_rights_reference;
mod man;
mod metric_reference;
pub mod plan;
mod prices;
mod pve_rights_reference;
mod reason_reference;
pub mod reference;
pub mod regions;
pub mod render;
#[cfg(feature = "sim")]
pub mod sim;
#[cfg(not(feature = "sim"))]
#[path = "without_sim.rs"]
pub mod sim;
pub mod telemetry;
pub mod template;
pub mod version;
