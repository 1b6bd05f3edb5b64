//! Switches a VM on and off. What takes a running VM away from somebody needs proof that it is ours.

use http::Method;
use tenon_model::{HostName, VmId};

use crate::client::{Call, Client, Form};
use crate::error::Result;
use crate::guests::vm_path;
use crate::proof::ProvenVm;
use crate::upid::Upid;

/// How to pull the plug.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stop {
    /// Seconds QEMU is given.
    pub timeout_s: Option<u32>,
    /// Whether shutdowns that are under way are ended first; the stop waits for them otherwise.
    pub overrule_shutdown: bool,
}

/// How to ask a guest to end by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shutdown {
    /// Seconds it is given; Proxmox has its own idea without.
    pub timeout_s: Option<u32>,
    /// Whether its plug is pulled if it does not end by then.
    pub force: Option<bool>,
}

/// Where a suspended VM waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suspend {
    /// In memory; to Proxmox it still runs.
    ToMemory,
    /// On disk, stopped and locked, until it is started.
    ToDisk,
}

impl Client {
    /// Begins to start a VM.
    pub async fn start_vm(&self, host: &HostName, vmid: VmId) -> Result<Upid> {
        self.power_call("start", (host, vmid), &Form::default()).await
    }

    /// The same, giving QEMU so many seconds to come up: large memories and passed-through devices take their time.
    pub async fn start_vm_within(&self, host: &HostName, vmid: VmId, timeout_s: u32) -> Result<Upid> {
        self.power_call("start", (host, vmid), &Form::default().with("timeout", timeout_s)).await
    }

    /// Begins to wake a VM that is suspended in memory.
    pub async fn resume_vm(&self, host: &HostName, vmid: VmId) -> Result<Upid> {
        self.power_call("resume", (host, vmid), &Form::default()).await
    }

    /// Begins to stop a VM of ours, at once, as a pulled plug does. Stopping what is stopped succeeds.
    pub async fn stop_proven(&self, vm: &ProvenVm) -> Result<Upid> {
        self.stop_proven_with(vm, Stop::default()).await
    }

    /// The same, told more closely.
    pub async fn stop_proven_with(&self, vm: &ProvenVm, how: Stop) -> Result<Upid> {
        let form = Form::default()
            .with_some("timeout", how.timeout_s)
            .with_flag("overrule-shutdown", how.overrule_shutdown.then_some(true));
        self.power_call("stop", (vm.host(), vm.vmid()), &form).await
    }

    /// Begins to ask a VM of ours to end. A guest that does not listen makes the task fail, unless it is forced.
    pub async fn shutdown_proven(&self, vm: &ProvenVm, how: Shutdown) -> Result<Upid> {
        let form = Form::default().with_some("timeout", how.timeout_s).with_flag("forceStop", how.force);
        self.power_call("shutdown", (vm.host(), vm.vmid()), &form).await
    }

    /// Begins to reset a VM of ours, as the button does. Pending changes stay pending.
    pub async fn reset_proven(&self, vm: &ProvenVm) -> Result<Upid> {
        self.power_call("reset", (vm.host(), vm.vmid()), &Form::default()).await
    }

    /// Begins to shut a VM of ours down and start it again, which applies pending changes.
    ///
    /// A guest that does not end within this time makes the task fail, and goes on running.
    pub async fn reboot_proven(&self, vm: &ProvenVm, timeout_s: Option<u32>) -> Result<Upid> {
        let form = Form::default().with_some("timeout", timeout_s);
        self.power_call("reboot", (vm.host(), vm.vmid()), &form).await
    }

    /// Begins to suspend a VM of ours.
    pub async fn suspend_proven(&self, vm: &ProvenVm, how: Suspend) -> Result<Upid> {
        let form = Form::default().with_flag("todisk", (how == Suspend::ToDisk).then_some(true));
        self.power_call("suspend", (vm.host(), vm.vmid()), &form).await
    }

    async fn power_call(&self, verb: &str, (host, vmid): (&HostName, VmId), form: &Form) -> Result<Upid> {
        self.task_call(Call {
            action: format!("{verb} VM {vmid} on host {host}"),
            method: Method::POST,
            path: format!("{}/status/{verb}", vm_path(host, vmid)),
            params: form.params(),
        })
        .await
    }
}
