//! A Proxmox VE estate in memory that answers like a real one.
//!
//! [`Estate`] is built from an [`EstateConfig`] and called through [`Estate::service`] (in memory, fit for
//! paused time) or [`Estate::serve`] (HTTPS). What operators and the world do beside the API (templates,
//! dead hosts, killed workers, full storages) are methods of [`Estate`]. Its replies are its own: it shares no
//! code with any client, so that a misread field cannot agree with itself. [`Guests`] lets what is started boot and
//! join a Kubernetes cluster. [`Cluster`] is such a cluster in memory, as far as its API server goes; [`Actors`] do what its
//! other programs would. [`cluster_schema`] does with custom resources what an API server does by their schema.
//!
//! All randomness comes from one seed and all time from tokio's clock, so a run can be repeated exactly. Not
//! here: permissions of tokens, pools and firewall as calls, guest agents, VM creation other than by clone.

mod actors;
mod auth;
mod body;
mod chance;
mod clone;
mod cluster;
pub mod cluster_schema;
mod config;
mod content;
mod destroy;
mod endpoints;
mod estate;
mod faults;
mod guest;
mod hosts;
mod http;
mod jobs;
mod keys;
mod ledger;
mod operator;
mod params;
mod power;
mod property;
mod resize;
mod resources;
mod serve;
mod settle;
mod state;
mod storage;
mod tasklist;
mod tasks;
mod update;
mod vm;
mod wire;
mod world;

pub use actors::Actors;
pub use cluster::{Admit, Cluster, ClusterConfig, ClusterService, User};
pub use config::{EstateConfig, HostSpec, Pace, StorageSpec, TokenSpec};
pub use estate::Estate;
pub use faults::{FaultKind, FaultSpec, ReplyLost};
pub use guest::{ApiAccess, Connect, ConnectError, Credential, GuestConfig, Guests, ImageJoin, TlsConnect};
pub use http::EstateService;
pub use ledger::LedgerEntry;
pub use serve::{Server, Tls, TlsError};
pub use world::{PowerChange, PowerEvent, TemplateSpec, VmSpec, VmView, VolumeView, WorldError};
