//! What a node counts as when nodes are compared.

use std::cmp::Ordering;
use std::fmt;

/// A price in whatever unit the list of sizes uses. Totally ordered, so that sorting by it always ends the same way.
#[derive(Debug, Clone, Copy, Default)]
pub struct Price(f64);

impl Price {
    /// Nothing.
    pub const FREE: Price = Price(0.0);
    /// More than anything that can be had: what cannot be had now sorts last.
    pub const OUT_OF_REACH: Price = Price(f64::INFINITY);

    /// A price.
    pub fn new(amount: f64) -> Price {
        Price(amount)
    }

    /// The bare number.
    pub fn value(self) -> f64 {
        self.0
    }
}

impl PartialEq for Price {
    fn eq(&self, other: &Price) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Price {}

impl PartialOrd for Price {
    fn partial_cmp(&self, other: &Price) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Price {
    fn cmp(&self, other: &Price) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
