//! What is left of a host?

use tenon_model::{CatalogType, Host, Place, Quantity, Shortage};

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
    /// How often something was given back: what no host had room for is asked again only after that.
    pub(crate) releases: u64,
}

impl Hosts {
    pub(crate) fn new(hosts: &[Host]) -> Hosts {
        let mut hosts = hosts.to_vec();
        hosts.sort_by(|a, b| a.place.cmp(&b.place));
        Hosts { hosts: hosts.into_iter().collect() }
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
        let gaps = open.filter_map(|host| Some((wanted.shortage_in(room.free[host])?, &self.hosts[host].place)));
        let largest = gaps.max_by(|(a, at_a), (b, at_b)| a.available.cmp(&b.available).then_with(|| at_b.cmp(at_a)));
        match largest {
            Some((shortage, place)) => (shortage, Some(place.clone())),
            None => {
                let (resource, wanted) = (tenon_model::resources::MEMORY.to_owned(), wanted.memory);
                (Shortage { resource, wanted, available: Quantity::ZERO }, None)
            }
        }
    }

    /// How much memory is left where a VM of this size would still fit, if what is `given_back` were free again.
    pub(crate) fn memory_left(
        &self,
        room: &HostRoom,
        (host, size): (HostIx, Footprint),
        given_back: Option<(HostIx, Footprint)>,
    ) -> Option<Quantity> {
        if self.is_closed(host) {
            return None;
        }
        let free = match given_back {
            Some((at, amount)) if at == host => room.free[host].plus(amount),
            _ => room.free[host],
        };
        size.within(free).then_some(free.memory)
    }
}

impl HostRoom {
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
