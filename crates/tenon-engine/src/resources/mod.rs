//! How much of what, as rows of whole numbers, and which slots hold it.

mod columns;
mod fit;
mod rows;

pub(crate) use columns::Columns;
pub(crate) use fit::FitIndex;
pub(crate) use rows::{Row, Rows, add, fits, raise, take};
