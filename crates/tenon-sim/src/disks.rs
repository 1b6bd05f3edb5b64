//! How the volume a drive asks for is made: empty, imported, for cloud-init, for firmware; and what is said about it.

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

impl State {
    /// Makes the volume a drive asks for, or looks up the size of the one it names. The lines tell how.
    pub(crate) fn make_drive(&mut self, making: &Making<'_>, mut drive: Drive) -> Result<(Drive, Vec<String>), String> {
        let Some((storage, name)) = drive.volume().map(|(s, n)| (s.to_string(), n.to_string())) else {
            return Ok((drive, Vec::new()));
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
            return Ok((drive, lines));
        }
        if let Some(gib) = drive.new_gib() {
            return self.make_image(making, drive, (&storage, gib));
        }
        if let Some(volume) = self.volume(&drive.file, making.host) {
            drive.options.insert("size".into(), keys::format_size(volume.bytes));
        }
        Ok((drive, Vec::new()))
    }

    fn make_image(
        &mut self,
        making: &Making<'_>,
        mut drive: Drive,
        (storage, gib): (&str, f64),
    ) -> Result<(Drive, Vec<String>), String> {
        let source = drive.options.remove("import-from");
        let (from, mut lines) = match &source {
            Some(source) => {
                (Some(self.import_source(making, source)?), vec![format!("create full clone of drive ({source})")])
            }
            None => (None, Vec::new()),
        };
        let wanted = drive.options.remove("format");
        let wanted = wanted.or(from.as_ref().map(|from| from.format.clone())).unwrap_or_else(|| "raw".into());
        let format = self.possible_format(storage, &wanted);
        let bytes = match (making.key, &from) {
            (_, Some(from)) => from.bytes,
            ("efidisk0", None) => EFI_BYTES,
            ("tpmstate0", None) => TPM_BYTES,
            // Sizes are whole kibibytes.
            _ => ((gib * f64::from(1 << 20)) as u64) << 10,
        };
        let name = self.free_disk_name((storage, making.host), making.vmid, &format);
        let key = self.place(storage, making.host, &name);
        lines.push(formatting(self, &key, &format, bytes));
        if from.is_some() {
            lines.push(format!("allocated target volume '{}'", key.volid()));
        }
        if from.is_some() || making.key == "efidisk0" {
            lines.extend(progress(bytes));
        }
        // An imported image takes what was written into it; an empty one is counted in full.
        let (bootable, used) = from.map_or((false, bytes), |from| (from.bootable, from.used.min(bytes)));
        let image = Volume { used, ..self.image(making.vmid, &format, bytes) };
        drive.file = key.volid();
        drive.options.insert("size".into(), keys::format_size(bytes));
        self.allocate(key, Volume { bootable, ..image })?;
        Ok((drive, lines))
    }

    fn import_source(&self, making: &Making<'_>, source: &str) -> Result<Volume, String> {
        let key = self.key_of(source, making.host);
        let path = key.as_ref().map_or_else(|| source.to_string(), |key| self.path_of(key));
        let volume = key.and_then(|key| self.volumes.get(&key).cloned());
        volume.ok_or_else(|| format!("failed to stat '{path}'"))
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
