//! Who has a value? Which of many sets of demands share values with another one, answered for all of them at once.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use tenon_model::{Operator, Requirement, Requirements};

use super::bitset::Bits;
use super::ids::Id;

/// Many sets of demands, by label and value.
#[derive(Debug, Clone)]
pub(crate) struct LabelIndex<I> {
    length: usize,
    labels: BTreeMap<String, Column<I>>,
}

/// What the sets say about one label.
#[derive(Debug, Clone)]
struct Column<I> {
    /// Sets that speak of the label.
    defined: Bits<I>,
    /// Sets that are fine without it.
    absent: Bits<I>,
    /// Sets that list a value.
    values: BTreeMap<String, Bits<I>>,
    /// Sets that allow all but a few values, which are asked one by one.
    open: Vec<(I, Requirement)>,
    /// Whether some set that speaks of the label does not have just one value of it.
    is_mixed: bool,
}

impl<I> Default for LabelIndex<I> {
    fn default() -> LabelIndex<I> {
        LabelIndex { length: 0, labels: BTreeMap::new() }
    }
}

impl<I> Default for Column<I> {
    fn default() -> Column<I> {
        let (defined, absent) = (Bits::default(), Bits::default());
        Column { defined, absent, values: BTreeMap::new(), open: Vec::new(), is_mixed: false }
    }
}

impl<I: Id> LabelIndex<I> {
    /// Reads the sets, which are known by their position from here on.
    pub(crate) fn new<R: Borrow<Requirements>>(sets: impl IntoIterator<Item = R>) -> LabelIndex<I> {
        let mut index = LabelIndex::default();
        for (position, set) in sets.into_iter().enumerate() {
            let number = I::of(position);
            index.length = position + 1;
            set.borrow().iter().for_each(|(label, demand)| index.read(number, label, demand));
        }
        index
    }

    /// A set says something else from here on.
    pub(crate) fn replace(&mut self, number: I, before: &Requirements, now: &Requirements) {
        for (label, demand) in before.iter().filter(|(label, demand)| now.get(label) != Some(demand)) {
            let Some(column) = self.labels.get_mut(label) else { continue };
            column.forget(number, demand);
            if column.defined.is_empty() {
                self.labels.remove(label);
            }
        }
        let changed = now.iter().filter(|(label, demand)| before.get(label) != Some(demand));
        changed.for_each(|(label, demand)| self.read(number, label, demand));
    }

    fn read(&mut self, number: I, label: &str, demand: &Requirement) {
        match self.labels.get_mut(label) {
            Some(column) => column.read(number, demand),
            None => self.labels.entry(label.to_owned()).or_default().read(number, demand),
        }
    }

    /// Sets that share a value with `wanted` on each label both speak of, or may both do without the label.
    pub(crate) fn intersecting(&self, wanted: &Requirements) -> Bits<I> {
        let mut left = Bits::all(self.length);
        for (label, demand) in wanted.iter() {
            let Some(column) = self.labels.get(label) else { continue };
            let mut out = column.defined.clone();
            out.drop_all(&column.sharing(demand));
            left.drop_all(&out);
        }
        left
    }

    /// Whether every set that speaks of a label has just one value of it. Then sets that share a value with each of two
    /// demands are those that share one with both at once.
    pub(crate) fn is_single(&self, label: &str) -> bool {
        self.labels.get(label).is_none_or(|column| !column.is_mixed)
    }

    /// Sets of facts that meet the demands: what they do not speak of, they do not have.
    pub(crate) fn meeting(&self, wanted: &Requirements) -> Bits<I> {
        let mut left = self.intersecting(wanted);
        for (label, _) in wanted.iter().filter(|(_, demand)| !demand.permits_absence()) {
            match self.labels.get(label) {
                Some(column) => left.keep(&column.defined),
                None => return Bits::none(self.length),
            }
        }
        left
    }
}

impl<I: Id> Column<I> {
    fn read(&mut self, number: I, demand: &Requirement) {
        self.defined.insert(number);
        self.is_mixed |= demand.operator() != Operator::In || demand.values().len() != 1;
        if demand.permits_absence() {
            self.absent.insert(number);
        }
        if matches!(demand.operator(), Operator::In | Operator::DoesNotExist) {
            for value in demand.values() {
                match self.values.get_mut(value) {
                    Some(sets) => sets.insert(number),
                    None => self.values.entry(value.clone()).or_default().insert(number),
                }
            }
        } else {
            self.open.push((number, demand.clone()));
        }
    }

    fn forget(&mut self, number: I, demand: &Requirement) {
        self.defined.remove(number);
        self.absent.remove(number);
        self.open.retain(|(other, _)| *other != number);
        for value in demand.values() {
            let Some(sets) = self.values.get_mut(value) else { continue };
            sets.remove(number);
            if sets.is_empty() {
                self.values.remove(value);
            }
        }
    }

    fn sharing(&self, wanted: &Requirement) -> Bits<I> {
        if !self.is_mixed && wanted.operator() == Operator::NotIn && wanted.bounds() == (None, None) {
            let mut sharing = self.defined.clone();
            wanted.values().iter().filter_map(|value| self.values.get(value)).for_each(|sets| sharing.drop_all(sets));
            return sharing;
        }
        let mut sharing = if wanted.permits_absence() { self.absent.clone() } else { Bits::default() };
        if wanted.operator() == Operator::In {
            wanted.values().iter().filter_map(|value| self.values.get(value)).for_each(|sets| sharing.join(sets));
        } else {
            let allowed = self.values.iter().filter(|(value, _)| wanted.has(value));
            allowed.for_each(|(_, sets)| sharing.join(sets));
        }
        for (number, _) in self.open.iter().filter(|(_, demand)| demand.intersects(wanted)) {
            sharing.insert(*number);
        }
        sharing
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::ids::NodeIx;
    use super::*;

    fn any_requirements() -> impl Strategy<Value = Requirements> {
        let values = proptest::collection::btree_set((0..6_u8).prop_map(|value| value.to_string()), 1..3);
        let demand = (0..8_usize, values).prop_filter_map("a bound has one value", |(operator, values)| {
            Requirement::new(Operator::ALL[operator], values)
        });
        let label = (0..3_u8).prop_map(|label| format!("label-{label}"));
        proptest::collection::vec((label, demand), 0..4).prop_map(|demands| demands.into_iter().collect())
    }

    proptest! {
        #[test]
        fn the_index_says_what_the_sets_say_one_by_one(
            sets in proptest::collection::vec(any_requirements(), 1..20),
            wanted in any_requirements(),
        ) {
            let index: LabelIndex<NodeIx> = LabelIndex::new(&sets);
            let by_hand = Bits::those(sets.len(), |number: NodeIx| sets[number.position()].intersects(&wanted));
            prop_assert_eq!(index.intersecting(&wanted), by_hand);
            let by_hand = Bits::those(sets.len(), |number: NodeIx| sets[number.position()].can_meet(&wanted, |_| false));
            prop_assert_eq!(index.meeting(&wanted), by_hand);
        }

        #[test]
        fn sets_that_were_replaced_answer_as_if_they_had_been_read_first(
            mut sets in proptest::collection::vec(any_requirements(), 1..20),
            changes in proptest::collection::vec((0..20_usize, any_requirements()), 1..20),
            wanted in any_requirements(),
        ) {
            let mut index: LabelIndex<NodeIx> = LabelIndex::new(&sets);
            for (position, now) in changes {
                let position = position % sets.len();
                index.replace(NodeIx::of(position), &sets[position], &now);
                sets[position] = now;
            }
            let read: LabelIndex<NodeIx> = LabelIndex::new(&sets);
            prop_assert_eq!(index.intersecting(&wanted), read.intersecting(&wanted));
            prop_assert_eq!(index.meeting(&wanted), read.meeting(&wanted));
            let labels = |index: &LabelIndex<NodeIx>| index.labels.keys().cloned().collect::<Vec<_>>();
            prop_assert_eq!(labels(&index), labels(&read), "nothing is kept of what nobody says any more");
        }

        #[test]
        fn of_sets_with_one_value_those_that_share_with_each_demand_share_with_both(
            values in proptest::collection::vec(0..6_u8, 1..20),
            (one, other) in (any_requirements(), any_requirements()),
        ) {
            let fact = |value: &u8| [("label-0".to_owned(), Requirement::is(value.to_string()))].into_iter().collect();
            let sets: Vec<Requirements> = values.iter().map(fact).collect();
            let index: LabelIndex<NodeIx> = LabelIndex::new(&sets);
            prop_assert!(index.is_single("label-0") && index.is_single("label-1"));
            let mut each = index.intersecting(&one);
            each.keep(&index.intersecting(&other));
            prop_assert_eq!(each, index.intersecting(&one.and(&other)));
        }
    }
}
