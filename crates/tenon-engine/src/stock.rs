//! A catalogue, indexed for one plan: which sizes and offerings a set of demands leaves, answered for all at once.

use std::collections::BTreeMap;

use tenon_model::{Catalog, Offering, Requirements};

use crate::axes::{Amounts, Axes};
use crate::bits::Bits;
use crate::hosts::{Footprint, HostLedger};
use crate::interner::Interner;
use crate::label_index::LabelIndex;

/// A catalogue, indexed.
pub(crate) struct Stock<'a> {
    pub(crate) catalog: &'a Catalog,
    /// Every size once for each amount that its offerings leave to pods.
    pub(crate) slots: Vec<Slot>,
    /// Every offering of every size.
    pub(crate) offerings: Vec<Offered<'a>>,
    /// Offerings from which a machine can be made now, the cheapest first.
    pub(crate) by_price: Vec<usize>,
    /// Whether some offering is limited by the room on a host.
    pub(crate) has_places: bool,
    /// Whether some offering was set aside beforehand.
    pub(crate) has_reserved: bool,
    types: LabelIndex,
    ways: LabelIndex,
    available: Bits,
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
    offerings: Bits,
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
    pub(crate) fn new(catalog: &'a Catalog, axes: &Axes, hosts: &HostLedger) -> Stock<'a> {
        let (mut slots, mut offerings): (Vec<Slot>, Vec<Offered<'a>>) = (Vec::new(), Vec::new());
        for (size, offered) in catalog.types().iter().enumerate() {
            let first = offerings.len();
            offerings.extend(offered.offerings.iter().map(|way| {
                let host = way.place.as_ref().and_then(|place| hosts.position(place));
                let footprint = Footprint::of(&offered.capacity_with(&way.overrides));
                Offered { way, size, slot: None, host, footprint }
            }));
            for group in offered.allocatable_groups() {
                let mut members = Bits::default();
                for index in group.offerings.iter().map(|index| first + index) {
                    members.insert(index);
                    if let Some(offering) = offerings.get_mut(index) {
                        offering.slot = Some(slots.len());
                    }
                }
                let is_overdrawn = group.allocatable.iter().any(|(_, amount)| amount.is_negative());
                let allocatable = axes.row(&group.allocatable);
                slots.push(Slot { size, allocatable, is_overdrawn, offerings: members });
            }
        }
        let mut by_price: Vec<usize> =
            offerings.iter().enumerate().filter(|(_, offered)| offered.way.is_launchable()).map(|(n, _)| n).collect();
        by_price.sort_by_key(|index| offerings.get(*index).map(|offered| (offered.way.price, offered.size, *index)));
        let has = |test: fn(&Offering) -> bool| offerings.iter().any(|offered| test(offered.way));
        Stock {
            catalog,
            has_places: has(|way| way.place.is_some()),
            has_reserved: has(Offering::is_reserved),
            types: LabelIndex::new(catalog.types().iter().map(|offered| &offered.requirements)),
            ways: LabelIndex::new(offerings.iter().map(|offered| &offered.way.requirements)),
            available: Bits::those(offerings.len(), |n| offerings.get(n).is_some_and(|it| it.way.available)),
            slots,
            offerings,
            by_price,
            states: Interner::default(),
            merged: BTreeMap::new(),
        }
    }

    /// The state with this number.
    pub(crate) fn state(&self, number: usize) -> Option<&State> {
        self.states.get(number)
    }

    /// The number of a state with these demands.
    pub(crate) fn enter(&mut self, requirements: Requirements) -> usize {
        let Stock { types, ways, available, slots, states, .. } = self;
        let key = requirements.clone();
        states.number(&key, || {
            let mut offerings = ways.intersecting(&requirements);
            offerings.keep(available);
            let sizes = types.intersecting(&requirements);
            let suits = |slot: &Slot| sizes.has(slot.size) && slot.offerings.meets(&offerings);
            let slots = Bits::those(slots.len(), |n| slots.get(n).is_some_and(suits));
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
        let present = self.states.get(state).map(|state| &state.requirements);
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
        self.types.intersecting(requirements)
    }

    /// Whether an offering of a slot is among these.
    pub(crate) fn slot_meets(&self, slot: usize, offerings: &Bits) -> bool {
        self.slots.get(slot).is_some_and(|slot| slot.offerings.meets(offerings))
    }
}
