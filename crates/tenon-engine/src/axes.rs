//! Amounts as rows of a fixed width: one column for each resource that somebody asks for.

use std::collections::BTreeSet;

use tenon_model::{Quantity, Resources};

/// Amounts in the order of the columns.
pub(crate) type Amounts = Vec<Quantity>;

/// The columns.
#[derive(Debug, Clone)]
pub(crate) struct Axes {
    names: Vec<String>,
}

impl Axes {
    /// One column for each resource of which some is asked for. Others never decide anything.
    pub(crate) fn of<'a>(requests: impl IntoIterator<Item = &'a Resources>) -> Axes {
        let mut names = BTreeSet::new();
        for asked in requests {
            for (name, amount) in asked.iter() {
                if !amount.is_zero() && !names.contains(name) {
                    names.insert(name.to_owned());
                }
            }
        }
        Axes { names: names.into_iter().collect() }
    }

    /// Amounts as a row.
    pub(crate) fn row(&self, resources: &Resources) -> Amounts {
        self.names.iter().map(|name| resources.get(name)).collect()
    }

    /// A row of nothing.
    pub(crate) fn nothing(&self) -> Amounts {
        vec![Quantity::ZERO; self.names.len()]
    }
}

/// Whether what is asked for is there. Where less than nothing is left, nothing fits, not even nothing.
pub(crate) fn fits(asked: &[Quantity], room: &[Quantity]) -> bool {
    asked.iter().zip(room).all(|(asked, room)| asked <= room)
}

/// Adds a row to another.
pub(crate) fn add(row: &mut [Quantity], other: &[Quantity]) {
    row.iter_mut().zip(other).for_each(|(amount, other)| *amount = *amount + *other);
}

/// Takes a row from another.
pub(crate) fn take(row: &mut [Quantity], other: &[Quantity]) {
    row.iter_mut().zip(other).for_each(|(amount, other)| *amount = *amount - *other);
}

/// Keeps the larger amount of each column.
pub(crate) fn raise(row: &mut [Quantity], other: &[Quantity]) {
    row.iter_mut().zip(other).for_each(|(amount, other)| *amount = (*amount).max(*other));
}
