//! What NodeOverlays make of a catalogue: another price of some offerings, more resources of some sizes.
//!
//! Read in this order: `price_change` (what a text does to a price), `matching` (what an overlay speaks of), `conflicts` (which
//! overlays apply), `changes` (what becomes of a catalogue).

mod changes;
mod conflicts;
mod matching;
mod price_change;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use crate::catalog::Catalog;
use crate::requirements::Requirements;
use crate::resources::Resources;

pub use changes::CatalogChanges;
pub use conflicts::{Contested, OverlayConflict, OverlaySet};
pub use price_change::{PriceChange, PriceChangeError};

/// What somebody says of some sizes besides what their provider says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overlay {
    /// Its name.
    pub name: String,
    /// Higher is applied first; of equal ones the last by name.
    pub weight: i32,
    /// Which sizes and offerings it speaks of.
    pub requirements: Requirements,
    /// What it does to their prices.
    pub price: Option<PriceChange>,
    /// What their nodes have besides.
    pub capacity: Resources,
}

/// A pool as overlays see it.
#[derive(Debug, Clone)]
pub struct OverlaidPool<'a> {
    /// Its name.
    pub name: &'a str,
    /// The labels that its template gives to nodes.
    pub labels: Requirements,
    /// What its nodes are made of.
    pub catalog: &'a Catalog,
}

impl Overlay {
    /// What overlays are put in order by.
    fn order(&self) -> (Reverse<i32>, Reverse<&str>) {
        (Reverse(self.weight), Reverse(&self.name))
    }
}
