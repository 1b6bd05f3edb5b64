//! What a VM is: its config, what waits for the next start, and whether it runs.
//!
//! Also the calls that only read one VM.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use sha1::{Digest, Sha1};

use crate::keys;
use crate::params::Call;
use crate::property::{Drive, smbios_uuid};
use crate::schema::parse_property;
use crate::state::State;
use crate::wire::{Answer, Refusal, Reply};

/// Config keys and values, as in the VM's file.
pub(crate) type Config = BTreeMap<String, String>;

/// A QEMU process.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub(crate) since: Duration,
    pub(crate) pid: u32,
    /// The config it was started with, for those who listen to the power events.
    pub(crate) uuid: Option<String>,
    /// The guest stands still in memory.
    pub(crate) paused: bool,
    /// The guest stands still by itself.
    pub(crate) hung: bool,
    /// Commands that were run through the guest agent and not asked about to the end.
    pub(crate) commands: BTreeMap<u32, Command>,
}

/// A command inside a guest.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    /// Whether somebody has asked about it before.
    pub(crate) asked: bool,
    pub(crate) exit: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Running {
    pub(crate) fn new(since: Duration, pid: u32, uuid: Option<String>) -> Self {
        Self { since, pid, uuid, paused: false, hung: false, commands: BTreeMap::new() }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Vm {
    pub(crate) vmid: u32,
    pub(crate) host: String,
    pub(crate) config: Config,
    /// Values that wait for the next start; `None` waits to delete the key.
    pub(crate) pending: BTreeMap<String, Option<String>>,
    pub(crate) running: Option<Running>,
    pub(crate) stopped_at: Option<Duration>,
    /// The guest ignores the power button.
    pub(crate) deaf: bool,
}

impl Vm {
    pub(crate) fn new(vmid: u32, host: &str, config: Config) -> Self {
        let (pending, host) = (BTreeMap::new(), host.to_string());
        Self { vmid, host, config, pending, running: None, stopped_at: None, deaf: false }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.config.get(key).map(String::as_str)
    }

    pub(crate) fn lock(&self) -> Option<&str> {
        self.get("lock")
    }

    pub(crate) fn check_lock(&self) -> Result<(), String> {
        self.lock().map_or(Ok(()), |lock| Err(format!("VM is locked ({lock})")))
    }

    pub(crate) fn is_template(&self) -> bool {
        self.get("template") == Some("1")
    }

    pub(crate) fn uuid(&self) -> Option<String> {
        self.get("smbios1").and_then(smbios_uuid).map(str::to_owned)
    }

    pub(crate) fn name(&self) -> String {
        self.get("name").map_or_else(|| format!("VM {}", self.vmid), str::to_owned)
    }

    pub(crate) fn number(&self, key: &str, default: u64) -> u64 {
        self.get(key).and_then(|v| v.parse().ok()).unwrap_or(default)
    }

    pub(crate) fn cpus(&self) -> u64 {
        self.number("vcpus", self.number("cores", 1) * self.number("sockets", 1))
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.get("memory").and_then(keys::memory_mib).unwrap_or(512) << 20
    }

    /// Drives and other disks, in the order PVE copies them.
    pub(crate) fn drives(&self) -> Vec<(String, Drive)> {
        let disks = self.config.iter().filter(|(key, _)| keys::is_disk_key(key));
        disks.map(|(key, value)| (key.clone(), Drive::stored(value))).collect()
    }

    pub(crate) fn boot_disk_bytes(&self) -> u64 {
        let disks: Vec<(String, Drive)> = self.drives().into_iter().filter(|(_, d)| !d.is_cdrom()).collect();
        let order = self.get("boot").and_then(|b| b.strip_prefix("order="));
        // Without an order only a boot disk that is named counts, and with one it does not.
        let tried = order.or_else(|| self.get("bootdisk")).unwrap_or("");
        let booted = tried.split(';').find_map(|dev| disks.iter().find(|(key, _)| key == dev));
        booted.map_or(0, |(_, d)| d.bytes())
    }

    /// The config as `GET config` shows it: what is pending looks as if it were so already.
    pub(crate) fn shown(&self) -> Config {
        let mut config = self.config.clone();
        for (key, value) in &self.pending {
            match value {
                Some(value) => drop(config.insert(key.clone(), value.clone())),
                // PVE asks whether there is something to hide, and takes a zero for nothing.
                None if config.get(key).is_some_and(|value| value == "0") => {}
                None => drop(config.remove(key)),
            }
        }
        config
    }

    /// The checksum over the config file, pending section included.
    pub(crate) fn digest(&self) -> String {
        let mut sum = Sha1::new();
        for (key, value) in &self.config {
            sum.update(format!("{key}: {value}\n"));
        }
        for (key, value) in &self.pending {
            sum.update(format!("[PENDING] {key}: {value:?}\n"));
        }
        sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// What a listing and `status/current` have in common.
    pub(crate) fn stats(&self, now: Duration) -> Map<String, Value> {
        let uptime = self.running.as_ref().map_or(0, |r| now.saturating_sub(r.since).as_secs());
        let busy = if self.running.is_some() { json!(0.05) } else { json!(0) };
        let mem = if self.running.is_some() { self.memory_bytes() / 2 } else { 0 };
        let row = json!({
            "name": self.name(), "status": self.status(), "uptime": uptime, "cpu": busy, "mem": mem, "memhost": mem,
            "maxmem": self.memory_bytes(), "maxdisk": self.boot_disk_bytes(), "disk": 0, "netin": 0, "netout": 0,
        });
        match row {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }

    pub(crate) fn status(&self) -> &'static str {
        if self.running.is_some() { "running" } else { "stopped" }
    }

    fn qmp_status(&self) -> &'static str {
        if self.running.as_ref().is_some_and(|running| running.paused) { "paused" } else { self.status() }
    }

    /// Whether the config says that a guest agent is to be expected.
    pub(crate) fn has_agent(&self) -> bool {
        let agent = self.get("agent").unwrap_or("");
        parse_property("agent", agent).get("enabled").is_some_and(|enabled| enabled == "1")
    }

    fn listing(&self, now: Duration) -> Map<String, Value> {
        let mut row = self.stats(now);
        row.insert("vmid".into(), self.vmid.into());
        row.insert("cpus".into(), self.cpus().into());
        for key in ["tags", "lock"] {
            if let Some(value) = self.get(key) {
                row.insert(key.into(), value.into());
            }
        }
        if self.is_template() {
            row.insert("template".into(), 1.into());
        }
        if self.config.keys().any(|k| k.starts_with("serial")) {
            row.insert("serial".into(), 1.into());
        }
        if let Some(running) = &self.running {
            row.insert("pid".into(), running.pid.into());
            for key in ["cpufull", "cpusome", "iofull", "iosome", "memoryfull", "memorysome"] {
                row.insert(format!("pressure{key}"), 0.into());
            }
        }
        row
    }

    /// What went through the network devices of a running VM.
    fn nics(&self) -> Option<Value> {
        self.running.as_ref()?;
        let taps = self.config.keys().filter(|k| keys::is_net(k));
        let taps = taps.map(|k| (format!("tap{}i{}", self.vmid, &k[3..]), json!({ "netin": 0, "netout": 0 })));
        Some(Value::Object(taps.collect()))
    }

    fn current(&self, now: Duration) -> Map<String, Value> {
        let mut row = self.listing(now);
        row.insert("qmpstatus".into(), self.qmp_status().into());
        row.insert("ha".into(), json!({ "managed": 0 }));
        if self.get("vga").is_some() {
            row.insert("clipboard".into(), Value::Null);
        }
        if self.has_agent() {
            row.insert("agent".into(), 1.into());
        }
        row.extend(self.nics().map(|nics| ("nics".to_string(), nics)));
        row
    }
}

/// A config value as the wire shows it.
pub(crate) fn wire_value(key: &str, value: &str) -> Value {
    if key == "cipassword" {
        return "**********".into();
    }
    match value.parse::<i64>() {
        Ok(number) if keys::is_number(key) => number.into(),
        _ => value.into(),
    }
}

pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let (host, full, now) = (call.node(), call.flag("full"), state.now);
    let on_host = state.vms.values().filter(|vm| vm.host == host);
    let visible = |vm: &&Vm| state.may(&call.user, &format!("/vms/{}", vm.vmid), "VM.Audit");
    let row = |vm: &Vm| {
        let mut row = vm.listing(now);
        if full {
            row.insert("qmpstatus".into(), vm.qmp_status().into());
            row.extend(vm.nics().map(|nics| ("nics".to_string(), nics)));
        }
        state.config.version.trim_vm(&mut row);
        Value::Object(row)
    };
    let mut rows: Vec<Value> = on_host.filter(visible).map(row).collect();
    state.chance.shuffle(&mut rows);
    Ok(Reply::data(rows.into()))
}

pub(crate) fn current(state: &mut State, call: &Call) -> Answer {
    let mut row = state.vm_on(call.node(), call.vmid())?.current(state.now);
    state.config.version.trim_vm(&mut row);
    Ok(Reply::data(row.into()))
}

pub(crate) fn config(state: &mut State, call: &Call) -> Answer {
    let vm = state.vm_on(call.node(), call.vmid())?;
    if let Some(snapshot) = call.text("snapshot") {
        return Err(Refusal::failed(format!("snapshot '{snapshot}' does not exist")).into());
    }
    let shown = if call.flag("current") { vm.config.clone() } else { vm.shown() };
    let mut data: Map<String, Value> = shown.iter().map(|(k, v)| (k.clone(), wire_value(k, v))).collect();
    data.insert("digest".into(), vm.digest().into());
    Ok(Reply::data(data.into()))
}

pub(crate) fn pending(state: &mut State, call: &Call) -> Answer {
    let vm = state.vm_on(call.node(), call.vmid())?;
    let mut rows = vec![json!({ "key": "digest", "value": vm.digest() })];
    for (key, value) in &vm.config {
        let mut row = json!({ "key": key, "value": wire_value(key, value) });
        match vm.pending.get(key) {
            Some(Some(next)) => row["pending"] = wire_value(key, next),
            Some(None) => row["delete"] = 1.into(),
            None => {}
        }
        rows.push(row);
    }
    for (key, next) in vm.pending.iter().filter(|(key, _)| !vm.config.contains_key(*key)) {
        if let Some(next) = next {
            rows.push(json!({ "key": key, "pending": wire_value(key, next) }));
        }
    }
    state.chance.shuffle(&mut rows);
    Ok(Reply::data(rows.into()))
}

pub(crate) fn feature(state: &mut State, call: &Call) -> Answer {
    let vm = state.vm_on(call.node(), call.vmid())?;
    let disks: Vec<Drive> = vm.drives().into_iter().map(|(_, d)| d).filter(|d| !d.is_cdrom()).collect();
    let links = disks.iter().all(|d| d.volume().is_none_or(|(storage, _)| state.can_link(storage)));
    let linked = vm.is_template() && links || call.text("feature") == Some("copy");
    let has = linked && call.text("feature") != Some("snapshot");
    let shared = disks.iter().all(|d| d.volume().is_some_and(|(s, _)| state.is_shared(s)));
    let nodes: Vec<&String> = state.hosts.keys().filter(|h| shared || *h == call.node()).collect();
    Ok(Reply::data(json!({ "hasFeature": u8::from(has), "nodes": nodes })))
}
