//! A Proxmox VE estate in memory that answers like a real one.
//!
//! [`Estate`] is built from an [`EstateConfig`] and called through [`Estate::service`] (in memory, fit for
//! paused time) or [`Estate::serve`] (HTTPS). What operators and the world do beside the API (templates,
//! dead hosts, killed workers, full storages) are methods of [`Estate`]. Its replies are its own: it shares no
//! code with any client, so that a misread field cannot agree with itself. [`Guests`] lets what is started boot and
//! join a Kubernetes cluster. [`Cluster`] is such a cluster in memory, as far as its API server goes; [`Actors`] do what its
//! other programs would. [`cluster_schema`] does with custom resources what an API server does by their schema.
//!
//! All randomness comes from one seed and all time from tokio's clock, so a run can be repeated exactly. [`schema_lines`]
//! tells which calls there are and what they accept. What is absent is told in `docs/dev/pve-simulator.md`.

mod access;
mod access_calls;
mod actors;
mod agent;
mod auth;
mod body;
mod chance;
mod changes;
mod clone;
mod clone_drives;
mod cloud_init_drive;
mod cluster;
pub mod cluster_schema;
mod config;
mod containers;
mod content;
mod create;
mod datacenter;
mod destroy;
mod disks;
mod download;
mod endpoints;
mod estate;
mod execute;
mod fault;
mod fetch;
mod fetch_tls;
mod firewall;
mod firewall_calls;
mod firewall_sets;
mod guest;
mod hosts;
mod http;
mod images;
mod jobs;
mod key_rights;
mod keys;
mod ledger;
mod network;
mod operator;
mod params;
mod pools;
mod power;
mod property;
mod related;
mod resize;
mod resources;
mod respond;
mod rights;
mod roles;
mod schema;
mod serve;
mod settle;
mod start;
mod state;
mod storage;
mod suspend;
mod tasklist;
mod tasks;
mod template;
mod update;
mod upload;
mod version;
mod vm;
mod web;
mod wget;
mod wire;
mod world;

pub use actors::Actors;
pub use cluster::{Admit, Cluster, ClusterConfig, ClusterService, User};
pub use config::{EstateConfig, HostSpec, InterfaceSpec, Pace, StorageKind, StorageSpec, TokenSpec, UserSpec};
pub use containers::ContainerSpec;
pub use estate::Estate;
pub use fault::{
    FaultEffect, FaultFileError, FaultKind, FaultMatch, FaultPlan, FaultPlanError, FaultRule, FaultSpec, Repeat,
    ReplyLost, WorldChange, WorldEvent,
};
pub use guest::{
    ApiAccess, Connect, ConnectError, Credential, GuestConfig, GuestFault, GuestFaultRule, GuestMatch, Guests,
    ImageJoin, TlsConnect,
};
pub use http::EstateService;
pub use ledger::LedgerEntry;
pub use serve::{Server, Tls, TlsError};
pub use version::{PveVersion, UnknownVersion};
pub use web::{WebCertificate, WebFile};
pub use world::{ImageSpec, PowerChange, PowerEvent, TaskSpan, TemplateSpec, VmSpec, VmView, VolumeView, WorldError};

/// The calls an estate answers, one JSON object a line: method, path, parameters with type, limits and choices.
pub fn schema_lines(version: PveVersion) -> Vec<String> {
    schema::lines(version)
}
