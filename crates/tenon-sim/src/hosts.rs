//! What the calls about the cluster and its machines show.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::params::Call;
use crate::state::{Host, State};
use crate::wire::{Answer, Reply};

/// What a host without guests uses.
const BASE_MEMORY: u64 = 2 << 30;
/// Size and use of the root file system; nothing in the estate changes them.
const ROOTFS: (u64, u64) = (256 << 30, 16 << 30);
/// Uptime of every host when the estate is made.
const UPTIME_S: u64 = 86_400;

pub(crate) fn version(state: &mut State, _: &Call) -> Answer {
    let (release, (version, commit)) = (state.config.version.release(), state.config.version.manager());
    Ok(Reply::data(json!({ "version": version, "release": release, "repoid": commit })))
}

pub(crate) fn cluster_status(state: &mut State, _: &Call) -> Answer {
    let local = Some(state.entry_host());
    let mut rows = vec![json!({
        "type": "cluster", "id": "cluster", "name": state.config.cluster_name, "nodes": state.hosts.len(),
        "quorate": u8::from(state.is_quorate()), "version": state.hosts.len(),
    })];
    if state.hosts.len() == 1 {
        // A machine on its own is no cluster and has node id 0.
        rows.clear();
    }
    for (at, spec) in state.config.hosts.iter().enumerate() {
        let online = u8::from(!seen_offline(state, &spec.name));
        let nodeid = if state.hosts.len() == 1 { 0 } else { at + 1 };
        rows.push(json!({
            "type": "node", "id": format!("node/{}", spec.name), "name": spec.name, "nodeid": nodeid,
            "ip": format!("203.0.113.{}", 11 + at), "online": online, "local": u8::from(Some(&spec.name) == local.as_ref()),
            "level": "",
        }));
    }
    state.chance.shuffle(&mut rows);
    Ok(Reply::data(rows.into()))
}

/// Whether the others have noticed that a host is dead.
fn seen_offline(state: &State, host: &str) -> bool {
    let dead = state.hosts.get(host).and_then(|h| h.dead_since);
    dead.is_some_and(|since| state.now.saturating_sub(since) >= state.config.pace.offline_after)
}

fn load(state: &State, name: &str, host: &Host) -> (f64, u64) {
    let running = || state.vms.values().filter(|vm| vm.host == name && vm.running.is_some());
    let cpus: u64 = running().map(crate::vm::Vm::cpus).sum();
    let memory: u64 = running().map(crate::vm::Vm::memory_bytes).sum();
    let busy = 0.01 + 0.05 * cpus as f64 / f64::from(host.cpus.max(1));
    (busy.min(1.0), (BASE_MEMORY + memory).min(host.memory_bytes))
}

fn uptime(state: &State) -> u64 {
    UPTIME_S + state.now.as_secs()
}

/// A host as a listing shows it; without rights only that it is there.
pub(crate) fn host_row(state: &State, call: &Call, name: &str) -> Value {
    let Some(host) = state.hosts.get(name) else { return Value::Null };
    let mut row = json!({ "id": format!("node/{name}"), "type": "node", "node": name, "level": "" });
    row["status"] = if seen_offline(state, name) { "offline" } else { "online" }.into();
    if !state.may(&call.user, &format!("/nodes/{name}"), "Sys.Audit") {
        return row;
    }
    row["maxcpu"] = host.cpus.into();
    row["maxmem"] = host.memory_bytes.into();
    row["maxdisk"] = ROOTFS.0.into();
    if !seen_offline(state, name) {
        let (cpu, mem) = load(state, name, host);
        row["cpu"] = cpu.into();
        row["mem"] = mem.into();
        row["disk"] = ROOTFS.1.into();
        row["uptime"] = uptime(state).into();
    }
    row
}

pub(crate) fn list(state: &mut State, call: &Call) -> Answer {
    let mut rows: Vec<Value> = state.hosts.keys().map(|name| host_row(state, call, name)).collect();
    for row in &mut rows {
        row["ssl_fingerprint"] = fingerprint(row["node"].as_str().unwrap_or("").as_bytes()).into();
    }
    state.chance.shuffle(&mut rows);
    Ok(Reply::data(rows.into()))
}

/// SHA-256 in upper-case hex with colons, as PVE prints certificate fingerprints.
pub(crate) fn fingerprint(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
}

/// Who made a processor, its family, and the flag that says it can run VMs.
fn maker(model: &str) -> (&'static str, &'static str, &'static str) {
    if model.contains("AMD") { ("AuthenticAMD", "25", "svm") } else { ("GenuineIntel", "6", "vmx") }
}

pub(crate) fn status(state: &mut State, call: &Call) -> Answer {
    let name = call.node();
    let Some(host) = state.hosts.get(name) else { return Ok(Reply::null()) };
    let (cpu, used) = load(state, name, host);
    let (total, free) = (host.memory_bytes, host.memory_bytes - used);
    let (disk, disk_used) = ROOTFS;
    let ((version, commit), kernel) = (state.config.version.manager(), state.config.version.kernel());
    let (vendor, family, virtualization) = maker(&host.cpu_model);
    Ok(Reply::data(json!({
        "pveversion": format!("pve-manager/{version}/{commit}"), "kversion": format!("Linux {kernel} #1 SMP PREEMPT_DYNAMIC PMX"),
        "current-kernel": { "sysname": "Linux", "release": kernel, "version": "#1 SMP", "machine": "x86_64" },
        "boot-info": { "mode": "legacy-bios" },
        "cpu": cpu, "wait": 0, "idle": 0, "uptime": uptime(state), "loadavg": ["0.08", "0.11", "0.09"],
        "memory": { "total": total, "used": used, "free": free, "available": free },
        "swap": { "total": 0, "used": 0, "free": 0 }, "ksm": { "shared": 0 },
        "rootfs": { "total": disk, "used": disk_used, "free": disk - disk_used, "avail": disk - disk_used },
        "cpuinfo": {
            "cpus": host.cpus, "cores": host.cores, "sockets": host.sockets, "mhz": "2300.000", "model": host.cpu_model,
            "hvm": "1", "vendor": vendor, "family": family, "flags": format!("fpu vme aes {virtualization}"), "user_hz": 100,
        },
    })))
}
