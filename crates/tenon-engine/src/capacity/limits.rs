//! What is left of what a pool may have?
//!
//! Sizes are ordered by how much they count as once for each limit, so that neither the largest that a node may become nor
//! those that are too large now have to be looked for among all.

use tenon_model::{Pool, Quantity, Resources};

use crate::index::{Bits, SlotIx};
use crate::instance_types::CatalogIndex;

/// The key of a limit that counts nodes.
const NODES: &str = "nodes";

/// The limits of a pool, by name of the resource.
#[derive(Debug)]
pub(crate) struct Limits {
    /// The slots that its nodes may be made from.
    slots: Bits<SlotIx>,
    limits: Vec<Limit>,
}

#[derive(Debug)]
struct Limit {
    resource: String,
    /// What is left of it before anything is planned.
    left: Quantity,
    /// How much each slot counts as, the largest first. Of nodes, every slot is one.
    sizes: Vec<(Quantity, SlotIx)>,
}

impl Limits {
    pub(crate) fn new(pool: &Pool, catalog: &CatalogIndex, slots: &Bits<SlotIx>) -> Limits {
        let limit = |(resource, limit): (&str, Quantity)| {
            let size = |slot: SlotIx| match resource {
                NODES => Quantity::whole(1),
                _ => catalog.size_of(slot).capacity.get(resource),
            };
            let mut sizes: Vec<(Quantity, SlotIx)> = slots.iter().map(|slot| (size(slot), slot)).collect();
            sizes.sort_by(|(one, _), (other, _)| other.cmp(one));
            Limit { resource: resource.to_owned(), left: limit - pool.used.get(resource), sizes }
        };
        Limits { slots: slots.clone(), limits: pool.limits.iter().map(limit).collect() }
    }
}

impl Limit {
    /// How many slots, from the largest on, are more than is left.
    fn too_large(&self, left: Quantity) -> usize {
        self.sizes.partition_point(|(size, _)| *size > left)
    }
}

/// What the limits of a pool still allow in a plan.
#[derive(Debug)]
pub(crate) struct Allowance<'b> {
    limits: &'b Limits,
    /// What is left of each.
    left: Vec<Quantity>,
    /// How many slots are too large for each.
    too_large: Vec<usize>,
    /// What that leaves for one more node, or which limit leaves nothing.
    affordable: Result<Bits<SlotIx>, &'b str>,
    /// How often what is left became less for one more node.
    pub(crate) changes: u64,
}

impl<'b> Allowance<'b> {
    pub(crate) fn of(limits: &'b Limits) -> Allowance<'b> {
        Allowance::with(limits, &Resources::default())
    }

    /// What they allow once nodes that have so much are gone.
    pub(crate) fn with(limits: &'b Limits, given_back: &Resources) -> Allowance<'b> {
        let left = limits.limits.iter().map(|limit| limit.left + given_back.get(&limit.resource));
        let left: Vec<Quantity> = left.collect();
        let too_large = limits.limits.iter().zip(&left).map(|(limit, left)| limit.too_large(*left));
        let too_large: Vec<usize> = too_large.collect();
        let affordable = limits.affordable(&too_large);
        Allowance { limits, left, too_large, affordable, changes: 0 }
    }

    /// What the limits leave of the catalogue for one more node, or which limit leaves nothing.
    pub(crate) fn affordable(&self) -> Result<&Bits<SlotIx>, &'b str> {
        self.affordable.as_ref().map_err(|limit| *limit)
    }

    /// Counts a new node against the limits: as the largest it may still become.
    pub(crate) fn charge(&mut self, slots: &Bits<SlotIx>) {
        let mut is_less = false;
        for ((limit, left), too_large) in self.limits.limits.iter().zip(&mut self.left).zip(&mut self.too_large) {
            let largest = limit.sizes.iter().find(|(_, slot)| slots.has(*slot));
            *left = *left - largest.map(|(size, _)| *size).unwrap_or_default();
            let before = std::mem::replace(too_large, limit.too_large(*left));
            is_less |= before != *too_large;
        }
        if is_less {
            self.affordable = self.limits.affordable(&self.too_large);
            self.changes += 1;
        }
    }
}

impl Limits {
    /// The slots that are not too large, or the limit that forbids the first of them.
    fn affordable(&self, too_large: &[usize]) -> Result<Bits<SlotIx>, &str> {
        let forbidden = || self.limits.iter().zip(too_large).map(|(limit, count)| (limit, &limit.sizes[..*count]));
        // No node at all is said before anything else.
        if let Some((nodes, _)) = forbidden().find(|(limit, sizes)| limit.resource == NODES && !sizes.is_empty()) {
            return Err(&nodes.resource);
        }
        let mut slots = self.slots.clone();
        forbidden().flat_map(|(_, sizes)| sizes).for_each(|(_, slot)| slots.remove(*slot));
        if !slots.is_empty() {
            return Ok(slots);
        }
        let first_of = |sizes: &[(Quantity, SlotIx)]| sizes.iter().map(|(_, slot)| *slot).min();
        let firsts = forbidden().filter_map(|(limit, sizes)| Some((first_of(sizes)?, limit.resource.as_str())));
        Err(firsts.min().map(|(_, resource)| resource).unwrap_or_default())
    }
}
