//! What `/cluster/resources` shows, and how late.
//!
//! That a VM exists, where, its lock, tags and pool are known at once. Everything else comes with the host's
//! next broadcast, and for a moment after it answers may still alternate with the older one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::hosts::host_row;
use crate::params::Call;
use crate::state::State;
use crate::storage::{is_on, is_visible, plugin};
use crate::version::PveVersion;
use crate::vm::Vm;
use crate::wire::{Answer, Reply};

type Stats = BTreeMap<u32, Map<String, Value>>;

/// What the hosts last told each other.
#[derive(Clone, Debug)]
pub(crate) struct Broadcast {
    pub(crate) next_tick: Duration,
    last_tick: Duration,
    current: Stats,
    previous: Stats,
}

impl Broadcast {
    pub(crate) fn new(tick: Duration) -> Self {
        // A tick of zero would never end; a millisecond is as good as at once.
        let next_tick = tick.max(Duration::from_millis(1));
        Self { next_tick, last_tick: Duration::ZERO, current: Stats::new(), previous: Stats::new() }
    }

    pub(crate) fn forget(&mut self, vmid: u32) {
        self.current.remove(&vmid);
        self.previous.remove(&vmid);
    }
}

fn stats_of(vm: &Vm, now: Duration) -> Map<String, Value> {
    let mut stats = vm.stats(now);
    stats.insert("template".into(), u8::from(vm.is_template()).into());
    stats.insert("maxcpu".into(), vm.cpus().into());
    stats.insert("diskread".into(), 0.into());
    stats.insert("diskwrite".into(), 0.into());
    stats
}

impl State {
    /// One broadcast. When nothing happens until `until`, the ticks in between are skipped.
    pub(crate) fn broadcast_tick(&mut self, until: Duration) {
        let tick = self.config.pace.resource_tick.max(Duration::from_millis(1));
        let idle = until.saturating_sub(self.broadcast.next_tick).as_nanos() / tick.as_nanos();
        let skipped = tick * u32::try_from(idle).unwrap_or(u32::MAX);
        self.now = self.broadcast.next_tick + skipped;
        let mut fresh = self.broadcast.current.clone();
        for vm in self.vms.values().filter(|vm| self.is_online(&vm.host)) {
            fresh.insert(vm.vmid, stats_of(vm, self.now));
        }
        // The daemon that broadcasts looks at every storage, too.
        self.no_iso_folder.clear();
        let old = std::mem::replace(&mut self.broadcast.current, fresh);
        self.broadcast.previous = if idle > 0 { self.broadcast.current.clone() } else { old };
        self.broadcast.last_tick = self.now;
        self.broadcast.next_tick = self.now + tick;
    }

    /// Makes a VM known as if it had been there for long.
    pub(crate) fn announce(&mut self, vmid: u32) {
        if let Some(vm) = self.vms.get(&vmid) {
            let stats = stats_of(vm, self.now);
            self.broadcast.previous.insert(vmid, stats.clone());
            self.broadcast.current.insert(vmid, stats);
        }
    }

    /// The rows of some VMs, as late as all of this.
    pub(crate) fn vm_rows(&mut self, wanted: impl Fn(&Vm) -> bool) -> Vec<Value> {
        let flapping = self.now - self.broadcast.last_tick < self.config.pace.resource_flap
            && self.broadcast.last_tick > Duration::ZERO;
        let stale = flapping && self.chance.below(2) == 0;
        let known = if stale { &self.broadcast.previous } else { &self.broadcast.current };
        let row = |vm: &Vm| {
            let mut row = if self.is_frozen_out(&vm.host) {
                Map::new()
            } else {
                known.get(&vm.vmid).cloned().unwrap_or_default()
            };
            if row.is_empty() {
                row.insert("status".into(), "unknown".into());
            }
            row.insert("id".into(), format!("qemu/{}", vm.vmid).into());
            row.insert("type".into(), "qemu".into());
            row.insert("vmid".into(), vm.vmid.into());
            row.insert("node".into(), vm.host.as_str().into());
            let pool = self.pool_of(vm.vmid);
            for (key, value) in [("tags", vm.get("tags")), ("lock", vm.lock()), ("pool", pool)] {
                if let Some(value) = value {
                    row.insert(key.into(), value.into());
                }
            }
            self.config.version.trim_vm(&mut row);
            Value::Object(row)
        };
        self.vms.values().filter(|vm| wanted(vm)).map(row).collect()
    }

    /// Whether a host has been dead for so long that nothing about its guests is believed any more.
    fn is_frozen_out(&self, host: &str) -> bool {
        let dead = self.hosts.get(host).and_then(|h| h.dead_since);
        dead.is_some_and(|since| self.now.saturating_sub(since) >= self.config.pace.unknown_after)
    }

    pub(crate) fn storage_rows(&mut self, wanted: impl Fn(&str) -> bool) -> Vec<Value> {
        let mut rows = Vec::new();
        for spec in self.config.storages.clone().into_iter().filter(|spec| wanted(&spec.id)) {
            for host in self.hosts.keys().filter(|h| is_on(&spec, h)).cloned().collect::<Vec<_>>() {
                let mut content = spec.content.clone();
                self.chance.shuffle(&mut content);
                let status = if self.is_frozen_out(&host) { "unknown" } else { "available" };
                let (used, _) = self.usage(&spec.id, &host);
                rows.push(json!({
                    "id": format!("storage/{host}/{}", spec.id), "type": "storage", "storage": spec.id, "node": host,
                    "plugintype": plugin(&spec), "status": status, "shared": u8::from(spec.shared), "content": content.join(","),
                    "disk": used, "maxdisk": spec.bytes,
                }));
            }
        }
        rows
    }
}

/// Everything, as far as the caller may know of it.
pub(crate) fn resources(state: &mut State, call: &Call) -> Answer {
    let wanted = |kind: &str| call.text("type").is_none_or(|t| t == kind);
    let may = |state: &State, path: String, privilege: &str| state.may(&call.user, &path, privilege);
    let mut rows = Vec::new();
    if wanted("vm") {
        let seen: BTreeSet<u32> =
            state.vms.keys().copied().filter(|id| may(state, format!("/vms/{id}"), "VM.Audit")).collect();
        let mut vms = state.vm_rows(|vm| seen.contains(&vm.vmid));
        for row in vms.iter_mut().filter_map(Value::as_object_mut) {
            let pool = row.get("pool").and_then(Value::as_str).map(|pool| format!("/pool/{pool}"));
            if pool.is_some_and(|path| !may(state, path, "Pool.Audit")) {
                row.remove("pool");
            }
        }
        rows.extend(vms);
        rows.extend(state.container_rows(|id| may(state, format!("/vms/{id}"), "VM.Audit")));
    }
    if wanted("storage") {
        let ids = state.config.storages.iter().map(|spec| spec.id.clone());
        let seen: BTreeSet<String> = ids.filter(|id| is_visible(state, call, id)).collect();
        rows.extend(state.storage_rows(|id| seen.contains(id)));
    }
    if wanted("node") {
        for host in state.hosts.keys().cloned().collect::<Vec<_>>() {
            let mut row = host_row(state, call, &host);
            row["cgroup-mode"] = 2.into();
            rows.push(row);
        }
    }
    if call.text("type").is_none() {
        let pools = state.pools.keys().filter(|pool| may(state, format!("/pool/{pool}"), "Pool.Audit"));
        rows.extend(pools.map(|pool| json!({ "id": format!("/pool/{pool}"), "pool": pool, "type": "pool" })));
        if may(state, "/sdn/zones/localnetwork".into(), "SDN.Audit") {
            rows.extend(state.hosts.keys().map(|node| network_row(state.config.version, node)));
        }
    }
    state.chance.shuffle(&mut rows);
    Ok(Reply::data(rows.into()))
}

/// The zone all local bridges are in.
fn network_row(version: PveVersion, node: &str) -> Value {
    if version == PveVersion::V8_4 {
        return json!({
            "id": format!("sdn/{node}/localnetwork"), "type": "sdn", "sdn": "localnetwork", "node": node, "status": "ok",
        });
    }
    json!({
        "id": format!("network/{node}/zone/localnetwork"), "type": "network", "network": "localnetwork",
        "network-type": "zone", "node": node, "status": "ok",
    })
}
