//! Which privilege a config key needs, and what else one must be allowed to use with it: storages, bridges, mappings.
//!
//! Storages are asked about first, then each key, then what the key refers to.

use std::collections::BTreeMap;

use crate::changes::Changes;
use crate::keys;
use crate::params::Call;
use crate::property::{Drive, NetDev};
use crate::rights::forbidden;
use crate::schema::{numbered, parse_property};
use crate::state::State;
use crate::vm::Vm;
use crate::wire::Refusal;

const CPU: &[&str] = &["cores", "cpu", "cpulimit", "cpuunits", "numa", "smp", "sockets", "vcpus"];
const MEMORY: &[&str] = &["balloon", "memory", "shares"];
const HARDWARE: &[&str] =
    &["acpi", "audio0", "hotplug", "kvm", "machine", "rng0", "scsihw", "smbios1", "tablet", "vga", "watchdog"];
const CLOUD_INIT: &[&str] =
    &["cicustom", "cipassword", "citype", "ciupgrade", "ciuser", "nameserver", "searchdomain", "sshkeys"];

/// Who wants what of which VM; a VM that is still to be made may have its rights from a pool.
struct Asker<'a> {
    state: &'a State,
    who: &'a str,
    vmid: u32,
    pool: Option<&'a str>,
}

impl Asker<'_> {
    /// One of these privileges on the VM or on the pool it goes into.
    fn on_vm(&self, privileges: &[&str]) -> Result<(), Refusal> {
        let path = format!("/vms/{}", self.vmid);
        let pool = self.pool.map(|pool| format!("/pool/{pool}"));
        if self.state.may_any(self.who, &path, privileges)
            || pool.is_some_and(|pool| self.state.may_any(self.who, &pool, privileges))
        {
            return Ok(());
        }
        Err(forbidden(Some(&format!("{path}, {}", privileges.join("|")))))
    }

    fn on(&self, path: &str, privileges: &[&str]) -> Result<(), Refusal> {
        if self.state.may_any(self.who, path, privileges) {
            return Ok(());
        }
        Err(forbidden(Some(&format!("{path}, {}", privileges.join("|")))))
    }

    fn storage(&self, id: &str) -> Result<(), Refusal> {
        self.on(&format!("/storage/{id}"), &["Datastore.AllocateSpace"])
    }

    /// The bridge of a network device, and with a tag that network, too.
    fn bridge(&self, value: &str) -> Result<(), Refusal> {
        let net = NetDev::read(value);
        let Some(bridge) = net.options.get("bridge") else { return Ok(()) };
        let path = format!("/sdn/zones/localnetwork/{bridge}");
        if let Some(tag) = net.options.get("tag") {
            self.on(&format!("{path}/{tag}"), &["SDN.Use"])?;
        }
        self.on(&path, &["SDN.Use"])
    }

    fn key(&self, key: &str, old: Option<&Drive>, new: Option<&str>) -> Result<(), Refusal> {
        if keys::is_disk_key(key) {
            return self.drive(old, new.map(|value| Drive::read(key, value)).as_ref());
        }
        let stem = numbered(key).map_or(key, |(stem, _)| stem);
        match (key, stem) {
            (_, "net") => {
                self.on_vm(&["VM.Config.Network"])?;
                new.map_or(Ok(()), |value| self.bridge(value))
            }
            (_, "hostpci") => {
                let mapping = new.and_then(|value| parse_property("pve-qm-hostpci", value).remove("mapping"));
                if let Some(mapping) = mapping {
                    self.on(&format!("/mapping/pci/{mapping}"), &["Mapping.Use"])?;
                }
                self.on_vm(&["VM.Config.HWType"])
            }
            (_, "serial" | "usb" | "parallel") => self.on_vm(&["VM.Config.HWType"]),
            (_, "ipconfig") => self.on_vm(&["VM.Config.Cloudinit", "VM.Config.Network"]),
            (_, "unused") => self.on_vm(&["VM.Config.Disk"]),
            ("numa", _) | (_, "numa") => self.on_vm(&["VM.Config.CPU"]),
            ("startup", _) => {
                self.on_vm(&["VM.Config.Options"])?;
                self.on("/", &["Sys.Modify"])
            }
            _ if CPU.contains(&key) => self.on_vm(&["VM.Config.CPU"]),
            _ if MEMORY.contains(&key) => self.on_vm(&["VM.Config.Memory"]),
            _ if HARDWARE.contains(&key) => self.on_vm(&["VM.Config.HWType"]),
            _ if CLOUD_INIT.contains(&key) => self.on_vm(&["VM.Config.Cloudinit", "VM.Config.Network"]),
            ("boot" | "bootdisk" | "vmstatestorage", _) => self.on_vm(&["VM.Config.Disk", "VM.Config.Options"]),
            _ => self.on_vm(&["VM.Config.Options"]),
        }
    }

    fn drive(&self, old: Option<&Drive>, new: Option<&Drive>) -> Result<(), Refusal> {
        let either = |is: fn(&Drive) -> bool| old.is_some_and(is) || new.is_some_and(is);
        if either(Drive::is_cloudinit) {
            self.on_vm(&["VM.Config.Cloudinit"])?;
        }
        if either(Drive::is_cdrom) || either(Drive::is_cloudinit) {
            return self.on_vm(&["VM.Config.CDROM"]);
        }
        self.on_vm(&["VM.Config.Disk"])
    }

    fn storages(&self, set: &BTreeMap<String, String>) -> Result<(), Refusal> {
        for (key, value) in set.iter().filter(|(key, _)| keys::is_disk_key(key)) {
            let drive = Drive::read(key, value);
            let Some((storage, _)) = drive.volume() else { continue };
            if drive.is_cdrom() && !drive.is_cloudinit() {
                self.on(&format!("/storage/{storage}"), &["Datastore.AllocateSpace", "Datastore.Audit"])?;
            } else {
                self.storage(storage)?;
            }
            if let Some(source) = drive.options.get("import-from") {
                self.import_source(source)?;
            }
        }
        Ok(())
    }

    /// The disk of a VM is copied like a clone; a file to import is only read.
    fn import_source(&self, source: &str) -> Result<(), Refusal> {
        let Some((storage, name)) = source.split_once(':') else { return Ok(()) };
        match name.split_once('/').and_then(|(folder, _)| folder.parse::<u32>().ok()) {
            Some(owner) => self.on(&format!("/vms/{owner}"), &["VM.Clone"]),
            None => self.on(&format!("/storage/{storage}"), &["Datastore.AllocateSpace", "Datastore.Audit"]),
        }
    }
}

/// Whether a caller may change these keys of a VM.
pub(crate) fn check_changes(state: &State, call: &Call, changes: &Changes) -> Result<(), Refusal> {
    let asker = Asker { state, who: &call.user, vmid: call.vmid(), pool: None };
    asker.storages(&changes.set)?;
    let vm = state.vms.get(&call.vmid());
    let old = |key: &str| vm.and_then(|vm| vm.get(key)).map(Drive::stored);
    for (key, value) in &changes.set {
        asker.key(key, old(key).as_ref(), Some(value))?;
    }
    changes.delete.iter().try_for_each(|key| asker.key(key, old(key).as_ref(), None))
}

/// Whether a caller may make a VM with these keys. Tags are asked about later, by the worker.
pub(crate) fn check_creation(state: &State, call: &Call, set: &BTreeMap<String, String>) -> Result<(), Refusal> {
    let asker = Asker { state, who: &call.user, vmid: call.vmid(), pool: call.text("pool") };
    asker.on_vm(&["VM.Allocate"]).map_err(|_| forbidden(None))?;
    asker.storages(set)?;
    set.iter().filter(|(key, _)| *key != "tags").try_for_each(|(key, value)| asker.key(key, None, Some(value)))
}

/// Tags of a new VM are asked about without regard to its pool, when everything else is done.
pub(crate) fn check_new_tags(state: &State, who: &str, vmid: u32) -> Result<(), String> {
    let asker = Asker { state, who, vmid, pool: None };
    asker.on_vm(&["VM.Config.Options"]).map_err(|refusal| format!("403 {}", refusal.reason))
}

/// Whether a caller may use the storages and bridges a clone needs.
pub(crate) fn check_clone(state: &State, call: &Call, vm: &Vm, storage: Option<&str>) -> Result<(), Refusal> {
    let asker = Asker { state, who: &call.user, vmid: vm.vmid, pool: None };
    for (_, drive) in vm.drives().iter().filter(|(_, d)| !d.is_cdrom() || d.is_cloudinit()) {
        if let Some((own, _)) = drive.volume() {
            asker.storage(storage.unwrap_or(own))?;
        }
    }
    vm.config.iter().filter(|(key, _)| keys::is_net(key)).try_for_each(|(_, value)| asker.bridge(value))
}
