//! How VMs are started and stopped, and what can be wrong with a start.

use std::time::Duration;

use crate::jobs::Job;
use crate::keys;
use crate::params::Call;
use crate::property::NetDev;
use crate::state::State;
use crate::tasks::{Event, NewTask, Outcome};
use crate::update::refuse_skiplock;
use crate::vm::{Running, Vm};
use crate::wire::Answer;
use crate::world::{PowerChange, PowerEvent};

/// The status flips a moment before the task ends.
const TAIL: Duration = Duration::from_millis(100);
/// A start within this of the stop meets the clean-up helper of the old QEMU.
const RESTART_WINDOW: Duration = Duration::from_secs(1);
/// What shutdown waits when the caller names no time.
const SHUTDOWN_TIMEOUT_S: u64 = 180;

pub(crate) fn start(state: &mut State, call: &Call) -> Answer {
    refuse_skiplock(call)?;
    state.check_quorum()?;
    let job = StartJob { vmid: call.vmid(), host: call.node().into(), phase: 0 };
    Ok(spawn(state, call, "qmstart", Job::Start(job)))
}

pub(crate) fn stop(state: &mut State, call: &Call) -> Answer {
    refuse_skiplock(call)?;
    let job = StopJob { vmid: call.vmid(), host: call.node().into(), phase: 0 };
    Ok(spawn(state, call, "qmstop", Job::Stop(job)))
}

pub(crate) fn shutdown(state: &mut State, call: &Call) -> Answer {
    refuse_skiplock(call)?;
    let timeout = call.int("timeout").and_then(|t| u64::try_from(t).ok()).unwrap_or(SHUTDOWN_TIMEOUT_S);
    let (vmid, host) = (call.vmid(), call.node().into());
    let timeout = Duration::from_secs(timeout);
    let job = ShutdownJob { vmid, host, timeout, force: call.flag("forceStop"), phase: ShutdownPhase::Begin };
    Ok(spawn(state, call, "qmshutdown", Job::Shutdown(job)))
}

fn spawn(state: &mut State, call: &Call, kind: &'static str, job: Job) -> crate::wire::Reply {
    state.spawn(NewTask { node: call.node(), kind, id: call.vmid().to_string(), user: &call.user, job })
}

#[derive(Debug)]
pub(crate) struct StartJob {
    pub(crate) vmid: u32,
    host: String,
    phase: u8,
}

impl StartJob {
    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> Outcome {
        self.phase += 1;
        match self.phase {
            1 => match self.begin(state, upid) {
                Ok(()) => Outcome::After(state.config.pace.start),
                Err(text) => Outcome::Failed(text),
            },
            2 => {
                state.power_on(self.vmid);
                Outcome::After(TAIL)
            }
            _ => {
                let restarted =
                    state.vms.get(&self.vmid).and_then(|vm| Some((vm.stopped_at?, vm.running.as_ref()?.since)));
                let window = RESTART_WINDOW + state.config.pace.start;
                if restarted.is_some_and(|(stopped, since)| since.saturating_sub(stopped) < window) {
                    state.tasks.schedule(state.now, Event::Trap(self.vmid));
                }
                Outcome::Done
            }
        }
    }

    fn begin(&self, state: &mut State, upid: &str) -> Result<(), String> {
        let vm = state.vm_for_task(&self.host, self.vmid)?;
        vm.check_lock()?;
        if vm.running.is_some() {
            return Err(format!("VM {} already running", self.vmid));
        }
        if vm.is_template() {
            return Err("you can't start a vm if it's a template".into());
        }
        state.settle(self.vmid);
        let Some(vm) = state.vms.get(&self.vmid).cloned() else { return Ok(()) };
        if vm.drives().iter().any(|(_, d)| d.is_cloudinit()) {
            state.log(upid, "generating cloud-init ISO");
        }
        self.check_hardware(state, &vm)?;
        let single = vm.get("scsihw") == Some("virtio-scsi-single");
        let threaded = |(key, drive): &(String, crate::property::Drive)| {
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
        for (key, value) in vm.config.iter().filter(|(key, _)| keys::is_net(key)) {
            let bridge = NetDev::parse(key, value).ok().and_then(|net| net.options.get("bridge").cloned());
            if let Some(bridge) = bridge.filter(|b| !state.config.bridges.contains(b)) {
                return Err(format!("bridge '{bridge}' does not exist"));
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct StopJob {
    pub(crate) vmid: u32,
    host: String,
    phase: u8,
}

impl StopJob {
    pub(crate) fn step(&mut self, state: &mut State) -> Outcome {
        self.phase += 1;
        match self.phase {
            1 => match state.vm_for_task(&self.host, self.vmid).map(|vm| vm.running.is_some()) {
                Ok(true) => Outcome::After(state.config.pace.stop),
                Ok(false) => Outcome::Done,
                Err(text) => Outcome::Failed(text),
            },
            2 => {
                state.power_off(self.vmid);
                Outcome::After(TAIL)
            }
            _ => Outcome::Done,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum ShutdownPhase {
    Begin,
    Obeyed,
    Ignored,
}

#[derive(Debug)]
pub(crate) struct ShutdownJob {
    pub(crate) vmid: u32,
    host: String,
    timeout: Duration,
    force: bool,
    phase: ShutdownPhase,
}

impl ShutdownJob {
    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> Outcome {
        match self.phase {
            ShutdownPhase::Begin => {
                let guest = state.config.pace.shutdown;
                let vm = match state.vm_for_task(&self.host, self.vmid) {
                    Ok(vm) => vm,
                    Err(text) => return Outcome::Failed(text),
                };
                if vm.running.is_none() {
                    return Outcome::Done;
                }
                let obeys = !vm.deaf && guest <= self.timeout;
                self.phase = if obeys { ShutdownPhase::Obeyed } else { ShutdownPhase::Ignored };
                Outcome::After(if obeys { guest } else { self.timeout })
            }
            ShutdownPhase::Obeyed => {
                state.power_off(self.vmid);
                Outcome::Done
            }
            ShutdownPhase::Ignored if self.force => {
                state.log(upid, "VM still running - terminating now with SIGTERM");
                self.phase = ShutdownPhase::Obeyed;
                Outcome::After(Duration::from_secs(1))
            }
            ShutdownPhase::Ignored => Outcome::Failed("VM quit/powerdown failed - got timeout".into()),
        }
    }
}

impl State {
    pub(crate) fn power_on(&mut self, vmid: u32) {
        let (now, pid) = (self.now, self.tasks.next_pid());
        let Some(vm) = self.vms.get_mut(&vmid) else { return };
        vm.running = Some(Running { since: now, pid, uuid: vm.uuid() });
        self.tell_power(vmid, PowerChange::Started);
    }

    pub(crate) fn power_off(&mut self, vmid: u32) {
        let Some(vm) = self.vms.get(&vmid).filter(|vm| vm.running.is_some()) else { return };
        let uuid = vm.running.as_ref().and_then(|r| r.uuid.clone());
        self.tell_power_as(vmid, PowerChange::Stopped, uuid);
        let now = self.now;
        if let Some(vm) = self.vms.get_mut(&vmid) {
            vm.running = None;
            vm.stopped_at = Some(now);
        }
    }

    fn tell_power(&self, vmid: u32, change: PowerChange) {
        let uuid = self.vms.get(&vmid).and_then(Vm::uuid);
        self.tell_power_as(vmid, change, uuid);
    }

    fn tell_power_as(&self, vmid: u32, change: PowerChange, uuid: Option<String>) {
        let Some(vm) = self.vms.get(&vmid) else { return };
        let event = PowerEvent { vmid, uuid, host: vm.host.clone(), change, config: vm.config.clone() };
        // Nobody may be listening, and that is fine.
        let _ = self.power.send(event);
    }
}
