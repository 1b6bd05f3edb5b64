//! How the drives of a clone are made: which volume, on what it stands, and what the log says about it.

use crate::clone::CloneJob;
use crate::config::StorageKind;
use crate::images::{BackingFile, formatting, formatting_on, progress};
use crate::keys;
use crate::property::Drive;
use crate::state::State;
use crate::storage::{CLOUDINIT_BYTES, SMALL_BYTES, Volume, VolumeKey, own_part};

impl CloneJob {
    pub(crate) fn tell_copied(&self, state: &mut State, upid: &str, (key, bytes): (&str, u64)) {
        let running = state.vms.get(&self.source).is_some_and(|vm| vm.running.is_some());
        let [first, .., last] = progress(bytes);
        let lines = if running {
            vec![
                format!("drive mirror is starting for drive-{key}"),
                format!("mirror-{key}: {first} in 0s"),
                format!("mirror-{key}: {last} in 1s, ready"),
                "all 'mirror' jobs are ready".into(),
                "skipping guest filesystem freeze - disabled in VM options".into(),
                "suspend vm".into(),
                format!("mirror-{key}: Cancelling block job"),
                format!("mirror-{key}: Done."),
                "resume vm".into(),
            ]
        } else {
            progress(bytes).into()
        };
        lines.into_iter().for_each(|line| state.log(upid, line));
    }

    /// What waits for the source's next start is not copied.
    pub(crate) fn tell_discarded(&self, state: &mut State, upid: &str) {
        let pending = state.vms.get(&self.source).map(|vm| vm.pending.clone()).unwrap_or_default();
        if pending.is_empty() {
            return;
        }
        let deletes = pending.values().any(Option::is_none).then(|| "delete".to_string());
        let keys = pending.into_iter().filter(|(_, value)| value.is_some()).map(|(key, _)| key);
        let keys: Vec<String> = deletes.into_iter().chain(keys).collect();
        state.log(upid, format!("found pending changes for '{}', discarding for clone", keys.join(",")));
    }

    /// The command that copies the drive that is being made.
    pub(crate) fn copy_command(&self, state: &State) -> String {
        let paths = self.current_source().and_then(|drive| {
            let (from, to) = (state.key_of(&drive.file, &self.host)?, self.made.last()?);
            let formats =
                [&from, to].map(|key| state.volumes.get(key).map_or("raw", |v| v.format.as_str()).to_string());
            Some(format!("-f {} -O {} {} zeroinit:{}", formats[0], formats[1], state.path_of(&from), state.path_of(to)))
        });
        let limit = self.order.limit.map_or(String::new(), |limit| format!("-r {limit}K "));
        format!("/usr/bin/qemu-img convert -p -n {limit}{}", paths.unwrap_or_default())
    }

    /// Makes the volume a copy of this drive needs, and tells of it.
    pub(crate) fn copy_drive(
        &mut self,
        state: &mut State,
        upid: &str,
        (_, mut drive): (&str, Drive),
    ) -> Result<Drive, String> {
        let Some((storage, name)) = drive.volume().map(|(s, n)| (s.to_string(), n.to_string())) else {
            return Ok(drive);
        };
        if drive.is_cdrom() && !drive.is_cloudinit() {
            return Ok(drive);
        }
        let from = state.volume(&drive.file, &self.host).cloned();
        let from = from.ok_or_else(|| format!("volume '{}' does not exist", drive.file))?;
        let to = self.order.storage.clone().unwrap_or(storage);
        let wanted = self.order.format.clone().unwrap_or_else(|| from.format.clone());
        let format = state.possible_format(&to, &wanted);
        let linked = !self.order.full && !drive.is_cloudinit();
        let (name, volume) = if drive.is_cloudinit() {
            let name = state.image_name(&to, self.newid, &format!("vm-{}-cloudinit", self.newid), &format);
            (name, Volume { used: SMALL_BYTES, ..state.image(self.newid, &format, CLOUDINIT_BYTES) })
        } else if self.order.full {
            let name = state.free_disk_name((&to, &self.host), self.newid, &format);
            // A copy takes what its source takes; what stands on a base is counted in full.
            let used = if from.parent.is_some() { from.bytes } else { from.used };
            (name, Volume { used, ..state.image(self.newid, &format, from.bytes) })
        } else {
            self.linked_volume(state, &to, &name, &from)
        };
        let key = state.place(&to, &self.host, &name);
        let mut volume = volume;
        if self.order.full && !drive.is_cdrom() && state.kind_of(&to) == StorageKind::Dir {
            // A file grows while it is written, so the copy begins even where there is no room for it.
            let (_, free) = state.usage(&to, &self.host);
            self.starved = volume.used > free;
            volume.used = volume.used.min(free);
        }
        if state.volumes.contains_key(&key) {
            return Err(format!("disk image '{}' already exists", state.path_of(&key)));
        }
        let lines = if linked {
            linked_lines(state, &key, (&from, volume.parent.as_deref()))
        } else {
            let made = formatting(state, &key, &volume.format, volume.bytes);
            vec![made, format!("allocated target volume '{}'", key.volid())]
        };
        drive.file = key.volid();
        drive.options.insert("size".into(), keys::format_size(volume.bytes));
        state.allocate(key.clone(), Volume { bootable: from.bootable, ..volume })?;
        lines.into_iter().for_each(|line| state.log(upid, line));
        self.made.push(key);
        Ok(drive)
    }

    /// An image on `storage` that stands on a base: its name and itself.
    fn linked_volume(&self, state: &State, storage: &str, base_name: &str, base: &Volume) -> (String, Volume) {
        let format = state.possible_format(storage, "qcow2");
        let own = state.free_disk_name((storage, &self.host), self.newid, &format);
        let image = state.image(self.newid, &format, base.bytes);
        let used = SMALL_BYTES.min(base.bytes);
        match state.kind_of(storage) {
            StorageKind::Dir => {
                let parent = Some(own_part(base_name).to_string());
                (format!("{}/{own}", own_part(base_name)), Volume { used, parent, ..image })
            }
            // A thin snapshot knows no parent: the base may go before it.
            StorageKind::Thin | StorageKind::Thick => (own, Volume { used, ..image }),
        }
    }
}

fn linked_lines(state: &State, key: &VolumeKey, (from, parent): (&Volume, Option<&str>)) -> Vec<String> {
    let Some(parent) = parent else { return Vec::new() };
    let own = own_part(&key.name);
    let (folder, file) = own.split_once('/').unwrap_or(("", own));
    vec![
        format!("clone {parent}: images, {file}, {folder} to {file} (base=../{parent})"),
        formatting_on(state, key, &BackingFile { name: parent, format: &from.format }, from.bytes),
    ]
}
