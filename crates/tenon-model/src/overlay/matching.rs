//! Which sizes and offerings of a pool does an overlay speak of?

use super::{OverlaidPool, Overlay};
use crate::catalog::CatalogType;
use crate::labels::NODEPOOL;
use crate::requirement::Requirement;
use crate::requirements::Requirements;

/// A pool, with what is true of its nodes of each size.
pub(super) struct Facts<'a> {
    pub(super) pool: &'a str,
    sizes: Vec<(&'a CatalogType, Requirements)>,
}

/// What an overlay speaks of in a pool: sizes by their place in the catalogue, each with the places of its offerings.
pub(super) type Matches = Vec<(usize, Vec<usize>)>;

impl<'a> Facts<'a> {
    pub(super) fn new(pool: &OverlaidPool<'a>) -> Facts<'a> {
        let of_size = |size: &'a CatalogType| {
            let mut facts = size.requirements.clone();
            facts.add_all(&pool.labels);
            facts.add(NODEPOOL, &Requirement::is(pool.name));
            (size, facts)
        };
        Facts { pool: pool.name, sizes: pool.catalog.types().iter().map(of_size).collect() }
    }

    pub(super) fn size(&self, place: usize) -> Option<&'a CatalogType> {
        self.sizes.get(place).map(|(size, _)| *size)
    }

    /// A size is meant if all that is asked is known to be true of its nodes, and an offering of it suits. What is not known
    /// of a size is not true of it. Whether an offering can be had now says nothing about what it costs.
    pub(super) fn matches(&self, overlay: &Overlay) -> Matches {
        let wanted = &overlay.requirements;
        let meant = self.sizes.iter().enumerate().filter(|(_, (_, facts))| facts.can_meet(wanted, |_| false));
        let with_offerings = meant.map(|(place, (size, _))| {
            let suits = |way: usize| size.offerings[way].requirements.intersects(wanted);
            (place, (0..size.offerings.len()).filter(|way| suits(*way)).collect::<Vec<usize>>())
        });
        with_offerings.filter(|(_, ways)| !ways.is_empty()).collect()
    }
}
