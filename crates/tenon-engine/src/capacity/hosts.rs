//! What is left of a host?

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{CpuRoom, Host, Pinning, Place, Quantity, Shortage, SkippedHosts};

use super::placement_strategy::Scale;
use crate::cpu::{self, Need, Unpinnable};
use crate::index::{Bits, HostIx, Table};
use crate::instance_types::Footprint;

/// The hosts as they are, by place.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    hosts: Table<HostIx, Host>,
    /// What each has, as shares are counted.
    pub(super) scales: Table<HostIx, Scale>,
}

/// How much of each host is left in a plan.
#[derive(Debug, Clone)]
pub(crate) struct HostRoom {
    free: Table<HostIx, Footprint>,
    /// CPUs and memory that VMs can be bound to; empty where none is bound anywhere.
    cpus: BTreeMap<HostIx, Arc<CpuRoom>>,
    /// How often something was given back: what no host had room for is asked again only after that.
    pub(crate) releases: u64,
}

/// What a planned node holds of a host, and gives back if it becomes another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeldSize<'h> {
    pub(crate) host: HostIx,
    pub(crate) size: Footprint,
    /// What its VM is bound to there.
    pub(crate) pinning: Option<&'h Pinning>,
}

impl Hosts {
    pub(crate) fn new(hosts: &[Host]) -> Hosts {
        let mut hosts = hosts.to_vec();
        hosts.sort_by(|a, b| a.place.cmp(&b.place));
        Hosts { scales: hosts.iter().map(Scale::of).collect(), hosts: hosts.into_iter().collect() }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.hosts.len()
    }

    /// All of them, by name.
    pub(crate) fn ids(&self) -> impl Iterator<Item = HostIx> + use<> {
        self.hosts.ids()
    }

    /// How many come before the first one behind a place, by name.
    pub(crate) fn position_after(&self, place: &Place) -> usize {
        self.hosts.iter().filter(|host| host.place <= *place).count()
    }

    /// Where a host is.
    pub(crate) fn place(&self, host: HostIx) -> &Place {
        &self.hosts[host].place
    }

    /// All that is free.
    pub(crate) fn room(&self) -> HostRoom {
        let cpus = self.hosts.pairs().filter_map(|(number, host)| Some((number, host.cpus.clone()?))).collect();
        HostRoom { free: self.hosts.iter().map(|host| Footprint::of(&host.free)).collect(), cpus, releases: 0 }
    }

    /// Which host is at a place.
    pub(crate) fn at(&self, place: &Place) -> Option<HostIx> {
        self.hosts.search_by(|host| host.place.cmp(place))
    }

    /// All hosts but those at these places.
    pub(crate) fn all_but(&self, places: &[&Place]) -> Bits<HostIx> {
        Bits::those(self.hosts.len(), |host| !places.contains(&self.place(host)))
    }

    /// Whether nothing is made on a host.
    pub(crate) fn is_closed(&self, host: HostIx) -> bool {
        self.hosts[host].closed.is_some()
    }

    /// Hosts that nodes of a pool are not made on, whoever else's are.
    pub(crate) fn closed_for(&self, pool: &str) -> Bits<HostIx> {
        Bits::those(self.hosts.len(), |host| self.hosts[host].closed_for.contains_key(pool))
    }

    /// Those of these hosts, by name, that a pool cannot use at all, and why.
    pub(crate) fn skipped(&self, hosts: impl Iterator<Item = HostIx>, pool: &str) -> Vec<SkippedHosts> {
        let why = |host: &Host| host.closed.clone().or_else(|| host.closed_for.get(pool).cloned());
        let ordered: BTreeSet<HostIx> = hosts.collect();
        let hosts = ordered.into_iter().map(|host| &self.hosts[host]);
        SkippedHosts::by_cause(hosts.filter_map(|host| Some((host.place.clone(), why(host)?))))
    }

    /// Why no host holds a VM of this size: the resource that is short where the most of it is left.
    pub(crate) fn largest_gap(
        &self,
        room: &HostRoom,
        hosts: impl Iterator<Item = HostIx>,
        wanted: Footprint,
    ) -> Option<(Shortage, HostIx)> {
        let open = hosts.filter(|host| !self.is_closed(*host));
        let shortage = |host: HostIx| wanted.shortage_in(room.free[host]).or_else(|| room.unpinnable(host, wanted));
        let gaps = open.filter_map(|host| Some((shortage(host)?, host)));
        gaps.max_by(|(a, at_a), (b, at_b)| a.available.cmp(&b.available).then_with(|| at_b.cmp(at_a)))
    }
}

impl HostRoom {
    /// What is free on a host, if what is `given_back` were free again.
    pub(crate) fn free(&self, host: HostIx, given_back: Option<HeldSize<'_>>) -> Footprint {
        let given_back = given_back.filter(|held| held.host == host);
        given_back.map_or(self.free[host], |held| self.free[host].plus(held.size))
    }

    /// Takes a VM of this size off a host. What it is bound to there, if VMs are bound.
    pub(crate) fn hold(&mut self, host: HostIx, size: Footprint) -> Option<Arc<Pinning>> {
        self.free[host] = self.free[host].minus(size);
        let room = self.cpus.get_mut(&host)?;
        let pinning = cpu::pin(room, need(size))?;
        Arc::make_mut(room).hold(&pinning);
        Some(Arc::new(pinning))
    }

    /// Gives it back.
    pub(crate) fn release(&mut self, held: HeldSize<'_>) {
        let HeldSize { host, size, pinning } = held;
        self.free[host] = self.free[host].plus(size);
        if let (Some(room), Some(pinning)) = (self.cpus.get_mut(&host), pinning) {
            Arc::make_mut(room).release(pinning);
        }
        self.releases += 1;
    }

    /// Whether a VM of this size could be bound to CPUs of a host, where VMs are bound.
    pub(crate) fn can_bind(&self, host: HostIx, size: Footprint, given_back: Option<HeldSize<'_>>) -> bool {
        let pinning = given_back.filter(|held| held.host == host).and_then(|held| held.pinning);
        self.cpus.get(&host).is_none_or(|room| cpu::fits(room, need(size), pinning))
    }

    /// What is short where CPUs and memory would do, but not such that a VM can be bound to them.
    fn unpinnable(&self, host: HostIx, size: Footprint) -> Option<Shortage> {
        let short = cpu::shortage(self.cpus.get(&host)?, need(size))?;
        let whole = |amount: u64| Quantity::whole(i64::try_from(amount).unwrap_or(i64::MAX));
        let (resource, wanted, available) = match short {
            Unpinnable::Cpus(cpus) => (CPU, size.cpu, whole(cpus)),
            Unpinnable::MemoryMib(memory) => (MEMORY, size.memory, whole(memory.saturating_mul(1 << 20))),
        };
        Some(Shortage { resource: resource.to_owned(), wanted, available })
    }
}

/// What a VM of this size is bound to: its CPUs, and its memory as Proxmox counts it.
fn need(size: Footprint) -> Need {
    let whole = |amount: Quantity| u64::try_from(amount.value()).unwrap_or_default();
    Need { cpus: whole(size.cpu), memory_mib: whole(size.memory) >> 20 }
}
