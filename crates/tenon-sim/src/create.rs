//! How a VM comes into being: what the call refuses, and the worker that makes its disks.
//!
//! Until the very end the config says `lock: create` and nothing else; a failed creation removes everything.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::changes::{
    Changes, check_boot, check_drive_syntax, check_pool, check_root_keys, check_values, read_set, stored_text,
};
use crate::disks::Making;
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
    let job = CreateJob { vmid, host: host.clone(), set, pool, start, user: call.user.clone(), waited: false };
    let (id, job) = (vmid.to_string(), Job::Create(Box::new(job)));
    Ok(state.spawn(NewTask { node: &host, kind: "qmcreate", id, user: &call.user, job }))
}

#[derive(Debug)]
pub(crate) struct CreateJob {
    pub(crate) vmid: u32,
    host: String,
    set: BTreeMap<String, String>,
    pool: Option<String>,
    start: bool,
    user: String,
    waited: bool,
}

impl CreateJob {
    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> TaskOutcome {
        if !std::mem::replace(&mut self.waited, true) {
            return TaskOutcome::After(self.duration(state));
        }
        match self.make(state, upid) {
            Ok(config) => {
                self.finish(state, upid, config);
                TaskOutcome::Done
            }
            Err(text) => {
                state.drop_vm(self.vmid);
                TaskOutcome::Failed(format!("unable to create VM {} - {text}", self.vmid))
            }
        }
    }

    /// Importing takes as long as copying.
    fn duration(&self, state: &State) -> Duration {
        let imports = self.set.values().filter(|value| value.contains("import-from=")).count();
        let pace = &state.config.pace;
        pace.create + pace.clone_full * u32::try_from(imports).unwrap_or(1)
    }

    fn make(&self, state: &mut State, upid: &str) -> Result<Config, String> {
        let mut config = Config::new();
        let mut made: Vec<VolumeKey> = Vec::new();
        for (key, value) in &self.set {
            let stored = if keys::is_net(key) {
                state.net_value(value)
            } else if keys::is_disk_key(key) {
                match self.make_disk(state, upid, (key, value)) {
                    Ok(drive) => {
                        made.extend(state.key_of(&drive.file, &self.host));
                        drive.print()
                    }
                    Err(text) => {
                        self.unmake(state, made);
                        return Err(text);
                    }
                }
            } else {
                stored_text(key, value)
            };
            config.insert(key.clone(), stored);
        }
        let checked = self.set.get("boot").map_or(Ok(()), |order| check_boot(order, &config, &self.set));
        let allowed = || match self.set.contains_key("tags") {
            true => key_rights::check_new_tags(state, &self.user, self.vmid),
            false => Ok(()),
        };
        if let Err(text) = checked.and_then(|()| allowed()) {
            self.unmake(state, made);
            return Err(text);
        }
        config.entry("boot".into()).or_insert_with_key(|_| default_boot(&self.set));
        self.identify(state, &mut config);
        Ok(config)
    }

    /// Removes what was made for a VM that is not to be.
    fn unmake(&self, state: &mut State, made: Vec<VolumeKey>) {
        for key in made {
            if state.volumes.get(&key).is_some_and(|volume| volume.owner == Some(self.vmid)) {
                state.volumes.remove(&key);
            }
        }
    }

    fn make_disk(&self, state: &mut State, upid: &str, (key, value): (&str, &str)) -> Result<Drive, String> {
        let making = Making { vmid: self.vmid, host: &self.host, key };
        let asked = Drive::read(key, value);
        let is_new = asked.new_gib().is_some() || asked.file.ends_with(":cloudinit");
        let (drive, lines) = state.make_drive(&making, asked)?;
        lines.into_iter().for_each(|line| state.log(upid, line));
        if is_new {
            state.log(upid, format!("{key}: successfully created disk '{}'", drive.print()));
        }
        if drive.is_cloudinit() {
            state.log(upid, "generating cloud-init ISO");
        }
        Ok(drive)
    }

    /// What tells this VM from every other.
    fn identify(&self, state: &mut State, config: &mut Config) {
        let given = config.get("smbios1").cloned().unwrap_or_default();
        if !given.contains("uuid=") {
            config.insert("smbios1".into(), with_uuid(&given, &state.chance.uuid()));
        }
        if config.get("vmgenid").is_none_or(|id| id.len() <= 1) {
            config.insert("vmgenid".into(), state.chance.uuid());
        }
        config.insert("meta".into(), format!("creation-qemu={},ctime={}", state.config.version.qemu(), state.epoch()));
    }

    fn finish(&self, state: &mut State, upid: &str, config: Config) {
        if let Some(vm) = state.vms.get_mut(&self.vmid) {
            vm.config = config;
        }
        if let Some(pool) = self.pool.as_ref().and_then(|pool| state.pools.get_mut(pool)) {
            pool.vms.insert(self.vmid);
        }
        if self.start {
            // A task of its own: that this one ends well says nothing about the start.
            state.log(upid, "Execute autostart");
            let job = Job::Start(StartJob::new(self.vmid, &self.host));
            let id = self.vmid.to_string();
            state.spawn(NewTask { node: &self.host, kind: "qmstart", id, user: &self.user, job });
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
