//! How the volume a drive asks for is made: empty, imported, for cloud-init, for firmware; and what is said about it.

use crate::config::StorageKind;
use crate::images::{formatting, progress};
use crate::keys;
use crate::property::Drive;
use crate::state::State;
use crate::storage::{CLOUDINIT_BYTES, SMALL_BYTES, Volume, VolumeKey};

/// Variables of OVMF take this much, whatever size is asked for.
const EFI_BYTES: u64 = 528 << 10;
/// So does the state of a TPM.
const TPM_BYTES: u64 = 4 << 20;

/// For which VM and under which key a drive is made.
pub(crate) struct Making<'a> {
    pub(crate) vmid: u32,
    pub(crate) host: &'a str,
    pub(crate) key: &'a str,
}

/// The image that is imported.
struct Source {
    name: String,
    path: String,
    volume: Volume,
}

/// A drive whose volume is there, what is told about it, and the copy into it that is still to come.
pub(crate) struct Made {
    pub(crate) drive: Drive,
    pub(crate) lines: Vec<String>,
    pub(crate) import: Option<Import>,
}

impl From<Drive> for Made {
    fn from(drive: Drive) -> Self {
        Self { drive, lines: Vec::new(), import: None }
    }
}

/// The copy of an image into a new volume.
#[derive(Debug)]
pub(crate) struct Import {
    bytes: u64,
    /// How much can be written before the storage is full, when it is too small.
    room: Option<u64>,
    command: String,
}

impl Import {
    /// How the copy ends, with what is told of it.
    pub(crate) fn finish(&self) -> (Vec<String>, Result<(), String>) {
        match self.room {
            None => (progress(self.bytes).into(), Ok(())),
            // Only the log says why; the exit status names the command.
            Some(room) => {
                let line = format!("qemu-img: error while writing at byte {room}: No space left on device");
                (vec![line], Err(format!("copy failed: command '{}' failed: exit code 1", self.command)))
            }
        }
    }

    pub(crate) fn interrupted(&self) -> String {
        format!("copy failed: command '{}' failed: interrupted by signal", self.command)
    }
}

impl State {
    /// Makes the volume a drive asks for, or looks up the size of the one it names.
    pub(crate) fn make_drive(&mut self, making: &Making<'_>, mut drive: Drive) -> Result<Made, String> {
        let Some((storage, name)) = drive.volume().map(|(s, n)| (s.to_string(), n.to_string())) else {
            return Ok(drive.into());
        };
        if name == "cloudinit" {
            let (format, stem) = (self.possible_format(&storage, "qcow2"), format!("vm-{}-cloudinit", making.vmid));
            let name = self.image_name(&storage, making.vmid, &stem, &format);
            let key = self.place(&storage, making.host, &name);
            let lines = vec![formatting(self, &key, &format, CLOUDINIT_BYTES)];
            let image = self.image(making.vmid, &format, CLOUDINIT_BYTES);
            drive.file = key.volid();
            drive.options.insert("media".into(), "cdrom".into());
            self.allocate(key, Volume { used: SMALL_BYTES, ..image })?;
            return Ok(Made { lines, ..drive.into() });
        }
        if let Some(gib) = drive.new_gib() {
            return self.make_image(making, drive, (&storage, gib));
        }
        if let Some(volume) = self.volume(&drive.file, making.host) {
            drive.options.insert("size".into(), keys::format_size(volume.bytes));
        }
        Ok(drive.into())
    }

    fn make_image(
        &mut self,
        making: &Making<'_>,
        mut drive: Drive,
        (storage, gib): (&str, f64),
    ) -> Result<Made, String> {
        let source = drive.options.remove("import-from");
        let from = source.map(|source| self.import_source(making, &source)).transpose()?;
        let wanted = drive.options.remove("format");
        let wanted = wanted.or(from.as_ref().map(|from| from.volume.format.clone())).unwrap_or_else(|| "raw".into());
        let format = self.possible_format(storage, &wanted);
        let bytes = match (making.key, &from) {
            (_, Some(from)) => from.volume.bytes,
            ("efidisk0", None) => EFI_BYTES,
            ("tpmstate0", None) => TPM_BYTES,
            // Sizes are whole kibibytes.
            _ => ((gib * f64::from(1 << 20)) as u64) << 10,
        };
        let name = self.free_disk_name((storage, making.host), making.vmid, &format);
        let key = self.place(storage, making.host, &name);
        drive.file = key.volid();
        drive.options.insert("size".into(), keys::format_size(bytes));
        let mut lines = vec![formatting(self, &key, &format, bytes)];
        let image = self.image(making.vmid, &format, bytes);
        let Some(from) = from else {
            if making.key == "efidisk0" {
                lines.extend(progress(bytes));
            }
            // An empty image is counted in full.
            self.allocate(key, image)?;
            return Ok(Made { lines, ..drive.into() });
        };
        lines.insert(0, format!("create full clone of drive ({})", from.name));
        lines.push(format!("allocated target volume '{}'", key.volid()));
        let import = self.import(&from, (&key, &format));
        // An imported image takes what was written into it.
        let used = import.room.unwrap_or(from.volume.used.min(bytes));
        self.allocate(key, Volume { bootable: from.volume.bootable, used, ..image })?;
        Ok(Made { lines, import: Some(import), ..drive.into() })
    }

    /// The copy of an image. A file grows while it is written, so it begins even where there is no room for it.
    fn import(&self, from: &Source, (to, format): (&VolumeKey, &str)) -> Import {
        let (_, free) = self.usage(&to.storage, &to.host);
        let needed = from.volume.used.min(from.volume.bytes);
        let room = (needed > free && self.kind_of(&to.storage) == StorageKind::Dir).then_some(free);
        let command = format!(
            "/usr/bin/qemu-img convert -p -n -f {} -O {format} {} zeroinit:{}",
            from.volume.format,
            from.path,
            self.path_of(to)
        );
        Import { bytes: from.volume.bytes, room, command }
    }

    fn import_source(&self, making: &Making<'_>, name: &str) -> Result<Source, String> {
        let key = self.key_of(name, making.host);
        let path = key.as_ref().map_or_else(|| name.to_string(), |key| self.path_of(key));
        let volume = key.and_then(|key| self.volumes.get(&key).cloned());
        let volume = volume.ok_or_else(|| format!("failed to stat '{path}'"))?;
        Ok(Source { name: name.into(), path, volume })
    }

    /// The volumes a VM's config refers to and that are its own.
    pub(crate) fn own_volumes(&self, vmid: u32, host: &str) -> Vec<VolumeKey> {
        let Some(vm) = self.vms.get(&vmid) else { return Vec::new() };
        let others = vm.config.iter().filter(|(key, _)| key.starts_with("unused") || *key == "vmstate");
        let files = vm.drives().into_iter().map(|(_, d)| d.file);
        let files = files.chain(others.map(|(_, value)| Drive::stored(value).file));
        let keys = files.filter_map(|file| self.key_of(&file, host));
        keys.filter(|key| self.volumes.get(key).is_some_and(|v| v.owner == Some(vmid))).collect()
    }
}
