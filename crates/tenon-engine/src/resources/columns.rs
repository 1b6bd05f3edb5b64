//! Which resources, and in which unit?
//!
//! A column stands for a resource that some pod asks for; others never decide anything. Its unit is the coarsest of 1, a
//! thousandth, a millionth and a billionth in which every request is a whole number. What is offered is rounded down to it,
//! which changes no answer: a sum of whole requests fits into an amount exactly if it fits into the whole part of it.

use tenon_model::{Quantity, Resources};

use super::rows::Row;

/// Units, in billionths.
const UNITS: [i128; 4] = [1_000_000_000, 1_000_000, 1_000, 1];

/// More than this of anything is taken for this much: adding two of them cannot overflow.
const MOST: i64 = 1 << 62;

/// The columns, by name of the resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    columns: Vec<Column>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Column {
    resource: String,
    /// How many billionths are one.
    unit: i128,
}

impl Columns {
    /// Columns for all that is asked for.
    pub(crate) fn of<'a>(requests: impl IntoIterator<Item = &'a Resources>) -> Columns {
        let mut columns: Vec<Column> = Vec::new();
        for (resource, amount) in requests.into_iter().flat_map(Resources::iter) {
            if amount.is_zero() {
                continue;
            }
            let found = columns.binary_search_by(|column| column.resource.as_str().cmp(resource));
            let position = found.unwrap_or_else(|free| {
                let [coarsest, ..] = UNITS;
                columns.insert(free, Column { resource: resource.to_owned(), unit: coarsest });
                free
            });
            let column = &mut columns[position];
            while amount.nanos() % column.unit != 0 {
                column.unit /= 1_000;
            }
        }
        Columns { columns }
    }

    /// How many columns there are.
    pub(crate) fn len(&self) -> usize {
        self.columns.len()
    }

    /// What is asked for. Where it is too much to count, it counts as the most there is.
    pub(crate) fn requested(&self, resources: &Resources) -> Row {
        self.row(resources, |nanos, unit| -(-nanos).div_euclid(unit))
    }

    /// What is offered, its whole part.
    pub(crate) fn offered(&self, resources: &Resources) -> Row {
        self.row(resources, i128::div_euclid)
    }

    fn row(&self, resources: &Resources, whole: impl Fn(i128, i128) -> i128) -> Row {
        let amount = |column: &Column| {
            let amount: Quantity = resources.get(&column.resource);
            let units = whole(amount.nanos(), column.unit);
            i64::try_from(units).unwrap_or(if units < 0 { -MOST } else { MOST }).clamp(-MOST, MOST)
        };
        self.columns.iter().map(amount).collect()
    }

    /// A row of nothing.
    pub(crate) fn nothing(&self) -> Row {
        vec![0; self.columns.len()]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::rows::fits;
    use super::*;

    fn resources(amounts: &[(&str, &str)]) -> Resources {
        amounts.iter().map(|(name, amount)| ((*name).to_owned(), amount.parse::<Quantity>().unwrap())).collect()
    }

    #[test]
    fn a_column_counts_in_the_coarsest_unit_in_which_all_requests_are_whole() {
        let asked =
            [resources(&[("cpu", "1500m"), ("memory", "1Gi"), ("gpu", "0")]), resources(&[("cpu", "2"), ("x", "1u")])];
        let columns = Columns::of(&asked);
        assert_eq!(columns.len(), 3, "what nobody asks for has no column");
        assert_eq!(columns.requested(&asked[0]), [1500, 1 << 30, 0]);
        assert_eq!(columns.offered(&resources(&[("cpu", "1999.9m"), ("x", "-0.5u")])), [1999, 0, -1]);
    }

    #[test]
    fn what_is_too_much_to_count_fits_nowhere_and_holds_what_can_be_counted() {
        let huge = resources(&[("memory", "100E")]);
        let columns = Columns::of([&huge]);
        assert_eq!(columns.requested(&huge), columns.offered(&huge));
        let more = columns.offered(&resources(&[("memory", "3E")]));
        assert!(!fits(&columns.requested(&huge), &more));
    }

    proptest! {
        #[test]
        fn rows_answer_as_quantities_do(
            asked in proptest::collection::vec((0..2_000_i64, 0..3_u32), 1..6),
            room in -10_000..10_000_i64,
        ) {
            let amount = |milli: i64, finer: u32| -> Quantity {
                format!("{milli}{}", ["m", "u", "n"][finer as usize]).parse().unwrap()
            };
            let asked: Vec<Resources> =
                asked.iter().map(|(milli, finer)| Resources::default().with("a", amount(*milli, *finer))).collect();
            let room = Resources::default().with("a", format!("{room}u").parse().unwrap());
            let columns = Columns::of(&asked);
            let sum: Quantity = asked.iter().map(|one| one.get("a")).sum();
            let mut row = columns.nothing();
            asked.iter().for_each(|one| super::super::rows::add(&mut row, &columns.requested(one)));
            let expected = sum.is_zero() && columns.len() == 0 || sum <= room.get("a");
            prop_assert_eq!(fits(&row, &columns.offered(&room)), expected);
        }
    }
}
