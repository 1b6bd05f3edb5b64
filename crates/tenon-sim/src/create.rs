//! How a VM comes into being: what the call refuses, and the worker that makes its disks.
//!
//! Until the very end the config says `lock: create` and nothing else; a failed creation removes everything.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::changes::{
    Changes, check_boot, check_drive_syntax, check_pool, check_root_keys, check_values, read_set, stored_text,
};
use crate::disks::{Import, Made, Making};
use crate::jobs::Job;
use crate::key_rights;
use crate::keys;
use crate::params::Call;
use crate::property::{Drive, with_uuid};
use crate::start::StartJob;
use crate::state::State;
use crate::storage::VolumeKey;
use crate::tasks::{NewTask, TaskOutcome};
use crate::vm::{Config, Vm};
use crate::wire::{Answer, Refusal};

/// The order in which disks are tried as the one to boot from.
const BOOT_BUSES: &[&str] = &["ide", "scsi", "virtio", "sata"];

pub(crate) fn create(state: &mut State, call: &Call) -> Answer {
    let (vmid, host) = (call.vmid(), call.node().to_string());
    let pool = check_pool(state, call)?;
    if call.text("archive").is_some() {
        return Err(Refusal::failed("restoring archives is not simulated").into());
    }
    let changes = Changes { set: read_set(call), ..Changes::default() };
    check_drive_syntax(&changes.set)?;
    key_rights::check_creation(state, call, &changes.set)?;
    check_root_keys(call, &changes)?;
    state.check_quorum()?;
    let blank = Vm::new(vmid, &host, Config::new());
    check_values(state, call, &changes, &blank)?;
    if let Some(other) = state.vms.get(&vmid) {
        let text = format!("unable to create VM {vmid} - VM {vmid} already exists on node '{}'", other.host);
        return Err(Refusal::failed(text).into());
    }
    // The id is taken before the answer, so that of several who ask for it only one gets a task.
    state.vms.insert(vmid, Vm::new(vmid, &host, Config::from([("lock".into(), "create".into())])));
    let (set, start) = (changes.set, call.flag("start"));
    let order = Order { host: host.clone(), left: set.clone(), set, pool, start, user: call.user.clone() };
    let job = CreateJob { vmid, order, waited: false, config: Config::new(), made: Vec::new(), importing: None };
    let (id, job) = (vmid.to_string(), Job::Create(Box::new(job)));
    Ok(state.spawn(NewTask { node: &host, kind: "qmcreate", id, user: &call.user, job }))
}

/// What is wanted.
#[derive(Debug)]
struct Order {
    host: String,
    set: BTreeMap<String, String>,
    /// Keys that are still to be made.
    left: BTreeMap<String, String>,
    pool: Option<String>,
    start: bool,
    user: String,
}

#[derive(Debug)]
pub(crate) struct CreateJob {
    pub(crate) vmid: u32,
    order: Order,
    waited: bool,
    config: Config,
    made: Vec<VolumeKey>,
    importing: Option<(String, Drive, Import)>,
}

impl CreateJob {
    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> TaskOutcome {
        if !std::mem::replace(&mut self.waited, true) {
            return TaskOutcome::After(state.config.pace.create);
        }
        match self.make(state, upid) {
            Ok(Some(wait)) => TaskOutcome::After(wait),
            Ok(None) => {
                self.finish(state, upid);
                TaskOutcome::Done
            }
            Err(text) => TaskOutcome::Failed(self.fail(state, &text)),
        }
    }

    /// Goes on until an image must be copied, which takes its time, or everything is made.
    fn make(&mut self, state: &mut State, upid: &str) -> Result<Option<Duration>, String> {
        if let Some((key, drive, import)) = self.importing.take() {
            let (lines, copied) = import.finish();
            lines.into_iter().for_each(|line| state.log(upid, line));
            copied?;
            self.attach(state, upid, (key, &drive));
        }
        while let Some((key, value)) = self.order.left.pop_first() {
            if keys::is_disk_key(&key) {
                if let Some(import) = self.make_disk(state, upid, (key, &value))? {
                    self.importing = Some(import);
                    // Importing takes as long as copying.
                    return Ok(Some(state.config.pace.clone_full));
                }
                continue;
            }
            let stored = if keys::is_net(&key) { state.net_value(&value) } else { stored_text(&key, &value) };
            self.config.insert(key, stored);
        }
        let set = &self.order.set;
        set.get("boot").map_or(Ok(()), |order| check_boot(order, &self.config, set))?;
        if set.contains_key("tags") {
            key_rights::check_new_tags(state, &self.order.user, self.vmid)?;
        }
        Ok(None)
    }

    /// Makes the volume of a drive; an image is still to be copied into what comes back.
    fn make_disk(
        &mut self,
        state: &mut State,
        upid: &str,
        (key, value): (String, &str),
    ) -> Result<Option<(String, Drive, Import)>, String> {
        let making = Making { vmid: self.vmid, host: &self.order.host, key: &key };
        let Made { drive, lines, import } = state.make_drive(&making, Drive::read(&key, value))?;
        lines.into_iter().for_each(|line| state.log(upid, line));
        self.made.extend(state.key_of(&drive.file, &self.order.host));
        if let Some(import) = import {
            return Ok(Some((key, drive, import)));
        }
        self.attach(state, upid, (key, &drive));
        Ok(None)
    }

    fn attach(&mut self, state: &mut State, upid: &str, (key, drive): (String, &Drive)) {
        let asked = self.order.set.get(&key).map(|value| Drive::read(&key, value));
        if asked.is_some_and(|asked| asked.new_gib().is_some() || asked.file.ends_with(":cloudinit")) {
            state.log(upid, format!("{key}: successfully created disk '{}'", drive.print()));
        }
        if drive.is_cloudinit() {
            state.log(upid, "generating cloud-init ISO");
        }
        self.config.insert(key, drive.print());
    }

    /// Removes what was made for a VM that is not to be.
    fn fail(&mut self, state: &mut State, text: &str) -> String {
        for key in self.made.drain(..) {
            if state.volumes.get(&key).is_some_and(|volume| volume.owner == Some(self.vmid)) {
                state.volumes.remove(&key);
            }
        }
        state.drop_vm(self.vmid);
        format!("unable to create VM {} - {text}", self.vmid)
    }

    pub(crate) fn interrupt(&mut self, state: &mut State) -> String {
        let copying = self.importing.as_ref().map(|(_, _, import)| import.interrupted());
        self.fail(state, &copying.unwrap_or_else(|| "received interrupt".into()))
    }

    /// What tells this VM from every other.
    fn identify(&mut self, state: &mut State) {
        let config = &mut self.config;
        config.entry("boot".into()).or_insert_with_key(|_| default_boot(&self.order.set));
        let given = config.get("smbios1").cloned().unwrap_or_default();
        if !given.contains("uuid=") {
            config.insert("smbios1".into(), with_uuid(&given, &state.chance.uuid()));
        }
        if config.get("vmgenid").is_none_or(|id| id.len() <= 1) {
            config.insert("vmgenid".into(), state.chance.uuid());
        }
        config.insert("meta".into(), format!("creation-qemu={},ctime={}", state.config.version.qemu(), state.epoch()));
    }

    fn finish(&mut self, state: &mut State, upid: &str) {
        self.identify(state);
        let Order { host, user, pool, start, .. } = &self.order;
        if let Some(vm) = state.vms.get_mut(&self.vmid) {
            vm.config = std::mem::take(&mut self.config);
        }
        if let Some(pool) = pool.as_ref().and_then(|pool| state.pools.get_mut(pool)) {
            pool.vms.insert(self.vmid);
        }
        if *start {
            // A task of its own: that this one ends well says nothing about the start.
            state.log(upid, "Execute autostart");
            let job = Job::Start(StartJob::new(self.vmid, host));
            let id = self.vmid.to_string();
            state.spawn(NewTask { node: host, kind: "qmstart", id, user, job });
        }
    }
}

/// The first disk, the first CD and the first network device.
fn default_boot(set: &BTreeMap<String, String>) -> String {
    let rank = |key: &str| {
        let (stem, number) = crate::schema::numbered(key).unwrap_or((key, 0));
        (BOOT_BUSES.iter().position(|bus| *bus == stem), number)
    };
    let mut drives: Vec<(&String, Drive)> =
        set.iter().filter(|(key, _)| keys::is_drive(key)).map(|(key, value)| (key, Drive::read(key, value))).collect();
    drives.sort_by_key(|(key, _)| rank(key));
    let disk = drives.iter().find(|(_, d)| !d.is_cdrom() && !d.is_cloudinit()).map(|(key, _)| key.as_str());
    let medium = drives.iter().find(|(_, d)| d.is_cdrom() && !d.is_cloudinit()).map(|(key, _)| key.as_str());
    let net = set.keys().find(|key| keys::is_net(key)).map(String::as_str);
    let devices: Vec<&str> = [disk, medium, net].into_iter().flatten().collect();
    if devices.is_empty() { " ".into() } else { format!("order={}", devices.join(";")) }
}
