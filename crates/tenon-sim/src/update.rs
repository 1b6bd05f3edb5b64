//! How a config change is staged: `PUT` at once, `POST` in a worker.
//!
//! Not atomic, as in PVE: what is refused by the schema changes nothing, but a change that fails while it is
//! being applied leaves the keys before it pending. What becomes of staged keys is in `settle`.

use crate::changes::{Changes, check_boot, check_values, read_changes, stored_text};
use crate::disks::Making;
use crate::jobs::Job;
use crate::key_rights;
use crate::keys;
use crate::params::Call;
use crate::property::{Drive, NetDev};
use crate::settle::update_boot_order;
use crate::state::State;
use crate::tasks::{NewTask, TaskOutcome};
use crate::vm::Vm;
use crate::wire::{Answer, Halt, Refusal, Reply};

pub(crate) const CHECKSUM_MISMATCH: &str = "checksum mismatch (file change by other user?)";

pub(crate) fn put(state: &mut State, call: &Call) -> Answer {
    let changes = read_changes(call)?;
    check_changes(state, call, &changes)?;
    apply_now(state, call, &changes)
}

fn apply_now(state: &mut State, call: &Call, changes: &Changes) -> Answer {
    if state.tasks.is_locked(call.vmid()) {
        return Err(Halt::Busy(call.vmid()));
    }
    state.check_writable(call.node(), call.vmid()).map_err(Refusal::failed)?;
    state.stage(call.vmid(), changes).map_err(Refusal::failed)?;
    Ok(Reply::null())
}

pub(crate) fn post(state: &mut State, call: &Call) -> Answer {
    let changes = read_changes(call)?;
    check_changes(state, call, &changes)?;
    let (skip, host) = (call.flag("skiplock"), call.node().into());
    let job = Job::Config(ConfigJob { vmid: call.vmid(), host, changes, skip, waited: false });
    let id = call.vmid().to_string();
    Ok(state.spawn(NewTask { node: call.node(), kind: "qmconfig", id, user: &call.user, job }))
}

/// Takes drives off; by force their volumes go, too.
pub(crate) fn unlink(state: &mut State, call: &Call) -> Answer {
    let delete = crate::schema::words(call.word("idlist")).map(str::to_owned).collect();
    let changes = Changes { delete, ..Changes::default() };
    check_changes(state, call, &changes)?;
    apply_now(state, call, &changes)
}

/// What is checked before anything is written; a refusal here leaves nothing pending.
fn check_changes(state: &State, call: &Call, changes: &Changes) -> Result<(), Refusal> {
    key_rights::check_changes(state, call, changes)?;
    let vm = state.vm_on(call.node(), call.vmid())?;
    if call.text("digest").is_some_and(|digest| digest != vm.digest()) {
        return Err(Refusal::failed(CHECKSUM_MISMATCH));
    }
    if !call.flag("skiplock") {
        vm.check_lock().map_err(Refusal::failed)?;
    }
    check_values(state, call, changes, vm)
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
    fn staged_value(&mut self, vmid: u32, (key, value): (&str, &str), changes: &Changes) -> Result<String, String> {
        if keys::is_net(key) {
            return Ok(self.net_value(value));
        }
        if keys::is_disk_key(key) {
            let host = self.vms.get(&vmid).map(|vm| vm.host.clone()).unwrap_or_default();
            let making = Making { vmid, host: &host, key };
            let made = self.make_drive(&making, Drive::read(key, value))?;
            made.import.map_or(Ok(()), |import| import.finish().1)?;
            return Ok(made.drive.print());
        }
        if key == "boot" {
            let shown = self.vms.get(&vmid).map(Vm::shown).unwrap_or_default();
            check_boot(value, &shown, &changes.set)?;
        }
        Ok(stored_text(key, value))
    }

    /// A network device as it is stored: without an address it gets a new one.
    pub(crate) fn net_value(&mut self, value: &str) -> String {
        let net = NetDev::read(value);
        let mac = net.mac.clone().unwrap_or_else(|| self.chance.mac());
        NetDev { mac: Some(mac), ..net }.print()
    }
}

#[derive(Debug)]
pub(crate) struct ConfigJob {
    pub(crate) vmid: u32,
    host: String,
    changes: Changes,
    skip: bool,
    waited: bool,
}

impl ConfigJob {
    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> TaskOutcome {
        if !std::mem::replace(&mut self.waited, true) {
            let set = self.changes.set.iter().map(|(k, v)| format!(" -{k} {v}"));
            let delete = Some(self.changes.delete.join(",")).filter(|d| !d.is_empty()).map(|d| format!(" -delete {d}"));
            let revert = Some(self.changes.revert.join(",")).filter(|r| !r.is_empty()).map(|r| format!(" -revert {r}"));
            let words: String = set.chain(delete).chain(revert).collect();
            state.log(upid, format!("update VM {}:{words}", self.vmid));
            return TaskOutcome::After(state.config.pace.config);
        }
        let skip = self.skip;
        let result = state
            .vm_for_task(&self.host, self.vmid)
            .and_then(|vm| if skip { Ok(()) } else { vm.check_lock() })
            .and_then(|()| state.check_writable(&self.host, self.vmid))
            .and_then(|()| state.stage(self.vmid, &self.changes));
        result.map_or_else(TaskOutcome::Failed, |()| TaskOutcome::Done)
    }
}
