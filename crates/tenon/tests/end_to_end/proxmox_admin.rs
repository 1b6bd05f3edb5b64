//! What an administrator of the simulated Proxmox does through its API: options, users, roles, tokens.

use anyhow::Context as _;
use serde_json::Value;
use tenon_pve::pve_rights::{self, AclPlace, REQUIRED};

use crate::world::{TOKEN, World};

/// The access control paths of a place in a world.
fn paths(place: AclPlace) -> &'static [&'static str] {
    match place {
        AclPlace::NodePool => &["/pool/k8s"],
        AclPlace::NodeTemplates => &["/vms/9001", "/vms/9002", "/vms/9003"],
        AclPlace::Disks | AclPlace::Seeds | AclPlace::Images => &["/storage/shared"],
        AclPlace::Bridges => &["/sdn/zones/localnetwork"],
        AclPlace::Hosts => &["/nodes"],
        AclPlace::TemplatePool => &["/pool/templates"],
        AclPlace::PciMappings => &["/mapping/pci"],
        AclPlace::Guests => &["/vms"],
        AclPlace::Cluster => &["/"],
    }
}

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

    /// The role that every installation needs, but for one privilege; the next controller uses it.
    pub(crate) async fn use_pool_token_without(&self, privilege: &str) -> anyhow::Result<()> {
        let mut rights: Vec<(&str, String)> = Vec::new();
        for (place, held) in pve_rights::privileges(&REQUIRED) {
            let held: Vec<&str> = held.into_iter().filter(|one| *one != privilege).collect();
            rights.extend(paths(place).iter().map(|path| (*path, held.join(","))));
        }
        let rights: Vec<(&str, &str)> = rights.iter().map(|(path, all)| (*path, all.as_str())).collect();
        self.estate.add_pool("k8s");
        self.use_token_with(&rights).await
    }
}
