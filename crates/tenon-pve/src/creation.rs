//! Makes VMs: from nothing, from a template; and makes a template of one.
//!
//! Each call answers before the work is done. Only the end of its task says how it went, and a VM that is being made
//! carries a lock until then.

use http::Method;
use serde::Deserialize;
use tenon_model::{HostName, VmId};

use crate::access::Right;
use crate::client::{Call, Client, Form, segment};
use crate::error::{Error, Result};
use crate::guests::vm_path;
use crate::proof::ProvenVm;
use crate::refusal::RefusalKind;
use crate::reply::flag;
use crate::upid::Upid;

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
    /// How much is copied.
    pub kind: CloneKind,
    /// The host the new VM goes to, if it is not the template's: every disk has to be on a shared storage.
    pub target: Option<HostName>,
}

/// How much of a template is copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloneKind {
    /// Only what changes later; the rest stays with the template, on its storage.
    Linked,
    /// Everything, to this storage or the template's own.
    Full(Option<String>),
}

/// Everything a copy can be told. What is `None` is left to Proxmox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CloneOptions {
    /// The name of the new VM.
    pub name: Option<String>,
    /// Its description; without one it inherits the source's.
    pub description: Option<String>,
    /// The pool it joins when the copy is done.
    pub pool: Option<String>,
    /// Linked or full; without it linked from a template, full from a VM.
    pub full: Option<bool>,
    /// Where a full copy goes. Refused for a linked clone.
    pub storage: Option<String>,
    /// `raw`, `qcow2` or `vmdk` for a full copy.
    pub format: Option<String>,
    /// The host the new VM goes to, for which every disk has to be on a shared storage.
    pub target: Option<String>,
    /// KiB a second at the most.
    pub limit_kib_s: Option<u64>,
}

/// What a storage may be able to do with a VM's disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Keep a state to come back to.
    Snapshot,
    /// Linked clones.
    LinkedClone,
    /// Full copies.
    Copy,
}

/// Whether a right is missing and Proxmox does not say which.
fn is_bare(error: &Error) -> bool {
    error.refusal().is_some_and(|refusal| matches!(&refusal.kind, RefusalKind::Denied { path: None, .. }))
}

impl Client {
    /// Begins to copy a template. The answer comes before the copy is done; only the task's end says how it went.
    pub async fn clone_vm(&self, host: &HostName, request: &CloneRequest) -> Result<Upid> {
        let options = CloneOptions {
            name: Some(request.name.clone()),
            description: Some(request.description.clone()),
            pool: request.pool.clone(),
            full: Some(matches!(request.kind, CloneKind::Full(_))),
            storage: match &request.kind {
                CloneKind::Linked => None,
                CloneKind::Full(storage) => storage.clone(),
            },
            target: request.target.as_ref().map(ToString::to_string),
            ..CloneOptions::default()
        };
        self.clone_vm_with(host, (request.template, request.vmid), &options).await
    }

    /// Begins to copy a VM or template, the first id, into a new VM, the second.
    pub async fn clone_vm_with(
        &self,
        host: &HostName,
        (source, vmid): (VmId, VmId),
        options: &CloneOptions,
    ) -> Result<Upid> {
        let form = Form::default()
            .with("newid", vmid)
            .with_some("name", options.name.as_ref())
            .with_some("description", options.description.as_ref())
            .with_flag("full", options.full)
            .with_some("pool", options.pool.as_ref())
            .with_some("storage", options.storage.as_ref())
            .with_some("format", options.format.as_ref())
            .with_some("target", options.target.as_ref())
            .with_some("bwlimit", options.limit_kib_s);
        let action = format!("clone template {source} on host {host} to VM {vmid}");
        let path = format!("{}/clone", vm_path(host, source));
        let call = Call { action, method: Method::POST, path, params: form.params() };
        match self.task_call(call).await {
            Err(error) if is_bare(&error) => {
                // Either path would do, and Proxmox names neither.
                let at = options.pool.as_ref().map_or_else(|| format!("/vms/{vmid}"), |pool| format!("/pool/{pool}"));
                let needed = [
                    Right { path: format!("/vms/{source}"), privilege: "VM.Clone" },
                    Right { path: at, privilege: "VM.Allocate" },
                ];
                Err(self.naming_missing(error, &needed).await)
            }
            outcome => outcome,
        }
    }

    /// Begins to make a VM from nothing, with configuration keys as they stand in `params`.
    ///
    /// A token whose rights come from a pool must not give `tags` here: Proxmox looks for that right without regard to
    /// the pool, and refuses at the end of the work.
    pub async fn create_vm(&self, host: &HostName, vmid: VmId, params: &[(&str, String)]) -> Result<Upid> {
        let mut all = vec![("vmid", vmid.to_string())];
        all.extend(params.iter().cloned());
        let action = format!("create VM {vmid} on host {host}");
        let path = format!("/nodes/{}/qemu", segment(host));
        self.task_call(Call { action, method: Method::POST, path, params: &all }).await
    }

    /// Begins to make a template of a VM of ours. There is no way back.
    pub async fn make_template(&self, vm: &ProvenVm) -> Result<Upid> {
        let (host, vmid) = (vm.host(), vm.vmid());
        let action = format!("convert VM {vmid} on host {host} to a template");
        let path = format!("{}/template", vm_path(host, vmid));
        self.task_call(Call { action, method: Method::POST, path, params: &[] }).await
    }

    /// Whether a VM's storages can do something with its disks.
    pub async fn has_feature(&self, host: &HostName, vmid: VmId, feature: Feature) -> Result<bool> {
        #[derive(Deserialize)]
        struct Wire {
            #[serde(rename = "hasFeature", default, deserialize_with = "flag")]
            has: bool,
        }
        let word = match feature {
            Feature::Snapshot => "snapshot",
            Feature::LinkedClone => "clone",
            Feature::Copy => "copy",
        };
        let form = Form::default().with("feature", word);
        let action = format!("read whether VM {vmid} on host {host} supports {word}");
        let path = format!("{}/feature", vm_path(host, vmid));
        let wire: Wire = self.read(Call { action, method: Method::GET, path, params: form.params() }).await?;
        Ok(wire.has)
    }
}
