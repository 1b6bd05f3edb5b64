//! What does a new VM find in its drive?

use std::fmt;

use crate::input::SeedInput;
use crate::node_labels::{self, LabelLeftOut, is_subdomain};
use crate::{Error, iso, meta_data, network_config, user_data};

/// The texts of cloud-init's NoCloud source. They hold secrets, so `Debug` shows their lengths only.
#[derive(Clone, PartialEq, Eq)]
pub struct Seed {
    /// What to do on the first boot.
    pub user_data: String,
    /// What the instance is.
    pub meta_data: String,
    /// How to set up the interfaces; absent when there are none.
    pub network_config: Option<String>,
    /// Labels that were asked for and that the kubelet does not set, in the order of their keys.
    pub labels_left_out: Vec<LabelLeftOut>,
}

/// The seed for one VM. The same input gives the same texts.
pub fn render(input: &SeedInput) -> Result<Seed, Error> {
    let name = &input.identity.node_name;
    if !is_subdomain(name) {
        return Err(Error::NodeName { name: name.clone() });
    }
    let labels = node_labels::sort(&input.kubelet.node_labels);
    Ok(Seed {
        user_data: user_data::render(input, &labels)?,
        meta_data: meta_data::render(&input.identity)?,
        network_config: network_config::render(&input.network)?,
        labels_left_out: labels.left_out,
    })
}

impl Seed {
    /// The image for the VM's drive. The same texts give the same bytes.
    pub fn iso(&self) -> Result<Vec<u8>, Error> {
        let mut files = vec![("user-data", self.user_data.as_str()), ("meta-data", self.meta_data.as_str())];
        // An empty file would tell cloud-init that there is a configuration, and that it is void.
        let network_config = self.network_config.as_deref().filter(|text| !text.is_empty());
        files.extend(network_config.map(|text| ("network-config", text)));
        iso::image(&files)
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seed")
            .field("user_data_bytes", &self.user_data.len())
            .field("meta_data_bytes", &self.meta_data.len())
            .field("network_config_bytes", &self.network_config.as_ref().map(String::len))
            .field("labels_left_out", &self.labels_left_out)
            .finish()
    }
}
