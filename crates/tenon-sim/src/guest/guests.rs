//! Which guests run? They come and go with the power of their VMs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::task::{AbortHandle, Id, JoinHandle, JoinSet};

use super::fault::{GuestBook, GuestFaultRule};
use super::join::live;
use super::journal::Journal;
use super::machine::{Machine, disk_key};
use super::settings::GuestConfig;
use crate::estate::Estate;
use crate::vm::Vm;
use crate::world::{PowerChange, PowerEvent};

/// The guests of one estate. Dropping it cuts them all off; [`Guests::shutdown`] waits until they are gone.
#[derive(Debug)]
pub struct Guests {
    journal: Arc<Journal>,
    running: Arc<Mutex<BTreeSet<u32>>>,
    faults: Arc<Mutex<GuestBook>>,
    stop: watch::Sender<bool>,
    supervisor: Option<JoinHandle<()>>,
}

impl Guests {
    /// Boots every VM that runs and every one that is started from now on. Must be called inside a tokio runtime.
    pub fn start(estate: &Estate, config: GuestConfig) -> Self {
        let journal = Arc::new(Journal::new(config.epoch_s));
        let running = Arc::new(Mutex::default());
        let seed = estate.with(|state| {
            state.journal = Some(journal.clone());
            state.config.seed
        });
        let faults = Arc::new(Mutex::new(GuestBook::new(seed, &config.faults)));
        let (stop, stopped) = watch::channel(false);
        let mut house = House {
            estate: estate.clone(),
            config: Arc::new(config),
            journal: journal.clone(),
            tasks: JoinSet::new(),
            guests: BTreeMap::new(),
            running: Arc::clone(&running),
            faults: Arc::clone(&faults),
        };
        // Listening begins before the look around, so that no start falls between the two.
        let events = estate.power_events();
        house.look_around();
        let supervisor = Some(tokio::spawn(house.supervise(events, stopped)));
        Self { journal, running, faults, stop, supervisor }
    }

    /// What a guest has told so far, over all its boots; repeated lines once.
    pub fn guest_log(&self, vmid: u32) -> Vec<String> {
        self.journal.log(vmid)
    }

    /// From now on boots of this kind go wrong.
    pub fn add_fault(&self, rule: GuestFaultRule) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).add(rule);
    }

    /// No boot goes wrong any more; guests that run keep what they have.
    pub fn remove_faults(&self) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The VMs inside which something runs now.
    pub fn running(&self) -> Vec<u32> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// Cuts off all guests and waits until they are gone. What they made in their clusters stays.
    pub async fn shutdown(mut self) {
        // Nobody listening means that the supervisor has ended already.
        let _ = self.stop.send(true);
        if let Some(supervisor) = self.supervisor.take() {
            // It ends by itself; that it panicked would have been seen in its output.
            let _ = supervisor.await;
        }
    }
}

impl Drop for Guests {
    fn drop(&mut self) {
        if let Some(supervisor) = &self.supervisor {
            // With it goes its set of tasks, which ends every guest.
            supervisor.abort();
        }
    }
}

/// The supervisor's own state.
struct House {
    estate: Estate,
    config: Arc<GuestConfig>,
    journal: Arc<Journal>,
    tasks: JoinSet<()>,
    guests: BTreeMap<u32, AbortHandle>,
    running: Arc<Mutex<BTreeSet<u32>>>,
    faults: Arc<Mutex<GuestBook>>,
}

impl House {
    async fn supervise(mut self, mut events: broadcast::Receiver<PowerEvent>, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                biased;
                // A dropped sender means that nobody wants the guests any more.
                _ = stop.changed() => break,
                event = events.recv() => match event {
                    Ok(event) => self.hear(event),
                    Err(RecvError::Lagged(_)) => self.look_around(),
                    Err(RecvError::Closed) => break,
                },
                Some(ended) = self.tasks.join_next_with_id(), if !self.tasks.is_empty() => {
                    self.forget(ended.map_or_else(|error| error.id(), |(id, ())| id));
                }
            }
        }
        self.tasks.shutdown().await;
        self.guests.clear();
        self.publish();
    }

    fn hear(&mut self, event: PowerEvent) {
        match event.change {
            PowerChange::Started => self.power_on(Vm::new(event.vmid, &event.host, event.config)),
            PowerChange::Stopped => self.power_off(event.vmid),
        }
        let vms = self.estate.with(|state| state.vms.values().map(disk_key).collect());
        self.journal.keep_disks(&vms);
    }

    /// Brings the guests in line with the estate, whatever was missed.
    fn look_around(&mut self) {
        let on: Vec<Vm> =
            self.estate.with(|state| state.vms.values().filter(|vm| vm.running.is_some()).cloned().collect());
        let gone: Vec<u32> =
            self.guests.keys().filter(|vmid| !on.iter().any(|vm| vm.vmid == **vmid)).copied().collect();
        gone.into_iter().for_each(|vmid| self.power_off(vmid));
        for vm in on {
            if !self.guests.contains_key(&vm.vmid) {
                self.power_on(vm);
            }
        }
    }

    fn power_on(&mut self, vm: Vm) {
        let vmid = vm.vmid;
        self.power_off(vmid);
        self.journal.say(vmid, "power on".into());
        let fate = self.faults.lock().unwrap_or_else(PoisonError::into_inner).strike(&vm);
        let machine = Machine { vm, config: self.config.clone(), journal: self.journal.clone(), fate };
        let handle = self.tasks.spawn(live(machine, self.estate.clone()));
        self.guests.insert(vmid, handle);
        self.publish();
    }

    fn power_off(&mut self, vmid: u32) {
        if let Some(guest) = self.guests.remove(&vmid) {
            guest.abort();
            self.journal.say(vmid, "power off".into());
            self.publish();
        }
    }

    /// A guest that ended without being told to has panicked; its VM then idles.
    fn forget(&mut self, id: Id) {
        self.guests.retain(|vmid, guest| {
            let ended = guest.id() == id;
            if ended {
                self.journal.say(*vmid, "the guest ended unexpectedly".into());
            }
            !ended
        });
        self.publish();
    }

    fn publish(&self) {
        let running = self.guests.keys().copied().collect();
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = running;
    }
}
