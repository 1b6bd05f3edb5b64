//! How do a user's own templates become the files of a seed?

use std::fmt;

use tenon_gotemplate::{Options, Template, Value};

use crate::{Error, functions};

/// What templates are called inside. A template that defines one of this name means the whole.
const ROOT: &str = "cloudinit";

/// Templates by the file they make. Those that are absent or empty are built in.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Templates {
    /// What to do on the first boot.
    pub user_data: Option<Vec<u8>>,
    /// What the instance is.
    pub meta_data: Option<Vec<u8>>,
    /// What the vendor adds to user-data.
    pub vendor_data: Option<Vec<u8>>,
    /// How to set up the interfaces.
    pub network_config: Option<Vec<u8>>,
}

impl Templates {
    /// The templates among these: name to content. Other names are passed over.
    pub fn from_keys<'a>(contents: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Templates {
        let mut templates = Templates::default();
        for (key, content) in contents {
            let Some(name) = SeedFileName::ALL.into_iter().find(|name| name.key() == key) else { continue };
            *templates.slot(name) = Some(content.to_vec());
        }
        templates
    }

    /// The template of a file, if there is one.
    pub fn get(&self, name: SeedFileName) -> Option<&[u8]> {
        let found = match name {
            SeedFileName::UserData => &self.user_data,
            SeedFileName::MetaData => &self.meta_data,
            SeedFileName::VendorData => &self.vendor_data,
            SeedFileName::NetworkConfig => &self.network_config,
        };
        found.as_deref().filter(|content| !content.is_empty())
    }

    fn slot(&mut self, name: SeedFileName) -> &mut Option<Vec<u8>> {
        match name {
            SeedFileName::UserData => &mut self.user_data,
            SeedFileName::MetaData => &mut self.meta_data,
            SeedFileName::VendorData => &mut self.vendor_data,
            SeedFileName::NetworkConfig => &mut self.network_config,
        }
    }

    /// Refuses a template whose text is wrong, whatever the data.
    pub fn parse(&self) -> Result<(), Error> {
        let options = options();
        for name in SeedFileName::ALL {
            let Some(source) = self.get(name) else { continue };
            Template::parse(ROOT, source, &options).map_err(|error| Error::Template { file: name, error })?;
        }
        Ok(())
    }

    /// What the template of a file gives, or nothing if there is none.
    pub(crate) fn render(
        &self,
        name: SeedFileName,
        data: &dyn Fn() -> Result<Value, Error>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let Some(source) = self.get(name) else { return Ok(None) };
        let options = options();
        let failed = |error| Error::Template { file: name, error };
        let rendered = Template::parse(ROOT, source, &options).map_err(failed)?.execute(&data()?).map_err(failed)?;
        match rendered.no_value {
            Some(error) => Err(failed(error)),
            None => Ok(Some(rendered.bytes)),
        }
    }
}

fn options() -> Options {
    Options { functions: functions::library(), ..Options::default() }
}

/// They may hold secrets, so `Debug` shows the keys only.
impl fmt::Debug for Templates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(SeedFileName::ALL.into_iter().filter(|name| self.get(*name).is_some())).finish()
    }
}

/// A file of a seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeedFileName {
    /// `user-data`.
    UserData,
    /// `meta-data`.
    MetaData,
    /// `vendor-data`.
    VendorData,
    /// `network-config`.
    NetworkConfig,
}

impl SeedFileName {
    /// All of them, in the order in which they are written.
    pub const ALL: [SeedFileName; 4] =
        [SeedFileName::UserData, SeedFileName::MetaData, SeedFileName::VendorData, SeedFileName::NetworkConfig];

    /// The file's name, which is also its key in a Secret.
    pub const fn key(self) -> &'static str {
        match self {
            SeedFileName::UserData => "user-data",
            SeedFileName::MetaData => "meta-data",
            SeedFileName::VendorData => "vendor-data",
            SeedFileName::NetworkConfig => "network-config",
        }
    }
}

impl fmt::Display for SeedFileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}
