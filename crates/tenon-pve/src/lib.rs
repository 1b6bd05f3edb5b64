//! A Proxmox VE client that knows what it does not know.
//!
//! Read in this order: `error` and `refusal` (what can be known of a call), `transport` (the one seam), `client` (how a
//! request is made, with `session`, `limits`, `retry` and `redact` at its side), then a file for each topic of the API.
//! `config` and `grammar` read and print what a VM is made of. `proof` stands between every caller and a destroyed VM.
//!
//! Proxmox says "node" for a machine; here it is a host.

mod access;
mod address;
mod advice;
mod agent;
mod client;
mod cloudinit;
mod cluster;
mod config;
mod configure;
mod content;
mod creation;
mod credentials;
mod error;
mod firewall;
mod grammar;
mod guests;
mod hosts;
mod ids;
mod limits;
mod observer;
mod pools;
mod power;
mod proof;
mod properties;
pub mod pve_rights;
mod quorum;
mod redact;
mod refusal;
mod reply;
mod retry;
mod session;
mod storage;
mod task_list;
mod tasks;
mod template_proof;
mod tls;
mod transport;
mod upid;
mod upload;

pub use access::Permissions;
pub use address::Endpoint;
pub use advice::Advice;
pub use agent::{GuestAddress, GuestExec, GuestInterface, GuestOs};
pub use client::{Client, Tuning};
pub use cloudinit::CloudInitDocument;
pub use cluster::{GuestKind, GuestRow, HostRow, ResourceKind, Resources, StorageRow};
pub use config::VmConfig;
pub use configure::PendingRow;
pub use content::{Download, Volume, VolumeDetail, VolumeFilter};
pub use creation::{CloneKind, CloneOptions, CloneRequest, Feature};
pub use credentials::{Credentials, Password, Token, TokenError};
pub use error::{Cause, Doubtful, Error, Result};
pub use firewall::{FirewallRule, NewRule, SecurityGroup};
pub use grammar::devices::{AgentOption, BootOrder, PassThrough};
pub use grammar::drive::Drive;
pub use grammar::identity::{Meta, Smbios, SmbiosText};
pub use grammar::network::{AddressConfig, NetworkCard};
pub use grammar::notes::{Tags, description_from_file, description_to_file, encoded_ssh_keys, stored_description};
pub use grammar::processor::{Cpu, NumaNode};
pub use grammar::{option_holds, same_option};
pub use guests::{ConfigView, Detail, PowerState, VmRow, VmStatus};
pub use hosts::{CpuModel, Host, HostStatus, Interface, PciDevice};
pub use limits::Limits;
pub use observer::{Exchange, Observer, TaskEnd};
pub use pools::{Pool, PoolChange, PoolMember};
pub use power::{Shutdown, Stop, Suspend};
pub use proof::{Doubt, OwnerMark, Proof, ProvenVm, is_being_made};
pub use properties::{Properties, PropertiesError};
pub use quorum::{ClusterStatus, HaRow, Member};
pub use refusal::{Refusal, RefusalKind};
pub use reply::read as read_reply;
pub use retry::Retry;
pub use storage::{HostStorage, StorageDefinition, StorageFilter};
pub use task_list::{TaskFilter, TaskRow, TaskSource};
pub use tasks::{TaskOutcome, TaskProgress};
pub use template_proof::{TemplateMark, TemplateProof};
pub use tls::{Fingerprint, FingerprintError, TlsError, Trust};
pub use transport::{ChangesNothing, Transport, TransportError, TransportService};
pub use upid::{Upid, UpidError};
pub use upload::Upload;
