//! Pools: the groups of VMs and storages that rights are given on.

use http::Method;
use serde::Deserialize;
use tenon_model::VmId;

use crate::client::{Call, Client, Form};
use crate::error::{Error, Result};
use crate::refusal::RefusalKind;
use crate::reply::{text_or_none, unreadable, whole_or_none};

/// A pool.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Pool {
    /// Its name; `parent/child` for one inside another.
    pub poolid: String,
    /// What people wrote about it.
    #[serde(default, deserialize_with = "text_or_none")]
    pub comment: Option<String>,
    /// What is in it; a list of pools leaves it out.
    #[serde(default)]
    pub members: Vec<PoolMember>,
}

/// A VM, container or storage in a pool.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PoolMember {
    /// `qemu/100`, `storage/pve1/local`.
    pub id: String,
    /// `qemu`, `lxc` or `storage`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The id of a guest.
    #[serde(default, deserialize_with = "whole_or_none")]
    pub vmid: Option<u64>,
    /// The name of a storage.
    pub storage: Option<String>,
}

/// Whether members come or go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolChange {
    /// They join; refused for a VM that is in another pool.
    Add,
    /// They join, leaving whatever pool they are in.
    Move,
    /// They leave.
    Remove,
}

impl PoolChange {
    /// Whether the change of one VM was refused because it is so already: its reply was lost, or somebody else made it.
    pub fn is_done_already(self, error: &Error) -> bool {
        let done = if self == PoolChange::Remove { RefusalKind::NotFound } else { RefusalKind::AlreadyExists };
        error.refusal().is_some_and(|refusal| refusal.kind == done)
    }
}

impl Client {
    /// Pools the token may see, by name, without their members.
    pub async fn pools(&self) -> Result<Vec<Pool>> {
        let call = pool_call("list the resource pools".to_owned(), Method::GET, &[]);
        let mut pools: Vec<Pool> = self.read(call).await?;
        pools.sort_by(|a, b| a.poolid.cmp(&b.poolid));
        Ok(pools)
    }

    /// One pool with its members. The name goes into the query, because one inside another cannot stand in a path.
    pub async fn pool(&self, pool: &str) -> Result<Pool> {
        let (form, action) = (Form::default().with("poolid", pool), format!("read pool {pool}"));
        let call = pool_call(action.clone(), Method::GET, form.params());
        let found: Vec<Pool> = self.read(call).await?;
        let mut pool = found.into_iter().next().ok_or_else(|| Error::new(action, unreadable("it is empty")))?;
        pool.members.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(pool)
    }

    /// Makes a pool. The parent of one inside another has to be there.
    pub async fn create_pool(&self, pool: &str, comment: Option<&str>) -> Result<()> {
        let form = Form::default().with("poolid", pool).with_some("comment", comment);
        self.call(&pool_call(format!("create resource pool {pool}"), Method::POST, form.params())).await.map(drop)
    }

    /// Puts VMs into a pool or takes them out, all or none of them. A VM that does not exist joins all the same, and is
    /// seen there once it does.
    pub async fn change_pool(&self, pool: &str, vms: &[VmId], change: PoolChange) -> Result<()> {
        let ids: Vec<String> = vms.iter().map(ToString::to_string).collect();
        let form = Form::default()
            .with("poolid", pool)
            .with("vms", ids.join(","))
            .with_flag("allow-move", (change == PoolChange::Move).then_some(true))
            .with_flag("delete", (change == PoolChange::Remove).then_some(true));
        self.call(&pool_call(format!("change resource pool {pool}"), Method::PUT, form.params())).await.map(drop)
    }

    /// Puts a storage into a pool or takes it out.
    pub async fn change_pool_storage(&self, pool: &str, storage: &str, change: PoolChange) -> Result<()> {
        let form = Form::default()
            .with("poolid", pool)
            .with("storage", storage)
            .with_flag("delete", (change == PoolChange::Remove).then_some(true));
        self.call(&pool_call(format!("change resource pool {pool}"), Method::PUT, form.params())).await.map(drop)
    }

    /// Deletes an empty pool.
    pub async fn delete_pool(&self, pool: &str) -> Result<()> {
        let form = Form::default().with("poolid", pool);
        self.call(&pool_call(format!("delete resource pool {pool}"), Method::DELETE, form.params())).await.map(drop)
    }
}

fn pool_call<'a>(action: String, method: Method, params: &'a [(&'a str, String)]) -> Call<'a> {
    Call { action, method, path: "/pools".to_owned(), params }
}
