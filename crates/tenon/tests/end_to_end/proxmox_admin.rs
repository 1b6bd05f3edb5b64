//! What an administrator of the simulated Proxmox does through its API: options, users, roles, tokens.

use anyhow::Context as _;
use serde_json::Value;
use tenon_pve::pve_rights::{self, AclPlace, Privileges, REQUIRED};
use tenon_sim::TokenSpec;

use crate::request_audit::ADMIN;
use crate::world::World;

/// The token of `World::use_token_with`.
pub(crate) const FEW: &str = "few@pve!k8s";

/// The access control paths of a place in a world.
fn paths(place: AclPlace) -> &'static [&'static str] {
    match place {
        AclPlace::NodePool => &["/pool/k8s", "/pool/other"],
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
        self.estate.grant_token(TokenSpec::new(ADMIN.0, ADMIN.1));
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(params).finish();
        let request = http::Request::builder()
            .method(method)
            .uri(format!("https://pve.example/api2/json{path}"))
            .header("authorization", format!("PVEAPIToken={}={}", ADMIN.0, ADMIN.1))
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
            self.give_role(number, (path, privileges)).await?;
        }
        let made = self.proxmox("POST", "/access/users/few@pve/token/k8s", &[("privsep", "0")]).await?;
        let secret = made["data"]["value"].as_str().context("the token has no secret")?;
        self.configure_token((FEW, secret))
    }

    /// The role that every installation needs, but for one privilege; the next controller uses it.
    pub(crate) async fn use_pool_token_without(&self, privilege: &str) -> anyhow::Result<()> {
        let mut role = pve_rights::privileges(&REQUIRED);
        role.values_mut().for_each(|held| held.retain(|one| *one != privilege));
        self.use_role(&role).await
    }

    /// A token with this role, each privilege at the paths of its place; the next controller uses it.
    pub(crate) async fn use_role(&self, role: &Privileges) -> anyhow::Result<()> {
        self.estate.add_pool("k8s");
        let rights = on_paths(role);
        let rights: Vec<(&str, &str)> = rights.iter().map(|(path, all)| (*path, all.as_str())).collect();
        self.use_token_with(&rights).await
    }

    /// The token of that controller has this role instead, from now on.
    pub(crate) async fn replace_role(&self, role: &Privileges) -> anyhow::Result<()> {
        let lines = self.proxmox("GET", "/access/acl", &[]).await?;
        let held = lines["data"].as_array().into_iter().flatten().filter(|line| line["ugid"] == "few@pve");
        for (number, line) in held.enumerate() {
            let text = |key: &str| line[key].as_str().unwrap_or_default();
            let gone = [("path", text("path")), ("roles", text("roleid")), ("users", "few@pve"), ("delete", "1")];
            self.proxmox("PUT", "/access/acl", &gone).await.with_context(|| format!("line {number}"))?;
            self.proxmox("DELETE", &format!("/access/roles/{}", text("roleid")), &[]).await?;
        }
        for (number, (path, privileges)) in on_paths(role).iter().enumerate() {
            self.give_role(number, (path, privileges)).await?;
        }
        Ok(())
    }

    /// Gives the user of that token privileges on a path.
    async fn give_role(&self, number: usize, (path, privileges): (&str, &str)) -> anyhow::Result<()> {
        let role = format!("Role{number}");
        self.proxmox("POST", "/access/roles", &[("roleid", &role), ("privs", privileges)]).await?;
        self.proxmox("PUT", "/access/acl", &[("path", path), ("roles", &role), ("users", "few@pve")]).await?;
        Ok(())
    }
}

/// The privileges of a role on every path of their places.
fn on_paths(role: &Privileges) -> Vec<(&'static str, String)> {
    let all = role.iter().map(|(place, held)| (*place, Vec::from_iter(held.iter().copied()).join(",")));
    all.flat_map(|(place, held)| paths(place).iter().map(move |path| (*path, held.clone()))).collect()
}
