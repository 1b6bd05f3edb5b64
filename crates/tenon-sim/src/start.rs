//! How a VM is started, and what can be wrong with it: nearly nothing of that is checked earlier.

use std::time::Duration;

use crate::cloud_init_drive::check_snippets;
use crate::keys;
use crate::property::{Drive, NetDev};
use crate::schema::parse_property;
use crate::state::State;
use crate::tasks::{Event, TaskOutcome};
use crate::vm::Vm;

/// The status flips a moment before the task ends.
const TAIL: Duration = Duration::from_millis(100);
/// A start within this of the stop meets the clean-up helper of the old QEMU.
const RESTART_WINDOW: Duration = Duration::from_secs(1);
/// What a config says only while a VM is suspended to disk.
pub(crate) const SUSPENDED_KEYS: &[&str] =
    &["lock", "running-nets-host-mtu", "runningcpu", "runningmachine", "vmstate"];

#[derive(Debug)]
pub(crate) struct StartJob {
    pub(crate) vmid: u32,
    host: String,
    skip: bool,
    phase: u8,
}

impl StartJob {
    pub(crate) fn new(vmid: u32, host: &str) -> Self {
        Self { vmid, host: host.into(), skip: false, phase: 0 }
    }

    pub(crate) fn skipping_lock(self, skip: bool) -> Self {
        Self { skip, ..self }
    }

    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> TaskOutcome {
        self.phase += 1;
        match self.phase {
            1 => match self.begin(state, upid) {
                Ok(()) => TaskOutcome::After(state.config.pace.start),
                Err(text) => TaskOutcome::Failed(text),
            },
            2 => {
                self.resume(state, upid);
                state.power_on(self.vmid);
                TaskOutcome::After(TAIL)
            }
            _ => {
                let restarted =
                    state.vms.get(&self.vmid).and_then(|vm| Some((vm.stopped_at?, vm.running.as_ref()?.since)));
                let window = RESTART_WINDOW + state.config.pace.start;
                if restarted.is_some_and(|(stopped, since)| since.saturating_sub(stopped) < window) {
                    state.tasks.schedule(state.now, Event::Trap(self.vmid));
                }
                TaskOutcome::Done
            }
        }
    }

    fn begin(&self, state: &mut State, upid: &str) -> Result<(), String> {
        let vm = state.vm_for_task(&self.host, self.vmid)?;
        let suspended = vm.lock() == Some("suspended");
        if !suspended && !self.skip {
            vm.check_lock()?;
        }
        if vm.running.is_some() {
            return Err(format!("VM {} already running", self.vmid));
        }
        if vm.is_template() {
            return Err("you can't start a vm if it's a template".into());
        }
        state.settle(self.vmid);
        let Some(vm) = state.vms.get(&self.vmid).cloned() else { return Ok(()) };
        check_snippets(state, &vm, &self.host)?;
        if vm.drives().iter().any(|(_, d)| d.is_cloudinit()) {
            state.log(upid, "generating cloud-init ISO");
        }
        self.check_hardware(state, &vm)?;
        check_mappings(state, upid, &vm)?;
        check_numa(state, upid, &vm)?;
        let room = state.hosts.get(&self.host).map_or(0, |host| host.memory_bytes);
        if vm.memory_bytes() > room {
            state.log(upid, "kvm: cannot set up guest memory 'pc.ram': Cannot allocate memory");
            return Err("start failed: QEMU exited with code 1".into());
        }
        let single = vm.get("scsihw") == Some("virtio-scsi-single");
        let threaded = |(key, drive): &(String, Drive)| {
            key.starts_with("scsi") && drive.options.get("iothread").is_some_and(|v| v == "1")
        };
        if !single && vm.drives().iter().any(threaded) {
            state.warn(upid, "iothread is only valid with virtio disk or virtio-scsi-single controller, ignoring");
        }
        Ok(())
    }

    fn check_hardware(&self, state: &State, vm: &Vm) -> Result<(), String> {
        for (_, drive) in vm.drives().iter().filter(|(_, d)| d.volume().is_some()) {
            if state.volume(&drive.file, &self.host).is_none() {
                return Err(format!("volume '{}' does not exist", drive.file));
            }
        }
        let cpus = u64::from(state.hosts.get(&self.host).map_or(0, |h| h.cpus));
        if vm.cpus() > cpus {
            return Err(format!("MAX {cpus} vcpus allowed per VM on this node"));
        }
        for (_, value) in vm.config.iter().filter(|(key, _)| keys::is_net(key)) {
            let bridge = NetDev::read(value).options.remove("bridge");
            if let Some(bridge) = bridge.filter(|b| !state.config.bridges.contains(b)) {
                return Err(format!("bridge '{bridge}' does not exist"));
            }
        }
        Ok(())
    }

    /// A VM that was suspended to disk goes on where it was.
    fn resume(&self, state: &mut State, upid: &str) {
        let Some(vm) = state.vms.get_mut(&self.vmid).filter(|vm| vm.lock() == Some("suspended")) else { return };
        let memory = vm.get("vmstate").unwrap_or("").to_string();
        let nets = vm.config.iter().filter(|(key, _)| keys::is_net(key));
        let mtus: Vec<String> = nets
            .filter_map(|(key, value)| Some((key, NetDev::read(value).options.remove("mtu")?)))
            .map(|(key, mtu)| format!("netdev {key}: using 'host_mtu={mtu}' for migration compat"))
            .collect();
        vm.config.retain(|key, _| !SUSPENDED_KEYS.contains(&key.as_str()));
        state.remove_volume(&memory, &self.host);
        state.log(upid, "Resuming suspended VM");
        mtus.into_iter().for_each(|line| state.log(upid, line));
        state.log(upid, format!("activating and using '{memory}' as vmstate"));
        state.log(upid, "Resumed VM, removing state");
    }
}

/// Mapped devices need a mapping, and there are none here.
fn check_mappings(state: &mut State, upid: &str, vm: &Vm) -> Result<(), String> {
    let devices = vm.config.iter().filter(|(key, _)| key.starts_with("hostpci"));
    let mapping = devices.filter_map(|(_, value)| parse_property("pve-qm-hostpci", value).remove("mapping")).next();
    let Some(mapping) = mapping else { return Ok(()) };
    let text = format!("PCI device mapping not found for '{mapping}'");
    state.log(upid, text.clone());
    Err(text)
}

/// Nodes of the guest's memory must exist on the host and add up; QEMU itself checks the processors.
fn check_numa(state: &mut State, upid: &str, vm: &Vm) -> Result<(), String> {
    if vm.get("numa") != Some("1") {
        return Ok(());
    }
    let nodes: Vec<_> =
        (0..8).filter_map(|n| Some((n, parse_property("numa", vm.get(&format!("numa{n}"))?)))).collect();
    let mut total = 0;
    let of_host = state.hosts.get(&vm.host).map_or(1, |host| u64::from(host.numa_nodes));
    for (_, node) in &nodes {
        let missing = node.get("hostnodes").into_iter().flat_map(|text| numbers(text)).find(|n| *n >= of_host);
        if let Some(missing) = missing {
            return Err(format!("host NUMA node{missing} doesn't exist"));
        }
        total += node.get("memory").and_then(|m| m.parse::<u64>().ok()).unwrap_or(0);
    }
    if !nodes.is_empty() && total != vm.memory_bytes() >> 20 {
        return Err("total memory for NUMA nodes must be equal to vm static memory".into());
    }
    let cpus = vm.number("cores", 1) * vm.number("sockets", 1);
    for (n, node) in &nodes {
        let text = node.get("cpus").map_or("", String::as_str);
        if let Some(index) = numbers(text).find(|index| *index >= cpus) {
            let list = text.replace(';', ",cpus=");
            let line = format!(
                "kvm: -numa node,nodeid={n},cpus={list},memdev=ram-node{n}: CPU index ({index}) should be smaller than \
                 maxcpus ({cpus})"
            );
            state.log(upid, line);
            return Err("start failed: QEMU exited with code 1".into());
        }
    }
    Ok(())
}

/// `0-2;5` as 0, 1, 2, 5.
fn numbers(text: &str) -> impl Iterator<Item = u64> + '_ {
    text.split(';').flat_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse().unwrap_or(0), last.parse().unwrap_or(0));
        first..=u64::min(last, first + 4096)
    })
}
