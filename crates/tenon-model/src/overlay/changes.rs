//! What becomes of a catalogue? Only what overlays speak of is another; the catalogue they were asked about stays as it is.

use std::collections::BTreeMap;

use super::Overlay;
use crate::catalog::{Catalog, CatalogType, Overlaid};
use crate::price::Price;
use crate::resources::Resources;

/// How the catalogue of a pool differs from the one it was asked about. Equal changes of one catalogue make equal ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogChanges {
    of_size: BTreeMap<String, SizeChange>,
}

/// How a size differs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct SizeChange {
    /// Other prices, by the place of the offering.
    prices: BTreeMap<usize, Price>,
    /// More resources.
    capacity: Resources,
}

impl CatalogChanges {
    /// One more overlay, lower than those before: what they decided stays.
    pub(super) fn add(&mut self, overlay: &Overlay, size: &CatalogType, ways: &[usize]) {
        if overlay.price.is_none() && overlay.capacity.is_empty() {
            return;
        }
        let change = self.of_size.entry(size.name.clone()).or_default();
        for way in ways {
            if let Some(price) = overlay.price {
                change.prices.entry(*way).or_insert_with(|| price.apply(size.offerings[*way].price));
            }
        }
        for (resource, amount) in overlay.capacity.iter() {
            if !change.capacity.names(resource) {
                change.capacity = std::mem::take(&mut change.capacity).with(resource, amount);
            }
        }
    }

    /// Whether nothing is different.
    pub fn is_empty(&self) -> bool {
        self.of_size.is_empty()
    }

    /// The resources that nodes of a size have besides.
    pub fn capacity_of(&self, instance_type: &str) -> Option<&Resources> {
        self.of_size.get(instance_type).map(|change| &change.capacity).filter(|capacity| !capacity.is_empty())
    }

    /// The catalogue with these differences.
    pub fn applied_to(&self, catalog: &Catalog) -> Catalog {
        let changed = |size: &CatalogType| match self.of_size.get(&size.name) {
            Some(change) => change.applied_to(size),
            None => size.clone(),
        };
        Catalog::new(catalog.types().iter().map(changed).collect())
    }
}

impl SizeChange {
    fn applied_to(&self, size: &CatalogType) -> CatalogType {
        let mut size = size.clone();
        for (way, price) in &self.prices {
            if let Some(offering) = size.offerings.get_mut(*way) {
                offering.price = *price;
            }
        }
        size.capacity = self.capacity.iter().fold(size.capacity, |all, (resource, amount)| all.with(resource, amount));
        size.overlaid = Overlaid { price: !self.prices.is_empty(), capacity: !self.capacity.is_empty() };
        size
    }
}
