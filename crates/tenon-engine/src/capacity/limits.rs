//! What is left of what a pool may have?

use tenon_model::{Pool, Quantity, Resources};

use crate::base::Template;
use crate::index::{Bits, SlotIx};
use crate::instance_types::CatalogIndex;

/// The key of a limit that counts nodes.
const NODES: &str = "nodes";

/// What the limits of a pool still allow.
#[derive(Debug, Clone)]
pub(crate) struct Allowance {
    left: Resources,
    /// What that leaves of the catalogue for one more node, once it was asked.
    affordable: Option<Result<Bits<SlotIx>, String>>,
}

impl Allowance {
    pub(crate) fn of(pool: &Pool) -> Allowance {
        let left = pool.limits.iter().map(|(name, limit)| (name, limit - pool.used.get(name))).collect();
        Allowance { left, affordable: None }
    }

    /// What the limits leave of the catalogue for one more node, or which limit leaves nothing.
    pub(crate) fn affordable(&mut self, template: &Template, catalog: &CatalogIndex) -> &Result<Bits<SlotIx>, String> {
        let Allowance { left, affordable } = self;
        affordable.get_or_insert_with(|| within(left, template, catalog))
    }

    /// Counts a new node against the limits: as the largest it may still become.
    pub(crate) fn charge(&mut self, catalog: &CatalogIndex, slots: &Bits<SlotIx>) {
        if self.left.iter().next().is_none() {
            return;
        }
        let sizes: Vec<&Resources> = slots.iter().map(|slot| &catalog.size_of(slot).capacity).collect();
        let left = |(name, left): (&str, Quantity)| {
            let most = match name {
                NODES => Quantity::whole(1),
                _ => sizes.iter().map(|capacity| capacity.get(name)).max().unwrap_or_default(),
            };
            (name.to_owned(), left - most)
        };
        self.left = self.left.iter().map(left).collect();
        self.affordable = None;
    }

    /// Whether nothing is limited, so that every new node finds the same.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.left.iter().next().is_none()
    }
}

fn within(left: &Resources, template: &Template, catalog: &CatalogIndex) -> Result<Bits<SlotIx>, String> {
    if left.names(NODES) && left.get(NODES) < Quantity::whole(1) {
        return Err(NODES.to_owned());
    }
    let (mut slots, mut exceeded) = (template.slots.clone(), None);
    for slot in template.slots.iter() {
        let capacity = &catalog.size_of(slot).capacity;
        let passed = left.iter().find(|(name, left)| *name != NODES && capacity.get(name) > *left);
        if let Some((name, _)) = passed {
            slots.remove(slot);
            exceeded = exceeded.or_else(|| Some(name.to_owned()));
        }
    }
    if slots.is_empty() { Err(exceeded.unwrap_or_default()) } else { Ok(slots) }
}
