//! Numbers for new VMs. Proxmox tells which are free and keeps none for anybody.

use http::Method;
use serde_json::Value;
use tenon_model::VmId;

use crate::client::{Call, Client, Form};
use crate::error::{Error, Result};
use crate::refusal::RefusalKind;
use crate::reply::{plain, unreadable};

impl Client {
    /// Whether an id is free in the whole cluster. Needs no rights, so it also knows of VMs the token may not see; it
    /// reserves nothing.
    pub async fn is_id_free(&self, vmid: VmId) -> Result<bool> {
        let form = Form::default().with("vmid", vmid);
        match self.next_id_call(format!("check whether VM ID {vmid} is free"), &form).await {
            Ok(_) => Ok(true),
            Err(error) if error.refusal().is_some_and(|refusal| refusal.kind == RefusalKind::AlreadyExists) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// The lowest free id. Everybody who asks at the same time is told the same one.
    pub async fn next_id(&self) -> Result<VmId> {
        let action = "find a free VM ID";
        let data = self.next_id_call(action.to_owned(), &Form::default()).await?;
        let told = plain(&data);
        told.parse().map_err(|_| Error::new(action, unreadable(&format!("`{told}` is not a VM ID"))))
    }

    async fn next_id_call(&self, action: String, form: &Form) -> Result<Value> {
        let path = "/cluster/nextid".to_owned();
        self.call(&Call { action, method: Method::GET, path, params: form.params() }).await
    }
}
