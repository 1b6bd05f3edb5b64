//! What is left of a host?

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{CatalogType, CpuRoom, Host, Pinning, Place, Quantity, Shortage};

use crate::cpu::{self, Need, Unpinnable};
use crate::index::{Bits, HostIx, Table};
use crate::instance_types::Footprint;

/// The hosts as they are, by place.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    hosts: Table<HostIx, Host>,
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
        Hosts { hosts: hosts.into_iter().collect() }
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

    /// Whether nothing is made on a host.
    fn is_closed(&self, host: HostIx) -> bool {
        self.hosts[host].closed.is_some()
    }

    /// Hosts that nodes of a pool are not made on, whoever else's are.
    pub(crate) fn closed_for(&self, pool: &str) -> Bits<HostIx> {
        Bits::those(self.hosts.len(), |host| self.hosts[host].closed_for.contains_key(pool))
    }

    /// The first of these hosts, by name, that a pool cannot use at all, and why.
    pub(crate) fn closed(&self, hosts: impl Iterator<Item = HostIx>, pool: &str) -> Option<(Place, String)> {
        let why = |host: &Host| host.closed.clone().or_else(|| host.closed_for.get(pool).cloned());
        let hosts = hosts.map(|host| &self.hosts[host]);
        hosts.filter_map(|host| Some((host.place.clone(), why(host)?))).min()
    }

    /// Why no host holds a VM of this size: the resource that is short where the most of it is left.
    pub(crate) fn largest_gap(
        &self,
        room: &HostRoom,
        hosts: impl Iterator<Item = HostIx>,
        size: &CatalogType,
    ) -> (Shortage, Option<Place>) {
        let wanted = Footprint::of(&size.capacity);
        let open = hosts.filter(|host| !self.is_closed(*host));
        let shortage = |host: HostIx| wanted.shortage_in(room.free[host]).or_else(|| room.unpinnable(host, wanted));
        let gaps = open.filter_map(|host| Some((shortage(host)?, &self.hosts[host].place)));
        let largest = gaps.max_by(|(a, at_a), (b, at_b)| a.available.cmp(&b.available).then_with(|| at_b.cmp(at_a)));
        match largest {
            Some((shortage, place)) => (shortage, Some(place.clone())),
            None => {
                let (resource, wanted) = (MEMORY.to_owned(), wanted.memory);
                (Shortage { resource, wanted, available: Quantity::ZERO }, None)
            }
        }
    }

    /// How much memory is left where a VM of this size would still fit, if what is `given_back` were free again.
    pub(crate) fn memory_left(
        &self,
        room: &HostRoom,
        (host, size): (HostIx, Footprint),
        given_back: Option<HeldSize<'_>>,
    ) -> Option<Quantity> {
        if self.is_closed(host) {
            return None;
        }
        let given_back = given_back.filter(|held| held.host == host);
        let free = given_back.map_or(room.free[host], |held| room.free[host].plus(held.size));
        let is_enough = size.within(free) && room.can_bind(host, size, given_back.and_then(|held| held.pinning));
        is_enough.then_some(free.memory)
    }
}

impl HostRoom {
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
    fn can_bind(&self, host: HostIx, size: Footprint, given_back: Option<&Pinning>) -> bool {
        self.cpus.get(&host).is_none_or(|room| cpu::fits(room, need(size), given_back))
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
