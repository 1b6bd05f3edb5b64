//! Packages of Python that tests drive the product with: clients nobody here wrote.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cache::Cache;
use crate::error::Result;

/// A package and what it needs, at pinned versions.
#[derive(Debug)]
pub struct Package {
    /// Its name, which is also the one it is imported by.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Everything that is installed, as pip reads it.
    pub requirements: &'static [&'static str],
}

/// The most used client of the Proxmox API, with what it speaks HTTP with.
pub const PROXMOXER: Package = Package {
    name: "proxmoxer",
    version: "2.3.0",
    requirements: &["proxmoxer==2.3.0", "requests==2.34.2", "requests_toolbelt==1.0.0"],
};

impl Package {
    /// The folder of the cache it is kept in.
    pub fn home(&self) -> Result<PathBuf> {
        Ok(Cache::from_env()?.root().join("tools").join(format!("{}-{}", self.name, self.version)))
    }

    /// Whether Python finds the pinned version in this folder, or beside it.
    pub fn answers(&self, folder: &Path) -> bool {
        let script = "import importlib.metadata as m, sys; __import__(sys.argv[1]); import requests; \
                      sys.exit(m.version(sys.argv[1]) != sys.argv[2])";
        let mut python = Command::new("python3");
        python.args(["-c", script, self.name, self.version]).env("PYTHONPATH", folder);
        let status = python.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    /// The folder of the cache, or an empty one where Python has the package by itself.
    pub(crate) fn find(&self) -> Result<Option<PathBuf>> {
        let home = self.home()?;
        let folders = [home, PathBuf::new()];
        Ok(folders.into_iter().find(|folder| self.answers(folder)))
    }
}
