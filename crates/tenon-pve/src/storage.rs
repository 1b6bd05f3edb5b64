//! Storages: which a host has, whether they work there, and how they are defined for the cluster. What is on them is in
//! `content`.

use http::Method;
use serde::Deserialize;
use tenon_model::HostName;

use crate::client::{Call, Client, Form, segment};
use crate::error::Result;
use crate::reply::{amount_or_none, flag};

/// A storage as one host sees it.
#[derive(Debug, Clone, Deserialize)]
pub struct HostStorage {
    /// Its name; a single look at one leaves it out on the wire.
    #[serde(default)]
    pub storage: String,
    /// `dir`, `lvmthin`, `zfspool`, `rbd`, …
    #[serde(rename = "type", default)]
    pub kind: String,
    /// What may be kept on it, divided by commas in any order.
    #[serde(default)]
    pub content: String,
    /// Whether it works on this host now.
    #[serde(default, deserialize_with = "flag")]
    pub active: bool,
    /// Whether it is switched on for this host.
    #[serde(default, deserialize_with = "flag")]
    pub enabled: bool,
    /// Whether every host sees the same content.
    #[serde(default, deserialize_with = "flag")]
    pub shared: bool,
    /// All its bytes, if it could be asked.
    #[serde(default, deserialize_with = "amount_or_none")]
    pub total: Option<u64>,
    /// Free bytes, if it could be asked.
    #[serde(default, deserialize_with = "amount_or_none")]
    pub avail: Option<u64>,
}

impl HostStorage {
    /// Whether it is usable here and takes this kind of content: `images`, `iso`.
    pub fn takes(&self, content: &str) -> bool {
        self.active && self.enabled && self.content.split(',').any(|kind| kind.trim() == content)
    }
}

/// Which storages to list. Proxmox also lists those that do not work on the host: ask [`HostStorage::takes`].
#[derive(Debug, Clone, Default)]
pub struct StorageFilter {
    /// Only those that take this content.
    pub content: Option<String>,
    /// Only those that are switched on.
    pub enabled: Option<bool>,
    /// Only those another host has too.
    pub target: Option<HostName>,
}

/// A storage as it is defined for the whole cluster.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StorageDefinition {
    /// Its name.
    pub storage: String,
    /// `dir`, `lvmthin`, `zfspool`, `rbd`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// What may be kept on it, divided by commas in any order.
    #[serde(default)]
    pub content: String,
    /// Whether every host sees the same content.
    #[serde(default, deserialize_with = "flag")]
    pub shared: bool,
    /// Hosts it is for, divided by commas; all if it is left out.
    pub nodes: Option<String>,
    /// Whether it is switched off everywhere.
    #[serde(default, deserialize_with = "flag")]
    pub disable: bool,
}

impl Client {
    /// Storages of a host, by name, the unusable ones included.
    pub async fn storages(&self, host: &HostName) -> Result<Vec<HostStorage>> {
        self.storages_where(host, &StorageFilter::default()).await
    }

    /// Some storages of a host, by name.
    pub async fn storages_where(&self, host: &HostName, filter: &StorageFilter) -> Result<Vec<HostStorage>> {
        let form = Form::default()
            .with_some("content", filter.content.as_ref())
            .with_flag("enabled", filter.enabled)
            .with_some("target", filter.target.as_ref());
        let (action, path) = (format!("list the storages on host {host}"), format!("/nodes/{}/storage", segment(host)));
        let call = Call { action, method: Method::GET, path, params: form.params() };
        let mut storages: Vec<HostStorage> = self.read(call).await?;
        storages.sort_by(|a, b| a.storage.cmp(&b.storage));
        Ok(storages)
    }

    /// One storage of a host.
    pub async fn storage_status(&self, host: &HostName, storage: &str) -> Result<HostStorage> {
        let action = format!("read the state of storage {storage} on host {host}");
        let path = format!("/nodes/{}/storage/{}/status", segment(host), segment(storage));
        let found: HostStorage = self.read(Call { action, method: Method::GET, path, params: &[] }).await?;
        Ok(HostStorage { storage: storage.to_owned(), ..found })
    }

    /// Storages as they are defined, by name; of one kind if it is given. Filtered by the token's rights.
    pub async fn storage_definitions(&self, kind: Option<&str>) -> Result<Vec<StorageDefinition>> {
        let form = Form::default().with_some("type", kind);
        let (action, path) = ("list the storages of the cluster".to_owned(), "/storage".to_owned());
        let call = Call { action, method: Method::GET, path, params: form.params() };
        let mut storages: Vec<StorageDefinition> = self.read(call).await?;
        storages.sort_by(|a, b| a.storage.cmp(&b.storage));
        Ok(storages)
    }

    /// How one storage is defined. Needs `Datastore.Allocate` on it.
    pub async fn storage_definition(&self, storage: &str) -> Result<StorageDefinition> {
        let action = format!("read the definition of storage {storage}");
        let path = format!("/storage/{}", segment(storage));
        self.read(Call { action, method: Method::GET, path, params: &[] }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage(content: &str, active: bool) -> HostStorage {
        HostStorage {
            storage: "s".to_owned(),
            kind: "dir".to_owned(),
            content: content.to_owned(),
            active,
            enabled: true,
            shared: false,
            total: None,
            avail: None,
        }
    }

    #[test]
    fn a_storage_takes_what_it_lists_and_only_while_it_works() {
        assert!(storage("images,iso", true).takes("iso"));
        assert!(!storage("isolated,images", true).takes("iso"));
        assert!(!storage("iso", false).takes("iso"));
    }
}
