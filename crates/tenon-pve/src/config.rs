//! The configuration of a VM as Proxmox keeps it: a flat map of texts, with a few questions asked of it.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde_json::Value;

use crate::grammar::devices::BootOrder;
use crate::grammar::drive::Drive;
use crate::grammar::identity::Smbios;
use crate::grammar::notes::Tags;
use crate::grammar::{option_holds, same_option, shape};
use crate::properties::Properties;
use crate::reply::plain;

/// The boot disk of a VM whose configuration does not name one, in the order in which the keys are tried.
const BOOT_DISKS: [&str; 4] = ["virtio0", "scsi0", "sata0", "ide0"];

/// A VM's configuration. Keys this client does not know are kept as they came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VmConfig {
    values: BTreeMap<String, String>,
}

impl VmConfig {
    /// From the object Proxmox answers with.
    pub(crate) fn from_data(data: &Value) -> Option<VmConfig> {
        // What is null is not set; Proxmox leaves it out, but whoever stands between us may not.
        let set = data.as_object()?.iter().filter(|(_, value)| !value.is_null());
        Some(VmConfig { values: set.map(|(key, value)| (key.clone(), plain(value))).collect() })
    }

    /// From what `qm config` prints, or from a VM's file below `/etc/pve`: lines of keys and values. A line that is
    /// neither is handed back with its number.
    pub fn from_lines(text: &str) -> Result<VmConfig, (usize, String)> {
        let mut values = BTreeMap::new();
        for (index, line) in text.lines().map(str::trim).enumerate() {
            // Snapshots follow in sections of their own.
            if line.starts_with('[') {
                break;
            }
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = line.split_once(':').ok_or_else(|| (index + 1, line.to_owned()))?;
            values.insert(key.trim().to_owned(), value.trim().to_owned());
        }
        Ok(VmConfig { values })
    }

    /// The text of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// A key that holds a property string, taken apart.
    pub fn properties(&self, key: &str) -> Option<Properties> {
        self.get(key)?.parse().ok()
    }

    /// The VM's name; one that is being made has none yet.
    pub fn name(&self) -> Option<&str> {
        self.get("name")
    }

    /// The free text people see, in which our proof of ownership stands.
    pub fn description(&self) -> &str {
        self.get("description").unwrap_or_default()
    }

    /// The operation that holds the VM, such as `clone`.
    pub fn lock(&self) -> Option<&str> {
        self.get("lock")
    }

    /// The checksum that makes a write conditional on nobody having changed anything.
    pub fn digest(&self) -> Option<&str> {
        self.get("digest")
    }

    /// Whether it is a template.
    pub fn is_template(&self) -> bool {
        self.get("template") == Some("1")
    }

    /// The SMBIOS uuid: new for each clone, kept over migration, and what the guest reports as its system uuid.
    pub fn uuid(&self) -> Option<String> {
        self.option::<Smbios>("smbios1")?.uuid()
    }

    /// The disk the VM boots from, with its key: the first disk of `boot: order=…`, or `bootdisk` where the boot order
    /// is written the old way. Where neither names a disk of this VM, the usual keys are tried.
    pub fn boot_disk(&self) -> Option<(&str, Drive)> {
        let order: BootOrder = self.option("boot").unwrap_or_default();
        // As in Proxmox, `bootdisk` only counts where there is no order.
        let legacy = self.get("bootdisk").filter(|_| !order.lists_devices());
        order.devices().chain(legacy).chain(BOOT_DISKS).find_map(|key| self.disk(key))
    }

    /// The disk at a key. A CD-ROM drive, Proxmox' own cloud-init drive, firmware and TPM state are no disks.
    fn disk(&self, key: &str) -> Option<(&str, Drive)> {
        let (key, text) = self.values.get_key_value(key).filter(|(key, _)| shape::is_bus(key))?;
        let drive: Drive = text.parse().ok()?;
        (!drive.is_cdrom() && !drive.is_cloudinit()).then_some((key.as_str(), drive))
    }

    /// Every network card, `net0` first.
    pub fn network_cards(&self) -> Vec<(String, Properties)> {
        let number = |key: &str| key.strip_prefix("net").and_then(|digits| digits.parse::<u8>().ok());
        let mut cards: Vec<(u8, String, Properties)> =
            self.values.keys().filter_map(|key| Some((number(key)?, key.clone(), self.properties(key)?))).collect();
        cards.sort_by_key(|(number, ..)| *number);
        cards.into_iter().map(|(_, key, card)| (key, card)).collect()
    }

    /// Every drive, by key: disks, CD-ROMs, firmware and TPM state, and what is left over of removed ones.
    pub fn drives(&self) -> Vec<(&str, Drive)> {
        let is_drive = |key: &str| shape::of(key).is_some_and(|shape| std::ptr::eq(shape, &shape::DRIVE));
        let drives = self.iter().filter(|(key, _)| is_drive(key));
        drives.filter_map(|(key, text)| Some((key, text.parse().ok()?))).collect()
    }

    /// The tags.
    pub fn tags(&self) -> Tags {
        Tags::read(self.get("tags").unwrap_or_default())
    }

    /// The same for every clone of a moment in a VM's life, new for each clone, and out of a token's reach.
    pub fn generation(&self) -> Option<&str> {
        self.get("vmgenid")
    }

    /// A key read as one of the types of options.
    pub fn option<T: FromStr>(&self, key: &str) -> Option<T> {
        self.get(key)?.parse().ok()
    }

    /// Which of these keys a write would change: those that are not there, or do not hold what is wanted.
    pub fn lacking<'a>(&self, wanted: &'a [(&'a str, String)]) -> Vec<&'a str> {
        let holds = |key: &str, text: &str| self.get(key).is_some_and(|present| option_holds(key, text, present));
        wanted.iter().filter(|(key, text)| !holds(key, text)).map(|(key, _)| *key).collect()
    }

    /// Keys in which two configurations differ in meaning, sorted; the digest is not one of them.
    pub fn differences<'a>(&'a self, other: &'a VmConfig) -> Vec<&'a str> {
        let keys: BTreeSet<&str> = self.values.keys().chain(other.values.keys()).map(String::as_str).collect();
        let same = |key: &str| match (self.get(key), other.get(key)) {
            (Some(one), Some(other)) => same_option(key, one, other),
            (one, other) => one == other,
        };
        keys.into_iter().filter(|key| *key != "digest" && !same(key)).collect()
    }

    /// All keys with their texts, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config() -> VmConfig {
        VmConfig::from_data(&json!({
            "name": "node-a", "memory": "1024", "cores": 2, "template": 1, "digest": "abc", "lock": "clone",
            "ide0": "none,media=cdrom",
            "scsi0": "local:1/base-1-disk-0.qcow2,size=512M",
            "net10": "virtio=BC:24:11:00:00:10", "net2": "virtio=BC:24:11:00:00:02", "netmask": "x",
            "smbios1": "uuid=9E01F0B4-0000-4000-8000-000000000001,base64=1",
        }))
        .unwrap()
    }

    #[test]
    fn numbers_and_strings_are_texts_alike() {
        let config = config();
        assert_eq!((config.get("memory"), config.get("cores")), (Some("1024"), Some("2")));
        assert!(config.is_template());
        assert_eq!(config.lock(), Some("clone"));
        assert_eq!(config.uuid().as_deref(), Some("9e01f0b4-0000-4000-8000-000000000001"));
    }

    #[test]
    fn a_cd_rom_is_not_the_boot_disk_and_cards_are_in_order() {
        let config = config();
        assert_eq!(config.boot_disk().map(|(key, _)| key), Some("scsi0"));
        let keys: Vec<String> = config.network_cards().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["net2", "net10"]);
    }

    #[test]
    fn the_boot_disk_is_the_one_the_boot_order_names() {
        let disks = json!({
            "scsi0": "local:2/vm-2-disk-0.qcow2,size=8G", "virtio0": "local:2/vm-2-disk-1.qcow2,size=30G",
            "sata3": "local:2/vm-2-disk-2.qcow2,size=1G", "ide2": "local:iso/seed.iso,media=cdrom",
            "ide3": "local:2/vm-2-cloudinit.qcow2", "efidisk0": "local:2/vm-2-disk-3.qcow2,size=528K",
        });
        let booted = |keys: &[(&str, &str)]| {
            let mut data = disks.clone();
            keys.iter().for_each(|(key, text)| data[*key] = json!(text));
            VmConfig::from_data(&data).unwrap().boot_disk().map(|(key, _)| key.to_owned())
        };
        for (keys, expected) in [
            // As Proxmox VE writes it today.
            (&[("boot", "order=scsi0;ide2;net0")][..], "scsi0"),
            (&[("boot", "order=ide2;net0;sata3;scsi0")], "sata3"),
            (&[("boot", "order=efidisk0;ide3;scsi7;scsi0")], "scsi0"),
            // An order takes precedence over `bootdisk`, even if it names no disk.
            (&[("boot", "order=scsi0"), ("bootdisk", "sata3")], "scsi0"),
            (&[("boot", "order=net0"), ("bootdisk", "sata3")], "virtio0"),
            // As Proxmox VE wrote it before 6.3.
            (&[("boot", "cdn"), ("bootdisk", "scsi0")], "scsi0"),
            (&[("boot", "legacy=c"), ("bootdisk", "sata3")], "sata3"),
            (&[("bootdisk", "scsi0")], "scsi0"),
            (&[("bootdisk", "ide2")], "virtio0"),
            // Nothing names a disk.
            (&[("boot", " ")], "virtio0"),
            (&[("boot", "order=")], "virtio0"),
            (&[], "virtio0"),
        ] {
            assert_eq!(booted(keys).as_deref(), Some(expected), "{keys:?}");
        }
    }

    #[test]
    fn configurations_differ_in_meaning_not_in_spelling() {
        let mut other = json!({
            "name": "node-a", "memory": 1024, "cores": "2", "template": "1", "digest": "def",
            "ide0": "media=cdrom,none", "scsi0": "size=512M,local:1/base-1-disk-0.qcow2",
            "net10": "macaddr=bc:24:11:00:00:10,model=virtio", "net2": "virtio=BC:24:11:00:00:03", "netmask": "x",
            "smbios1": "base64=1,uuid=9E01F0B4-0000-4000-8000-000000000001", "tags": null,
        });
        let differences = |other: &Value| {
            let other = VmConfig::from_data(other).unwrap();
            config().differences(&other).iter().map(|key| (*key).to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(differences(&other), ["lock", "net2"]);
        other["net2"] = json!("virtio=BC:24:11:00:00:02");
        other["lock"] = json!("clone");
        assert!(differences(&other).is_empty());
        let wanted = [("cores", "2".to_owned()), ("net2", "virtio".to_owned()), ("onboot", "1".to_owned())];
        assert_eq!(config().lacking(&wanted), ["onboot"]);
        assert_eq!(config().drives().into_iter().map(|(key, _)| key).collect::<Vec<_>>(), ["ide0", "scsi0"]);
    }

    #[test]
    fn what_is_no_object_is_no_configuration() {
        assert_eq!(VmConfig::from_data(&json!([1])), None);
    }
}
