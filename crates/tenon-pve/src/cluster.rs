//! The whole cluster at one look: every guest, host and storage in one listing.
//!
//! The listing lags: who exists, where, and under which lock is true at once; names, states and sizes come up to ten
//! seconds later and may flap between two answers. What must be certain is read from the VM itself.

use http::Method;
use serde::Deserialize;
use serde_json::Value;
use tenon_model::{HostName, VmId};

use crate::client::{Call, Client};
use crate::error::{Error, RefusalKind, Result};
use crate::reply::{flag, parse, unreadable, whole, whole_or_none};

/// One listing.
#[derive(Debug, Clone, Default)]
pub struct Resources {
    /// VMs and containers, by id.
    pub guests: Vec<GuestRow>,
    /// Machines, by name.
    pub hosts: Vec<HostRow>,
    /// Storages, once for each host they are on.
    pub storages: Vec<StorageRow>,
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
#[derive(Debug, Clone, Deserialize)]
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
    pub name: Option<String>,
    /// Whether it is a template.
    #[serde(default, deserialize_with = "flag")]
    pub template: bool,
    /// Its tags, divided by semicolons.
    pub tags: Option<String>,
    /// The operation that holds it.
    pub lock: Option<String>,
    /// The pool it is in, if the token may see that.
    pub pool: Option<String>,
    /// Its cores, as configured.
    #[serde(default, deserialize_with = "whole_or_none")]
    pub maxcpu: Option<u64>,
    /// Its memory in bytes, as configured.
    #[serde(default, deserialize_with = "whole_or_none")]
    pub maxmem: Option<u64>,
}

/// A machine in the listing.
#[derive(Debug, Clone, Deserialize)]
pub struct HostRow {
    /// Its name.
    #[serde(rename = "node", deserialize_with = "host_name")]
    pub host: HostName,
    /// `online` or `offline`.
    pub status: Option<String>,
    /// Its threads. `None` if the token may not see it, or the host is away.
    #[serde(default, deserialize_with = "whole_or_none")]
    pub maxcpu: Option<u64>,
    /// Its memory in bytes.
    #[serde(default, deserialize_with = "whole_or_none")]
    pub maxmem: Option<u64>,
}

/// A storage on one host.
#[derive(Debug, Clone, Deserialize)]
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
    /// What may be kept on it: `images`, `iso`, …, divided by commas in any order.
    #[serde(default)]
    pub content: String,
    /// Its used bytes, if known.
    #[serde(default, deserialize_with = "whole_or_none")]
    pub disk: Option<u64>,
    /// Its bytes, if known.
    #[serde(default, deserialize_with = "whole_or_none")]
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

impl Client {
    /// Everything the token may see.
    pub async fn resources(&self) -> Result<Resources> {
        let action = "list the cluster's resources";
        let data = self.get(action.to_owned(), "/cluster/resources".to_owned()).await?;
        let Value::Array(rows) = data else { return Err(Error::new(action, unreadable("not a list"))) };
        let mut resources = Resources::default();
        for row in rows {
            // Pools, networks and whatever a later release lists are no concern of ours.
            let outcome = match row.get("type").and_then(Value::as_str) {
                Some("qemu" | "lxc") => parse(row).map(|guest| resources.guests.push(guest)),
                Some("node") => parse(row).map(|host| resources.hosts.push(host)),
                Some("storage") => parse(row).map(|storage| resources.storages.push(storage)),
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

    /// The release of Proxmox, such as `9.2.11`.
    pub async fn version(&self) -> Result<String> {
        let action = "read the version of Proxmox";
        let data = self.get(action.to_owned(), "/version".to_owned()).await?;
        let version = data.get("version").and_then(Value::as_str);
        version.map(str::to_owned).ok_or_else(|| Error::new(action, unreadable("no version in it")))
    }

    /// Whether an id is free in the whole cluster. Needs no rights, so it also knows of VMs the token may not see; it
    /// reserves nothing.
    pub async fn is_id_free(&self, vmid: VmId) -> Result<bool> {
        let action = format!("ask whether id {vmid} is free");
        let params = [("vmid", vmid.to_string())];
        let call = Call { action, method: Method::GET, path: "/cluster/nextid".to_owned(), params: &params };
        match self.call(&call).await {
            Ok(_) => Ok(true),
            Err(error) if error.refusal().is_some_and(|refusal| refusal.kind == RefusalKind::AlreadyExists) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the cluster has quorum. A single machine always has.
    pub async fn is_quorate(&self) -> Result<bool> {
        #[derive(Deserialize)]
        struct Row {
            #[serde(rename = "type")]
            kind: String,
            #[serde(default, deserialize_with = "whole_or_none")]
            quorate: Option<u64>,
        }
        let action = "read the state of the cluster";
        let data = self.get(action.to_owned(), "/cluster/status".to_owned()).await?;
        let rows: Vec<Row> = parse(data).map_err(|cause| Error::new(action, cause))?;
        Ok(rows.iter().find(|row| row.kind == "cluster").is_none_or(|row| row.quorate == Some(1)))
    }
}

/// A VM id on the wire: a number, or its text.
pub(crate) fn vm_id<'de, D: serde::Deserializer<'de>>(input: D) -> Result<VmId, D::Error> {
    let number = u32::try_from(whole(input)?).unwrap_or(u32::MAX);
    VmId::try_from(number).map_err(serde::de::Error::custom)
}

/// A host name on the wire.
pub(crate) fn host_name<'de, D: serde::Deserializer<'de>>(input: D) -> Result<HostName, D::Error> {
    String::deserialize(input)?.parse().map_err(serde::de::Error::custom)
}
