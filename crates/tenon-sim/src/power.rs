//! How VMs are stopped, shut down and started anew; the start itself is in `start`.

use std::time::Duration;

use crate::changes::refuse_skiplock;
use crate::jobs::Job;
use crate::params::Call;
use crate::related::HaStopJob;
use crate::start::StartJob;
use crate::state::State;
use crate::tasks::{NewTask, TaskOutcome};
use crate::vm::{Running, Vm};
use crate::wire::{Answer, Refusal, Reply};
use crate::world::{PowerChange, PowerEvent};

/// The status flips a moment before the task ends.
const TAIL: Duration = Duration::from_millis(100);
/// What shutdown waits when the caller names no time.
const SHUTDOWN_TIMEOUT_S: u64 = 180;

pub(crate) fn start(state: &mut State, call: &Call) -> Answer {
    refuse_skiplock(call)?;
    state.check_quorum()?;
    let job = StartJob::new(call.vmid(), call.node()).skipping_lock(call.flag("skiplock"));
    Ok(spawn(state, call, "qmstart", Job::Start(job)))
}

pub(crate) fn stop(state: &mut State, call: &Call) -> Answer {
    refuse_skiplock(call)?;
    if state.related.is_ha(call.vmid()) {
        return Ok(ha_stop(state, call));
    }
    let job = StopJob { vmid: call.vmid(), host: call.node().into(), phase: 0 };
    Ok(spawn(state, call, "qmstop", Job::Stop(job)))
}

pub(crate) fn shutdown(state: &mut State, call: &Call) -> Answer {
    refuse_skiplock(call)?;
    if state.related.is_ha(call.vmid()) {
        return Ok(ha_stop(state, call));
    }
    let timeout = call.int("timeout").and_then(|t| u64::try_from(t).ok()).unwrap_or(SHUTDOWN_TIMEOUT_S);
    let (vmid, host) = (call.vmid(), call.node().into());
    let timeout = Duration::from_secs(timeout);
    let (force, phase) = (call.flag("forceStop"), ShutdownPhase::Begin);
    let job = ShutdownJob { vmid, host, timeout, force, restart: None, phase };
    Ok(spawn(state, call, "qmshutdown", Job::Shutdown(job)))
}

/// What the HA manager looks after, only the HA manager stops: otherwise it would start it again.
fn ha_stop(state: &mut State, call: &Call) -> Reply {
    spawn(state, call, "hastop", Job::HaStop(HaStopJob { vmid: call.vmid() }))
}

/// The VM, if it runs.
pub(crate) fn running_vm<'a>(state: &'a State, call: &Call) -> Result<&'a Vm, Refusal> {
    let vm = state.vm_on(call.node(), call.vmid())?;
    if vm.running.is_some() { Ok(vm) } else { Err(Refusal::failed(format!("VM {} not running", call.vmid()))) }
}

/// A shutdown that is followed by a start, so that what is pending takes effect.
pub(crate) fn reboot(state: &mut State, call: &Call) -> Answer {
    running_vm(state, call)?;
    let timeout = call.int("timeout").and_then(|t| u64::try_from(t).ok()).unwrap_or(SHUTDOWN_TIMEOUT_S);
    let (vmid, host, timeout) = (call.vmid(), call.node().to_string(), Duration::from_secs(timeout));
    let restart = Some(StartJob::new(vmid, &host));
    let job = ShutdownJob { vmid, host, timeout, force: false, restart, phase: ShutdownPhase::Begin };
    Ok(spawn(state, call, "qmreboot", Job::Shutdown(job)))
}

pub(crate) fn spawn(state: &mut State, call: &Call, kind: &'static str, job: Job) -> Reply {
    state.spawn(NewTask { node: call.node(), kind, id: call.vmid().to_string(), user: &call.user, job })
}

#[derive(Debug)]
pub(crate) struct StopJob {
    pub(crate) vmid: u32,
    host: String,
    phase: u8,
}

impl StopJob {
    pub(crate) fn step(&mut self, state: &mut State) -> TaskOutcome {
        self.phase += 1;
        match self.phase {
            1 => match state.vm_for_task(&self.host, self.vmid).map(|vm| vm.running.is_some()) {
                Ok(true) => TaskOutcome::After(state.config.pace.stop),
                Ok(false) => TaskOutcome::Done,
                Err(_) => TaskOutcome::Failed(not_found(&self.host, self.vmid)),
            },
            2 => {
                state.power_off(self.vmid);
                TaskOutcome::After(TAIL)
            }
            _ => TaskOutcome::Done,
        }
    }
}

fn not_found(host: &str, vmid: u32) -> String {
    format!("unable to find configuration file for VM {vmid} on node '{host}'")
}

#[derive(Clone, Copy, Debug)]
enum ShutdownPhase {
    Begin,
    Obeyed,
    Ignored,
    Restart,
}

#[derive(Debug)]
pub(crate) struct ShutdownJob {
    pub(crate) vmid: u32,
    host: String,
    timeout: Duration,
    force: bool,
    /// What a reboot goes on with.
    restart: Option<StartJob>,
    phase: ShutdownPhase,
}

impl ShutdownJob {
    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> TaskOutcome {
        match self.phase {
            ShutdownPhase::Begin => {
                let guest = state.config.pace.shutdown;
                let Ok(vm) = state.vm_for_task(&self.host, self.vmid) else {
                    return TaskOutcome::Failed(not_found(&self.host, self.vmid));
                };
                if vm.running.is_none() {
                    return TaskOutcome::Done;
                }
                let deaf = vm.deaf || vm.running.as_ref().is_some_and(|running| running.hung);
                let obeys = !deaf && state.has_system(self.vmid) && guest <= self.timeout;
                self.phase = if obeys { ShutdownPhase::Obeyed } else { ShutdownPhase::Ignored };
                TaskOutcome::After(if obeys { guest } else { self.timeout })
            }
            ShutdownPhase::Obeyed => {
                state.power_off(self.vmid);
                self.phase = ShutdownPhase::Restart;
                if self.restart.is_some() { TaskOutcome::After(TAIL) } else { TaskOutcome::Done }
            }
            ShutdownPhase::Restart => self.restart.as_mut().map_or(TaskOutcome::Done, |start| start.step(state, upid)),
            ShutdownPhase::Ignored if self.force => {
                state.log(upid, "VM still running - terminating now with SIGTERM");
                self.phase = ShutdownPhase::Obeyed;
                TaskOutcome::After(Duration::from_secs(1))
            }
            ShutdownPhase::Ignored => TaskOutcome::Failed("VM quit/powerdown failed - got timeout".into()),
        }
    }
}

impl State {
    /// Whether a system is installed on one of the VM's disks; without one nobody hears the power button.
    pub(crate) fn has_system(&self, vmid: u32) -> bool {
        let Some(vm) = self.vms.get(&vmid) else { return false };
        vm.drives().iter().any(|(_, drive)| self.volume(&drive.file, &vm.host).is_some_and(|v| v.bootable))
    }

    pub(crate) fn power_on(&mut self, vmid: u32) {
        let (now, pid) = (self.now, self.tasks.next_pid());
        let Some(vm) = self.vms.get_mut(&vmid) else { return };
        vm.running = Some(Running::new(now, pid, vm.uuid()));
        self.tell_power(vmid, PowerChange::Started);
    }

    /// The guest stands still while its QEMU runs on.
    pub(crate) fn hang(&mut self, vmid: u32) {
        if let Some(running) = self.vms.get_mut(&vmid).and_then(|vm| vm.running.as_mut()) {
            running.hung = true;
        }
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
