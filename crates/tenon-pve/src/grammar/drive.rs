//! A VM's drives: disks, CD-ROMs, firmware and TPM state, and what is left over.

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

    /// Its size in bytes, if Proxmox has written it down.
    pub fn size_bytes(&self) -> Option<u64> {
        size_in_bytes(self.get("size")?)
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

/// A size as Proxmox writes it: bytes, or with K, M, G or T for powers of 1024, fractions allowed.
pub fn size_in_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.char_indices().last()? {
        (at, 'K') => (&text[..at], 1_u64 << 10),
        (at, 'M') => (&text[..at], 1 << 20),
        (at, 'G') => (&text[..at], 1 << 30),
        (at, 'T') => (&text[..at], 1 << 40),
        _ => (text, 1),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !is_number {
        return None;
    }
    if let Ok(whole) = digits.parse::<u64>() {
        return whole.checked_mul(unit);
    }
    #[expect(clippy::cast_precision_loss, reason = "a fraction of a unit is not exact to begin with")]
    let bytes = digits.parse::<f64>().ok()? * unit as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "neither negative nor too large")]
    (bytes < 1e18).then_some(bytes.ceil() as u64)
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
        assert_eq!((linked.storage(), linked.size_bytes()), (Some("local"), Some(512 << 20)));
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

    #[test]
    fn sizes_are_powers_of_1024_and_may_have_fractions() {
        for (text, bytes) in
            [("1048576", 1 << 20), ("1M", 1 << 20), ("1.5G", 3 << 29), ("2T", 2 << 40), ("528K", 528 << 10)]
        {
            assert_eq!(size_in_bytes(text), Some(bytes), "{text}");
        }
        for text in ["", "G", "1g", "1Gi", "-1G", "+1G", "1.2.3G", "99999999999999999999T", "é"] {
            assert_eq!(size_in_bytes(text), None, "{text}");
        }
    }
}
