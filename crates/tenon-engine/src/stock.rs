//! A catalogue in one plan: which sizes and offerings a set of demands leaves, answered for all at once.

use std::collections::BTreeMap;

use tenon_model::{Catalog, CatalogType, Offering, Requirements};

use crate::axes::{Amounts, Axes};
use crate::bits::Bits;
use crate::bug::found;
use crate::catalog_index::{CatalogIndex, Group, Listed, ways};
use crate::hosts::{Footprint, HostLedger};
use crate::interner::Interner;

/// A catalogue, for one plan.
pub(crate) struct Stock<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) index: &'a CatalogIndex,
    /// Every size once for each amount that its offerings leave to pods.
    pub(crate) slots: Vec<Slot>,
    /// Every offering of every size.
    pub(crate) offerings: Vec<Offered<'a>>,
    states: Interner<State>,
    merged: BTreeMap<(usize, usize), Option<usize>>,
}

/// A size with what one group of its offerings leaves to pods.
pub(crate) struct Slot {
    /// The size, by its position in the catalogue.
    pub(crate) size: usize,
    pub(crate) allocatable: Amounts,
    /// Whether more is kept back of some resource than there is, so that nothing fits.
    pub(crate) is_overdrawn: bool,
}

/// An offering and what it belongs to.
pub(crate) struct Offered<'a> {
    pub(crate) way: &'a Offering,
    pub(crate) size: usize,
    /// The slot it belongs to; none if it is not available.
    pub(crate) slot: Option<usize>,
    /// The host it is made on, by its position in the ledger; unknown hosts have none.
    pub(crate) host: Option<usize>,
    /// What it takes from that host.
    pub(crate) footprint: Footprint,
}

/// A set of demands on a node, and what it leaves.
pub(crate) struct State {
    pub(crate) requirements: Requirements,
    /// Whether some label must keep a number of values.
    pub(crate) has_min_values: bool,
    /// Slots whose size suits, with an offering that does.
    pub(crate) slots: Bits,
    /// Available offerings that suit.
    pub(crate) offerings: Bits,
}

impl<'a> Stock<'a> {
    pub(crate) fn new(catalog: (&'a Catalog, &'a CatalogIndex), axes: &Axes, hosts: &HostLedger) -> Stock<'a> {
        let (catalog, index) = catalog;
        let slot = |group: &Group| {
            let Group { size, allocatable, is_overdrawn, .. } = group;
            Slot { size: *size, allocatable: axes.row(allocatable), is_overdrawn: *is_overdrawn }
        };
        let offered = |(way, listed): (&'a Offering, &Listed)| {
            let Listed { size, group, footprint } = *listed;
            let host = way.place.as_ref().and_then(|place| hosts.position(place));
            Offered { way, size, slot: group, host, footprint }
        };
        Stock {
            catalog,
            index,
            slots: index.groups.iter().map(slot).collect(),
            offerings: ways(catalog).zip(&index.offerings).map(offered).collect(),
            states: Interner::default(),
            merged: BTreeMap::new(),
        }
    }

    /// The state with this number.
    pub(crate) fn state(&self, number: usize) -> Option<&State> {
        found(self.states.get(number), "the state")
    }

    /// The slot with this number.
    pub(crate) fn slot(&self, number: usize) -> Option<&Slot> {
        found(self.slots.get(number), "the slot")
    }

    /// The size of a slot.
    pub(crate) fn size_of(&self, slot: usize) -> Option<&'a CatalogType> {
        let size = self.slot(slot).and_then(|slot| self.catalog.types().get(slot.size));
        found(size, "the size of the slot")
    }

    /// The offering with this number.
    pub(crate) fn offering(&self, number: usize) -> Option<&Offered<'a>> {
        found(self.offerings.get(number), "the offering")
    }

    /// The number of a state with these demands.
    pub(crate) fn enter(&mut self, requirements: Requirements) -> usize {
        let (index, states, key) = (self.index, &mut self.states, requirements.clone());
        states.number(&key, || {
            let mut offerings = index.ways.intersecting(&requirements);
            offerings.keep(&index.available);
            let sizes = index.types.intersecting(&requirements);
            let suits = |group: &Group| sizes.has(group.size) && group.offerings.meets(&offerings);
            let slots = Bits::those(index.groups.len(), |n| index.groups.get(n).is_some_and(suits));
            State { has_min_values: requirements.have_min_values(), requirements, slots, offerings }
        })
    }

    /// The state after more is demanded, if both can be met; numbers of equal demands are remembered.
    pub(crate) fn merge(&mut self, state: usize, demand: (usize, &Requirements)) -> Option<usize> {
        let (number, wanted) = demand;
        if let Some(known) = self.merged.get(&(state, number)) {
            return *known;
        }
        let is_well_known = |label: &str| self.catalog.is_well_known(label);
        let present = self.state(state).map(|state| &state.requirements);
        let joined = present.filter(|present| present.can_meet(wanted, is_well_known)).map(|present| {
            let mut joined = present.clone();
            joined.add_all(wanted);
            joined
        });
        let merged = joined.map(|joined| self.enter(joined));
        self.merged.insert((state, number), merged);
        merged
    }

    /// Sizes whose labels share values with these demands, by position.
    pub(crate) fn sizes_suiting(&self, requirements: &Requirements) -> Bits {
        self.index.types.intersecting(requirements)
    }

    /// Whether an offering of a slot is among these.
    pub(crate) fn slot_meets(&self, slot: usize, offerings: &Bits) -> bool {
        found(self.index.groups.get(slot), "the slot").is_some_and(|group| group.offerings.meets(offerings))
    }
}
