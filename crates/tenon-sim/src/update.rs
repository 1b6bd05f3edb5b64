//! How a config change is checked and staged: `PUT` at once, `POST` in a worker.
//!
//! Not atomic, as in PVE: what is refused by the schema changes nothing, but a change that fails while it is
//! being applied leaves the keys before it pending. What becomes of staged keys is in `settle`.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

use crate::jobs::Job;
use crate::keys;
use crate::params::Call;
use crate::property::{Drive, NetDev};
use crate::settle::update_boot_order;
use crate::state::State;
use crate::storage::{CLOUDINIT_BYTES, SMALL_BYTES, Volume};
use crate::tasks::{NewTask, Outcome};
use crate::vm::Vm;
use crate::wire::{Answer, Halt, Refusal, Reply};

pub(crate) const CHECKSUM_MISMATCH: &str = "checksum mismatch (file change by other user?)";
/// Parameters of the call that are no config keys.
const CONTROLS: &[&str] = &["background_delay", "delete", "digest", "force", "node", "revert", "skiplock", "vmid"];

/// What one call wants changed.
#[derive(Clone, Debug)]
pub(crate) struct Changes {
    set: BTreeMap<String, String>,
    delete: Vec<String>,
    revert: Vec<String>,
}

/// Tokens are never root, whoever owns them.
pub(crate) fn refuse_skiplock(call: &Call) -> Result<(), Refusal> {
    if call.flag("skiplock") {
        Err(Refusal::invalid_field("skiplock", "Only root may use this option."))
    } else {
        Ok(())
    }
}

pub(crate) fn put(state: &mut State, call: &Call) -> Answer {
    let changes = read_changes(call)?;
    check_changes(state, call, &changes)?;
    if state.tasks.is_locked(call.vmid()) {
        return Err(Halt::Busy(call.vmid()));
    }
    state.check_writable(call.node(), call.vmid()).map_err(Refusal::failed)?;
    state.stage(call.vmid(), &changes).map_err(Refusal::failed)?;
    Ok(Reply::null())
}

pub(crate) fn post(state: &mut State, call: &Call) -> Answer {
    let changes = read_changes(call)?;
    check_changes(state, call, &changes)?;
    let job = Job::Config(ConfigJob { vmid: call.vmid(), host: call.node().into(), changes, waited: false });
    let id = call.vmid().to_string();
    Ok(state.spawn(NewTask { node: call.node(), kind: "qmconfig", id, user: &call.user, job }))
}

pub(crate) fn regenerate_cloudinit(state: &mut State, call: &Call) -> Answer {
    let vm = state.vm_on(call.node(), call.vmid())?;
    vm.check_lock().map_err(Refusal::failed)?;
    if !vm.drives().iter().any(|(_, d)| d.is_cloudinit()) {
        return Err(Refusal::failed("no cloud-init drive found").into());
    }
    Ok(Reply::null())
}

fn words(text: Option<&str>) -> Vec<String> {
    text.unwrap_or("").split([',', ';', ' ']).filter(|w| !w.is_empty()).map(str::to_owned).collect()
}

fn read_changes(call: &Call) -> Result<Changes, Refusal> {
    refuse_skiplock(call)?;
    let set: BTreeMap<String, String> = call
        .params
        .iter()
        .filter(|(k, _)| !CONTROLS.contains(&k.as_str()))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let (delete, revert) = (words(call.text("delete")), words(call.text("revert")));
    for (field, names) in [("delete", &delete), ("revert", &revert)] {
        for name in names {
            if !keys::is_settable(name) {
                return Err(Refusal::invalid_field(field, format!("unknown option '{name}'")));
            }
            if set.contains_key(name) {
                let text = format!("you can't use '-{name}' and -{field} {name}' at the same time");
                return Err(Refusal::invalid_field(field, text));
            }
        }
    }
    let touched = || set.keys().chain(&delete);
    if let Some(key) = touched().find(|k| keys::ROOT_ONLY.contains(&k.as_str())) {
        return Err(Refusal::failed(format!("only root can set '{key}' config")));
    }
    if let Some(key) = set.iter().find(|(k, v)| k.starts_with("hostpci") && !v.contains("mapping=")).map(|(k, _)| k) {
        return Err(Refusal::failed(format!("only root can set '{key}' config for non-mapped devices")));
    }
    if set.is_empty() && delete.is_empty() && revert.is_empty() {
        return Err(Refusal::failed("no options specified"));
    }
    Ok(Changes { set, delete, revert })
}

/// What is checked before anything is written; a refusal here leaves nothing pending.
fn check_changes(state: &State, call: &Call, changes: &Changes) -> Result<(), Refusal> {
    let vm = state.vm_on(call.node(), call.vmid())?;
    if call.text("digest").is_some_and(|digest| digest != vm.digest()) {
        return Err(Refusal::failed(CHECKSUM_MISMATCH));
    }
    vm.check_lock().map_err(Refusal::failed)?;
    let shown = vm.shown();
    let memory = changes.set.get("memory").or(shown.get("memory")).and_then(|m| keys::memory_mib(m)).unwrap_or(512);
    if changes.set.get("balloon").and_then(|b| b.parse::<u64>().ok()).is_some_and(|b| b > memory) {
        return Err(Refusal::failed("balloon value too large (must be smaller than assigned memory)"));
    }
    if changes.set.get("sshkeys").is_some_and(|text| !is_ssh_keys(text)) {
        return Err(Refusal::failed("SSH public key validation error"));
    }
    for (key, value) in changes.set.iter().filter(|(key, _)| keys::is_drive(key)) {
        check_drive(state, vm, (key, &Drive::stored(value)))?;
    }
    let protected = vm.get("protection") == Some("1");
    let disk = |key: &&String| keys::is_disk_key(key) && vm.get(key).is_some_and(|v| !Drive::stored(v).is_cdrom());
    if let Some(key) = changes.delete.iter().find(|key| protected && disk(key)) {
        return Err(Refusal::failed(format!("can't remove drive '{key}' - protection mode enabled")));
    }
    Ok(())
}

fn is_ssh_keys(encoded: &str) -> bool {
    let text = percent_decode_str(encoded).decode_utf8_lossy().into_owned();
    let good = |line: &str| {
        let mut words = line.split_whitespace();
        let kind = words.next().unwrap_or("");
        ["ssh-", "ecdsa-", "sk-"].iter().any(|p| kind.starts_with(p))
            && words.next().is_some_and(|k| k.starts_with("AAAA"))
    };
    text.lines().filter(|l| !l.trim().is_empty()).all(good)
}

fn check_drive(state: &State, vm: &Vm, (key, drive): (&str, &Drive)) -> Result<(), Refusal> {
    let Some((storage, name)) = drive.volume() else { return Ok(()) };
    state.usable_storage(storage, &vm.host)?;
    if drive.is_cloudinit() {
        let other = vm.drives().into_iter().find(|(k, d)| k != key && d.is_cloudinit());
        if let Some((other, _)) = other {
            return Err(Refusal::failed(format!("{key} - cloud-init drive is already attached at '{other}'")));
        }
        return Ok(());
    }
    let is_new = name.parse::<f64>().is_ok();
    if !is_new && state.volume(&drive.file, &vm.host).is_none() {
        return Err(Refusal::failed(format!("volume '{}' does not exist", drive.file)));
    }
    Ok(())
}

/// On a running VM the boot order follows a drive at once, into the pending section.
fn note_boot_order(vm: &mut Vm, key: &str, value: Option<&str>) {
    if vm.running.is_some() && keys::is_drive(key) {
        update_boot_order(vm, key, value.map(Drive::stored).as_ref());
    }
}

impl State {
    /// Writes the changes into the pending section, key by key in no particular order, then settles them.
    fn stage(&mut self, vmid: u32, changes: &Changes) -> Result<(), String> {
        if let Some(vm) = self.vms.get_mut(&vmid) {
            vm.pending.retain(|key, _| !changes.revert.contains(key));
            for key in &changes.delete {
                vm.pending.insert(key.clone(), None);
                note_boot_order(vm, key, None);
            }
        }
        let mut order: Vec<(&String, &String)> = changes.set.iter().collect();
        self.chance.shuffle(&mut order);
        for (key, value) in order {
            let value = self.staged_value(vmid, (key, value), changes)?;
            if let Some(vm) = self.vms.get_mut(&vmid) {
                note_boot_order(vm, key, Some(&value));
                vm.pending.insert(key.clone(), Some(value));
            }
        }
        self.settle(vmid);
        Ok(())
    }

    /// The value as it will stand in the config.
    fn staged_value(&mut self, vmid: u32, pair: (&str, &str), changes: &Changes) -> Result<String, String> {
        let (key, value) = pair;
        if keys::is_net(key) {
            let net = NetDev::parse(key, value)?;
            let mac = net.mac.clone().unwrap_or_else(|| self.chance.mac());
            return Ok(NetDev { mac: Some(mac), ..net }.print());
        }
        if keys::is_drive(key) {
            return self.staged_drive(vmid, Drive::stored(value)).map(|drive| drive.print());
        }
        if key == "boot" {
            let vm = self.vms.get(&vmid).map(Vm::shown).unwrap_or_default();
            let order = value.strip_prefix("order=").unwrap_or("");
            let known = |dev: &str| vm.contains_key(dev) || changes.set.contains_key(dev);
            if let Some(device) = order.split(';').find(|d| !d.is_empty() && !known(d)) {
                return Err(format!("invalid bootorder: device '{device}' does not exist'"));
            }
        }
        let value = match key {
            "tags" => keys::normal_tags(value),
            "description" => value.strip_suffix('\n').unwrap_or(value).to_string(),
            _ => value.to_string(),
        };
        Ok(if value.is_empty() { " ".into() } else { value })
    }

    /// Makes the volume a drive asks for, or looks up the size of the one it names.
    fn staged_drive(&mut self, vmid: u32, mut drive: Drive) -> Result<Drive, String> {
        let Some((storage, name)) = drive.volume().map(|(s, n)| (s.to_string(), n.to_string())) else {
            return Ok(drive);
        };
        let host = self.vms.get(&vmid).map(|vm| vm.host.clone()).unwrap_or_default();
        if name == "cloudinit" {
            let key = self.place(&storage, &host, &format!("{vmid}/vm-{vmid}-cloudinit.qcow2"));
            let image = self.image(vmid, "qcow2", CLOUDINIT_BYTES);
            self.allocate(key.clone(), Volume { used: SMALL_BYTES, ..image })?;
            drive.file = key.volid();
            drive.options.insert("media".into(), "cdrom".into());
        } else if let Some(bytes) = keys::parse_size(&format!("{name}G")) {
            let format = drive.options.remove("format").unwrap_or_else(|| "raw".into());
            let name = self.free_disk_name((&storage, &host), vmid, &format);
            let key = self.place(&storage, &host, &name);
            self.allocate(key.clone(), self.image(vmid, &format, bytes))?;
            drive.file = key.volid();
            drive.options.insert("size".into(), keys::format_size(bytes));
        } else if let Some(volume) = self.volume(&drive.file, &host) {
            drive.options.insert("size".into(), keys::format_size(volume.bytes));
        }
        Ok(drive)
    }
}

#[derive(Debug)]
pub(crate) struct ConfigJob {
    pub(crate) vmid: u32,
    host: String,
    changes: Changes,
    waited: bool,
}

impl ConfigJob {
    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> Outcome {
        if !std::mem::replace(&mut self.waited, true) {
            let set = self.changes.set.iter().map(|(k, v)| format!(" -{k} {v}"));
            state.log(upid, format!("update VM {}:{}", self.vmid, set.collect::<String>()));
            return Outcome::After(state.config.pace.config);
        }
        let result = state
            .vm_for_task(&self.host, self.vmid)
            .and_then(|vm| vm.check_lock())
            .and_then(|()| state.check_writable(&self.host, self.vmid))
            .and_then(|()| state.stage(self.vmid, &self.changes));
        result.map_or_else(Outcome::Failed, |()| Outcome::Done)
    }
}
