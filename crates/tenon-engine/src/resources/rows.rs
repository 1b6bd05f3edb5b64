//! How much? Amounts in the order of the columns.

use std::marker::PhantomData;

use crate::index::Id;

/// Amounts in the order of the columns.
pub(crate) type Row = Vec<i64>;

/// Whether what is asked for is there. Where less than nothing is left, nothing fits, not even nothing.
pub(crate) fn fits(asked: &[i64], room: &[i64]) -> bool {
    asked.iter().zip(room).all(|(asked, room)| asked <= room)
}

/// Adds a row to another.
pub(crate) fn add(row: &mut [i64], other: &[i64]) {
    row.iter_mut().zip(other).for_each(|(amount, other)| *amount = amount.saturating_add(*other));
}

/// Takes a row from another.
pub(crate) fn take(row: &mut [i64], other: &[i64]) {
    row.iter_mut().zip(other).for_each(|(amount, other)| *amount = amount.saturating_sub(*other));
}

/// Keeps the larger amount of each column.
pub(crate) fn raise(row: &mut [i64], other: &[i64]) {
    row.iter_mut().zip(other).for_each(|(amount, other)| *amount = (*amount).max(*other));
}

/// Many rows, one behind the other.
#[derive(Debug, Clone)]
pub(crate) struct Rows<I> {
    width: usize,
    amounts: Vec<i64>,
    of: PhantomData<I>,
}

impl<I> Default for Rows<I> {
    fn default() -> Rows<I> {
        Rows { width: 0, amounts: Vec::new(), of: PhantomData }
    }
}

impl<I: Id> Rows<I> {
    /// Room for rows of this width.
    pub(crate) fn new(width: usize) -> Rows<I> {
        Rows { width, amounts: Vec::new(), of: PhantomData }
    }

    /// Puts a row behind the others.
    pub(crate) fn push(&mut self, row: &[i64]) {
        self.amounts.extend(row.iter().take(self.width));
    }

    /// A row.
    pub(crate) fn row(&self, id: I) -> &[i64] {
        let start = id.position() * self.width;
        &self.amounts[start..start + self.width]
    }

    /// A row, to be changed.
    pub(crate) fn row_mut(&mut self, id: I) -> &mut [i64] {
        let start = id.position() * self.width;
        &mut self.amounts[start..start + self.width]
    }
}
