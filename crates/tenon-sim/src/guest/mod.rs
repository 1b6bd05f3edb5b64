//! The guests of an estate: what happens inside a VM once its power is on.
//!
//! [`Guests`] listens to an estate's power and lets every started VM boot, read its seed as cloud-init would, and join
//! a Kubernetes cluster as a kubelet would, over the cluster's real API. Read in this order: `guests` (power), `boot`
//! (disk), `join` (certificate and Node), `pods` (work). A guest that cannot join says why in its log.

mod access;
mod boot;
mod capacity;
mod certificate;
mod cloud_init;
mod command;
mod data_kind;
mod disk;
mod fault;
mod guests;
mod heartbeat;
mod huge_pages;
mod image;
mod iso;
mod join;
mod journal;
mod kubelet_config;
mod machine;
mod network;
mod node;
mod pods;
mod serving;
mod settings;
mod talos;
mod trouble;
mod unit;
mod write_files;

pub use access::{ApiAccess, Connect, ConnectError, Credential, TlsConnect};
pub use fault::{GuestFault, GuestFaultRule, GuestMatch};
pub use guests::Guests;
pub use image::ImageJoin;
pub(crate) use journal::Journal;
pub use settings::GuestConfig;
