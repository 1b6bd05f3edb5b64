//! Which slots hold it? Answered for all slots at once, by one search and a few words for each column.

use super::rows::{Row, Rows};
use crate::index::{Bits, Id, SlotIx};

/// Ranks of a column that are kept as sets; those in between are looked through one by one.
const KEPT: usize = 512;

/// What slots leave to pods, ordered by amount.
#[derive(Debug, Clone, Default)]
pub(crate) struct FitIndex {
    columns: Vec<FitColumn>,
}

/// One column, the smallest slots first.
#[derive(Debug, Clone)]
struct FitColumn {
    ordered: Vec<(i64, SlotIx)>,
    /// How many slots there are between two sets.
    step: usize,
    /// For every `step` slots, those that come before.
    before: Vec<Bits<SlotIx>>,
}

impl FitIndex {
    /// Reads what each slot leaves.
    pub(crate) fn new(rooms: &Rows<SlotIx>, (slots, width): (usize, usize)) -> FitIndex {
        FitIndex { columns: (0..width).map(|column| FitColumn::new(rooms, slots, column)).collect() }
    }

    /// Keeps the slots that hold this much.
    pub(crate) fn keep_holding(&self, asked: &Row, slots: &mut Bits<SlotIx>) {
        self.columns.iter().zip(asked).for_each(|(column, asked)| column.drop_smaller(*asked, slots));
    }
}

impl FitIndex {
    /// The most that any of these slots has, column by column, in place of what the row says.
    pub(crate) fn most_of(&self, slots: &Bits<SlotIx>, row: &mut Row) {
        let most = |column: &FitColumn| {
            let largest = column.ordered.iter().rev().find(|(_, slot)| slots.has(*slot));
            largest.map_or(i64::MIN, |(amount, _)| *amount)
        };
        row.clear();
        row.extend(self.columns.iter().map(most));
    }
}

impl FitColumn {
    fn new(rooms: &Rows<SlotIx>, slots: usize, column: usize) -> FitColumn {
        let amount = |slot: SlotIx| rooms.row(slot)[column];
        let mut ordered: Vec<(i64, SlotIx)> = (0..slots).map(SlotIx::of).map(|slot| (amount(slot), slot)).collect();
        ordered.sort_unstable();
        let step = slots.div_ceil(KEPT).max(1);
        let (mut before, mut smaller) = (Vec::with_capacity(slots / step + 1), Bits::none(slots));
        for (position, (_, slot)) in ordered.iter().enumerate() {
            if position.is_multiple_of(step) {
                before.push(smaller.clone());
            }
            smaller.insert(*slot);
        }
        if slots.is_multiple_of(step) {
            before.push(smaller);
        }
        FitColumn { ordered, step, before }
    }

    fn drop_smaller(&self, asked: i64, slots: &mut Bits<SlotIx>) {
        let smaller = self.ordered.partition_point(|(amount, _)| *amount < asked);
        if smaller == 0 {
            return;
        }
        let kept = smaller / self.step;
        if let Some(before) = self.before.get(kept) {
            slots.drop_all(before);
        }
        self.ordered[kept * self.step..smaller].iter().for_each(|(_, slot)| slots.remove(*slot));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::rows::fits;
    use super::*;

    proptest! {
        #[test]
        fn the_index_says_what_the_slots_say_one_by_one(
            rooms in proptest::collection::vec((-3..9_i64, -3..9_i64), 1..1600),
            asked in (-1..9_i64, -1..9_i64),
        ) {
            let mut rows = Rows::new(2);
            rooms.iter().for_each(|(one, other)| rows.push(&[*one, *other]));
            let index = FitIndex::new(&rows, (rooms.len(), 2));
            let mut slots = Bits::all(rooms.len());
            index.keep_holding(&vec![asked.0, asked.1], &mut slots);
            let by_hand = Bits::those(rooms.len(), |slot| fits(&[asked.0, asked.1], rows.row(slot)));
            prop_assert_eq!(&slots, &by_hand);
            let most = |column: usize| slots.iter().map(|slot| rows.row(slot)[column]).max().unwrap_or(i64::MIN);
            let mut row = vec![7];
            index.most_of(&slots, &mut row);
            prop_assert_eq!(row, vec![most(0), most(1)]);
        }
    }
}
