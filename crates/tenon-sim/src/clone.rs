//! How a VM is copied: what the call refuses, and the phases the new config passes through.
//!
//! Placeholder, then the real config from the first finished drive on, then unlocked, then in its pool or on
//! its target host; only then does the task end.

use std::time::Duration;

use crate::jobs::Job;
use crate::keys;
use crate::params::Call;
use crate::property::{Drive, NetDev, with_uuid};
use crate::state::State;
use crate::storage::{CLOUDINIT_BYTES, SMALL_BYTES, Volume, VolumeKey, own_part};
use crate::tasks::{NewTask, Outcome};
use crate::vm::{Config, Vm};
use crate::wire::{Answer, Refusal, Shape};

/// From one of the last phases to the next; short, but long enough to be seen.
const TAIL: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Begin,
    Drives,
    Unlock,
    Settle,
    End,
}

#[derive(Debug)]
pub(crate) struct CloneJob {
    pub(crate) newid: u32,
    source: u32,
    host: String,
    order: Order,
    /// The new config without its drives.
    config: Config,
    drives: Vec<(String, Drive)>,
    done: usize,
    made: Vec<VolumeKey>,
    phase: Phase,
}

/// What the caller asked for.
#[derive(Clone, Debug)]
struct Order {
    full: bool,
    storage: Option<String>,
    format: Option<String>,
    pool: Option<String>,
    target: Option<String>,
}

pub(crate) fn clone(state: &mut State, call: &Call) -> Answer {
    let (host, source) = (call.node(), call.vmid());
    let newid = call.id("newid").unwrap_or(0);
    let order = read_order(state, call)?;
    let vm = source_vm(state, host, source)?;
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
    let (done, made, phase) = (0, Vec::new(), Phase::Begin);
    let job = CloneJob { newid, source, host: host.clone(), order, config, drives, done, made, phase };
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
    let pool = owned("pool").filter(|p| !p.is_empty());
    if let Some(pool) = pool.as_ref().filter(|p| !state.pools.contains_key(*p)) {
        let text = format!("Permission check failed (pool '{pool}' does not exist)");
        return Err(Refusal::new(403, text, Shape::Json));
    }
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
    Ok(Order { full, storage, format: owned("format"), pool, target })
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
        if !order.full && !vm.is_template() && !drive.is_cdrom() {
            let text = format!("Linked clone feature is not supported for '{}' ({key})", drive.file);
            return Err(Refusal::failed(text));
        }
    }
    Ok(())
}

/// Everything is inherited but identity: uuid, generation id and MAC addresses are fresh.
fn new_config(state: &mut State, vm: &Vm, call: &Call) -> Config {
    let mut config = vm.config.clone();
    config.retain(|key, _| !keys::is_disk_key(key) && !key.starts_with("unused") && key != "template" && key != "lock");
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
    for (key, value) in config.iter_mut().filter(|(key, _)| keys::is_net(key)) {
        if let Ok(net) = NetDev::parse(key, value) {
            *value = NetDev { mac: Some(state.chance.mac()), ..net }.print();
        }
    }
    config
}

impl CloneJob {
    pub(crate) fn step(&mut self, state: &mut State, upid: &str) -> Outcome {
        match self.phase {
            Phase::Begin => self.begin(state, upid).unwrap_or_else(Outcome::Failed),
            Phase::Drives => match self.copy_next(state) {
                Ok(()) => self.await_drive(state, upid),
                Err(text) => {
                    self.clean_up(state);
                    Outcome::Failed(format!("clone failed: {text}"))
                }
            },
            Phase::Unlock => {
                if let Some(vm) = state.vms.get_mut(&self.newid) {
                    vm.config.remove("lock");
                }
                self.phase = Phase::Settle;
                Outcome::After(TAIL)
            }
            Phase::Settle => {
                self.settle(state);
                self.phase = Phase::End;
                Outcome::After(TAIL)
            }
            Phase::End => Outcome::Done,
        }
    }

    fn begin(&mut self, state: &mut State, upid: &str) -> Result<Outcome, String> {
        if state.vms.get(&self.newid).is_some_and(|vm| vm.host == self.host) {
            return Err(already_exists(self.newid));
        }
        state.log(upid, format!("creating a clone of VM {} with ID {}", self.source, self.newid));
        state.check_writable(&self.host, self.newid)?;
        if state.vms.contains_key(&self.newid) {
            let file = format!("/etc/pve/nodes/{}/qemu-server/{}.conf", self.host, self.newid);
            return Err(format!("close (rename) atomic file '{file}' failed: File exists"));
        }
        let placeholder = [("lock", "clone"), ("description", " qmclone temporary file")];
        let placeholder = placeholder.map(|(k, v)| (k.to_string(), v.to_string())).into();
        state.vms.insert(self.newid, Vm::new(self.newid, &self.host, placeholder));
        self.phase = Phase::Drives;
        Ok(self.await_drive(state, upid))
    }

    /// Starts on the next drive, or on the end when there is none.
    fn await_drive(&mut self, state: &mut State, upid: &str) -> Outcome {
        let Some((key, drive)) = self.drives.get(self.done) else {
            self.write_config(state);
            self.phase = Phase::Unlock;
            return Outcome::After(TAIL);
        };
        let quick = drive.is_cdrom() || !self.order.full;
        let mode = if self.order.full || drive.is_cloudinit() { "full" } else { "linked" };
        if !drive.is_cdrom() || drive.is_cloudinit() {
            state.log(upid, format!("create {mode} clone of drive {key} ({})", drive.file));
        }
        let pace = &state.config.pace;
        Outcome::After(if quick { pace.clone_linked } else { pace.clone_full })
    }

    fn copy_next(&mut self, state: &mut State) -> Result<(), String> {
        let Some((key, drive)) = self.drives.get(self.done).cloned() else { return Ok(()) };
        let copied = self.copy_drive(state, drive)?;
        self.config.insert(key, copied.print());
        self.done += 1;
        self.write_config(state);
        Ok(())
    }

    /// The config with the drives so far replaces the placeholder; the lock stays.
    fn write_config(&self, state: &mut State) {
        if let Some(vm) = state.vms.get_mut(&self.newid) {
            vm.config = self.config.clone();
            vm.config.insert("lock".into(), "clone".into());
        }
    }

    fn copy_drive(&mut self, state: &mut State, mut drive: Drive) -> Result<Drive, String> {
        let Some((storage, name)) = drive.volume().map(|(s, n)| (s.to_string(), n.to_string())) else {
            return Ok(drive);
        };
        if drive.is_cdrom() && !drive.is_cloudinit() {
            return Ok(drive);
        }
        let from = state.volume(&drive.file, &self.host).cloned();
        let from = from.ok_or_else(|| format!("volume '{}' does not exist", drive.file))?;
        let to = self.order.storage.clone().unwrap_or(storage);
        let format = self.order.format.clone().unwrap_or_else(|| from.format.clone());
        let (name, volume) = if drive.is_cloudinit() {
            let name = format!("{0}/vm-{0}-cloudinit.{format}", self.newid);
            (name, Volume { used: SMALL_BYTES, ..state.image(self.newid, &format, CLOUDINIT_BYTES) })
        } else if self.order.full {
            let name = state.free_disk_name((&to, &self.host), self.newid, &format);
            (name, state.image(self.newid, &format, from.bytes))
        } else {
            let own = state.free_disk_name((&to, &self.host), self.newid, "qcow2");
            let parent = Some(own_part(&name).to_string());
            let image = state.image(self.newid, "qcow2", from.bytes);
            (format!("{}/{own}", own_part(&name)), Volume { used: SMALL_BYTES.min(from.bytes), parent, ..image })
        };
        let key = state.place(&to, &self.host, &name);
        if state.volumes.contains_key(&key) {
            return Err(format!("disk image '{}' already exists", state.path_of(&key)));
        }
        drive.file = key.volid();
        drive.options.insert("size".into(), keys::format_size(volume.bytes));
        state.allocate(key.clone(), volume)?;
        self.made.push(key);
        Ok(drive)
    }

    fn settle(&self, state: &mut State) {
        if let Some(members) = self.order.pool.as_ref().and_then(|pool| state.pools.get_mut(pool)) {
            members.insert(self.newid);
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

    pub(crate) fn interrupt(&mut self, state: &mut State) -> String {
        self.clean_up(state);
        "clone failed: copy failed: command '/usr/bin/qemu-img convert' failed: interrupted by signal".into()
    }
}
