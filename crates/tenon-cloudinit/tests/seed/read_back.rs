//! What does a reader in the guest find in a seed?

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tenon_cloudinit::{Seed, SeedInput, Templates, render};

#[derive(Debug, Deserialize)]
pub(crate) struct CloudConfig {
    pub(crate) hostname: String,
    pub(crate) users: Vec<User>,
    pub(crate) write_files: Vec<File>,
    pub(crate) runcmd: Vec<Vec<String>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct User {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) ssh_authorized_keys: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) owner: String,
    pub(crate) permissions: String,
    pub(crate) content: String,
}

/// The parts of `/etc/karpenter.yaml` that a user fills.
#[derive(Debug, Deserialize)]
pub(crate) struct Context {
    pub(crate) metadata: Metadata,
    pub(crate) kubernetes: Kubernetes,
    pub(crate) values: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) instanceid: String,
    pub(crate) region: String,
    pub(crate) tags: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Kubernetes {
    pub(crate) rootca: String,
    pub(crate) bootstraptoken: String,
    pub(crate) nodelabels: BTreeMap<String, String>,
}

pub(crate) fn yaml<T: DeserializeOwned>(text: &str) -> T {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub(crate) fn seed(input: &SeedInput) -> Seed {
    render(input, &Templates::default()).unwrap()
}

/// A file of a seed as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

pub(crate) fn user_data(input: &SeedInput) -> CloudConfig {
    let text = text(&seed(input).user_data);
    assert!(text.starts_with("#cloud-config\n"));
    yaml(&text)
}

impl CloudConfig {
    pub(crate) fn find(&self, path: &str) -> Option<&File> {
        self.write_files.iter().find(|file| file.path == path)
    }

    pub(crate) fn content(&self, path: &str) -> &str {
        self.find(path).map_or_else(|| panic!("no file {path}"), |file| file.content.as_str())
    }

    pub(crate) fn context(&self) -> Context {
        yaml(self.content("/etc/karpenter.yaml"))
    }
}
