//! What is true in the estate now, and how it moves forward in time.
//!
//! Pure: time is handed in, randomness is the state's own, nothing here waits or talks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;

use crate::access::Access;
use crate::chance::Chance;
use crate::config::{EstateConfig, HostSpec};
use crate::fault::{Book, Snapshots};
use crate::firewall::Firewall;
use crate::guest::Journal;
use crate::ledger::LedgerEntry;
use crate::pools::Pool;
use crate::related::Related;
use crate::resources::Broadcast;
use crate::storage::{Volume, VolumeKey};
use crate::tasks::{Event, Tasks};
use crate::vm::Vm;
use crate::web::Web;
use crate::wire::Refusal;
use crate::world::PowerEvent;

/// Power events a slow listener may lag behind before it loses the oldest.
const POWER_EVENTS: usize = 4096;

/// A machine and since when it has been dead.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) cpus: u32,
    pub(crate) cpu_model: String,
    pub(crate) memory_bytes: u64,
    pub(crate) sockets: u32,
    pub(crate) cores: u32,
    pub(crate) numa_nodes: u32,
    pub(crate) dead_since: Option<Duration>,
    /// How long calls to it hang while it is dead, where that is not the estate's pace.
    pub(crate) dead_delay: Option<Duration>,
    /// Guests that ran on it when it died.
    pub(crate) lost: Vec<u32>,
}

impl Host {
    fn new(spec: &HostSpec) -> Self {
        let (cpus, memory_bytes) = (spec.cpus, spec.memory_bytes);
        Self {
            cpus,
            cpu_model: spec.cpu_model.clone(),
            memory_bytes,
            sockets: spec.sockets,
            cores: cpus / spec.threads.max(1),
            numa_nodes: spec.numa_nodes,
            dead_since: None,
            dead_delay: None,
            lost: Vec::new(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) config: EstateConfig,
    pub(crate) chance: Chance,
    /// Time since the estate was made.
    pub(crate) now: Duration,
    pub(crate) hosts: BTreeMap<String, Host>,
    /// Bytes on a storage that belong to nobody; an operator fills a storage with them.
    pub(crate) ballast: BTreeMap<(String, String), u64>,
    pub(crate) volumes: BTreeMap<VolumeKey, Volume>,
    /// Storages (and hosts) whose folder for ISO images went with the last image.
    pub(crate) no_iso_folder: BTreeSet<(String, String)>,
    /// What downloads find without a network.
    pub(crate) web: Web,
    pub(crate) vms: BTreeMap<u32, Vm>,
    pub(crate) pools: BTreeMap<String, Pool>,
    pub(crate) related: Related,
    pub(crate) access: Access,
    /// What `/cluster/options` holds.
    pub(crate) options: BTreeMap<String, String>,
    pub(crate) firewall: Firewall,
    pub(crate) tasks: Tasks,
    pub(crate) broadcast: Broadcast,
    pub(crate) faults: Book,
    /// What answers that are out of date are made from.
    pub(crate) snapshots: Snapshots,
    /// Hosts in maintenance mode, as `ha-manager crm-command node-maintenance enable` sets it.
    pub(crate) maintenance: BTreeSet<String>,
    /// Quorum is gone, whatever the number of hosts says.
    pub(crate) quorum_lost: bool,
    /// By how much the clocks of the hosts are wrong.
    pub(crate) skew_s: i64,
    /// Whoever is at work right now finds every storage full.
    pub(crate) crowded: bool,
    pub(crate) ledger: VecDeque<LedgerEntry>,
    pub(crate) power: broadcast::Sender<PowerEvent>,
    /// What guests have told, if there are any: their boot logs.
    pub(crate) journal: Option<Arc<Journal>>,
}

impl State {
    pub(crate) fn new(config: EstateConfig) -> Self {
        let host = |spec: &HostSpec| (spec.name.clone(), Host::new(spec));
        Self {
            chance: Chance::new(config.seed),
            now: Duration::ZERO,
            hosts: config.hosts.iter().map(host).collect(),
            ballast: BTreeMap::new(),
            volumes: BTreeMap::new(),
            no_iso_folder: BTreeSet::new(),
            web: Web::new(),
            vms: BTreeMap::new(),
            pools: config.pools.iter().map(|p| (p.clone(), Pool::default())).collect(),
            related: Related::default(),
            access: Access::new(&config),
            options: BTreeMap::new(),
            firewall: Firewall::default(),
            tasks: Tasks::default(),
            broadcast: Broadcast::new(config.pace.resource_tick),
            faults: Book::new(config.seed),
            snapshots: Snapshots::default(),
            maintenance: BTreeSet::new(),
            quorum_lost: false,
            skew_s: 0,
            crowded: false,
            ledger: VecDeque::new(),
            power: broadcast::channel(POWER_EVENTS).0,
            journal: None,
            config,
        }
    }

    /// Seconds since 1970, by the estate's own clock.
    pub(crate) fn epoch(&self) -> u64 {
        (self.config.epoch + self.now.as_secs()).saturating_add_signed(self.skew_s)
    }

    /// Lets everything happen that is due until `now`, in order.
    pub(crate) fn advance(&mut self, now: Duration) {
        loop {
            let due = self.tasks.next_due().filter(|at| *at <= now);
            let tick = self.broadcast.next_tick;
            match due {
                Some(at) if at <= tick => {
                    self.now = self.now.max(at);
                    if let Some(event) = self.tasks.pop_due() {
                        self.happen(event);
                    }
                }
                _ if tick <= now => {
                    self.now = self.now.max(tick);
                    self.broadcast_tick(due.unwrap_or(now));
                }
                _ => break,
            }
        }
        self.now = self.now.max(now);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Step(upid) => self.step_task(&upid),
            Event::GiveUp(upid) => self.give_up_lock(&upid),
            Event::Trap(vmid) => self.trap_lock(vmid),
            Event::HaStops(vmid) => self.power_off(vmid),
            Event::Unlock(lock) => self.release_lock(&lock),
            // What a plan names was looked up when it was added; what is gone by now changes nothing.
            Event::World(change) => drop(self.change_world(*change)),
        }
    }

    /// The VM, if its config lies under this host.
    pub(crate) fn vm_on(&self, host: &str, vmid: u32) -> Result<&Vm, Refusal> {
        self.vms.get(&vmid).filter(|vm| vm.host == host).ok_or_else(|| Refusal::failed(missing_config(host, vmid)))
    }

    /// The same for a worker, whose failure is a text.
    pub(crate) fn vm_for_task(&mut self, host: &str, vmid: u32) -> Result<&mut Vm, String> {
        self.vms.get_mut(&vmid).filter(|vm| vm.host == host).ok_or_else(|| missing_config(host, vmid))
    }

    pub(crate) fn is_online(&self, host: &str) -> bool {
        self.hosts.get(host).is_some_and(|h| h.dead_since.is_none())
    }

    /// The host that answers: the first that is alive.
    pub(crate) fn entry_host(&self) -> String {
        self.config.hosts.iter().map(|h| h.name.clone()).find(|name| self.is_online(name)).unwrap_or_default()
    }

    pub(crate) fn is_quorate(&self) -> bool {
        let online = self.hosts.values().filter(|h| h.dead_since.is_none()).count();
        online * 2 > self.hosts.len() && !self.quorum_lost
    }

    pub(crate) fn check_quorum(&self) -> Result<(), Refusal> {
        if self.is_quorate() { Ok(()) } else { Err(Refusal::failed("cluster not ready - no quorum?")) }
    }

    /// The config file system is read-only without quorum.
    pub(crate) fn check_writable(&self, host: &str, vmid: u32) -> Result<(), String> {
        if self.is_quorate() {
            return Ok(());
        }
        let pid = self.tasks.last_pid();
        Err(format!(
            "unable to open file '/etc/pve/nodes/{host}/qemu-server/{vmid}.conf.tmp.{pid}' - Permission denied"
        ))
    }

    pub(crate) fn pool_of(&self, vmid: u32) -> Option<&str> {
        self.pools.iter().find(|(_, pool)| pool.vms.contains(&vmid)).map(|(name, _)| name.as_str())
    }

    pub(crate) fn pool_of_storage(&self, id: &str) -> Option<&str> {
        self.pools.iter().find(|(_, pool)| pool.storages.contains(id)).map(|(name, _)| name.as_str())
    }

    /// Forgets a VM everywhere but on the storages.
    pub(crate) fn drop_vm(&mut self, vmid: u32) -> Option<Vm> {
        for pool in self.pools.values_mut() {
            pool.vms.remove(&vmid);
        }
        self.firewall.vms.remove(&vmid);
        let path = format!("/vms/{vmid}");
        self.access.acl.retain(|entry| entry.path != path);
        self.broadcast.forget(vmid);
        self.vms.remove(&vmid)
    }
}

pub(crate) fn missing_config(host: &str, vmid: u32) -> String {
    format!("Configuration file 'nodes/{host}/qemu-server/{vmid}.conf' does not exist")
}
