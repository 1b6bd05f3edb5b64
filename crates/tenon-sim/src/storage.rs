//! Where volumes lie, how much room there is, and what the storage calls show.
//!
//! Directories and thin pools. A shared storage is a single place; a local one is a place per host.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use sha1::{Digest, Sha1};

use crate::config::{StorageKind, StorageSpec};
use crate::params::Call;
use crate::schema::words;
use crate::state::State;
use crate::wire::{Answer, Refusal, Reply};

/// Storage, host (empty when shared) and name of a volume.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct VolumeKey {
    pub(crate) storage: String,
    pub(crate) host: String,
    pub(crate) name: String,
}

impl VolumeKey {
    pub(crate) fn volid(&self) -> String {
        format!("{}:{}", self.storage, self.name)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Volume {
    pub(crate) content: String,
    pub(crate) format: String,
    /// Virtual size.
    pub(crate) bytes: u64,
    /// What it takes on the storage.
    pub(crate) used: u64,
    pub(crate) ctime: u64,
    pub(crate) owner: Option<u32>,
    /// Name of the base image on the same storage.
    pub(crate) parent: Option<String>,
    /// The content of a file that was uploaded.
    pub(crate) data: Bytes,
    /// Length of the file, where it is not the size of the image inside.
    pub(crate) length: Option<u64>,
    /// Whether a system is installed on it that boots, obeys the power button and runs a guest agent.
    pub(crate) bootable: bool,
}

/// The content of a file that is not complete: no listing shows it.
pub(crate) const TEMPORARY: &str = "temporary";

/// A file of an image format that file systems can not hold any more.
const LARGEST_FILE: u64 = 16 << 40;

/// What a volume group is parted into.
const EXTENT: u64 = 4 << 20;

/// What a linked clone or a cloud-init drive takes at first.
pub(crate) const SMALL_BYTES: u64 = 1 << 20;
/// The size of every cloud-init drive.
pub(crate) const CLOUDINIT_BYTES: u64 = 4 << 20;

impl State {
    pub(crate) fn storage(&self, id: &str) -> Option<&StorageSpec> {
        self.config.storages.iter().find(|s| s.id == id)
    }

    pub(crate) fn is_shared(&self, id: &str) -> bool {
        self.storage(id).is_some_and(|s| s.shared)
    }

    pub(crate) fn known_storage(&self, id: &str) -> Result<&StorageSpec, Refusal> {
        self.storage(id).ok_or_else(|| Refusal::failed(format!("storage '{id}' does not exist")))
    }

    /// The storage, if this host has it.
    pub(crate) fn usable_storage(&self, id: &str, host: &str) -> Result<&StorageSpec, Refusal> {
        let spec = self.known_storage(id)?;
        if is_on(spec, host) {
            return Ok(spec);
        }
        Err(Refusal::failed(format!("storage '{id}' is not available on node '{host}'")))
    }

    /// Where a volume lies, seen from a host.
    pub(crate) fn place(&self, storage: &str, host: &str, name: &str) -> VolumeKey {
        let host = if self.is_shared(storage) { "" } else { host };
        VolumeKey { storage: storage.into(), host: host.into(), name: name.into() }
    }

    pub(crate) fn key_of(&self, volid: &str, host: &str) -> Option<VolumeKey> {
        let (storage, name) = volid.split_once(':')?;
        Some(self.place(storage, host, name))
    }

    pub(crate) fn volume(&self, volid: &str, host: &str) -> Option<&Volume> {
        self.volumes.get(&self.key_of(volid, host)?)
    }

    pub(crate) fn remove_volume(&mut self, volid: &str, host: &str) -> Option<Volume> {
        let key = self.key_of(volid, host)?;
        self.volumes.remove(&key)
    }

    /// Bytes taken and bytes free of a storage, seen from a host.
    pub(crate) fn usage(&self, storage: &str, host: &str) -> (u64, u64) {
        let place = self.place(storage, host, "");
        let here = self.volumes.iter().filter(|(k, _)| k.storage == place.storage && k.host == place.host);
        let used: u64 = here.map(|(_, v)| v.used).sum();
        let used = used + self.ballast.get(&(place.storage, place.host)).copied().unwrap_or(0);
        let total = self.storage(storage).map_or(0, |s| s.bytes);
        if self.crowded {
            return (total, 0);
        }
        (used.min(total), total.saturating_sub(used))
    }

    /// Path of a volume on the host, as PVE's error texts show it.
    pub(crate) fn path_of(&self, key: &VolumeKey) -> String {
        let root = self.storage(&key.storage).map_or("", |s| s.path.as_str());
        match key.name.split_once('/') {
            Some(("iso", file)) => format!("{root}/template/iso/{file}"),
            Some((kind @ ("import" | "snippets"), file)) => format!("{root}/{kind}/{file}"),
            _ if self.kind_of(&key.storage) != StorageKind::Dir => format!("{root}/{}", key.name),
            _ => format!("{root}/images/{}", own_part(&key.name)),
        }
    }

    /// Puts an image on a storage, unless it is full.
    pub(crate) fn allocate(&mut self, key: VolumeKey, volume: Volume) -> Result<(), String> {
        let path = self.path_of(&key);
        if volume.format == "raw" && volume.bytes > LARGEST_FILE && self.kind_of(&key.storage) == StorageKind::Dir {
            return Err(format!(
                "unable to create image: qemu-img: {path}: The image size is too large for file format 'raw'"
            ));
        }
        let (_, free) = self.usage(&key.storage, &key.host);
        if volume.used > free {
            if self.kind_of(&key.storage) == StorageKind::Thick {
                let (has, needs) = (free / EXTENT, volume.used.div_ceil(EXTENT));
                return Err(format!(
                    "lvcreate 'pve/{}' error: Volume group \"pve\" has insufficient free space ({has} extents): {needs} required.",
                    key.name
                ));
            }
            return Err(format!(
                "unable to create image: qemu-img: {path}: Could not resize file: No space left on device"
            ));
        }
        self.volumes.insert(key, volume);
        Ok(())
    }

    /// An image volume of a VM that takes as much room as it is large.
    pub(crate) fn image(&self, owner: u32, format: &str, bytes: u64) -> Volume {
        Volume {
            content: "images".into(),
            format: format.into(),
            bytes,
            used: bytes,
            ctime: self.epoch(),
            owner: Some(owner),
            parent: None,
            data: Bytes::new(),
            length: None,
            bootable: false,
        }
    }

    /// A file nobody owns, such as an ISO image.
    pub(crate) fn file(&self, content: &str, format: &str, data: Bytes) -> Volume {
        let bytes = data.len() as u64;
        let (content, format) = (content.into(), format.into());
        Volume { content, format, data, owner: None, used: bytes, ..self.image(0, "", bytes) }
    }

    pub(crate) fn kind_of(&self, storage: &str) -> StorageKind {
        self.storage(storage).map_or(StorageKind::Dir, |spec| spec.kind)
    }

    /// Whether a clone on a storage can stand on its base.
    pub(crate) fn can_link(&self, storage: &str) -> bool {
        self.kind_of(storage) != StorageKind::Thick
    }

    /// What an image is called: a file in the folder of its VM, or a device.
    pub(crate) fn image_name(&self, storage: &str, vmid: u32, stem: &str, format: &str) -> String {
        match self.kind_of(storage) {
            StorageKind::Dir => format!("{vmid}/{stem}.{format}"),
            StorageKind::Thin | StorageKind::Thick => stem.to_string(),
        }
    }

    /// The format an image can have on a storage.
    pub(crate) fn possible_format(&self, storage: &str, wanted: &str) -> String {
        if self.kind_of(storage) == StorageKind::Dir { wanted.into() } else { "raw".into() }
    }

    /// The first free `vm-N-disk-K` name of a VM on a storage.
    pub(crate) fn free_disk_name(&self, place: (&str, &str), vmid: u32, format: &str) -> String {
        let home = self.place(place.0, place.1, "");
        let here = |key: &&VolumeKey| key.storage == home.storage && key.host == home.host;
        let taken = |n: usize| {
            let numbers = [format!("vm-{vmid}-disk-{n}"), format!("base-{vmid}-disk-{n}")];
            self.volumes.keys().filter(here).any(|key| {
                let file = key.name.rsplit('/').next().unwrap_or("");
                numbers
                    .iter()
                    .any(|stem| file == stem || file.strip_prefix(stem.as_str()).is_some_and(|r| r.starts_with('.')))
            })
        };
        let number = (0..).find(|n| !taken(*n)).unwrap_or(0);
        self.image_name(place.0, vmid, &format!("vm-{vmid}-disk-{number}"), format)
    }

    /// Whether linked clones still stand on this image.
    pub(crate) fn has_clones(&self, key: &VolumeKey) -> bool {
        let own = own_part(&key.name);
        self.volumes
            .iter()
            .any(|(k, v)| k.storage == key.storage && k.host == key.host && v.parent.as_deref() == Some(own))
    }
}

pub(crate) fn is_on(spec: &StorageSpec, host: &str) -> bool {
    spec.hosts.is_empty() || spec.hosts.iter().any(|h| h == host)
}

/// The name of an image without the base it stands on: `2001/vm-2001-disk-0.qcow2`.
pub(crate) fn own_part(name: &str) -> &str {
    match name.match_indices('/').nth(1) {
        Some((at, _)) => &name[at + 1..],
        None => name,
    }
}

fn content_words(state: &mut State, spec: &StorageSpec) -> String {
    let mut words = spec.content.clone();
    state.chance.shuffle(&mut words);
    words.join(",")
}

/// What PVE calls the plugin behind a storage.
pub(crate) fn plugin(spec: &StorageSpec) -> &'static str {
    match spec.kind {
        StorageKind::Dir => "dir",
        StorageKind::Thin => "lvmthin",
        StorageKind::Thick => "lvm",
    }
}

/// A storage that is looked at is activated, which makes its folders anew.
pub(crate) fn activate(state: &mut State, storage: &str, host: &str) {
    let place = state.place(storage, host, "");
    state.no_iso_folder.remove(&(place.storage, place.host));
}

fn status_row(state: &mut State, spec: &StorageSpec, host: &str) -> Value {
    activate(state, &spec.id, host);
    let on = u8::from(is_on(spec, host));
    let (used, avail) = if on == 1 { state.usage(&spec.id, host) } else { (0, 0) };
    let total = if on == 1 { spec.bytes } else { 0 };
    json!({
        "type": plugin(spec), "content": content_words(state, spec), "enabled": on, "active": on,
        "shared": u8::from(spec.shared), "total": total, "used": used, "avail": avail,
    })
}

/// Whether a caller may know of a storage.
pub(crate) fn is_visible(state: &State, call: &Call, id: &str) -> bool {
    state.may_any(&call.user, &format!("/storage/{id}"), &["Datastore.Audit", "Datastore.AllocateSpace"])
}

pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    if let Some(id) = call.text("storage") {
        state.known_storage(id)?;
    }
    let mut rows = Vec::new();
    for spec in state.config.storages.clone() {
        let wanted = call.text("content").is_none_or(|c| words(c).any(|c| spec.content.iter().any(|s| s == c)));
        let elsewhere = call.text("target").is_some_and(|t| t != call.node() && !(spec.shared && is_on(&spec, t)));
        if !wanted
            || elsewhere
            || call.text("storage").is_some_and(|s| s != spec.id)
            || !is_visible(state, call, &spec.id)
        {
            continue;
        }
        let mut row = status_row(state, &spec, call.node());
        row["storage"] = spec.id.as_str().into();
        if let (Some(used), Some(total @ 1..)) = (row["used"].as_u64(), row["total"].as_u64()) {
            row["used_fraction"] = json!(used as f64 / total as f64);
        }
        if call.flag("format") {
            let (all, default): (&[&str], &str) = match spec.kind {
                StorageKind::Dir => (&["qcow2", "raw", "subvol", "vmdk"], "raw"),
                StorageKind::Thin => (&["raw", "subvol"], "raw"),
                StorageKind::Thick => (&["raw"], "raw"),
            };
            let flags: Map<String, Value> = all.iter().map(|format| (format.to_string(), 1.into())).collect();
            row["format"] = json!([flags, default]);
            row["formats"] = json!({ "default": default, "supported": all });
        }
        rows.push(row);
    }
    state.chance.shuffle(&mut rows);
    Ok(Reply::data(rows.into()))
}

pub(crate) fn status(state: &mut State, call: &Call) -> Answer {
    let spec = state.known_storage(call.word("storage"))?.clone();
    Ok(Reply::data(status_row(state, &spec, call.node())))
}

/// A storage as the cluster's configuration has it.
fn definition(state: &mut State, spec: &StorageSpec) -> Value {
    let mut row = json!({ "storage": spec.id, "type": plugin(spec), "content": content_words(state, spec) });
    match spec.kind {
        StorageKind::Dir => row["path"] = spec.path.as_str().into(),
        StorageKind::Thin => {
            row["thinpool"] = "data".into();
            row["vgname"] = "pve".into();
        }
        StorageKind::Thick => row["vgname"] = "pve".into(),
    }
    if spec.shared {
        row["shared"] = 1.into();
    }
    // The storage every installation comes with spells out what others leave to the default.
    if spec.id == "local" {
        row["shared"] = u8::from(spec.shared).into();
        row["prune-backups"] = "keep-all=1".into();
    }
    if !spec.hosts.is_empty() {
        row["nodes"] = spec.hosts.join(",").into();
    }
    row["digest"] = definitions_digest(state).into();
    row
}

fn definitions_digest(state: &State) -> String {
    let text = state.config.storages.iter().map(|s| format!("{}: {} {:?}\n", plugin(s), s.id, s.content));
    Sha1::digest(text.collect::<String>()).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn definitions(state: &mut State, call: &Call) -> Answer {
    let mut rows = Vec::new();
    for spec in state.config.storages.clone() {
        let visible = state.may_any(
            &call.user,
            &format!("/storage/{}", spec.id),
            &["Datastore.Audit", "Datastore.AllocateSpace"],
        );
        if visible && call.text("type").is_none_or(|kind| kind == plugin(&spec)) {
            rows.push(definition(state, &spec));
        }
    }
    state.chance.shuffle(&mut rows);
    Ok(Reply::data(rows.into()))
}

pub(crate) fn one_definition(state: &mut State, call: &Call) -> Answer {
    let spec = state.known_storage(call.word("storage"))?.clone();
    Ok(Reply::data(definition(state, &spec)))
}
