//! What is left of a host?

use tenon_model::{Host, Place, Shortage};

use super::placement_strategy::Scale;
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
    /// How often something was given back: what no host had room for is asked again only after that.
    pub(crate) releases: u64,
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
        HostRoom { free: self.hosts.iter().map(|host| Footprint::of(&host.free)).collect(), releases: 0 }
    }

    /// Which host is at a place.
    pub(crate) fn at(&self, place: &Place) -> Option<HostIx> {
        self.hosts.search_by(|host| host.place.cmp(place))
    }

    /// Whether nothing is made on a host.
    pub(crate) fn is_closed(&self, host: HostIx) -> bool {
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
        wanted: Footprint,
    ) -> Option<(Shortage, HostIx)> {
        let open = hosts.filter(|host| !self.is_closed(*host));
        let gaps = open.filter_map(|host| Some((wanted.shortage_in(room.free[host])?, host)));
        gaps.max_by(|(a, at_a), (b, at_b)| a.available.cmp(&b.available).then_with(|| at_b.cmp(at_a)))
    }
}

impl HostRoom {
    /// What is free on a host, if what is `given_back` were free again.
    pub(crate) fn free(&self, host: HostIx, given_back: Option<(HostIx, Footprint)>) -> Footprint {
        match given_back {
            Some((at, amount)) if at == host => self.free[host].plus(amount),
            _ => self.free[host],
        }
    }

    /// Takes a VM of this size off a host.
    pub(crate) fn hold(&mut self, host: HostIx, size: Footprint) {
        self.free[host] = self.free[host].minus(size);
    }

    /// Gives it back.
    pub(crate) fn release(&mut self, host: HostIx, size: Footprint) {
        self.free[host] = self.free[host].plus(size);
        self.releases += 1;
    }
}
