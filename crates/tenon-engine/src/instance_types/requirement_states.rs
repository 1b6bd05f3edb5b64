//! What do demands leave of a catalogue? Equal demands are one state, and what becomes of a state when more is demanded is
//! remembered.

use std::sync::Arc;

use tenon_model::Requirements;

use super::catalog::{Before, CatalogIndex, Left};
use crate::index::{Bits, DemandIx, Id, Interner, NumberMap, OfferingIx, SlotIx, StateIx, fixed_hash};

/// The states of a catalogue that were met with.
#[derive(Debug, Default)]
pub(crate) struct States {
    states: Interner<StateIx, State>,
    merged: NumberMap<Option<StateIx>>,
}

/// A set of demands on a node, and what it leaves.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) requirements: Arc<Requirements>,
    /// Whether some label must keep a number of values.
    pub(crate) has_min_values: bool,
    /// Slots whose size suits, with an offering that does.
    pub(crate) slots: Bits<SlotIx>,
    /// Available offerings that suit.
    pub(crate) offerings: Bits<OfferingIx>,
}

impl States {
    /// A state.
    pub(crate) fn get(&self, state: StateIx) -> &State {
        &self.states.things()[state]
    }

    /// The state with these demands.
    pub(crate) fn enter(&mut self, catalog: &CatalogIndex, requirements: Requirements) -> StateIx {
        let requirements = Arc::new(requirements);
        enter(&mut self.states, &requirements, || catalog.left_by(&requirements))
    }

    /// The state after more is demanded, if both can be met.
    pub(crate) fn merge(
        &mut self,
        catalog: &CatalogIndex,
        state: StateIx,
        (demand, wanted): (DemandIx, &Requirements),
    ) -> Option<StateIx> {
        if wanted.is_empty() {
            return Some(state);
        }
        let States { states, merged } = self;
        let pair = (state.position(), demand.position());
        let pair = (u32::try_from(pair.0).unwrap_or(u32::MAX), u32::try_from(pair.1).unwrap_or(u32::MAX));
        merged.get_or(pair, || {
            let State { requirements: present, slots, offerings, .. } = &states.things()[state];
            let is_well_known = |label: &str| catalog.catalog.is_well_known(label);
            if !present.can_meet(wanted, is_well_known) {
                return None;
            }
            let joined = Arc::new(present.and(wanted));
            let (present, slots, offerings) = (present.clone(), slots.clone(), offerings.clone());
            let before = Before { requirements: &present, slots: &slots, offerings: &offerings };
            Some(enter(states, &joined, || {
                let left = catalog.left_by_more(before, wanted).unwrap_or_else(|| catalog.left_by(&joined));
                debug_assert_eq!(left, catalog.left_by(&joined), "{present:?} and {wanted:?}");
                left
            }))
        })
    }
}

/// The state with these demands; what they leave is found out if they are new.
fn enter(
    states: &mut Interner<StateIx, State>,
    requirements: &Arc<Requirements>,
    left: impl FnOnce() -> Left,
) -> StateIx {
    let is_same = |state: &State| state.requirements == *requirements;
    states.number_of(fixed_hash(requirements), is_same, || {
        let (slots, offerings) = left();
        let has_min_values = requirements.have_min_values();
        State { requirements: requirements.clone(), has_min_values, slots, offerings }
    })
}
