//! Can a planned node take one more pod, and what would it then be? Nothing but memory is changed by asking.

use std::sync::Arc;

use tenon_model::{HostPort, MinValuesPolicy, Pinning, Requirements, ReservedTrouble, TooFewValues};

use super::Work;
use super::memo::offerings_left;
use crate::base::{Ask, Template};
use crate::capacity::{Held, HeldSize, Rank, Spot, VolumeCount};
use crate::index::{Bits, HostIx, OfferingIx, SlotIx, StateIx, TemplateIx};
use crate::instance_types::{CatalogIndex, Footprint};
use crate::resources::{Row, add};

/// A node as it stands before the pod.
pub(crate) struct Candidate<'c> {
    pub(crate) template: TemplateIx,
    pub(crate) state: StateIx,
    pub(crate) slots: &'c Bits<SlotIx>,
    pub(crate) requests: &'c [i64],
    pub(crate) held: &'c Held,
    /// The offering it would be made from.
    pub(crate) hold: Option<OfferingIx>,
    /// What its VM would be bound to.
    pub(crate) pinning: Option<&'c Pinning>,
    /// How many volumes it would have, of the drivers that the pod needs.
    pub(crate) volumes: &'c [VolumeCount],
    /// Whether it is not planned yet: then it may make do with fewer values of a label.
    pub(crate) is_new: bool,
}

/// What a node may still be made from.
#[derive(Clone, Copy)]
pub(crate) struct Remaining<'n> {
    pub(crate) state: StateIx,
    pub(crate) slots: &'n Bits<SlotIx>,
    /// The reservations it holds.
    pub(crate) held: &'n Held,
}

/// A node as it would be with the pod.
#[derive(Debug, Clone, Default)]
pub(crate) struct Accepted {
    pub(crate) state: StateIx,
    pub(crate) slots: Bits<SlotIx>,
    pub(crate) requests: Row,
    pub(crate) held: Held,
    pub(crate) hold: Option<OfferingIx>,
    /// What its VM is bound to; known once the node is planned so.
    pub(crate) pinning: Option<Arc<Pinning>>,
    pub(crate) is_relaxed: bool,
    /// Whether volumes of the pod took sizes away from it: another pod with the same ask may keep them.
    pub(super) is_cut_by_volumes: bool,
}

/// Why a node does not take a pod.
#[derive(Debug, PartialEq)]
pub(crate) enum No {
    /// Its taints, ports or limits say no.
    Closed,
    /// It has no room, whatever it becomes.
    Room,
    /// Labels cannot be met.
    Labels,
    /// No size will do.
    Types,
    /// No size that would do attaches as many volumes.
    Volumes,
    /// Too few values of a label stay possible.
    MinValues(TooFewValues),
    /// Capacity that was set aside is in the way.
    Reserved(ReservedTrouble),
    /// No host has room.
    Hosts,
}

impl Work<'_> {
    /// What the node would become with the pod, or why it cannot take it.
    pub(super) fn judge(&mut self, node: &Candidate<'_>, ask: &Ask, becomes: &mut Accepted) -> Result<(), No> {
        self.narrow(node, ask, becomes)?;
        self.secure(node, becomes)
    }

    /// What labels, resources and ports leave of the node.
    pub(crate) fn narrow(&mut self, node: &Candidate<'_>, ask: &Ask, becomes: &mut Accepted) -> Result<(), No> {
        let base = self.base;
        let template = &base.templates[node.template];
        let (catalog, index) = (template.catalog, base.catalog_of(node.template));
        let state = self.memo.merge(base, catalog, node.state, ask.demand).ok_or(No::Labels)?;
        let states = self.memo.states(catalog);
        let suiting = states.get(state);
        let Accepted { slots, requests, .. } = becomes;
        requests.clear();
        requests.extend(node.requests);
        add(requests, &ask.row);
        slots.copy(node.slots);
        if state != node.state || node.is_new {
            slots.keep(&suiting.slots);
        }
        template.keep_holding(requests, slots);
        if !ask.ports.is_empty() && template.has_daemon_ports {
            *slots = with_free_ports(template, index, slots, &ask.ports);
        }
        if slots.is_empty() {
            return Err(No::Types);
        }
        becomes.is_cut_by_volumes =
            !node.volumes.is_empty() && base.attachments.keep_holding((catalog, index), node.volumes, slots);
        if becomes.is_cut_by_volumes && slots.is_empty() {
            return Err(No::Volumes);
        }
        (becomes.state, becomes.is_relaxed) = (state, false);
        if suiting.has_min_values
            && let Err(short) = min_values(index, &suiting.requirements, slots)
        {
            if base.options.min_values == MinValuesPolicy::Strict || !node.is_new {
                return Err(No::MinValues(short));
            }
            let lowered = lowered(&suiting.requirements, &short);
            (becomes.state, becomes.is_relaxed) = (states.enter(index, lowered), true);
        }
        Ok(())
    }

    /// What the node would hold of reservations and hosts.
    pub(crate) fn secure(&self, node: &Candidate<'_>, becomes: &mut Accepted) -> Result<(), No> {
        becomes.held = self.reserve(node, becomes.state, &becomes.slots)?;
        let Accepted { state, slots, held, .. } = &*becomes;
        becomes.hold = self.hold(node, Remaining { state: *state, slots, held })?;
        Ok(())
    }

    fn reserve(&self, node: &Candidate<'_>, state: StateIx, slots: &Bits<SlotIx>) -> Result<Held, No> {
        let index = self.base.catalog_of(node.template);
        if !index.has_reserved {
            return Ok(Held::new());
        }
        let state = self.memo.state(self.base.templates[node.template].catalog, state);
        let mut left = offerings_left(index, state, slots).map(|offering| index.way(offering));
        if !self.reservations.are_used() {
            // Nothing is counted down, but from what is full already nothing can be made.
            let is_open = left.any(|way| self.reservations.can_launch(way));
            return if is_open { Ok(Held::new()) } else { Err(No::Reserved(ReservedTrouble::Full)) };
        }
        self.reservations.choose(node.held, left).map_err(No::Reserved)
    }

    /// The offering the node holds a host for, where hosts are limited.
    fn hold(&self, node: &Candidate<'_>, after: Remaining<'_>) -> Result<Option<OfferingIx>, No> {
        if !self.base.catalog_of(node.template).has_places {
            return Ok(None);
        }
        let held = node.hold.and_then(|hold| self.footprint(node.template, hold));
        let given_back = held.map(|(host, size)| HeldSize { host, size, pinning: node.pinning });
        self.cheapest(node.template, after, given_back).map(Some).ok_or(No::Hosts)
    }

    /// The host of an offering, and what it takes there.
    pub(super) fn footprint(&self, template: TemplateIx, offering: OfferingIx) -> Option<(HostIx, Footprint)> {
        let catalog = self.base.templates[template].catalog;
        let host = self.base.offered_on[catalog][offering]?;
        Some((host, self.base.catalogs[catalog].offerings[offering].footprint))
    }

    /// The cheapest offering that is left and has room; among equal ones on the host that the pool's strategy prefers.
    pub(crate) fn cheapest(
        &self,
        template: TemplateIx,
        left: Remaining<'_>,
        given_back: Option<HeldSize<'_>>,
    ) -> Option<OfferingIx> {
        let index = self.base.catalog_of(template);
        let state = self.memo.state(self.base.templates[template].catalog, left.state);
        let mut best: Option<(OfferingIx, Option<Rank>)> = None;
        for offering in offerings_left(index, state, left.slots) {
            let way = index.way(offering);
            let is_equal = |best: OfferingIx| {
                let same_type = index.offerings[best].type_ix == index.offerings[offering].type_ix;
                same_type && index.way(best).price == way.price
            };
            if best.is_some_and(|(best, _)| !is_equal(best)) {
                break;
            }
            if !self.reservations.can_launch(way) || !self.reservations.may_use(way, left.held) {
                continue;
            }
            let Some(rank) = self.rank(template, offering, given_back) else { continue };
            if best.is_none_or(|(_, highest)| rank > highest) {
                best = Some((offering, rank));
            }
        }
        best.map(|(offering, _)| offering)
    }

    /// How good the host is where it would be made, if it may be; `Some(None)` where hosts are not limited.
    fn rank(
        &self,
        template: TemplateIx,
        offering: OfferingIx,
        given_back: Option<HeldSize<'_>>,
    ) -> Option<Option<Rank>> {
        let (base, number) = (self.base, template);
        let template = &base.templates[number];
        if base.catalogs[template.catalog].way(offering).place.is_none() {
            return Some(None);
        }
        let host = base.offered_on[template.catalog][offering]?;
        let choice = &base.host_choices[number];
        let is_shut = base.hosts.is_closed(host) || self.shut.has(host);
        if is_shut || template.closed_hosts.has(host) || choice.excluded.has(host) {
            return None;
        }
        let size = base.catalogs[template.catalog].offerings[offering].footprint;
        let is_own = given_back.is_some_and(|held| held.host == host);
        let spot = Spot { host, free: self.hosts.free(host, given_back), size, is_own };
        let fits = choice.fits(&spot) && self.hosts.can_bind(host, size, given_back);
        fits.then(|| Some(choice.rank(&base.hosts, &self.turns[number], &spot)))
    }
}

/// Slots that have no daemon on the ports.
fn with_free_ports(
    template: &Template,
    index: &CatalogIndex,
    slots: &Bits<SlotIx>,
    ports: &[HostPort],
) -> Bits<SlotIx> {
    let mut free = slots.clone();
    for slot in slots.iter() {
        let taken = &template.daemons.of(index.slots[slot].type_ix).ports;
        if taken.iter().any(|taken| ports.iter().any(|port| port.conflicts_with(taken))) {
            free.remove(slot);
        }
    }
    free
}

/// Whether enough values stay possible over these slots.
fn min_values(index: &CatalogIndex, requirements: &Requirements, slots: &Bits<SlotIx>) -> Result<(), TooFewValues> {
    let types = slots.iter().map(|slot| &index.size_of(slot).requirements);
    requirements.min_values_satisfied_by(types).map(drop)
}

/// The demands with as many values asked for as there are.
fn lowered(requirements: &Requirements, short: &TooFewValues) -> Requirements {
    let mut lowered = requirements.clone();
    for (label, reached) in &short.reached {
        if let Some(demand) = requirements.get(label) {
            lowered.replace(label.as_str(), demand.clone().with_min_values(Some(*reached)));
        }
    }
    lowered
}
