//! How a VM becomes a template: its disks become base images, and there is no way back.

use crate::jobs::Job;
use crate::params::Call;
use crate::property::Drive;
use crate::state::State;
use crate::tasks::{NewTask, TaskOutcome};
use crate::wire::{Answer, Refusal};

pub(crate) fn template(state: &mut State, call: &Call) -> Answer {
    let vmid = call.vmid();
    let vm = state.vm_on(call.node(), vmid)?;
    vm.check_lock().map_err(Refusal::failed)?;
    if vm.is_template() && call.text("disk").is_none() {
        return Err(Refusal::failed("you can't convert a template to a template").into());
    }
    if vm.running.is_some() {
        return Err(Refusal::failed("you can't convert a VM to template if VM is running").into());
    }
    let disk = call.text("disk").map(str::to_owned);
    let job = Job::Template(TemplateJob { vmid, host: call.node().into(), disk, waited: false });
    let id = vmid.to_string();
    Ok(state.spawn(NewTask { node: call.node(), kind: "qmtemplate", id, user: &call.user, job }))
}

#[derive(Debug)]
pub(crate) struct TemplateJob {
    pub(crate) vmid: u32,
    host: String,
    disk: Option<String>,
    waited: bool,
}

impl TemplateJob {
    pub(crate) fn step(&mut self, state: &mut State) -> TaskOutcome {
        if !std::mem::replace(&mut self.waited, true) {
            return TaskOutcome::After(state.config.pace.create);
        }
        self.convert(state).map_or_else(TaskOutcome::Failed, |()| TaskOutcome::Done)
    }

    fn convert(&self, state: &mut State) -> Result<(), String> {
        state.check_writable(&self.host, self.vmid)?;
        let vm = state.vm_for_task(&self.host, self.vmid)?;
        vm.check_lock()?;
        let drives = vm.drives();
        vm.config.insert("template".into(), "1".into());
        let wanted = |key: &str| self.disk.as_ref().is_none_or(|disk| disk == key);
        for (key, drive) in drives.into_iter().filter(|(key, d)| !d.is_cdrom() && wanted(key)) {
            self.rename(state, &key, drive);
        }
        Ok(())
    }

    fn rename(&self, state: &mut State, key: &str, mut drive: Drive) {
        let Some(old) = state.key_of(&drive.file, &self.host) else { return };
        let (own, base) = (format!("vm-{}-disk-", self.vmid), format!("base-{}-disk-", self.vmid));
        let Some(volume) = state.volumes.remove(&old) else { return };
        let mut new = old;
        new.name = new.name.replace(&own, &base);
        drive.file = new.volid();
        state.volumes.insert(new, volume);
        if let Some(vm) = state.vms.get_mut(&self.vmid) {
            vm.config.insert(key.to_string(), drive.print());
        }
    }
}
