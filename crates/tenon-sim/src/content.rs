//! What lies on a storage: listing, one volume, upload and removal.

use bytes::Bytes;
use serde_json::{Value, json};
use sha1::Digest;

use crate::jobs::Job;
use crate::params::Call;
use crate::state::State;
use crate::storage::{Volume, VolumeKey, own_part};
use crate::tasks::{NewTask, Outcome};
use crate::wire::{Answer, Refusal, Reply};

use std::time::Duration;

fn storage_id(call: &Call) -> &str {
    call.text("storage").unwrap_or("")
}

pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    state.usable_storage(storage_id(call), call.node())?;
    let place = state.place(storage_id(call), call.node(), "");
    let owner = call.id("vmid");
    let wanted = |key: &VolumeKey, volume: &Volume| {
        key.storage == place.storage
            && key.host == place.host
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
        "volid": key.volid(), "content": volume.content, "format": volume.format, "size": volume.bytes,
        "ctime": volume.ctime,
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
    let (storage, volume) = (storage_id(call), call.text("volume").unwrap_or(""));
    let name = match volume.split_once(':') {
        Some((other, _)) if other != storage => {
            let text = format!("storage ID mismatch ({other} != {storage})\n");
            return Err(Refusal::invalid_field("volume", text));
        }
        Some((_, name)) => name,
        None => volume,
    };
    state.usable_storage(storage, call.node())?;
    if !name.contains('/') {
        return Err(Refusal::failed(format!("unable to parse directory volume name '{name}'")));
    }
    Ok(state.place(storage, call.node(), name))
}

pub(crate) fn show(state: &mut State, call: &Call) -> Answer {
    let key = named_volume(state, call)?;
    let Some(volume) = state.volumes.get(&key) else {
        return Err(Refusal::failed(format!("volume_size_info on '{}' failed - no format", key.volid())).into());
    };
    let path = state.path_of(&key);
    Ok(Reply::data(json!({ "path": path, "format": volume.format, "size": volume.bytes, "used": volume.used })))
}

pub(crate) fn delete(state: &mut State, call: &Call) -> Answer {
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
    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> Outcome {
        if !std::mem::replace(&mut self.waited, true) {
            return Outcome::After(state.config.pace.volume_delete);
        }
        if state.has_clones(&self.key) {
            return Outcome::Failed(format!(
                "base volume '{}' is still in use by linked clones",
                own_part(&self.key.name)
            ));
        }
        if state.volumes.remove(&self.key).is_none() {
            state.log(upid, format!("disk image '{}' does not exist", state.path_of(&self.key)));
        }
        state.log(upid, format!("Removed volume '{}'", self.key.volid()));
        Outcome::Done
    }
}

pub(crate) fn upload(state: &mut State, call: &Call) -> Answer {
    let (storage, kind) = (storage_id(call), call.text("content").unwrap_or(""));
    let spec = state.usable_storage(storage, call.node())?;
    if !spec.content.iter().any(|c| c == kind) {
        return Err(Refusal::failed(format!("storage '{storage}' does not support '{kind}' content")).into());
    }
    let file = file_name(call.text("filename").unwrap_or(""));
    let endings: &[&str] = match kind {
        "iso" => &[".iso", ".img"],
        "vztmpl" => &[".tar.gz", ".tar.xz", ".tar.zst"],
        _ => &[".ova", ".qcow2", ".raw", ".vmdk"],
    };
    if !endings.iter().any(|ending| file.to_ascii_lowercase().ends_with(ending)) {
        return Err(Refusal::invalid_field("filename", "wrong file extension").into());
    }
    if call.text("checksum").is_some() != call.text("checksum-algorithm").is_some() {
        return Err(Refusal::invalid_field("checksum-algorithm", "missing property required by 'checksum'").into());
    }
    let key = state.place(storage, call.node(), &format!("{kind}/{file}"));
    let data = call.file.as_ref().map(|f| f.bytes.clone()).unwrap_or_default();
    let checksum = call.text("checksum-algorithm").zip(call.text("checksum"));
    let checksum = checksum.map(|(algorithm, sum)| (algorithm.to_string(), sum.to_ascii_lowercase()));
    let job = Job::Upload(UploadJob { key, kind: kind.into(), data, checksum, waited: false });
    Ok(state.spawn(NewTask { node: call.node(), kind: "imgcopy", id: String::new(), user: &call.user, job }))
}

/// The last part of the path, odd characters replaced.
fn file_name(given: &str) -> String {
    let last = given.rsplit(['/', '\\']).next().unwrap_or("");
    last.chars().map(|c| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' }).collect()
}

#[derive(Debug)]
pub(crate) struct UploadJob {
    key: VolumeKey,
    kind: String,
    data: Bytes,
    checksum: Option<(String, String)>,
    waited: bool,
}

impl UploadJob {
    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> Outcome {
        let path = state.path_of(&self.key);
        if !std::mem::replace(&mut self.waited, true) {
            let node = state.tasks.by_upid.get(upid).map(|t| t.node.clone()).unwrap_or_default();
            state.log(upid, format!("target node: {node}"));
            state.log(upid, format!("target file: {path}"));
            state.log(upid, format!("file size is: {}", self.data.len()));
            return Outcome::After(state.config.pace.upload);
        }
        if let Some(text) = self.checksum_error() {
            return Outcome::Failed(text);
        }
        let bytes = self.data.len() as u64;
        let replaced = state.volumes.get(&self.key).map_or(0, |v| v.used);
        if bytes > state.usage(&self.key.storage, &self.key.host).1 + replaced {
            return Outcome::Failed(format!("import failed: cp: error writing '{path}': No space left on device"));
        }
        let format = self.key.name.rsplit('.').next().filter(|_| self.kind != "iso").unwrap_or("iso").to_string();
        let (content, data, ctime) = (self.kind.clone(), self.data.clone(), state.epoch());
        let volume = Volume { content, format, bytes, used: bytes, ctime, owner: None, parent: None, data };
        state.volumes.insert(self.key.clone(), volume);
        state.log(upid, "finished file import successfully");
        Outcome::Done
    }

    fn checksum_error(&self) -> Option<String> {
        let (algorithm, expected) = self.checksum.as_ref()?;
        let sum: Vec<u8> = match algorithm.as_str() {
            "sha1" => sha1::Sha1::digest(&self.data).to_vec(),
            "sha512" => sha2::Sha512::digest(&self.data).to_vec(),
            "sha256" => sha2::Sha256::digest(&self.data).to_vec(),
            other => return Some(format!("unsupported checksum algorithm '{other}'")),
        };
        let got: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        (got != *expected).then(|| format!("checksum mismatch: got '{got}' != expect '{expected}'"))
    }
}
