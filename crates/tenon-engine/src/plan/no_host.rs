//! Why can no host be used for a new node, and would one that is excluded do?

use std::collections::BTreeSet;

use tenon_model::labels::{REGION, ZONE};
use tenon_model::resources::MEMORY;
use tenon_model::{NoHost, Place, PoolRefusal, Quantity, Requirements, Shortage};

use crate::capacity::Spot;
use crate::index::{Bits, HostIx, OfferingIx, SlotIx, StateIx, TemplateIx};
use crate::instance_types::Footprint;
use crate::solver::Work;

impl Work<'_> {
    /// No host has room: said of the cheapest size that would do.
    pub(super) fn no_host(&self, number: TemplateIx, state: StateIx, slots: &Bits<SlotIx>) -> PoolRefusal {
        let (template, index) = (&self.base.templates[number], self.base.catalog_of(number));
        let state = self.memo.state(template.catalog, state);
        let is_left = |offering: &OfferingIx| {
            slots.has(index.offerings[*offering].slot) && self.reservations.can_launch(index.way(*offering))
        };
        let placed: Vec<OfferingIx> = state.offerings.iter().filter(is_left).collect();
        let Some(cheapest) = placed.first() else { return PoolRefusal::NothingOffered };
        let type_ix = index.offerings[*cheapest].type_ix;
        let here = placed.iter().filter(|offering| index.offerings[**offering].type_ix == type_ix);
        let hosts: Vec<HostIx> =
            here.filter_map(|offering| self.base.offered_on[template.catalog][*offering]).collect();
        let size = index.size(type_ix);
        let wanted = Footprint::of(&size.capacity);
        let (shortage, largest_on, kept_free) = self.gap(number, &hosts, wanted);
        let others = self.unoffered(number, &state.requirements);
        let skipped = self.base.hosts.skipped(hosts.iter().copied().chain(others), &template.pool.name);
        let why = NoHost { instance_type: size.name.clone(), shortage, largest_on, kept_free, skipped };
        or_excluded(PoolRefusal::NoHost(Box::new(why)), self.roomy_excluded(number, wanted, &state.requirements))
    }

    /// What is short on which host, and how much must stay free there. A host that would do but for the latter is the
    /// nearest miss.
    fn gap(
        &self,
        number: TemplateIx,
        hosts: &[HostIx],
        wanted: Footprint,
    ) -> (Shortage, Option<Place>, Option<Quantity>) {
        let (template, choice) = (&self.base.templates[number], &self.base.host_choices[number]);
        let is_shut = |host: HostIx| choice.excluded.has(host) || self.shut.has(host);
        let is_open = |host: &HostIx| !template.closed_hosts.has(*host) && !is_shut(*host);
        let open = || hosts.iter().copied().filter(is_open);
        let has_room =
            |host: &HostIx| wanted.within(self.hosts.free(*host, None)) && self.hosts.can_bind(*host, wanted, None);
        let would_do = open().filter(has_room);
        let kept = self.base.hosts.largest_gap(&self.hosts, would_do, wanted.plus(choice.min_available));
        if let Some((shortage, host)) = kept {
            let place = self.base.hosts.place(host).clone();
            let (size, kept) = (wanted.amount(&shortage.resource), choice.min_available.amount(&shortage.resource));
            return (Shortage { wanted: size, ..shortage }, Some(place), Some(kept));
        }
        match self.base.hosts.largest_gap(&self.hosts, open(), wanted) {
            Some((shortage, host)) => (shortage, Some(self.base.hosts.place(host).clone()), None),
            None => {
                let (resource, wanted) = (MEMORY.to_owned(), wanted.memory);
                (Shortage { resource, wanted, available: Quantity::ZERO }, None, None)
            }
        }
    }

    /// The first excluded host that suits these demands and holds such a VM.
    fn roomy_excluded(&self, number: TemplateIx, size: Footprint, wanted: &Requirements) -> Option<Place> {
        let (hosts, choice) = (&self.base.hosts, &self.base.host_choices[number]);
        let has_room = |host: &HostIx| {
            let spot = Spot { host: *host, free: self.hosts.free(*host, None), size, is_own: false };
            !hosts.is_closed(*host) && choice.fits(&spot)
        };
        let places = choice.excluded.iter().filter(has_room).map(|host| hosts.place(host));
        places.filter(|place| is_in(place, wanted)).min().cloned()
    }

    /// The refusal, with the hosts that suit these demands and lack something, where no host does that is offered.
    pub(super) fn unless_offered(&self, number: TemplateIx, wanted: &Requirements, others: PoolRefusal) -> PoolRefusal {
        let (hosts, index) = (&self.base.hosts, self.base.catalog_of(number));
        let mut offered = index.offerings.ids().map(|offering| index.way(offering).place.as_ref());
        if offered.any(|place| place.is_none_or(|place| is_in(place, wanted))) {
            return others;
        }
        let excluded = self.base.host_choices[number].excluded.iter().map(|host| hosts.place(host));
        let excluded = excluded.filter(|place| is_in(place, wanted)).min().cloned();
        let skipped = hosts.skipped(self.unoffered(number, wanted), &self.base.templates[number].pool.name);
        let others = match skipped.is_empty() {
            true => others,
            false => PoolRefusal::HostsSkipped { skipped, others: Box::new(others) },
        };
        or_excluded(others, excluded)
    }

    /// Hosts that suit these demands, and on which the pool has nothing to make nodes from.
    fn unoffered(&self, number: TemplateIx, wanted: &Requirements) -> impl Iterator<Item = HostIx> {
        let template = &self.base.templates[number];
        let offered: BTreeSet<HostIx> = self.base.offered_on[template.catalog].iter().copied().flatten().collect();
        let closed = template.closed_hosts.iter().filter(move |host| !offered.contains(host));
        closed.filter(|host| is_in(self.base.hosts.place(*host), wanted))
    }
}

/// The refusal, with the excluded host that would do.
fn or_excluded(others: PoolRefusal, excluded: Option<Place>) -> PoolRefusal {
    match excluded {
        Some(place) => PoolRefusal::HostExcluded { place, others: Box::new(others) },
        None => others,
    }
}

/// Whether a node on this host has the zone and region that are demanded.
fn is_in(place: &Place, wanted: &Requirements) -> bool {
    let has = |label: &str, value: &str| wanted.get(label).is_none_or(|demand| demand.has(value));
    has(ZONE, place.host.as_str()) && has(REGION, &place.region)
}
