//! VMs as they are now: which a host has, whether one runs, what its configuration says.
//!
//! Making one is in `creation`, changing one in `configure`, switching it on and off in `power`. Destroying one is in
//! `proof`, because it takes more than an id.

use http::Method;
use serde::Deserialize;
use serde_json::Value;
use tenon_model::{HostName, VmId};

use crate::client::{Call, Client, Form, segment};
use crate::config::VmConfig;
use crate::error::{Error, Result};
use crate::reply::{amount_or_none, flag, text_or_none, unreadable, vm_id};

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
    /// What QEMU says: `running`, `paused`, `prelaunch`, …
    pub qemu: Option<String>,
    /// Whether its configuration says that it has a guest agent.
    pub agent: bool,
    /// Whether the high-availability manager looks after it, and may start it again.
    pub ha_managed: bool,
    /// Seconds since it was started.
    pub uptime_s: u64,
}

/// A VM in the list of its host. What is `None` was not asked for, or is not set.
#[derive(Debug, Clone, Deserialize)]
pub struct VmRow {
    /// Its id.
    #[serde(rename = "vmid", deserialize_with = "vm_id")]
    pub id: VmId,
    /// Its name; `VM <id>` if it has none.
    #[serde(default, deserialize_with = "text_or_none")]
    pub name: Option<String>,
    /// `running` or `stopped`.
    pub status: Option<String>,
    /// What QEMU says, in the full list only.
    pub qmpstatus: Option<String>,
    /// Whether it is a template.
    #[serde(default, deserialize_with = "flag")]
    pub template: bool,
    /// Its tags, divided by semicolons.
    #[serde(default, deserialize_with = "text_or_none")]
    pub tags: Option<String>,
    /// The operation that holds it.
    #[serde(default, deserialize_with = "text_or_none")]
    pub lock: Option<String>,
    /// Its memory in bytes, as configured.
    #[serde(default, deserialize_with = "amount_or_none")]
    pub maxmem: Option<u64>,
}

/// How much the list of a host's VMs tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// What the host knows anyway.
    Brief,
    /// Also what each QEMU has to be asked for.
    Full,
}

/// Which configuration of a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigView<'a> {
    /// With pending changes as if they were applied.
    Desired,
    /// The one it runs with.
    Running,
    /// The one a snapshot kept.
    Snapshot(&'a str),
}

#[derive(Deserialize)]
struct Wire {
    status: String,
    qmpstatus: Option<String>,
    lock: Option<String>,
    #[serde(default, deserialize_with = "flag")]
    agent: bool,
    #[serde(default)]
    ha: Ha,
    #[serde(default, deserialize_with = "amount_or_none")]
    uptime: Option<u64>,
}

#[derive(Default, Deserialize)]
struct Ha {
    #[serde(default, deserialize_with = "flag")]
    managed: bool,
}

impl Client {
    /// VMs of a host the token may see, by id.
    pub async fn vms(&self, host: &HostName, detail: Detail) -> Result<Vec<VmRow>> {
        let form = Form::default().with_flag("full", (detail == Detail::Full).then_some(true));
        let (action, path) = (format!("list the VMs of host {host}"), format!("/nodes/{}/qemu", segment(host)));
        let call = Call { action, method: Method::GET, path, params: form.params() };
        let mut rows: Vec<VmRow> = self.read(call).await?;
        rows.sort_by_key(|row| row.id);
        Ok(rows)
    }

    /// The configuration of a VM, with pending changes as if they were applied.
    pub async fn vm_config(&self, host: &HostName, vmid: VmId) -> Result<VmConfig> {
        self.vm_config_as(host, vmid, ConfigView::Desired).await
    }

    /// One of the configurations of a VM.
    pub async fn vm_config_as(&self, host: &HostName, vmid: VmId, view: ConfigView<'_>) -> Result<VmConfig> {
        let form = match view {
            ConfigView::Desired => Form::default(),
            ConfigView::Running => Form::default().with("current", 1),
            ConfigView::Snapshot(name) => Form::default().with("snapshot", name),
        };
        let action = format!("read the configuration of VM {vmid} on host {host}");
        let path = format!("{}/config", vm_path(host, vmid));
        let call = Call { action, method: Method::GET, path, params: form.params() };
        let data: Value = self.call(&call).await?;
        VmConfig::from_data(&data).ok_or_else(|| Error::new(call.action, unreadable("not an object")))
    }

    /// The configuration of a container.
    pub async fn container_config(&self, host: &HostName, vmid: VmId) -> Result<VmConfig> {
        let action = format!("read the configuration of container {vmid} on host {host}");
        let path = format!("/nodes/{}/lxc/{vmid}/config", segment(host));
        let call = Call { action, method: Method::GET, path, params: &[] };
        let data: Value = self.call(&call).await?;
        VmConfig::from_data(&data).ok_or_else(|| Error::new(call.action, unreadable("not an object")))
    }

    /// The state of a VM.
    pub async fn vm_status(&self, host: &HostName, vmid: VmId) -> Result<VmStatus> {
        let action = format!("read the state of VM {vmid} on host {host}");
        let path = format!("{}/status/current", vm_path(host, vmid));
        let call = Call { action: action.clone(), method: Method::GET, path, params: &[] };
        let wire: Wire = self.read(call).await?;
        let power = match wire.status.as_str() {
            "running" => PowerState::Running,
            "stopped" => PowerState::Stopped,
            other => return Err(Error::new(action, unreadable(&format!("status is `{other}`")))),
        };
        Ok(VmStatus {
            power,
            lock: wire.lock,
            qemu: wire.qmpstatus,
            agent: wire.agent,
            ha_managed: wire.ha.managed,
            uptime_s: wire.uptime.unwrap_or_default(),
        })
    }
}

pub(crate) fn vm_path(host: &HostName, vmid: VmId) -> String {
    format!("/nodes/{}/qemu/{vmid}", segment(host))
}
