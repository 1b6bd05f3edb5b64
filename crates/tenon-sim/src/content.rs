//! What lies on a storage: listing, one volume, removal. How files come there is in `upload` and `download`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::config::StorageKind;
use crate::jobs::Job;
use crate::params::Call;
use crate::rights::{forbidden, require};
use crate::state::State;
use crate::storage::{TEMPORARY, Volume, VolumeKey, own_part};
use crate::tasks::{NewTask, TaskOutcome};
use crate::upload::has_ending;
use crate::wire::{Answer, Refusal, Reply};

pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let storage = call.word("storage");
    state.usable_storage(storage, call.node())?;
    let place = state.place(storage, call.node(), "");
    let owner = call.id("vmid");
    let wanted = |key: &VolumeKey, volume: &Volume| {
        key.storage == place.storage
            && key.host == place.host
            && volume.content != TEMPORARY
            && call.text("content").is_none_or(|c| c == volume.content)
            // By VM, ISO files are left out although nobody owns them; other unowned files are not.
            && owner.is_none_or(|id| volume.owner.map_or(volume.content != "iso", |o| o == id))
    };
    let mut rows: Vec<Value> = state
        .volumes
        .iter()
        .filter(|(key, volume)| wanted(key, volume))
        .map(|(key, volume)| row(key, volume))
        .collect();
    state.chance.shuffle(&mut rows);
    Ok(Reply::data(rows.into()))
}

fn row(key: &VolumeKey, volume: &Volume) -> Value {
    let mut row = json!({
        "volid": key.volid(), "content": volume.content, "format": volume.format,
        "size": volume.length.unwrap_or(volume.bytes), "ctime": volume.ctime,
    });
    if let Some(owner) = volume.owner {
        row["vmid"] = owner.into();
        row["used"] = volume.used.into();
        row["parent"] = volume.parent.as_ref().map_or(Value::Null, |p| format!("../{p}").into());
    }
    row
}

/// The volume a path names, with or without its storage in front.
fn named_volume(state: &State, call: &Call) -> Result<VolumeKey, Refusal> {
    let (storage, volume) = (call.word("storage"), call.word("volume"));
    let name = match volume.split_once(':') {
        Some((other, _)) if other != storage => {
            let text = format!("storage ID mismatch ({other} != {storage})\n");
            return Err(Refusal::invalid_field("volume", text));
        }
        Some((_, name)) => name,
        None => volume,
    };
    state.usable_storage(storage, call.node())?;
    if !is_file_name(name) && state.kind_of(storage) == StorageKind::Dir {
        return Err(Refusal::failed(format!("unable to parse directory volume name '{name}'")));
    }
    Ok(state.place(storage, call.node(), name))
}

/// Whether a directory can hold a volume of this name: a kind or the folder of a VM, and a file in it.
fn is_file_name(name: &str) -> bool {
    const KINDS: [&str; 6] = ["backup", "import", "iso", "rootdir", "snippets", "vztmpl"];
    let Some((folder, file)) = name.split_once('/') else { return false };
    let known = KINDS.contains(&folder) || folder.bytes().all(|byte| byte.is_ascii_digit());
    // The half of a download that a killed worker left behind can not be named.
    let named = folder != "import" || has_ending(folder, file);
    known && named && !folder.is_empty() && !file.is_empty() && !name.split('/').any(|part| part == "..")
}

pub(crate) fn show(state: &mut State, call: &Call) -> Answer {
    let privileges = ["Datastore.AllocateSpace", "Datastore.Audit"];
    let path = format!("/storage/{}", call.word("storage"));
    if !state.may_any(&call.user, &path, &privileges) {
        return Err(forbidden(Some(&format!("{path}, {}", privileges.join("|")))).into());
    }
    let key = named_volume(state, call)?;
    let Some(volume) = state.volumes.get(&key) else {
        return Err(Refusal::failed(format!("volume_size_info on '{}' failed - no format", key.volid())).into());
    };
    let path = state.path_of(&key);
    Ok(Reply::data(json!({ "path": path, "format": volume.format, "size": volume.bytes, "used": volume.used })))
}

pub(crate) fn delete(state: &mut State, call: &Call) -> Answer {
    require(state, &call.user, &format!("/storage/{}", call.word("storage")), "Datastore.Allocate")?;
    let key = named_volume(state, call)?;
    let owner = state.volumes.get(&key).and_then(|v| v.owner);
    let id = owner.map_or_else(|| key.storage.clone(), |o| format!("{o}@{}", key.storage));
    let job = Job::DeleteVolume(DeleteVolumeJob { key, waited: false });
    let reply = state.spawn(NewTask { node: call.node(), kind: "imgdel", id, user: &call.user, job });
    let took = state.config.pace.answer + state.config.pace.volume_delete;
    let patience = Duration::from_secs(u64::try_from(call.int("delay").unwrap_or(0)).unwrap_or(0));
    // With enough patience the caller hears that it is done, and never learns the task's name.
    Ok(if patience >= took { Reply { data: Value::Null, delay: took, ..reply } } else { reply })
}

#[derive(Debug)]
pub(crate) struct DeleteVolumeJob {
    key: VolumeKey,
    waited: bool,
}

impl DeleteVolumeJob {
    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> TaskOutcome {
        if !std::mem::replace(&mut self.waited, true) {
            return TaskOutcome::After(state.config.pace.volume_delete);
        }
        if state.has_clones(&self.key) {
            return TaskOutcome::Failed(format!(
                "base volume '{}' is still in use by linked clones",
                own_part(&self.key.name)
            ));
        }
        if state.volumes.remove(&self.key).is_none() {
            state.log(upid, format!("disk image '{}' does not exist", state.path_of(&self.key)));
        }
        self.drop_empty_folder(state);
        state.log(upid, format!("Removed volume '{}'", self.key.volid()));
        TaskOutcome::Done
    }

    /// The folder of the ISO images goes with the last of them.
    fn drop_empty_folder(&self, state: &mut State) {
        let here = |key: &VolumeKey| key.storage == self.key.storage && key.host == self.key.host;
        let iso = |name: &str| name.starts_with("iso/");
        if iso(&self.key.name) && !state.volumes.keys().any(|key| here(key) && iso(&key.name)) {
            state.no_iso_folder.insert((self.key.storage.clone(), self.key.host.clone()));
        }
    }
}
