//! How much is left of each host while a plan is made.

use std::collections::BTreeMap;

use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{Host, InstanceType, Place, Quantity, Resources, Shortage};

/// What is left of the hosts that can be used.
pub(crate) struct HostLedger {
    free: BTreeMap<Place, Resources>,
    closed: BTreeMap<Place, String>,
}

impl HostLedger {
    pub(crate) fn new(hosts: &[Host]) -> HostLedger {
        let open = hosts.iter().filter(|host| host.closed.is_none());
        let closed = hosts.iter().filter_map(|host| Some((host.place.clone(), host.closed.clone()?)));
        HostLedger {
            free: open.map(|host| (host.place.clone(), host.free.clone())).collect(),
            closed: closed.collect(),
        }
    }

    /// Takes a VM of this size off a host.
    pub(crate) fn hold(&mut self, place: &Place, size: &InstanceType) {
        if let Some(free) = self.free.get_mut(place) {
            *free = free.without(&footprint(size));
        }
    }

    /// Gives it back.
    pub(crate) fn release(&mut self, place: &Place, size: &InstanceType) {
        if let Some(free) = self.free.get_mut(place) {
            free.add(&footprint(size));
        }
    }

    /// The host with the most memory left that holds a VM of this size; by name where they are alike.
    pub(crate) fn roomiest<'a>(
        &self,
        places: impl Iterator<Item = &'a Place>,
        size: &InstanceType,
    ) -> Option<&'a Place> {
        let wanted = footprint(size);
        let fits = |place: &&Place| self.free.get(place).is_some_and(|free| wanted.shortage_in(free).is_none());
        let memory = |place: &Place| self.free.get(place).map(|free| free.get(MEMORY)).unwrap_or_default();
        // Of equal ones `max_by` would take the last; turned round by name it takes the first.
        places.filter(fits).max_by(|a, b| memory(a).cmp(&memory(b)).then_with(|| b.cmp(a)))
    }

    /// The first of these hosts, by name, that cannot be used at all, and why.
    pub(crate) fn closed<'a>(&self, places: impl Iterator<Item = &'a Place>) -> Option<(Place, String)> {
        places.filter_map(|place| Some((place.clone(), self.closed.get(place)?.clone()))).min()
    }

    /// Why no host holds a VM of this size: the resource that is short where the most memory is left.
    pub(crate) fn largest_gap<'a>(
        &self,
        places: impl Iterator<Item = &'a Place>,
        size: &InstanceType,
    ) -> (Shortage, Option<Place>) {
        let wanted = footprint(size);
        let gaps = places.filter_map(|place| {
            let shortage = wanted.shortage_in(self.free.get(place)?)?;
            Some((shortage, place))
        });
        let largest = gaps.max_by(|(a, at_a), (b, at_b)| a.available.cmp(&b.available).then_with(|| at_b.cmp(at_a)));
        match largest {
            Some((shortage, place)) => (shortage, Some(place.clone())),
            None => {
                let (resource, wanted) = (MEMORY.to_owned(), wanted.get(MEMORY));
                (Shortage { resource, wanted, available: Quantity::ZERO }, None)
            }
        }
    }
}

/// What a VM takes from its host. Disks are the storage's concern.
pub(crate) fn footprint(size: &InstanceType) -> Resources {
    [CPU, MEMORY].into_iter().map(|resource| (resource, size.capacity.get(resource))).collect()
}
