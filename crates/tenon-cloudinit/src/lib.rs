//! Renders what a new VM reads on its first boot.
//!
//! [`render`] turns a [`SeedInput`] into the three texts of cloud-init's NoCloud source, [`Seed::iso`] turns those into
//! the bytes of a CD-ROM image. Both are functions: the same input gives the same bytes, so a launch that is repeated
//! uploads the same image. Nothing here knows a file, a network or a clock; where the facts come from and where the
//! bytes go is the caller's business.

mod boot_files;
mod bootstrap;
mod context;
mod error;
mod input;
mod iso;
mod kubelet_config;
mod kubelet_settings;
mod kubelet_unit;
mod meta_data;
mod network;
mod network_config;
mod node_labels;
mod seed;
mod slaac;
mod user_data;
mod yaml;

pub use bootstrap::{Bootstrap, BootstrapToken};
pub use error::Error;
pub use input::{Identity, Resources, SeedInput, Values};
pub use kubelet_settings::{KubeletSettings, Taint, TaintEffect};
pub use network::{Interface, Network};
pub use node_labels::{LabelLeftOut, LeftOutReason};
pub use seed::{Seed, render};
