//! In which order of price? The sizes that are left to a node, the cheapest first.
//!
//! Of a state, the order is found once; the list of a node is that order without the slots it has lost. Equal lists are one.

use std::sync::Arc;

use tenon_model::{Offering, Price};

use super::catalog::CatalogIndex;
use super::requirement_states::State;
use crate::index::{Bits, Id, Interner, SlotIx, StateIx, TypeIx, TypeListIx, fixed_hash};

/// The slots of a state by what can be launched of them now, the cheapest first; of equal ones by name.
#[derive(Debug, Clone)]
pub(crate) struct PricedTypes {
    ordered: Vec<(Price, TypeIx, SlotIx)>,
}

impl PricedTypes {
    /// Prices what a state leaves, of the offerings that may be used.
    pub(crate) fn new(catalog: &CatalogIndex, state: &State, may_use: impl Fn(&Offering) -> bool) -> PricedTypes {
        let mut prices = vec![Price::OUT_OF_REACH; catalog.slots.len()];
        for offering in state.offerings.iter().filter(|offering| may_use(catalog.way(*offering))) {
            let price = &mut prices[catalog.offerings[offering].slot.position()];
            *price = (*price).min(catalog.way(offering).price);
        }
        let priced = |slot: SlotIx| (prices[slot.position()], catalog.slots[slot].type_ix, slot);
        let mut ordered: Vec<(Price, TypeIx, SlotIx)> = state.slots.iter().map(priced).collect();
        // Types are numbered by name.
        ordered.sort_unstable();
        PricedTypes { ordered }
    }

    /// The sizes of these slots, each once.
    pub(crate) fn of_slots<'s>(&'s self, slots: &'s Bits<SlotIx>) -> impl Iterator<Item = (Price, TypeIx)> + 's {
        let mut seen: Bits<TypeIx> = Bits::default();
        let left = self.ordered.iter().filter(|(_, _, slot)| slots.has(*slot));
        left.filter_map(move |(price, type_ix, _)| {
            let is_new = !seen.has(*type_ix);
            seen.insert(*type_ix);
            is_new.then_some((*price, *type_ix))
        })
    }
}

/// Lists of sizes that nodes of a catalogue came to.
#[derive(Debug, Default)]
pub(crate) struct TypeLists {
    lists: Interner<TypeListIx, TypeList>,
}

/// The list of all nodes with one state and the same slots.
#[derive(Debug)]
struct TypeList {
    state: StateIx,
    slots: Bits<SlotIx>,
    names: Arc<[String]>,
    is_cut: bool,
}

impl TypeLists {
    /// The names for a state and slots, at most so many, and whether there were more.
    pub(crate) fn names(
        &mut self,
        (state, slots): (StateIx, &Bits<SlotIx>),
        most: usize,
        make: impl FnOnce() -> Vec<String>,
    ) -> (Arc<[String]>, bool) {
        let is_same = |list: &TypeList| list.state == state && list.slots == *slots;
        let number = self.lists.number_of(fixed_hash(&(state, slots)), is_same, || {
            let all = make();
            let names: Arc<[String]> = all.get(..most).unwrap_or(&all).into();
            TypeList { state, slots: slots.clone(), is_cut: names.len() < all.len(), names }
        });
        let list = &self.lists.things()[number];
        (list.names.clone(), list.is_cut)
    }
}
