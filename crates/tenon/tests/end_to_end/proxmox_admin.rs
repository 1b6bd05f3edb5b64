//! What an administrator of the simulated Proxmox does through its API: options, users, roles, tokens.

use anyhow::Context as _;
use serde_json::Value;

use crate::world::{TOKEN, World};

/// What SECURITY.md asks for with a resource pool, by path.
pub(crate) const POOL_RIGHTS: &[(&str, &str)] = &[
    (
        "/pool/k8s",
        "VM.Allocate,VM.Audit,VM.PowerMgmt,VM.Config.CDROM,VM.Config.CPU,VM.Config.Cloudinit,VM.Config.Disk,\
         VM.Config.HWType,VM.Config.Memory,VM.Config.Network,VM.Config.Options",
    ),
    ("/vms/9001", "VM.Audit,VM.Clone"),
    ("/vms/9002", "VM.Audit,VM.Clone"),
    ("/vms/9003", "VM.Audit,VM.Clone"),
    ("/storage/shared", "Datastore.Allocate,Datastore.AllocateSpace,Datastore.AllocateTemplate,Datastore.Audit"),
    ("/sdn/zones/localnetwork", "SDN.Use,SDN.Audit"),
    ("/nodes", "Sys.Audit"),
];

impl World {
    /// A call of Proxmox's administrator.
    pub(crate) async fn proxmox(&self, method: &str, path: &str, params: &[(&str, &str)]) -> anyhow::Result<Value> {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(params).finish();
        let request = http::Request::builder()
            .method(method)
            .uri(format!("https://pve.example/api2/json{path}"))
            .header("authorization", format!("PVEAPIToken={}={}", TOKEN.0, TOKEN.1))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(axum::body::Body::from(body))?;
        let reply = tower::ServiceExt::oneshot(self.estate.service(), request).await?;
        let status = reply.status();
        let bytes = axum::body::to_bytes(reply.into_body(), usize::MAX).await?;
        anyhow::ensure!(status.is_success(), "{method} {path}: {status} {}", String::from_utf8_lossy(&bytes));
        Ok(serde_json::from_slice(&bytes)?)
    }

    /// A token with these privileges, each list on its path; the next controller uses it.
    pub(crate) async fn use_token_with(&self, rights: &[(&str, &str)]) -> anyhow::Result<()> {
        self.proxmox("POST", "/access/users", &[("userid", "few@pve")]).await?;
        for (number, (path, privileges)) in rights.iter().enumerate() {
            let role = format!("Role{number}");
            self.proxmox("POST", "/access/roles", &[("roleid", &role), ("privs", privileges)]).await?;
            self.proxmox("PUT", "/access/acl", &[("path", path), ("roles", &role), ("users", "few@pve")]).await?;
        }
        let made = self.proxmox("POST", "/access/users/few@pve/token/k8s", &[("privsep", "0")]).await?;
        let secret = made["data"]["value"].as_str().context("the token has no secret")?;
        self.configure_token(("few@pve!k8s", secret))
    }

    /// The same rights but for one privilege.
    pub(crate) async fn use_pool_token_without(&self, privilege: &str) -> anyhow::Result<()> {
        let without = |all: &str| all.split(',').filter(|one| *one != privilege).collect::<Vec<_>>().join(",");
        let rights: Vec<(&str, String)> = POOL_RIGHTS.iter().map(|(path, all)| (*path, without(all))).collect();
        let rights: Vec<(&str, &str)> = rights.iter().map(|(path, all)| (*path, all.as_str())).collect();
        self.estate.add_pool("k8s");
        self.use_token_with(&rights).await
    }
}
