//! What happens to the world by itself at a given time: hosts, quorum, storages, tokens, clocks.

use std::time::Duration;

use crate::state::State;
use crate::tasks::Event;
use crate::world::WorldError;

/// Something that happens at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct WorldEvent {
    /// When, counted from the making of the estate.
    pub at: Duration,
    /// What happens.
    pub change: WorldChange,
    /// After how long it is undone. Not for changes that nobody can undo.
    pub lasts: Option<Duration>,
}

/// A change of the world that no call makes.
#[derive(Clone, Debug, PartialEq)]
pub enum WorldChange {
    /// A host loses its power: guests stop, workers die, calls get a 595.
    HostDown {
        /// Its name.
        host: String,
        /// How long a call to it hangs before the 595; the estate's own pace when absent.
        delay: Option<Duration>,
    },
    /// A host is back. Its guests are not.
    HostUp {
        /// Its name.
        host: String,
    },
    /// The cluster loses quorum, however many hosts are alive.
    QuorumLost,
    /// Quorum follows the number of hosts again.
    QuorumBack,
    /// HA restarts on another host what ran on a dead one. What has disks on the dead host does not start.
    HaRecovery {
        /// The dead host.
        host: String,
        /// Where its guests go; the first host that is alive when absent.
        to: Option<String>,
    },
    /// A VM moves to another host, with its local disks.
    VmMoved {
        /// VM id.
        vmid: u32,
        /// Where to.
        to: String,
    },
    /// A storage has this much room left.
    StorageFree {
        /// Storage id.
        storage: String,
        /// Free bytes.
        bytes: u64,
    },
    /// A token is revoked for good.
    TokenRevoked {
        /// `user@realm!name`.
        token: String,
    },
    /// The clocks of the hosts are wrong by so many seconds.
    ClockSkew {
        /// Seconds; negative is slow.
        seconds: i64,
    },
}

impl WorldChange {
    /// What takes it back, where that can be.
    pub(crate) fn undone(&self) -> Option<Self> {
        match self {
            Self::HostDown { host, .. } => Some(Self::HostUp { host: host.clone() }),
            Self::QuorumLost => Some(Self::QuorumBack),
            Self::StorageFree { storage, .. } => Some(Self::StorageFree { storage: storage.clone(), bytes: u64::MAX }),
            Self::ClockSkew { .. } => Some(Self::ClockSkew { seconds: 0 }),
            Self::HostUp { .. }
            | Self::QuorumBack
            | Self::HaRecovery { .. }
            | Self::VmMoved { .. }
            | Self::TokenRevoked { .. } => None,
        }
    }
}

impl State {
    pub(crate) fn schedule_change(&mut self, event: WorldEvent) {
        let undone = event.lasts.zip(event.change.undone());
        self.tasks.schedule(event.at, Event::World(Box::new(event.change)));
        if let Some((lasts, change)) = undone {
            self.tasks.schedule(event.at + lasts, Event::World(Box::new(change)));
        }
    }

    /// Changes the world, or says what does not exist.
    pub(crate) fn change_world(&mut self, change: WorldChange) -> Result<(), WorldError> {
        match change {
            WorldChange::HostDown { host, delay } => self.host_down(&host, delay)?,
            WorldChange::HostUp { host } => {
                let found = self.hosts.get_mut(&host).ok_or(WorldError::UnknownHost(host))?;
                (found.dead_since, found.dead_delay) = (None, None);
                found.lost.clear();
            }
            WorldChange::QuorumLost => self.quorum_lost = true,
            WorldChange::QuorumBack => self.quorum_lost = false,
            WorldChange::HaRecovery { host, to } => self.recover(&host, to)?,
            WorldChange::VmMoved { vmid, to } => self.move_vm(vmid, &to)?,
            WorldChange::StorageFree { storage, bytes } => self.leave_free(&storage, bytes)?,
            WorldChange::TokenRevoked { token } => self.access.remove_token(&token),
            WorldChange::ClockSkew { seconds } => self.skew_s = seconds,
        }
        Ok(())
    }

    fn host_down(&mut self, host: &str, delay: Option<Duration>) -> Result<(), WorldError> {
        let now = self.now;
        let found = self.hosts.get_mut(host).ok_or_else(|| WorldError::UnknownHost(host.into()))?;
        found.dead_since = Some(found.dead_since.unwrap_or(now));
        found.dead_delay = delay;
        let tasks = self.tasks.by_upid.values().filter(|t| t.node == host && t.end.is_none());
        for upid in tasks.map(|t| t.upid.clone()).collect::<Vec<_>>() {
            self.kill_task(&upid);
        }
        let guests = self.vms.values().filter(|vm| vm.host == host && vm.running.is_some()).map(|vm| vm.vmid);
        let guests: Vec<u32> = guests.collect();
        for vmid in &guests {
            self.power_off(*vmid);
        }
        if let Some(found) = self.hosts.get_mut(host) {
            found.lost.extend(guests);
        }
        Ok(())
    }

    /// HA moves the configs first; whether a guest then starts depends on its disks.
    fn recover(&mut self, host: &str, to: Option<String>) -> Result<(), WorldError> {
        let found = self.hosts.get_mut(host).ok_or_else(|| WorldError::UnknownHost(host.into()))?;
        let lost = std::mem::take(&mut found.lost);
        let to = to.unwrap_or_else(|| self.entry_host());
        if !self.hosts.contains_key(&to) {
            return Err(WorldError::UnknownHost(to));
        }
        for vmid in lost {
            let Some(vm) = self.vms.get_mut(&vmid).filter(|vm| vm.host == host) else { continue };
            vm.host.clone_from(&to);
            let reachable =
                |drive: &crate::property::Drive| drive.volume().is_none() || self.volume(&drive.file, &to).is_some();
            if self.vms.get(&vmid).is_some_and(|vm| vm.drives().iter().all(|(_, drive)| reachable(drive))) {
                self.power_on(vmid);
            }
        }
        Ok(())
    }
}
