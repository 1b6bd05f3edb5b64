//! A Proxmox VE client that knows what it does not know.
//!
//! Read in this order: `error` (what can be known of a call), `transport` (the one seam), `client` (how a request is
//! made), then a file for each topic: `cluster`, `hosts`, `guests`, `storage`, `tasks`. `proof` stands between every
//! caller and a destroyed VM.
//!
//! Proxmox says "node" for a machine; here it is a host.

mod client;
mod cluster;
mod config;
mod credentials;
mod error;
mod guests;
mod hosts;
mod proof;
mod properties;
mod reply;
mod storage;
mod tasks;
mod tls;
mod transport;
mod upid;

pub use client::{Client, Endpoint};
pub use cluster::{GuestKind, GuestRow, HostRow, Resources, StorageRow};
pub use config::VmConfig;
pub use credentials::{Token, TokenError};
pub use error::{Cause, Error, Refusal, RefusalKind, Result};
pub use guests::{CloneRequest, PowerState, VmStatus};
pub use hosts::HostStatus;
pub use proof::{Doubt, OwnerMark, Proof, ProvenVm};
pub use properties::{Properties, PropertiesError};
pub use storage::{HostStorage, Volume};
pub use tasks::{TaskOutcome, TaskProgress};
pub use tls::{Fingerprint, FingerprintError, TlsError, Trust};
pub use transport::{Transport, TransportError, TransportService};
pub use upid::{Upid, UpidError};
