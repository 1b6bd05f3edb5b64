//! The whole cluster at one look: every guest, host and storage in one listing.
//!
//! The listing lags: who exists, where, and under which lock is true at once; names, states and sizes come up to ten
//! seconds later and may flap between two answers. What must be certain is read from the VM itself.

use std::sync::Arc;

use http::Method;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tenon_model::{HostName, VmId};

use crate::client::{Call, Client, Form};
use crate::error::{Error, Result};
use crate::reply::{amount_or_none, flag, host_name, parse, share_or_none, text_or_none, unreadable, vm_id};

/// One listing. Rows are shared: what a later listing shows in the same way may be the same row.
#[derive(Debug, Clone, Default)]
pub struct Resources {
    /// VMs and containers, by id.
    pub guests: Vec<Arc<GuestRow>>,
    /// Machines, by name.
    pub hosts: Vec<Arc<HostRow>>,
    /// Storages, by name, once for each host they are on.
    pub storages: Vec<Arc<StorageRow>>,
}

/// What a guest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GuestKind {
    /// A virtual machine.
    Qemu,
    /// A container.
    Lxc,
}

/// A guest in the listing. What is `None` is not known yet.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct GuestRow {
    /// Its id.
    #[serde(rename = "vmid", deserialize_with = "vm_id")]
    pub id: VmId,
    /// The host it is on now.
    #[serde(rename = "node", deserialize_with = "host_name")]
    pub host: HostName,
    /// VM or container.
    #[serde(rename = "type")]
    pub kind: GuestKind,
    /// `running`, `stopped`, or `unknown` while the host has not told.
    pub status: Option<String>,
    /// Its name.
    #[serde(default, deserialize_with = "text_or_none")]
    pub name: Option<String>,
    /// Whether it is a template.
    #[serde(default, deserialize_with = "flag")]
    pub template: bool,
    /// Its tags, divided by semicolons.
    #[serde(default, deserialize_with = "text_or_none")]
    pub tags: Option<String>,
    /// The operation that holds it.
    #[serde(default, deserialize_with = "text_or_none")]
    pub lock: Option<String>,
    /// The pool it is in, if the token may see that.
    #[serde(default, deserialize_with = "text_or_none")]
    pub pool: Option<String>,
    /// Its cores, as configured.
    #[serde(default, deserialize_with = "amount_or_none")]
    pub maxcpu: Option<u64>,
    /// Its memory in bytes, as configured.
    #[serde(default, deserialize_with = "amount_or_none")]
    pub maxmem: Option<u64>,
}

/// A machine in the listing.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct HostRow {
    /// Its name.
    #[serde(rename = "node", deserialize_with = "host_name")]
    pub host: HostName,
    /// `online` or `offline`.
    pub status: Option<String>,
    /// Its threads. `None` if the token may not see it, or the host is away.
    #[serde(default, deserialize_with = "amount_or_none")]
    pub maxcpu: Option<u64>,
    /// Its memory in bytes.
    #[serde(default, deserialize_with = "amount_or_none")]
    pub maxmem: Option<u64>,
    /// The share of its CPU time that is used, from 0 to 1.
    #[serde(default, deserialize_with = "share_or_none")]
    pub cpu: Option<f64>,
    /// Its memory in use, in bytes.
    #[serde(default, deserialize_with = "amount_or_none")]
    pub mem: Option<u64>,
}

/// A storage on one host.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct StorageRow {
    /// Its name.
    pub storage: String,
    /// The host this row speaks of.
    #[serde(rename = "node", deserialize_with = "host_name")]
    pub host: HostName,
    /// `available` or `unknown`.
    pub status: Option<String>,
    /// Whether every host sees the same content.
    #[serde(default, deserialize_with = "flag")]
    pub shared: bool,
    /// What may be kept on it: `images`, `iso`, …, divided by commas and sorted.
    #[serde(default, deserialize_with = "sorted_words")]
    pub content: String,
    /// Its used bytes, if known.
    #[serde(default, deserialize_with = "amount_or_none")]
    pub disk: Option<u64>,
    /// Its bytes, if known.
    #[serde(default, deserialize_with = "amount_or_none")]
    pub maxdisk: Option<u64>,
}

impl StorageRow {
    /// Whether it works on its host and takes this kind of content: `images`, `iso`.
    pub fn takes(&self, content: &str) -> bool {
        self.status.as_deref() == Some("available") && self.content.split(',').any(|kind| kind.trim() == content)
    }

    /// Its free bytes; what is not known is taken for plenty.
    pub fn free(&self) -> u64 {
        self.maxdisk.map_or(u64::MAX, |all| all.saturating_sub(self.disk.unwrap_or_default()))
    }
}

/// Proxmox names what a storage takes in another order every time.
fn sorted_words<'de, D: Deserializer<'de>>(value: D) -> std::result::Result<String, D::Error> {
    let text = String::deserialize(value)?;
    let mut words: Vec<&str> = text.split(',').map(str::trim).collect();
    words.sort_unstable();
    Ok(words.join(","))
}

/// What a listing may be narrowed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceKind {
    /// VMs and containers.
    Guests,
    /// Machines.
    Hosts,
    /// Storages.
    Storages,
    /// Networks that Proxmox manages, of which this client reads nothing.
    Networks,
}

impl ResourceKind {
    fn word(self) -> &'static str {
        match self {
            ResourceKind::Guests => "vm",
            ResourceKind::Hosts => "node",
            ResourceKind::Storages => "storage",
            ResourceKind::Networks => "sdn",
        }
    }
}

impl Client {
    /// Everything the token may see.
    pub async fn resources(&self) -> Result<Resources> {
        self.listing(None).await
    }

    /// One kind of what the token may see.
    pub async fn resources_of(&self, kind: ResourceKind) -> Result<Resources> {
        self.listing(Some(kind)).await
    }

    async fn listing(&self, kind: Option<ResourceKind>) -> Result<Resources> {
        let action = "list the resources of the cluster";
        let form = Form::default().with_some("type", kind.map(ResourceKind::word));
        let path = "/cluster/resources".to_owned();
        let call = Call { action: action.to_owned(), method: Method::GET, path, params: form.params() };
        let Value::Array(rows) = self.call(&call).await? else {
            return Err(Error::new(action, unreadable("not a list")));
        };
        let mut resources = Resources::default();
        for row in rows {
            // Pools, networks and whatever a later release lists are no concern of ours.
            let outcome = match row.get("type").and_then(Value::as_str) {
                Some("qemu" | "lxc") => parse(row).map(|guest| resources.guests.push(Arc::new(guest))),
                Some("node") => parse(row).map(|host| resources.hosts.push(Arc::new(host))),
                Some("storage") => parse(row).map(|storage| resources.storages.push(Arc::new(storage))),
                _ => Ok(()),
            };
            outcome.map_err(|cause| Error::new(action, cause))?;
        }
        // Proxmox answers in another order every time.
        resources.guests.sort_by_key(|guest| guest.id);
        resources.hosts.sort_by(|a, b| a.host.cmp(&b.host));
        resources.storages.sort_by(|a, b| (&a.storage, &a.host).cmp(&(&b.storage, &b.host)));
        Ok(resources)
    }
}
