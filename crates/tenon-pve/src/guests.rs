//! One VM: look at it, copy a template into it, change it, grow its disk, start and stop it.
//!
//! Destroying one is in `proof`, because it takes more than an id.

use http::Method;
use serde_json::Value;
use tenon_model::{HostName, VmId};

use crate::client::{Call, Client, Params, segment};
use crate::config::VmConfig;
use crate::error::{Error, Result};
use crate::reply::unreadable;
use crate::upid::Upid;

/// Whether a VM runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerState {
    /// It runs, or is paused.
    Running,
    /// It does not.
    Stopped,
}

/// The state of a VM now, from the host it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmStatus {
    /// Whether it runs.
    pub power: PowerState,
    /// The operation that holds it.
    pub lock: Option<String>,
}

/// What to copy, and into what.
#[derive(Debug, Clone)]
pub struct CloneRequest {
    /// The template.
    pub template: VmId,
    /// The id of the new VM.
    pub vmid: VmId,
    /// Its name.
    pub name: String,
    /// Its description; it inherits the template's if this is empty, so it must never be.
    pub description: String,
    /// The pool it joins when the copy is done.
    pub pool: Option<String>,
    /// `None` makes a linked clone; a storage makes a full copy there.
    pub full_to: Option<String>,
}

impl Client {
    /// The configuration of a VM, with pending changes as if they were applied.
    pub async fn vm_config(&self, host: &HostName, vmid: VmId) -> Result<VmConfig> {
        let action = format!("read the configuration of vm {vmid} on host {host}");
        let data = self.get(action.clone(), format!("{}/config", vm_path(host, vmid))).await?;
        VmConfig::from_data(&data).ok_or_else(|| Error::new(action, unreadable("not an object")))
    }

    /// The state of a VM.
    pub async fn vm_status(&self, host: &HostName, vmid: VmId) -> Result<VmStatus> {
        let action = format!("read the state of vm {vmid} on host {host}");
        let data = self.get(action.clone(), format!("{}/status/current", vm_path(host, vmid))).await?;
        let text = |key: &str| data.get(key).and_then(Value::as_str);
        let power = match text("status") {
            Some("running") => PowerState::Running,
            Some("stopped") => PowerState::Stopped,
            other => return Err(Error::new(action, unreadable(&format!("status is {other:?}")))),
        };
        Ok(VmStatus { power, lock: text("lock").map(str::to_owned) })
    }

    /// Keys with changes that wait for the next start, which is also where a refused write leaves its half.
    pub async fn pending_keys(&self, host: &HostName, vmid: VmId) -> Result<Vec<String>> {
        let action = format!("read the pending changes of vm {vmid} on host {host}");
        let data = self.get(action.clone(), format!("{}/pending", vm_path(host, vmid))).await?;
        let rows = data.as_array().ok_or_else(|| Error::new(action, unreadable("not a list")))?;
        let is_pending = |row: &&Value| row.get("pending").is_some() || row.get("delete").is_some();
        let key = |row: &Value| row.get("key").and_then(Value::as_str).map(str::to_owned);
        let mut keys: Vec<String> = rows.iter().filter(is_pending).filter_map(key).collect();
        keys.sort();
        Ok(keys)
    }

    /// Begins to copy a template. The answer comes before the copy is done; only the task's end says how it went.
    pub async fn clone_vm(&self, host: &HostName, request: &CloneRequest) -> Result<Upid> {
        let CloneRequest { template, vmid, .. } = request;
        let mut params = vec![
            ("newid", vmid.to_string()),
            ("name", request.name.clone()),
            ("description", request.description.clone()),
            ("full", u8::from(request.full_to.is_some()).to_string()),
        ];
        params.extend(request.pool.clone().map(|pool| ("pool", pool)));
        params.extend(request.full_to.clone().map(|storage| ("storage", storage)));
        self.task_call(Call {
            action: format!("clone template {template} on host {host} to vm {vmid}"),
            method: Method::POST,
            path: format!("{}/clone", vm_path(host, *template)),
            params: &params,
        })
        .await
    }

    /// Writes configuration keys. Done when it returns; refused if the configuration is not the one with this digest.
    pub async fn configure_vm(&self, host: &HostName, vmid: VmId, params: &[(&str, String)]) -> Result<()> {
        let call = Call {
            action: format!("configure vm {vmid} on host {host}"),
            method: Method::PUT,
            path: format!("{}/config", vm_path(host, vmid)),
            params,
        };
        self.call(&call).await.map(drop)
    }

    /// Begins to grow a disk to a size such as `30G`. Proxmox refuses to shrink; an equal size changes nothing.
    pub async fn resize_disk(&self, host: &HostName, vmid: VmId, disk: &str, size: &str) -> Result<Upid> {
        self.task_call(Call {
            action: format!("resize disk {disk} of vm {vmid} on host {host} to {size}"),
            method: Method::PUT,
            path: format!("{}/resize", vm_path(host, vmid)),
            params: &[("disk", disk.to_owned()), ("size", size.to_owned())],
        })
        .await
    }

    /// Begins to start a VM.
    pub async fn start_vm(&self, host: &HostName, vmid: VmId) -> Result<Upid> {
        self.power_call("start", host, vmid, &[]).await
    }

    /// Begins to stop a VM as a pulled plug does. Stopping what is stopped succeeds.
    pub(crate) async fn stop_vm(&self, host: &HostName, vmid: VmId) -> Result<Upid> {
        self.power_call("stop", host, vmid, &[]).await
    }

    async fn power_call(&self, verb: &str, host: &HostName, vmid: VmId, params: Params<'_>) -> Result<Upid> {
        self.task_call(Call {
            action: format!("{verb} vm {vmid} on host {host}"),
            method: Method::POST,
            path: format!("{}/status/{verb}", vm_path(host, vmid)),
            params,
        })
        .await
    }

    /// A call that answers with the name of the task that does the work.
    pub(crate) async fn task_call(&self, call: Call<'_>) -> Result<Upid> {
        let data = self.call(&call).await?;
        let upid = data.as_str().and_then(|text| text.parse().ok());
        upid.ok_or_else(|| Error::new(call.action, unreadable(&format!("`{data}` is not a task"))))
    }
}

pub(crate) fn vm_path(host: &HostName, vmid: VmId) -> String {
    format!("/nodes/{}/qemu/{vmid}", segment(host))
}
