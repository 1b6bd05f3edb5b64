//! Changes a VM: configuration keys, disk sizes; and sees what of it waits for the next start.

use http::Method;
use serde::Deserialize;
use tenon_model::{HostName, VmId};

use crate::client::{Call, Client, Form};
use crate::error::Result;
use crate::guests::vm_path;
use crate::reply::{flag, text_or_none};
use crate::upid::Upid;

/// A configuration key, with what becomes of it at the next start.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PendingRow {
    /// The key.
    pub key: String,
    /// What it is now.
    #[serde(default, deserialize_with = "text_or_none")]
    pub value: Option<String>,
    /// What it will be.
    #[serde(default, deserialize_with = "text_or_none")]
    pub pending: Option<String>,
    /// Whether it will go.
    #[serde(default, deserialize_with = "flag")]
    pub delete: bool,
}

impl PendingRow {
    /// Whether anything waits.
    pub fn waits(&self) -> bool {
        self.pending.is_some() || self.delete
    }
}

impl Client {
    /// Writes configuration keys. Done when it returns; refused if the configuration is not the one with this digest.
    pub async fn configure_vm(&self, host: &HostName, vmid: VmId, params: &[(&str, String)]) -> Result<()> {
        let call = Call {
            action: format!("configure VM {vmid} on host {host}"),
            method: Method::PUT,
            path: format!("{}/config", vm_path(host, vmid)),
            params,
        };
        self.call(&call).await.map(drop)
    }

    /// Begins to write configuration keys in a task, for what takes long: a disk to be made or imported.
    pub async fn configure_vm_in_task(&self, host: &HostName, vmid: VmId, params: &[(&str, String)]) -> Result<Upid> {
        self.task_call(Call {
            action: format!("configure VM {vmid} on host {host}"),
            method: Method::POST,
            path: format!("{}/config", vm_path(host, vmid)),
            params,
        })
        .await
    }

    /// Every key of a VM with what waits for the next start, sorted.
    pub async fn pending(&self, host: &HostName, vmid: VmId) -> Result<Vec<PendingRow>> {
        let action = format!("read the pending changes of VM {vmid} on host {host}");
        let path = format!("{}/pending", vm_path(host, vmid));
        let mut rows: Vec<PendingRow> = self.read(Call { action, method: Method::GET, path, params: &[] }).await?;
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(rows)
    }

    /// Keys with changes that wait for the next start, which is also where a refused write leaves its half.
    pub async fn pending_keys(&self, host: &HostName, vmid: VmId) -> Result<Vec<String>> {
        let rows = self.pending(host, vmid).await?;
        Ok(rows.into_iter().filter(PendingRow::waits).map(|row| row.key).collect())
    }

    /// Takes back what waits for the next start under these keys. A key under which nothing waits is no error.
    pub async fn revert_pending(&self, host: &HostName, vmid: VmId, keys: &[String]) -> Result<()> {
        self.configure_vm(host, vmid, &[("revert", keys.join(","))]).await
    }

    /// Begins to grow a disk to a size such as `30G`. Proxmox refuses to shrink; an equal size changes nothing.
    pub async fn resize_disk(&self, host: &HostName, vmid: VmId, disk: &str, size: &str) -> Result<Upid> {
        let form = Form::default().with("disk", disk).with("size", size);
        self.task_call(Call {
            action: format!("resize disk {disk} of VM {vmid} on host {host} to {size}"),
            method: Method::PUT,
            path: format!("{}/resize", vm_path(host, vmid)),
            params: form.params(),
        })
        .await
    }
}
