//! The cloud-init drive Proxmox itself writes for a VM.

use http::Method;
use serde_json::Value;
use tenon_model::{HostName, VmId};

use crate::client::{Call, Client, Form};
use crate::configure::PendingRow;
use crate::error::{Error, Result};
use crate::guests::vm_path;
use crate::reply::unreadable;

/// One of the documents on the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloudInitDocument {
    /// `user-data`.
    User,
    /// `network-config`.
    Network,
    /// `meta-data`.
    Meta,
}

impl Client {
    /// Writes the drive anew. A start does so as well.
    pub async fn regenerate_cloudinit(&self, host: &HostName, vmid: VmId) -> Result<()> {
        let action = format!("write the cloud-init drive of VM {vmid} on host {host}");
        let path = format!("{}/cloudinit", vm_path(host, vmid));
        self.call(&Call { action, method: Method::PUT, path, params: &[] }).await.map(drop)
    }

    /// Keys the drive is written from, with what is not on it yet.
    pub async fn cloudinit_pending(&self, host: &HostName, vmid: VmId) -> Result<Vec<PendingRow>> {
        let action = format!("read the cloud-init keys of VM {vmid} on host {host}");
        let path = format!("{}/cloudinit", vm_path(host, vmid));
        let mut rows: Vec<PendingRow> = self.read(Call { action, method: Method::GET, path, params: &[] }).await?;
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(rows)
    }

    /// A document as it would be written.
    pub async fn cloudinit_document(&self, host: &HostName, vmid: VmId, which: CloudInitDocument) -> Result<String> {
        let word = match which {
            CloudInitDocument::User => "user",
            CloudInitDocument::Network => "network",
            CloudInitDocument::Meta => "meta",
        };
        let form = Form::default().with("type", word);
        let action = format!("read the cloud-init {word} data of VM {vmid} on host {host}");
        let path = format!("{}/cloudinit/dump", vm_path(host, vmid));
        match self.call(&Call { action: action.clone(), method: Method::GET, path, params: form.params() }).await? {
            Value::String(text) => Ok(text),
            _ => Err(Error::new(action, unreadable("not a text"))),
        }
    }
}
