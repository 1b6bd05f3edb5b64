//! Pools: who is in which, and what may be done with them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::params::Call;
use crate::rights::require;
use crate::schema::words;
use crate::state::State;
use crate::wire::{Answer, Refusal, Reply};

#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    pub(crate) comment: Option<String>,
    pub(crate) vms: BTreeSet<u32>,
    pub(crate) storages: BTreeSet<String>,
}

fn row(name: &str, pool: &Pool) -> Value {
    let mut row = json!({ "poolid": name });
    if let Some(comment) = &pool.comment {
        row["comment"] = comment.as_str().into();
    }
    row
}

fn missing(name: &str) -> String {
    format!("pool '{name}' does not exist")
}

/// All pools one may know of, or the one that is named, with its members.
pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    if let Some(name) = call.text("poolid") {
        let full = full_row(state, name, call.text("type"))?;
        return Ok(Reply::data(json!([full])));
    }
    let visible = |name: &str| state.may_any(&call.user, &format!("/pool/{name}"), &["Pool.Audit", "Pool.Allocate"]);
    let shown = state.pools.iter().filter(|(name, _)| visible(name));
    let mut rows: Vec<Value> = shown.map(|(name, pool)| row(name, pool)).collect();
    state.chance.shuffle(&mut rows);
    Ok(Reply::data(rows.into()))
}

pub(crate) fn show(state: &mut State, call: &Call) -> Answer {
    Ok(Reply::data(full_row(state, call.word("poolid"), call.text("type"))?))
}

fn full_row(state: &mut State, name: &str, kind: Option<&str>) -> Result<Value, Refusal> {
    let pool = state.pools.get(name).cloned().ok_or_else(|| Refusal::failed(missing(name)))?;
    let mut members = Vec::new();
    if kind.is_none_or(|kind| kind == "qemu") {
        // A VM that does not exist is no member to be seen, though it will be one when it comes.
        let rows = state.vm_rows(|vm| pool.vms.contains(&vm.vmid));
        members.extend(rows.into_iter().map(|mut row| {
            // Inside the pool its name goes without saying; tags and locks are not shown either.
            if let Some(row) = row.as_object_mut() {
                ["pool", "tags", "lock"].iter().for_each(|key| drop(row.remove(*key)));
            }
            row
        }));
    }
    if kind.is_none_or(|kind| kind == "storage") {
        members.extend(state.storage_rows(|id| pool.storages.contains(id)));
    }
    let mut row = row(name, &pool);
    row["members"] = members.into();
    Ok(row)
}

pub(crate) fn create(state: &mut State, call: &Call) -> Answer {
    let name = call.word("poolid").to_string();
    let failed = |text: String| Refusal::failed(format!("create pool failed: {text}"));
    if state.pools.contains_key(&name) {
        return Err(failed(format!("pool '{name}' already exists")).into());
    }
    if let Some((parent, _)) = name.rsplit_once('/').filter(|(parent, _)| !state.pools.contains_key(*parent)) {
        return Err(failed(format!("parent '{parent}' of pool '{name}' does not exist")).into());
    }
    let pool = Pool { comment: call.text("comment").map(str::to_owned), ..Pool::default() };
    state.pools.insert(name, pool);
    Ok(Reply::null())
}

/// Several changes at once are made all together or not at all.
pub(crate) fn update(state: &mut State, call: &Call) -> Answer {
    let name = call.word("poolid");
    let failed = |text: String| Refusal::failed(format!("update pools failed: {text}"));
    let mut pools = state.pools.clone();
    let pool = pools.get(name).ok_or_else(|| failed(missing(name)))?;
    let (known_vms, known_storages) = (pool.vms.clone(), pool.storages.clone());
    for vmid in words(call.word("vms")).filter_map(|id| id.parse::<u32>().ok()) {
        require_any(state, call, &format!("/vms/{vmid}")).map_err(failed)?;
        let member = known_vms.contains(&vmid);
        match state.pool_of(vmid) {
            _ if call.flag("delete") && !member => return Err(failed(format!("VM {vmid} is not a pool member")).into()),
            _ if !call.flag("delete") && member => {
                return Err(failed(format!("VM {vmid} is already a pool member")).into());
            }
            Some(other) if !call.flag("delete") && !call.flag("allow-move") => {
                let text = format!("VM {vmid} belongs already to pool '{other}' and 'allow-move' is not set");
                return Err(failed(text).into());
            }
            _ => {}
        }
        for pool in pools.values_mut() {
            pool.vms.remove(&vmid);
        }
        if let Some(pool) = pools.get_mut(name).filter(|_| !call.flag("delete")) {
            pool.vms.insert(vmid);
        }
    }
    for id in words(call.word("storage")) {
        require(state, &call.user, &format!("/storage/{id}"), "Datastore.Allocate")?;
        let member = known_storages.contains(id);
        if member != call.flag("delete") {
            let is = if member { "already" } else { "not" };
            return Err(failed(format!("Storage '{id}' is {is} a pool member")).into());
        }
        let Some(pool) = pools.get_mut(name) else { continue };
        if call.flag("delete") {
            pool.storages.remove(id);
        } else {
            pool.storages.insert(id.into());
        }
    }
    if let (Some(comment), Some(pool)) = (call.text("comment"), pools.get_mut(name)) {
        pool.comment = Some(comment.into());
    }
    state.pools = pools;
    Ok(Reply::null())
}

fn require_any(state: &State, call: &Call, path: &str) -> Result<(), String> {
    if state.may_any(&call.user, path, &["VM.Allocate", "Permissions.Modify"]) {
        return Ok(());
    }
    Err(format!("403 Permission check failed ({path}, Permissions.Modify|VM.Allocate)"))
}

pub(crate) fn delete(state: &mut State, call: &Call) -> Answer {
    let name = call.word("poolid");
    let failed = |text: String| Refusal::failed(format!("delete pool failed: {text}"));
    let pool = state.pools.get(name).ok_or_else(|| failed(missing(name)))?;
    let child = state.pools.keys().find(|other| other.starts_with(&format!("{name}/")));
    let content = child.map(|child| format!("pool '{child}'"));
    // Guests that are gone, or not there yet, do not count.
    let guest = pool.vms.iter().find(|vmid| state.vms.contains_key(vmid));
    let content = content.or_else(|| guest.map(|vmid| format!("VM {vmid}")));
    let content = content.or_else(|| pool.storages.first().map(|id| format!("storage '{id}'")));
    if let Some(content) = content {
        return Err(failed(format!("pool '{name}' is not empty (contains {content})")).into());
    }
    state.pools.remove(name);
    let path = format!("/pool/{name}");
    state.access.acl.retain(|entry| entry.path != path);
    Ok(Reply::null())
}
