//! How a VM is copied: what the call refuses, and the phases the new config passes through.
//!
//! Placeholder, then the real config from the first finished drive on, then unlocked, then in its pool or on
//! its target host; only then does the task end.

use std::time::Duration;

use crate::changes::check_pool;
use crate::jobs::Job;
use crate::key_rights::check_clone;
use crate::keys;
use crate::params::Call;
use crate::property::{Drive, NetDev, with_uuid};
use crate::state::State;
use crate::storage::VolumeKey;
use crate::tasks::{Lock, NewTask, TaskOutcome};
use crate::vm::{Config, Vm};
use crate::wire::{Answer, Refusal};

/// Keys a clone does not inherit.
const GONE: &[&str] = &["lock", "running-nets-host-mtu", "runningcpu", "runningmachine", "template", "vmstate"];
/// From one of the last phases to the next; short, but long enough to be seen.
const TAIL: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Begin,
    /// Waiting for the lock of a storage.
    Queue,
    Drives,
    Unlock,
    Settle,
    End,
}

#[derive(Debug)]
pub(crate) struct CloneJob {
    pub(crate) newid: u32,
    pub(crate) source: u32,
    pub(crate) host: String,
    pub(crate) order: Order,
    /// The new config without its drives.
    config: Config,
    drives: Vec<(String, Drive)>,
    done: usize,
    pub(crate) made: Vec<VolumeKey>,
    phase: Phase,
    /// The drive that is being copied, as it will be.
    current: Option<Drive>,
    /// The lock of the storage it is copied to.
    held: Option<Lock>,
    /// Whether the copy will run out of room.
    pub(crate) starved: bool,
}

/// What the caller asked for.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(crate) full: bool,
    pub(crate) storage: Option<String>,
    pub(crate) format: Option<String>,
    pool: Option<String>,
    target: Option<String>,
    /// KiB a second, when the caller limits it.
    pub(crate) limit: Option<u64>,
}

pub(crate) fn clone(state: &mut State, call: &Call) -> Answer {
    let (host, source) = (call.node(), call.vmid());
    let newid = call.id("newid").unwrap_or(0);
    let order = read_order(state, call)?;
    let vm = source_vm(state, host, source)?;
    check_clone(state, call, vm, order.storage.as_deref())?;
    check_source(state, vm, &order)?;
    if let Some(snapshot) = call.text("snapname") {
        return Err(Refusal::failed(format!("snapshot '{snapshot}' does not exist")).into());
    }
    if state.vms.get(&newid).is_some_and(|other| other.host == host) {
        return Err(Refusal::failed(already_exists(newid)).into());
    }
    let drives = vm.drives();
    let vm = vm.clone();
    let config = new_config(state, &vm, call);
    let host = host.to_string();
    let job = CloneJob {
        newid,
        source,
        host: host.clone(),
        order,
        config,
        drives,
        done: 0,
        made: Vec::new(),
        phase: Phase::Begin,
        current: None,
        held: None,
        starved: false,
    };
    let job = Job::Clone(Box::new(job));
    // The task is filed under the source: listing tasks by the new id finds nothing.
    Ok(state.spawn(NewTask { node: &host, kind: "qmclone", id: source.to_string(), user: &call.user, job }))
}

fn already_exists(newid: u32) -> String {
    format!("unable to create VM {newid}: config file already exists")
}

fn source_vm<'a>(state: &'a State, host: &str, source: u32) -> Result<&'a Vm, Refusal> {
    let text = || Refusal::failed(format!("unable to find configuration file for VM {source} on node '{host}'"));
    state.vms.get(&source).filter(|vm| vm.host == host).ok_or_else(text)
}

fn read_order(state: &State, call: &Call) -> Result<Order, Refusal> {
    let owned = |name: &str| call.text(name).map(str::to_owned);
    let pool = check_pool(state, call)?;
    let source = source_vm(state, call.node(), call.vmid())?;
    let target = owned("target").filter(|t| t != call.node());
    if let Some(target) = target.as_ref().filter(|t| !state.hosts.contains_key(*t)) {
        return Err(Refusal::failed(format!("no such cluster node '{target}'")));
    }
    let storage = owned("storage");
    if let Some(id) = &storage {
        let spec = state.usable_storage(id, call.node())?;
        if target.is_some() && !spec.shared {
            return Err(Refusal::failed(format!("can't clone to non-shared storage '{id}'")));
        }
        if !spec.content.iter().any(|c| c == "images") {
            return Err(Refusal::failed(format!("storage '{id}' does not support content-type 'images'")));
        }
    }
    state.check_quorum()?;
    let full = call.text("full").map_or(!source.is_template(), |full| full == "1");
    let limit = call.int("bwlimit").and_then(|limit| u64::try_from(limit).ok()).filter(|limit| *limit > 0);
    Ok(Order { full, storage, format: owned("format"), pool, target, limit })
}

fn check_source(state: &State, vm: &Vm, order: &Order) -> Result<(), Refusal> {
    vm.check_lock().map_err(Refusal::failed)?;
    if !order.full {
        let given = [("storage", &order.storage), ("format", &order.format)];
        if let Some((name, _)) = given.iter().find(|(_, value)| value.is_some()) {
            return Err(Refusal::failed(format!("parameter '{name}' not allowed for linked clones")));
        }
    }
    for (key, drive) in vm.drives().iter().filter(|(_, d)| !d.is_cdrom() || d.is_cloudinit()) {
        let local = drive.volume().is_some_and(|(storage, _)| !state.is_shared(storage));
        if let Some(target) = order.target.as_ref().filter(|_| local) {
            return Err(Refusal::failed(format!("can't clone VM to node '{target}' (VM uses local storage)")));
        }
        let links = vm.is_template() && drive.volume().is_none_or(|(storage, _)| state.can_link(storage));
        if !order.full && !links && !drive.is_cdrom() {
            let text = format!("Linked clone feature is not supported for '{}' ({key})", drive.file);
            return Err(Refusal::failed(text));
        }
    }
    Ok(())
}

/// Everything is inherited but identity: uuid, generation id and MAC addresses are fresh.
fn new_config(state: &mut State, vm: &Vm, call: &Call) -> Config {
    let mut config = vm.config.clone();
    config.retain(|key, _| !keys::is_disk_key(key) && !key.starts_with("unused") && !GONE.contains(&key.as_str()));
    let name = call.text("name").map_or_else(|| format!("Copy-of-VM-{}", vm.name()), str::to_owned);
    config.insert("name".into(), name);
    if let Some(text) = call.text("description").filter(|d| !d.is_empty()) {
        config.insert("description".into(), text.strip_suffix('\n').unwrap_or(text).to_string());
    }
    let smbios = with_uuid(vm.get("smbios1").unwrap_or(""), &state.chance.uuid());
    config.insert("smbios1".into(), smbios);
    if config.contains_key("vmgenid") {
        config.insert("vmgenid".into(), state.chance.uuid());
    }
    for (_, value) in config.iter_mut().filter(|(key, _)| keys::is_net(key)) {
        *value = NetDev { mac: Some(state.chance.mac()), ..NetDev::read(value) }.print();
    }
    config
}

impl CloneJob {
    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> TaskOutcome {
        match self.phase {
            Phase::Begin => self.begin(state, upid).unwrap_or_else(TaskOutcome::Failed),
            Phase::Queue => match self.start_drive(state, upid) {
                Ok(wait) => {
                    self.phase = Phase::Drives;
                    TaskOutcome::After(wait)
                }
                Err(text) => self.fail(state, &text),
            },
            Phase::Drives if self.starved => {
                let written = self.made.last().and_then(|key| state.volumes.get(key)).map_or(0, |v| v.used);
                // Only the log says why; the exit status names the command.
                let line = format!("qemu-img: error while writing at byte {written}: No space left on device");
                state.log(upid, line);
                let command = self.copy_command(state);
                self.fail(state, &format!("copy failed: command '{command}' failed: exit code 1"))
            }
            Phase::Drives => {
                self.finish_drive(state, upid);
                self.next_drive(state, upid)
            }
            Phase::Unlock => {
                if let Some(vm) = state.vms.get_mut(&self.newid) {
                    vm.config.remove("lock");
                }
                self.phase = Phase::Settle;
                TaskOutcome::After(TAIL)
            }
            Phase::Settle => {
                self.settle(state);
                self.phase = Phase::End;
                TaskOutcome::After(TAIL)
            }
            Phase::End => TaskOutcome::Done,
        }
    }

    fn fail(&mut self, state: &mut State, text: &str) -> TaskOutcome {
        self.clean_up(state);
        TaskOutcome::Failed(format!("clone failed: {text}"))
    }

    fn begin(&mut self, state: &mut State, upid: &str) -> Result<TaskOutcome, String> {
        if state.vms.get(&self.newid).is_some_and(|vm| vm.host == self.host) {
            return Err(already_exists(self.newid));
        }
        state.log(upid, format!("creating a clone of VM {} with ID {}", self.source, self.newid));
        state.check_writable(&self.host, self.newid)?;
        if state.is_id_in_use(self.newid) {
            let file = format!("/etc/pve/nodes/{}/qemu-server/{}.conf", self.host, self.newid);
            return Err(format!("close (rename) atomic file '{file}' failed: File exists"));
        }
        let placeholder = [("lock", "clone"), ("description", " qmclone temporary file")];
        let placeholder = placeholder.map(|(k, v)| (k.to_string(), v.to_string())).into();
        state.vms.insert(self.newid, Vm::new(self.newid, &self.host, placeholder));
        // The firewall file goes along from the first moment.
        if let Some(firewall) = state.firewall.vms.get(&self.source).cloned() {
            state.firewall.vms.insert(self.newid, firewall);
        }
        Ok(self.next_drive(state, upid))
    }

    /// Turns to the next drive, or to the end when there is none.
    fn next_drive(&mut self, state: &mut State, upid: &str) -> TaskOutcome {
        let Some((key, drive)) = self.drives.get(self.done) else {
            self.write_config(state);
            self.tell_discarded(state, upid);
            self.phase = Phase::Unlock;
            return TaskOutcome::After(TAIL);
        };
        let mode = if self.order.full || drive.is_cloudinit() { "full" } else { "linked" };
        let copied = !drive.is_cdrom() || drive.is_cloudinit();
        if copied {
            state.log(upid, format!("create {mode} clone of drive {key} ({})", drive.file));
        }
        self.phase = Phase::Queue;
        let to = drive.volume().map(|(storage, _)| self.order.storage.clone().unwrap_or_else(|| storage.into()));
        let serial = to.filter(|id| copied && state.storage(id).is_some_and(|spec| spec.serial));
        if let Some(storage) = serial {
            let place = state.place(&storage, &self.host, "");
            let lock = Lock::Storage(place.storage, place.host);
            self.held = Some(lock.clone());
            return TaskOutcome::Locked(lock);
        }
        TaskOutcome::After(Duration::ZERO)
    }

    /// Makes the volume of the next drive; the copy into it then takes its time.
    fn start_drive(&mut self, state: &mut State, upid: &str) -> Result<Duration, String> {
        let Some((key, drive)) = self.drives.get(self.done).cloned() else { return Ok(Duration::ZERO) };
        let bytes = state.volume(&drive.file, &self.host).map_or(0, |volume| volume.used);
        let copied = self.copy_drive(state, upid, (&key, drive))?;
        let quick = copied.is_cdrom() || !self.order.full;
        self.current = Some(copied);
        let pace = &state.config.pace;
        if quick {
            return Ok(pace.clone_linked);
        }
        // While a disk is copied the storage is free for others.
        let limited =
            self.order.limit.map_or(Duration::ZERO, |limit| Duration::from_millis((bytes >> 10) * 1000 / limit));
        let wait = pace.clone_full.max(limited);
        if let Some(lock) = self.held.take() {
            state.release_lock(&lock);
        }
        Ok(wait)
    }

    /// The drive that is being copied.
    pub(crate) fn current_source(&self) -> Option<&Drive> {
        self.drives.get(self.done).map(|(_, drive)| drive)
    }

    fn finish_drive(&mut self, state: &mut State, upid: &str) {
        if let Some(lock) = self.held.take() {
            state.release_lock(&lock);
        }
        let Some((key, _)) = self.drives.get(self.done).cloned() else { return };
        let Some(copied) = self.current.take() else { return };
        if self.order.full && !copied.is_cdrom() {
            self.tell_copied(state, upid, (&key, copied.bytes()));
        }
        self.config.insert(key, copied.print());
        self.done += 1;
        self.write_config(state);
    }

    /// The config with the drives so far replaces the placeholder; the lock stays.
    fn write_config(&self, state: &mut State) {
        if let Some(vm) = state.vms.get_mut(&self.newid) {
            vm.config = self.config.clone();
            vm.config.insert("lock".into(), "clone".into());
        }
    }

    fn settle(&self, state: &mut State) {
        if let Some(pool) = self.order.pool.as_ref().and_then(|pool| state.pools.get_mut(pool)) {
            pool.vms.insert(self.newid);
        }
        if let (Some(target), Some(vm)) = (&self.order.target, state.vms.get_mut(&self.newid)) {
            vm.host.clone_from(target);
        }
    }

    fn clean_up(&mut self, state: &mut State) {
        for key in self.made.drain(..) {
            state.volumes.remove(&key);
        }
        if self.phase != Phase::Begin {
            state.drop_vm(self.newid);
        }
    }

    /// The lock of a storage could not be had in time.
    pub(crate) fn give_up(&mut self, state: &mut State, text: String) -> String {
        if self.phase == Phase::Begin {
            return text;
        }
        self.clean_up(state);
        format!("clone failed: {text}")
    }

    pub(crate) fn interrupt(&mut self, state: &mut State) -> String {
        let command = self.copy_command(state);
        self.clean_up(state);
        format!("clone failed: copy failed: command '{command}' failed: interrupted by signal")
    }
}
