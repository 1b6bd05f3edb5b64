//! A real Kubernetes control plane for tests: found or built at a pinned version, started on loopback, gone afterwards.
//!
//! Read in this order: `programs` (what), `locate` and `gobuild` (from where), `cluster` (how they start), `keeper`
//! (how they end). Nothing here knows the product.

mod audit;
mod cache;
#[cfg(feature = "client")]
mod clients;
mod cluster;
mod component;
pub mod coverage;
mod debian;
mod error;
mod first_objects;
mod flags;
mod gobuild;
mod keeper;
mod kubeconfig;
mod locate;
pub mod mutation;
mod pki;
mod ports;
mod programs;
pub mod proof;
mod python;
#[cfg(feature = "client")]
mod test_ground;
mod version;
mod wire;

pub use audit::{AuditEvent, AuditObject, AuditReader, AuditStatus, AuditUser};
pub use cache::Cache;
pub use cluster::{DIR_PREFIX, DIR_VARIABLE, Testbed, environment};
pub use debian::{BLKID, BUILDAH, CLOUD_INIT, DebianTool, ISOINFO, PROMETHEUS, PROMTOOL, Runner, XORRISO};
pub use error::{Error, Result};
pub use gobuild::Progress;
pub use locate::{Found, Lookup, Source, folder_variables};
pub use programs::{Family, Program};
pub use python::{PROXMOXER, Package};
#[cfg(feature = "client")]
pub use test_ground::{eventually, own_testbed, shared_testbed};
pub use version::Version;
