//! How a running VM is reset, paused, let go on, or put to disk.

use std::time::Duration;

use crate::images::formatting;
use crate::jobs::Job;
use crate::keys;
use crate::params::Call;
use crate::power::{running_vm, spawn};
use crate::property::NetDev;
use crate::state::State;
use crate::storage::Volume;
use crate::tasks::TaskOutcome;
use crate::vm::Vm;
use crate::wire::{Answer, Refusal};

/// Room for the devices' state beside the memory, which is counted twice.
const STATE_BYTES: u64 = 500 << 20;
/// What a reset or a pause takes.
const MOMENT: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Reset,
    Pause,
    Resume,
    ToDisk,
}

#[derive(Debug)]
pub(crate) struct PauseJob {
    pub(crate) vmid: u32,
    host: String,
    what: What,
    waited: bool,
}

fn begin(state: &mut State, call: &Call, kind: &'static str, what: What) -> Answer {
    crate::changes::refuse_skiplock(call)?;
    let vm = running_vm(state, call)?;
    if what == What::ToDisk {
        vm.check_lock().map_err(Refusal::failed)?;
    }
    let job = PauseJob { vmid: call.vmid(), host: call.node().into(), what, waited: false };
    Ok(spawn(state, call, kind, Job::Pause(job)))
}

pub(crate) fn reset(state: &mut State, call: &Call) -> Answer {
    begin(state, call, "qmreset", What::Reset)
}

pub(crate) fn suspend(state: &mut State, call: &Call) -> Answer {
    if call.flag("todisk") {
        return begin(state, call, "qmsuspend", What::ToDisk);
    }
    begin(state, call, "qmpause", What::Pause)
}

pub(crate) fn resume(state: &mut State, call: &Call) -> Answer {
    begin(state, call, "qmresume", What::Resume)
}

impl PauseJob {
    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> TaskOutcome {
        if !std::mem::replace(&mut self.waited, true) {
            return TaskOutcome::After(if self.what == What::ToDisk { state.config.pace.stop } else { MOMENT });
        }
        let vm = match state.vm_for_task(&self.host, self.vmid) {
            Ok(vm) => vm,
            Err(text) => return TaskOutcome::Failed(text),
        };
        let Some(running) = vm.running.as_mut() else {
            return TaskOutcome::Failed(format!("VM {} not running", self.vmid));
        };
        match self.what {
            What::Pause => running.paused = true,
            What::Resume => running.paused = false,
            What::Reset => running.commands.clear(),
            What::ToDisk => return self.to_disk(state, upid).map_or_else(TaskOutcome::Failed, |()| TaskOutcome::Done),
        }
        TaskOutcome::Done
    }

    fn to_disk(&self, state: &mut State, upid: &str) -> Result<(), String> {
        let Some(vm) = state.vms.get(&self.vmid).cloned() else { return Ok(()) };
        let bytes = STATE_BYTES + 2 * vm.memory_bytes();
        let storage = self.state_storage(&vm);
        let day = i64::try_from(state.epoch()).ok().and_then(|at| jiff::Timestamp::from_second(at).ok());
        let day = day.map_or_else(String::new, |at| at.strftime("%F").to_string());
        let stem = format!("vm-{}-state-suspend-{day}", self.vmid);
        let name = state.image_name(&storage, self.vmid, &stem, "raw");
        let key = state.place(&storage, &self.host, &name);
        state.log(upid, formatting(state, &key, "raw", bytes));
        let image = state.image(self.vmid, "raw", bytes);
        // Only what the guest had in its memory is written.
        state.allocate(key.clone(), Volume { used: vm.memory_bytes(), ..image })?;
        state.log(upid, "State saved, quitting");
        let nets = vm.config.iter().filter(|(key, _)| keys::is_net(key));
        let mtus: Vec<String> = nets
            .map(|(key, value)| (key, NetDev::read(value).options.remove("mtu").unwrap_or_else(|| "1500".into())))
            .map(|(key, mtu)| format!("{key}={mtu}"))
            .collect();
        state.power_off(self.vmid);
        let vm = state.vm_for_task(&self.host, self.vmid)?;
        let noted = [
            ("lock", "suspended".to_string()),
            ("vmstate", key.volid()),
            ("runningcpu", "max".into()),
            ("runningmachine", "pc-i440fx-10.0+pve1".into()),
            ("running-nets-host-mtu", mtus.join(",")),
        ];
        vm.config.extend(noted.into_iter().filter(|(_, v)| !v.is_empty()).map(|(k, v)| (k.to_string(), v)));
        Ok(())
    }

    /// Where the memory goes: where the config says, or beside the first disk.
    fn state_storage(&self, vm: &Vm) -> String {
        let beside = || {
            let disks = vm.drives().into_iter().filter(|(_, d)| !d.is_cdrom());
            disks.filter_map(|(_, d)| d.volume().map(|(storage, _)| storage.to_string())).next()
        };
        vm.get("vmstatestorage").map(str::to_owned).or_else(beside).unwrap_or_else(|| "local".into())
    }
}
