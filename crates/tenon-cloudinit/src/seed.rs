//! What does a new VM find in its drive?

use std::fmt;

use tenon_gotemplate::Value;

use crate::input::SeedInput;
use crate::node_labels::{self, LabelLeftOut, is_subdomain};
use crate::templates::{SeedFileName, Templates};
use crate::{Error, iso, meta_data, network_config, readable, template_context, user_data};

/// The files of cloud-init's NoCloud source. They hold secrets, so `Debug` shows their lengths only.
#[derive(Clone, PartialEq, Eq)]
pub struct Seed {
    /// What to do on the first boot.
    pub user_data: Vec<u8>,
    /// What the instance is.
    pub meta_data: Vec<u8>,
    /// What the vendor adds to user-data, if anything.
    pub vendor_data: Option<Vec<u8>>,
    /// How to set up the interfaces; absent when there are none.
    pub network_config: Option<Vec<u8>>,
    /// Labels that were asked for and that the built-in user-data does not have the kubelet set, in the order of their
    /// keys.
    pub labels_left_out: Vec<LabelLeftOut>,
}

/// The seed for one VM. The same input gives the same bytes.
pub fn render(input: &SeedInput, templates: &Templates) -> Result<Seed, Error> {
    let seed = render_unchecked(input, templates)?;
    seed.files().try_for_each(|(name, content)| readable::check(name, content))?;
    Ok(seed)
}

/// The seed for one VM, even if its reader could not parse it: to show where it is wrong.
pub fn render_unchecked(input: &SeedInput, templates: &Templates) -> Result<Seed, Error> {
    let name = &input.identity.node_name;
    if !is_subdomain(name) {
        return Err(Error::NodeName { name: name.clone() });
    }
    let labels = node_labels::sort(&input.kubelet.node_labels);
    let metadata = || Ok(template_context::metadata(&input.identity));
    let own = |name, data: &dyn Fn() -> Result<Value, Error>| templates.render(name, data);
    let user_data = match own(SeedFileName::UserData, &|| template_context::root(input))? {
        Some(own) => own,
        None => user_data::render(input, &labels)?.into_bytes(),
    };
    let meta_data = match own(SeedFileName::MetaData, &metadata)? {
        Some(own) => own,
        None => meta_data::render(&input.identity)?.into_bytes(),
    };
    let network_config = match own(SeedFileName::NetworkConfig, &|| Ok(template_context::network(&input.network)))? {
        Some(own) => own,
        None => network_config::render(&input.network, input.network_config_version)?.into_bytes(),
    };
    let vendor_data = own(SeedFileName::VendorData, &metadata)?;
    Ok(Seed {
        user_data,
        meta_data,
        vendor_data,
        network_config: Some(network_config).filter(|content| !content.is_empty()),
        labels_left_out: labels.left_out,
    })
}

impl Seed {
    /// The files in the order in which they are written.
    pub fn files(&self) -> impl Iterator<Item = (SeedFileName, &[u8])> {
        // An empty file would tell cloud-init that there is a configuration, and that it is void.
        let all = [
            (SeedFileName::UserData, Some(&self.user_data)),
            (SeedFileName::MetaData, Some(&self.meta_data)),
            (SeedFileName::VendorData, filled(self.vendor_data.as_ref())),
            (SeedFileName::NetworkConfig, filled(self.network_config.as_ref())),
        ];
        all.into_iter().filter_map(|(name, content)| Some((name, content?.as_slice())))
    }

    /// The image for the VM's drive. The same files give the same bytes.
    pub fn iso(&self) -> Result<Vec<u8>, Error> {
        let files: Vec<(&str, &[u8])> = self.files().map(|(name, content)| (name.key(), content)).collect();
        iso::image(&files)
    }
}

fn filled(content: Option<&Vec<u8>>) -> Option<&Vec<u8>> {
    content.filter(|content| !content.is_empty())
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lengths = self.files().map(|(name, content)| (name, content.len()));
        f.debug_map().entries(lengths).finish()
    }
}
