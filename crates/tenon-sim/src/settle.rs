//! What becomes of staged config values: which take effect now, which wait for the next start, and what
//! else changes with them (volumes, boot order).

use crate::keys;
use crate::property::Drive;
use crate::state::State;
use crate::vm::Vm;

/// Keys that take effect on a running VM.
const LIVE: &[&str] = &[
    "autostart",
    "ciuser",
    "cipassword",
    "citype",
    "description",
    "hookscript",
    "hotplug",
    "name",
    "nameserver",
    "onboot",
    "protection",
    "searchdomain",
    "shares",
    "sshkeys",
    "startup",
    "tags",
    "vmstatestorage",
];

impl State {
    /// Applies what can be applied of the pending section.
    pub(crate) fn settle(&mut self, vmid: u32) {
        let Some(vm) = self.vms.get_mut(&vmid) else { return };
        let ready: Vec<String> =
            vm.pending.iter().filter(|(k, v)| is_live(vm, k, v.as_deref())).map(|(k, _)| k.clone()).collect();
        for key in ready {
            let value = self.vms.get_mut(&vmid).and_then(|vm| vm.pending.remove(&key)).flatten();
            self.commit(vmid, &key, value.as_deref());
        }
    }

    fn commit(&mut self, vmid: u32, key: &str, value: Option<&str>) {
        let Some(vm) = self.vms.get_mut(&vmid) else { return };
        let stopped = vm.running.is_none();
        let old = match value {
            Some(value) => vm.config.insert(key.to_string(), value.to_string()),
            None => vm.config.remove(key),
        };
        if !keys::is_disk_key(key) && !key.starts_with("unused") {
            return;
        }
        let new = value.map(Drive::stored);
        update_boot_order(vm, key, new.as_ref());
        let Some(old) = old.map(|old| Drive::stored(&old)) else { return };
        if new.as_ref().is_some_and(|new| new.file == old.file) || old.volume().is_none() {
            return;
        }
        let host = vm.host.clone();
        if key.starts_with("unused") || old.is_cloudinit() && stopped {
            self.remove_volume(&old.file, &host);
        } else if !old.is_cdrom() && !old.is_cloudinit() {
            // A detached disk is kept, under a name nothing boots from.
            let free = (0..256).map(|n| format!("unused{n}")).find(|k| !vm.config.contains_key(k));
            if let Some(free) = free {
                vm.config.insert(free, old.file);
            }
        }
        // A cloud-init volume replaced under a running VM is left behind: nothing refers to it any more.
    }
}

fn is_live(vm: &Vm, key: &str, new: Option<&str>) -> bool {
    if vm.running.is_none() || LIVE.contains(&key) || keys::is_net(key) || key.starts_with("ipconfig") {
        return true;
    }
    let old = vm.get(key).map(Drive::stored);
    match (keys::is_drive(key), old, new.map(Drive::stored)) {
        // Only the medium of an existing CD drive changes.
        (true, Some(old), Some(new)) => old.is_cdrom() && new.is_cdrom(),
        // SCSI and virtio disks are hot-plugged, IDE and SATA are not.
        (true, None, Some(_)) | (true, Some(_), None) => key.starts_with("scsi") || key.starts_with("virtio"),
        _ => false,
    }
}

/// A CD with a medium joins the boot order, a deleted drive leaves it; on a running VM that waits too.
pub(crate) fn update_boot_order(vm: &mut Vm, key: &str, new: Option<&Drive>) {
    let boot = vm.shown().remove("boot").unwrap_or_default();
    let Some(order) = boot.strip_prefix("order=") else { return };
    let mut devices: Vec<&str> = order.split(';').filter(|d| !d.is_empty()).collect();
    let joins = new.is_some_and(|d| d.is_cdrom() && !d.is_cloudinit() && d.volume().is_some());
    match devices.iter().position(|d| *d == key) {
        None if joins => devices.push(key),
        Some(at) if new.is_none() => {
            devices.remove(at);
        }
        _ => return,
    }
    let order = format!("order={}", devices.join(";"));
    if vm.running.is_some() {
        vm.pending.insert("boot".into(), Some(order));
    } else {
        vm.config.insert("boot".into(), order);
    }
}
