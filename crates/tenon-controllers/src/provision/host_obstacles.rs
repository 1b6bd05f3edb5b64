//! Why can VMs of a class not be made on a host, although the host has room? Each answer names what is missing.

use tenon_api::{CloneMode, InstanceTemplateKind, InstanceTemplateRef, ProxmoxNodeClass};
use tenon_model::{Place, PveSize};
use tenon_pve::{HostRow, Interface, StorageRow, VmConfig};

use crate::claim::disk_storage;
use crate::status::Estate;

const GIB: u64 = 1 << 30;

/// A linked clone begins with nothing and grows; with less than this free it cannot even begin.
const LINKED_CLONE_BYTES: u64 = GIB;

/// Why nothing can be made on a host, if nothing can.
pub(super) fn of_host(row: &HostRow, is_excluded: bool, ha_state: Option<&str>) -> Option<String> {
    if is_excluded {
        return Some("the host is excluded in the cloud config".to_owned());
    }
    match (ha_state, row.status.as_deref(), row.maxcpu, row.maxmem) {
        (Some("maintenance"), ..) => Some("the host is in maintenance mode".to_owned()),
        (_, Some("online"), Some(_), Some(_)) => None,
        (_, Some("online"), ..) => {
            Some("the API token cannot read its CPU and memory; grant Sys.Audit on the host".to_owned())
        }
        (_, status, ..) => Some(format!("the host is {}", status.unwrap_or("in an unknown state"))),
    }
}

/// Whether a class means to make VMs on a host at all.
pub(super) fn is_wanted(class: &ProxmoxNodeClass, place: &Place) -> bool {
    let in_region = class.spec.region.as_deref().is_none_or(|region| region == place.region);
    in_region && !class.spec.placement_strategy.excludes(place.host.as_str())
}

/// What is known of a host for VMs of a class.
pub(super) struct ClassOnHost<'a> {
    pub(super) class: &'a ProxmoxNodeClass,
    pub(super) place: &'a Place,
    /// The template, if it could be read.
    pub(super) template: Option<&'a VmConfig>,
    /// The bridges of the host; none if the API token may not see them.
    pub(super) bridges: &'a [Interface],
}

impl ClassOnHost<'_> {
    /// Why no VM of the class can be made there, if none can: its disk has no place, or a card no bridge.
    pub(super) fn obstacle(&self, estate: &Estate) -> Option<String> {
        self.no_storage(estate).or_else(|| self.no_template(estate)).or_else(|| self.no_bridge())
    }

    /// What a host lacks that was not selected for the class. The selection is a few seconds old; without any, the class says
    /// itself why it is not ready.
    fn no_template(&self, estate: &Estate) -> Option<String> {
        let Place { region, host } = self.place;
        let selected = self.class.status.as_ref()?.selected_zones.as_ref().filter(|zones| !zones.is_empty())?;
        let here = format!("{region}/{host}/");
        if selected.iter().any(|zone| zone.starts_with(&here)) {
            return None;
        }
        let storage = self.class.spec.boot_device.storage.as_deref().filter(|storage| !storage.is_empty());
        if let Some(storage) = storage.filter(|storage| estate.storage(region, host.as_str(), storage).is_none()) {
            return Some(format!(
                "the host has no storage {storage}, or the API token cannot see it; enable the storage on the host, grant \
                 Datastore.Audit on it, or choose another bootDevice.storage"
            ));
        }
        let InstanceTemplateRef { kind, name } = &self.class.spec.instance_template_ref;
        Some(match kind {
            InstanceTemplateKind::ProxmoxTemplate => format!(
                "the host has no VM template of ProxmoxTemplate {name}, and cannot use that of another host; see \
                 `tenon template status {name}`"
            ),
            InstanceTemplateKind::ProxmoxUnmanagedTemplate => format!(
                "the host has no VM template of ProxmoxUnmanagedTemplate {name}, and cannot use that of another host; create \
                 one there, or keep the disks of template and VMs on shared storage"
            ),
        })
    }

    fn no_storage(&self, estate: &Estate) -> Option<String> {
        let lies_on = self.template.and_then(disk_storage);
        let named = self.class.spec.boot_device.storage.clone().filter(|storage| !storage.is_empty());
        let storage = named.clone().or_else(|| lies_on.clone())?;
        // A storage that is not listed may be one that the API token cannot see.
        let row = estate.storage(&self.place.region, self.place.host.as_str(), &storage)?;
        let is_full = self.class.spec.clone_mode == Some(CloneMode::Full) || (named.is_some() && named != lies_on);
        let disk = self.template.and_then(VmConfig::boot_disk).and_then(|(_, drive)| drive.size());
        let least = disk.map_or(0, PveSize::bytes).max(self.class.spec.boot_device.size_gigabytes() * GIB);
        storage_obstacle(row, if is_full { least } else { LINKED_CLONE_BYTES })
    }

    fn no_bridge(&self) -> Option<String> {
        if self.bridges.is_empty() {
            return None;
        }
        let has = |bridge: &str| self.bridges.iter().any(|known| known.iface == bridge);
        let cards = self.template?.network_cards();
        let missing = cards.iter().find_map(|(key, card)| Some((key, card.get("bridge").filter(|name| !has(name))?)));
        missing.map(|(key, bridge)| {
            format!(
                "the host has no bridge {bridge}, which {key} of the template needs; create the bridge, or grant SDN.Use on it"
            )
        })
    }
}

fn storage_obstacle(row: &StorageRow, needed: u64) -> Option<String> {
    let name = &row.storage;
    if row.status.as_deref() != Some("available") {
        return Some(format!("storage {name} is not available there"));
    }
    if !row.takes("images") {
        return Some(format!("storage {name} does not allow disks; allow content type images on it"));
    }
    (row.free() < needed).then(|| {
        let gib = |bytes: u64| bytes.div_ceil(GIB);
        format!(
            "storage {name} has {} GiB free, and a VM needs {} GiB; free space on it",
            row.free() / GIB,
            gib(needed)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage(status: &str, content: &str, free_gib: u64) -> StorageRow {
        StorageRow {
            storage: "fast".to_owned(),
            host: "pve1".parse().unwrap(),
            status: Some(status.to_owned()),
            shared: false,
            content: content.to_owned(),
            disk: Some(0),
            maxdisk: Some(free_gib * GIB),
        }
    }

    #[test]
    fn a_storage_that_cannot_take_the_disk_is_named_with_the_cause() {
        let why = |row: &StorageRow| storage_obstacle(row, 30 * GIB).unwrap_or_default();
        assert_eq!(why(&storage("available", "images,iso", 31)), "");
        assert_eq!(why(&storage("unknown", "images", 99)), "storage fast is not available there");
        assert!(why(&storage("available", "iso", 99)).contains("allow content type images"));
        let full = why(&storage("available", "images", 12));
        assert_eq!(full, "storage fast has 12 GiB free, and a VM needs 30 GiB; free space on it");
    }

    #[test]
    fn a_host_that_takes_no_vm_says_why() {
        let row = |status: &str, cpus| HostRow {
            host: "pve1".parse().unwrap(),
            status: Some(status.to_owned()),
            maxcpu: cpus,
            maxmem: cpus,
            cpu: None,
            mem: None,
        };
        assert_eq!(of_host(&row("online", Some(4)), false, Some("online")), None);
        assert_eq!(of_host(&row("online", Some(4)), false, None), None, "nothing is managed by HA");
        assert!(of_host(&row("online", Some(4)), true, None).unwrap().contains("excluded"));
        assert!(of_host(&row("online", Some(4)), false, Some("maintenance")).unwrap().contains("maintenance mode"));
        assert!(of_host(&row("online", None), false, None).unwrap().contains("Sys.Audit"));
        assert_eq!(of_host(&row("offline", None), false, None).unwrap(), "the host is offline");
    }

    #[test]
    fn a_bridge_that_the_host_lacks_is_named_with_the_card() {
        let class = ProxmoxNodeClass::new("default", Default::default());
        let place = Place { region: "lab".to_owned(), host: "pve1".parse().unwrap() };
        let template = VmConfig::from_lines("net0: virtio=00:1A:2B:3C:4D:5E,bridge=vmbr7").unwrap();
        let bridge = |name: &str| -> Interface {
            serde_json::from_value(serde_json::json!({ "iface": name, "type": "bridge" })).unwrap()
        };
        let why = |bridges: &[Interface]| {
            ClassOnHost { class: &class, place: &place, template: Some(&template), bridges }.no_bridge()
        };
        let told = why(&[bridge("vmbr0")]).unwrap();
        assert!(told.contains("no bridge vmbr7, which net0 of the template needs"), "{told}");
        assert_eq!(why(&[bridge("vmbr0"), bridge("vmbr7")]), None);
        assert_eq!(why(&[]), None, "a token that sees no bridges says nothing of them");
    }
}
