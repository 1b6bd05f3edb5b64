//! A catalogue, indexed: what can be said of it whatever the plan.

use std::sync::Arc;

use tenon_model::{Catalog, Offering, Resources, Snapshot};

use crate::bits::Bits;
use crate::bug::found;
use crate::hosts::Footprint;
use crate::label_index::LabelIndex;

/// A catalogue, indexed. Offerings are counted through all sizes.
pub(crate) struct CatalogIndex {
    /// Every size once for each amount that its offerings leave to pods.
    pub(crate) groups: Vec<Group>,
    /// Every offering of every size.
    pub(crate) offerings: Vec<Listed>,
    /// Offerings that nothing is wrong with, the cheapest first.
    pub(crate) by_price: Vec<usize>,
    /// Whether some offering is limited by the room on a host.
    pub(crate) has_places: bool,
    /// Whether some offering was set aside beforehand.
    pub(crate) has_reserved: bool,
    /// Offerings that nothing is wrong with.
    pub(crate) available: Bits,
    /// What is true of the sizes.
    pub(crate) types: LabelIndex,
    /// What is true of the offerings.
    pub(crate) ways: LabelIndex,
}

/// A size with what some of its offerings leave to pods.
pub(crate) struct Group {
    /// The size, by its position in the catalogue.
    pub(crate) size: usize,
    pub(crate) allocatable: Resources,
    /// Whether more is kept back of some resource than there is, so that nothing fits.
    pub(crate) is_overdrawn: bool,
    pub(crate) offerings: Bits,
}

/// An offering, and what it belongs to.
pub(crate) struct Listed {
    pub(crate) size: usize,
    /// The group it belongs to; none if it is not available.
    pub(crate) group: Option<usize>,
    /// What it takes from its host.
    pub(crate) footprint: Footprint,
}

impl CatalogIndex {
    fn new(catalog: &Catalog) -> CatalogIndex {
        let (mut groups, mut offerings): (Vec<Group>, Vec<Listed>) = (Vec::new(), Vec::new());
        for (size, offered) in catalog.types().iter().enumerate() {
            let first = offerings.len();
            offerings.extend(offered.offerings.iter().map(|way| {
                let footprint = Footprint::of(&offered.capacity_with(&way.overrides));
                Listed { size, group: None, footprint }
            }));
            for group in offered.allocatable_groups() {
                let mut members = Bits::default();
                for index in group.offerings.iter().map(|index| first + index) {
                    members.insert(index);
                    if let Some(offering) = found(offerings.get_mut(index), "the offering") {
                        offering.group = Some(groups.len());
                    }
                }
                let is_overdrawn = group.allocatable.iter().any(|(_, amount)| amount.is_negative());
                groups.push(Group { size, allocatable: group.allocatable, is_overdrawn, offerings: members });
            }
        }
        let ways: Vec<&Offering> = ways(catalog).collect();
        let sizes = offerings.iter().map(|listed| listed.size);
        let available = ways.iter().zip(sizes).enumerate().filter(|(_, (way, _))| way.available);
        let mut by_price: Vec<(usize, (&&Offering, usize))> = available.collect();
        by_price.sort_by_key(|(number, (way, size))| (way.price, *size, *number));
        CatalogIndex {
            groups,
            offerings,
            by_price: by_price.into_iter().map(|(number, _)| number).collect(),
            has_places: ways.iter().any(|way| way.place.is_some()),
            has_reserved: ways.iter().any(|way| way.is_reserved()),
            available: Bits::those(ways.len(), |number| ways.get(number).is_some_and(|way| way.available)),
            types: LabelIndex::new(catalog.types().iter().map(|offered| &offered.requirements)),
            ways: LabelIndex::new(ways.iter().map(|way| &way.requirements)),
        }
    }
}

/// Every offering of every size.
pub(crate) fn ways(catalog: &Catalog) -> impl Iterator<Item = &Offering> {
    catalog.types().iter().flat_map(|offered| &offered.offerings)
}

/// The catalogues of the last plan, indexed. One that is still the same is not read again.
#[derive(Default)]
pub struct Indexes {
    known: Vec<(Arc<Catalog>, CatalogIndex)>,
}

impl Indexes {
    /// The catalogues of a snapshot, those that were known before as they are.
    pub(crate) fn cover(&mut self, snapshot: &Snapshot) {
        let is_used = |known: &Arc<Catalog>| snapshot.pools.iter().any(|pool| Arc::ptr_eq(&pool.catalog, known));
        self.known.retain(|(known, _)| is_used(known));
        for catalog in snapshot.pools.iter().map(|pool| &pool.catalog) {
            if self.position(catalog).is_none() {
                self.known.push((catalog.clone(), CatalogIndex::new(catalog)));
            }
        }
    }

    /// Every catalogue with its index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Catalog, &CatalogIndex)> {
        self.known.iter().map(|(catalog, index)| (catalog.as_ref(), index))
    }

    /// Which of them a catalogue is.
    pub(crate) fn position(&self, catalog: &Arc<Catalog>) -> Option<usize> {
        self.known.iter().position(|(known, _)| Arc::ptr_eq(known, catalog))
    }
}

impl std::fmt::Debug for Indexes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "indexes of {} catalogues", self.known.len())
    }
}

#[cfg(test)]
mod tests {
    use tenon_model::Pool;

    use super::*;

    #[test]
    fn a_catalogue_is_indexed_once_however_many_pools_and_plans_use_it() {
        let pool = |catalog: &Arc<Catalog>| Arc::new(Pool { catalog: catalog.clone(), ..Pool::default() });
        let (first, second) = (Arc::new(Catalog::default()), Arc::new(Catalog::default()));
        let mut indexes = Indexes::default();
        indexes.cover(&Snapshot { pools: vec![pool(&first), pool(&first)], ..Snapshot::default() });
        assert_eq!(indexes.known.len(), 1);
        indexes.cover(&Snapshot { pools: vec![pool(&second), pool(&first)], ..Snapshot::default() });
        assert_eq!((indexes.position(&first), indexes.position(&second)), (Some(0), Some(1)), "the first was kept");
        indexes.cover(&Snapshot { pools: vec![pool(&second)], ..Snapshot::default() });
        assert!(indexes.position(&first).is_none(), "what no pool is made of is not kept");
    }
}
