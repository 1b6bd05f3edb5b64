//! A VM's drives: disks, CD-ROMs, firmware and TPM state, and what is left over.

use tenon_model::PveSize;

use super::option_type;
use super::shape::DRIVE;
use crate::properties::PropertiesError;

option_type!(
    /// A drive: `local:100/vm-100-disk-0.qcow2,size=8G`, `none,media=cdrom`, or an order for one: `local:0,import-from=…`.
    Drive,
    DRIVE
);

impl Drive {
    /// The volume, `none` or `cdrom`, or what is to be made.
    pub fn file(&self) -> Option<&str> {
        self.get("file")
    }

    /// The storage its volume is on.
    pub fn storage(&self) -> Option<&str> {
        self.file()?.split_once(':').map(|(storage, _)| storage).filter(|storage| !storage.starts_with('/'))
    }

    /// Its size, if Proxmox has written it down.
    pub fn size(&self) -> Option<PveSize> {
        self.get("size")?.parse().ok()
    }

    /// Whether it is a CD-ROM drive, with or without something in it.
    pub fn is_cdrom(&self) -> bool {
        self.get("media") == Some("cdrom")
    }

    /// Whether it is the drive Proxmox itself writes for cloud-init.
    pub fn is_cloudinit(&self) -> bool {
        let Some((_, volume)) = self.file().and_then(|file| file.split_once(':')) else { return false };
        let name = volume.rsplit('/').next().unwrap_or_default();
        let is_named_so =
            name.starts_with("vm-") && name.split('.').next().is_some_and(|stem| stem.ends_with("-cloudinit"));
        volume == "cloudinit" || is_named_so
    }

    /// Sets a property where it stands, or at the end. The volume stays what it is.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), PropertiesError> {
        if DRIVE.name_of(Some(name)) == "file" {
            return Err(PropertiesError::refusing(&format!("{name}={value}")));
        }
        self.0.set(name, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drive(text: &str) -> Drive {
        text.parse().unwrap()
    }

    #[test]
    fn a_drive_says_what_it_is() {
        let linked = drive("local:1001/base-1001-disk-0.qcow2/2001/vm-2001-disk-0.qcow2,discard=on,size=512M");
        assert_eq!((linked.storage(), linked.size()), (Some("local"), Some(PveSize::from_bytes(512 << 20))));
        assert!(!linked.is_cdrom() && !linked.is_cloudinit());
        assert!(drive("local:2001/vm-2001-cloudinit.qcow2,media=cdrom").is_cloudinit());
        assert!(drive("fast:vm-2001-cloudinit,media=cdrom").is_cloudinit());
        assert!(drive("local:cloudinit").is_cloudinit());
        assert!(!drive("local:iso/cloudinit.iso,media=cdrom").is_cloudinit());
        assert!(drive("none,media=cdrom").is_cdrom() && drive("none,media=cdrom").storage().is_none());
        assert_eq!(drive("file=a:1/x").file(), Some("a:1/x"));
    }

    #[test]
    fn a_volume_is_not_swapped_by_setting_a_property() {
        let mut disk = drive("a:1/x,size=1G");
        disk.set("ssd", "1").unwrap();
        assert_eq!(disk.to_string(), "a:1/x,size=1G,ssd=1");
        assert!(disk.set("file", "b:1/y").is_err() && disk.set("volume", "b:1/y").is_err());
    }
}
