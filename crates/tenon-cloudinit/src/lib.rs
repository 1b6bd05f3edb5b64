//! Renders what a new VM reads on its first boot.
//!
//! [`render`] turns a [`SeedInput`] and a user's own [`Templates`] into the files of cloud-init's NoCloud source,
//! [`Seed::iso`] turns those into the bytes of a CD-ROM image. Both are functions: the same input gives the same bytes, so a launch that is repeated
//! uploads the same image. Nothing here knows a file, a network or a clock; where the facts come from and where the
//! bytes go is the caller's business.

mod boot_files;
mod bootstrap;
mod context;
mod context_types;
mod error;
pub mod functions;
mod input;
mod iso;
mod kubelet_config;
mod kubelet_settings;
mod kubelet_unit;
mod meta_data;
mod network;
mod network_config;
mod node_labels;
mod readable;
mod seed;
mod slaac;
mod template_context;
mod templates;
mod user_data;
mod yaml;

pub use bootstrap::{Bootstrap, BootstrapToken};
pub use error::Error;
pub use input::{Identity, Resources, SeedInput, Values};
pub use kubelet_settings::{KubeletSettings, Taint, TaintEffect};
pub use network::{Interface, Network};
pub use network_config::NetworkConfigVersion;
pub use node_labels::{LabelLeftOut, LeftOutReason};
pub use seed::{Seed, render, render_unchecked};
pub use slaac::address as slaac_address;
pub use templates::{SeedFileName, Templates};
