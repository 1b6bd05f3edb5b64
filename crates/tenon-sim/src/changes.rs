//! What a call wants in a VM's config, and what is refused before anything is written.
//!
//! Shared by `create` and `update`: the same keys are refused with the same words in both.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

use crate::keys;
use crate::params::Call;
use crate::property::Drive;
use crate::schema::words;
use crate::state::State;
use crate::vm::{Config, Vm};
use crate::wire::{Refusal, Shape};

/// What one call wants changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    pub(crate) set: BTreeMap<String, String>,
    pub(crate) delete: Vec<String>,
    pub(crate) revert: Vec<String>,
}

/// Only root may step over a config lock.
pub(crate) fn refuse_skiplock(call: &Call) -> Result<(), Refusal> {
    if call.flag("skiplock") && !call.is_root() {
        Err(Refusal::invalid_field("skiplock", "Only root may use this option."))
    } else {
        Ok(())
    }
}

/// A pool that does not exist is refused like one without rights, even to root.
pub(crate) fn check_pool(state: &State, call: &Call) -> Result<Option<String>, Refusal> {
    let Some(pool) = call.text("pool").filter(|pool| !pool.is_empty()) else { return Ok(None) };
    if state.pools.contains_key(pool) {
        return Ok(Some(pool.to_string()));
    }
    Err(Refusal::new(403, format!("Permission check failed (pool '{pool}' does not exist)"), Shape::Json))
}

/// The config keys among a call's parameters.
pub(crate) fn read_set(call: &Call) -> BTreeMap<String, String> {
    let is_option = |key: &str| keys::is_settable(key) && key != "force";
    call.params.iter().filter(|(k, _)| is_option(k)).map(|(k, v)| (k.clone(), v.clone())).collect()
}

pub(crate) fn read_changes(call: &Call) -> Result<Changes, Refusal> {
    refuse_skiplock(call)?;
    let set = read_set(call);
    let list = |name: &str| words(call.word(name)).map(str::to_owned).collect::<Vec<_>>();
    let (delete, revert) = (list("delete"), list("revert"));
    for (field, names) in [("delete", &delete), ("revert", &revert)] {
        for name in names {
            // What nobody may set nobody but root may delete.
            if field == "delete" && name == "meta" {
                return Err(Refusal::failed("only root can set 'meta' config"));
            }
            if !keys::is_settable(name) {
                return Err(Refusal::invalid_field(field, format!("unknown option '{name}'")));
            }
            if set.contains_key(name) {
                let text = format!("you can't use '-{name}' and -{field} {name}' at the same time");
                return Err(Refusal::invalid_field(field, text));
            }
        }
    }
    let changes = Changes { set, delete, revert };
    check_drive_syntax(&changes.set)?;
    check_root_keys(call, &changes)?;
    if changes.set.is_empty() && changes.delete.is_empty() && changes.revert.is_empty() {
        return Err(Refusal::failed("no options specified"));
    }
    Ok(changes)
}

/// Drives the schema accepts and the rest of PVE does not.
pub(crate) fn check_drive_syntax(set: &BTreeMap<String, String>) -> Result<(), Refusal> {
    let mut errors = BTreeMap::new();
    for (key, value) in set.iter().filter(|(key, _)| keys::is_disk_key(key)) {
        let drive = Drive::read(key, value);
        let is_zero = drive.new_gib() == Some(0.0);
        if drive.options.contains_key("import-from") && !is_zero {
            let text = "'import-from' requires special syntax - use <storage ID>:0,import-from=<source>";
            errors.insert(key.clone(), text.to_string());
        }
        if let Some((source, kind)) = drive.options.get("import-from").and_then(|source| other_kind(source)) {
            errors.insert(key.clone(), format!("{source} has wrong type '{kind}' - not an image"));
        }
        if drive.file.contains(":iso/") && !drive.is_cdrom() {
            errors.insert(key.clone(), "explicit 'media=cdrom' is required for iso images".to_string());
        }
        if drive.file.starts_with('/') {
            errors.insert(key.clone(), format!("unable to associate path '{}' to any storage", drive.file));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(Refusal::invalid(errors)) }
}

/// The kind of a volume that is no image, if its name tells it.
fn other_kind(source: &str) -> Option<(&str, &str)> {
    let (_, name) = source.split_once(':')?;
    let (kind, _) = name.split_once('/')?;
    ["backup", "iso", "snippets", "vztmpl"].contains(&kind).then_some((source, kind))
}

/// One key that only root may touch fails the whole call, before anything is written.
pub(crate) fn check_root_keys(call: &Call, changes: &Changes) -> Result<(), Refusal> {
    if call.is_root() {
        return Ok(());
    }
    let mut touched = changes.set.keys().chain(&changes.delete);
    let deleted = |key: &str| key == "hookscript" && changes.delete.iter().any(|deleted| deleted == key);
    if let Some(key) = touched.find(|k| keys::ROOT_ONLY.contains(&k.as_str()) || deleted(k)) {
        return Err(Refusal::failed(format!("only root can set '{key}' config")));
    }
    let raw = changes.set.iter().find(|(k, v)| k.starts_with("hostpci") && !v.contains("mapping="));
    if let Some((key, _)) = raw {
        return Err(Refusal::failed(format!("only root can set '{key}' config for non-mapped devices")));
    }
    Ok(())
}

/// What needs a look at the estate: other keys, storages, volumes, scripts. `vm` has what is set so far.
pub(crate) fn check_values(state: &State, call: &Call, changes: &Changes, vm: &Vm) -> Result<(), Refusal> {
    let shown = vm.shown();
    let memory = changes.set.get("memory").or(shown.get("memory")).and_then(|m| keys::memory_mib(m)).unwrap_or(512);
    if changes.set.get("balloon").and_then(|b| b.parse::<u64>().ok()).is_some_and(|b| b > memory) {
        return Err(Refusal::failed("balloon value too large (must be smaller than assigned memory)"));
    }
    if changes.set.get("sshkeys").is_some_and(|text| !is_ssh_keys(text)) {
        return Err(Refusal::failed("SSH public key validation error"));
    }
    if let Some(script) = changes.set.get("hookscript").filter(|s| state.volume(s, &vm.host).is_none()) {
        return Err(Refusal::invalid_field("hookscript", format!("script '{script}' does not exist\n")));
    }
    if changes.set.contains_key("hookscript") && !call.is_root() {
        return Err(Refusal::failed("only root can set 'hookscript' config"));
    }
    for (key, value) in changes.set.iter().filter(|(key, _)| keys::is_disk_key(key)) {
        let drive = Drive::read(key, value);
        check_paths(call, &drive)?;
        check_drive(state, vm, key, &drive)?;
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

/// What the content of a drive is taken from: the image to import, else its own volume.
fn source(drive: &Drive) -> &str {
    drive.options.get("import-from").map_or(drive.file.as_str(), String::as_str)
}

/// Only root may name a file of the host.
fn check_paths(call: &Call, drive: &Drive) -> Result<(), Refusal> {
    if source(drive).starts_with('/') && !call.is_root() {
        let text = "Only root can pass arbitrary filesystem paths. at /usr/share/perl5/PVE/Storage.pm line 651.";
        return Err(Refusal::failed(text));
    }
    Ok(())
}

fn check_drive(state: &State, vm: &Vm, key: &str, drive: &Drive) -> Result<(), Refusal> {
    let source = source(drive);
    if let Some((storage, _)) = source.split_once(':').filter(|_| source != drive.file) {
        state.usable_storage(storage, &vm.host)?;
    }
    let Some((storage, _)) = drive.volume() else { return Ok(()) };
    let spec = state.usable_storage(storage, &vm.host)?;
    if drive.is_cloudinit() {
        let other = vm.drives().into_iter().find(|(k, d)| k != key && d.is_cloudinit());
        if let Some((other, _)) = other {
            return Err(Refusal::failed(format!("{key} - cloud-init drive is already attached at '{other}'")));
        }
    }
    let is_new = drive.new_gib().is_some() || drive.file.ends_with(":cloudinit");
    if is_new && !spec.content.iter().any(|c| c == "images") {
        return Err(Refusal::failed(format!("storage '{storage}' does not support content-type 'images'")));
    }
    if !is_new && state.volume(&drive.file, &vm.host).is_none() {
        return Err(Refusal::failed(format!("volume '{}' does not exist", drive.file)));
    }
    Ok(())
}

/// A value as it stands in the config, for keys that are no devices.
pub(crate) fn stored_text(key: &str, value: &str) -> String {
    let value = match key {
        "tags" => keys::normal_tags(value),
        "description" => value.strip_suffix('\n').unwrap_or(value).to_string(),
        _ => value.to_string(),
    };
    // An empty value is kept as one blank.
    if value.is_empty() { " ".into() } else { value }
}

/// Refuses a boot order that names devices which do not exist.
pub(crate) fn check_boot(value: &str, config: &Config, set: &BTreeMap<String, String>) -> Result<(), String> {
    let order = value.strip_prefix("order=").unwrap_or("");
    let known = |device: &str| config.contains_key(device) || set.contains_key(device);
    match order.split(';').find(|device| !device.is_empty() && !known(device)) {
        Some(device) => Err(format!("invalid bootorder: device '{device}' does not exist'")),
        None => Ok(()),
    }
}
