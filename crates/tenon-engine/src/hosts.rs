//! How much is left of each host while a plan is made.

use std::collections::BTreeMap;

use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{CatalogType, Host, Place, Quantity, Resources, Shortage};

use crate::bug::found;

/// What is left of the hosts.
pub(crate) struct HostLedger {
    hosts: Vec<Entry>,
}

struct Entry {
    place: Place,
    closed: Option<String>,
    closed_for: BTreeMap<String, String>,
    free: Footprint,
}

/// What a VM takes from its host. Disks are the storage's concern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footprint {
    cpu: Quantity,
    memory: Quantity,
}

impl Footprint {
    pub(crate) fn of(capacity: &Resources) -> Footprint {
        Footprint { cpu: capacity.get(CPU), memory: capacity.get(MEMORY) }
    }

    fn within(self, free: Footprint) -> bool {
        self.shortage_in(free).is_none()
    }

    fn plus(self, other: Footprint) -> Footprint {
        Footprint { cpu: self.cpu + other.cpu, memory: self.memory + other.memory }
    }

    fn minus(self, other: Footprint) -> Footprint {
        Footprint { cpu: self.cpu - other.cpu, memory: self.memory - other.memory }
    }

    fn shortage_in(self, free: Footprint) -> Option<Shortage> {
        let short = [(CPU, self.cpu, free.cpu), (MEMORY, self.memory, free.memory)];
        let is_short = |(_, wanted, available): &(&str, Quantity, Quantity)| wanted > available;
        short.into_iter().find(is_short).map(|(resource, wanted, available)| {
            let resource = resource.to_owned();
            Shortage { resource, wanted, available }
        })
    }
}

impl HostLedger {
    pub(crate) fn new(hosts: &[Host]) -> HostLedger {
        let entry = |host: &Host| {
            let free = Footprint::of(&host.free);
            let Host { place, closed, closed_for, .. } = host.clone();
            Entry { place, closed, closed_for, free }
        };
        let mut hosts: Vec<Entry> = hosts.iter().map(entry).collect();
        hosts.sort_by(|a, b| a.place.cmp(&b.place));
        HostLedger { hosts }
    }

    /// Where a host stands.
    pub(crate) fn position(&self, place: &Place) -> Option<usize> {
        self.hosts.binary_search_by(|entry| entry.place.cmp(place)).ok()
    }

    fn entry(&self, host: usize) -> Option<&Entry> {
        found(self.hosts.get(host), "the host")
    }

    /// Takes a VM of this size off a host.
    pub(crate) fn hold(&mut self, host: usize, size: Footprint) {
        if let Some(entry) = found(self.hosts.get_mut(host), "the host") {
            entry.free = entry.free.minus(size);
        }
    }

    /// Gives it back.
    pub(crate) fn release(&mut self, host: usize, size: Footprint) {
        if let Some(entry) = found(self.hosts.get_mut(host), "the host") {
            entry.free = entry.free.plus(size);
        }
    }

    /// How much memory is left where a VM of this size would still fit, if what is `given_back` were free again.
    pub(crate) fn memory_left(
        &self,
        host: usize,
        size: Footprint,
        given_back: Option<(usize, Footprint)>,
    ) -> Option<Quantity> {
        let entry = self.entry(host).filter(|entry| entry.closed.is_none())?;
        let free = match given_back {
            Some((at, amount)) if at == host => entry.free.plus(amount),
            _ => entry.free,
        };
        size.within(free).then_some(free.memory)
    }

    /// Whether nodes of a pool are not made on a host, whoever else's are.
    pub(crate) fn is_closed_for(&self, host: usize, pool: &str) -> bool {
        self.entry(host).is_some_and(|entry| entry.closed_for.contains_key(pool))
    }

    /// The first of these hosts, by name, that a pool cannot use at all, and why.
    pub(crate) fn closed(&self, hosts: impl Iterator<Item = usize>, pool: &str) -> Option<(Place, String)> {
        let why = |entry: &Entry| entry.closed.clone().or_else(|| entry.closed_for.get(pool).cloned());
        let entries = hosts.filter_map(|host| self.entry(host));
        entries.filter_map(|entry| Some((entry.place.clone(), why(entry)?))).min()
    }

    /// Why no host holds a VM of this size: the resource that is short where the most of it is left.
    pub(crate) fn largest_gap(
        &self,
        hosts: impl Iterator<Item = usize>,
        size: &CatalogType,
    ) -> (Shortage, Option<Place>) {
        let wanted = Footprint::of(&size.capacity);
        let open = hosts.filter_map(|host| self.entry(host)).filter(|entry| entry.closed.is_none());
        let gaps = open.filter_map(|entry| Some((wanted.shortage_in(entry.free)?, &entry.place)));
        let largest = gaps.max_by(|(a, at_a), (b, at_b)| a.available.cmp(&b.available).then_with(|| at_b.cmp(at_a)));
        match largest {
            Some((shortage, place)) => (shortage, Some(place.clone())),
            None => {
                let (resource, wanted) = (MEMORY.to_owned(), wanted.memory);
                (Shortage { resource, wanted, available: Quantity::ZERO }, None)
            }
        }
    }
}
