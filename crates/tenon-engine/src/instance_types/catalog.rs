//! What is offered? A catalogue, indexed: what can be said of it whatever the plan.

use std::sync::Arc;

use tenon_model::resources::{CPU, MEMORY};
use tenon_model::{Catalog, CatalogType, Offering, Quantity, Requirements, Resources, Shortage};

use crate::index::{Bits, Id, LabelIndex, OfferingIx, SlotIx, Table, TypeIx};

/// A catalogue, indexed.
#[derive(Debug)]
pub(crate) struct CatalogIndex {
    pub(crate) catalog: Arc<Catalog>,
    /// Every size once for each amount that its offerings leave to pods.
    pub(crate) slots: Table<SlotIx, Slot>,
    /// Every available offering of every size, the cheapest first; of equal ones by size.
    pub(crate) offerings: Table<OfferingIx, Offered>,
    /// Whether some offering is limited by the room on a host.
    pub(crate) has_places: bool,
    /// Whether some offering was set aside beforehand.
    pub(crate) has_reserved: bool,
    /// What is true of the sizes.
    types: LabelIndex<TypeIx>,
    /// What is true of the offerings.
    ways: LabelIndex<OfferingIx>,
}

/// A size with what some of its offerings leave to pods.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) type_ix: TypeIx,
    pub(crate) allocatable: Resources,
    /// Whether more is kept back of some resource than there is, so that nothing fits.
    pub(crate) is_overdrawn: bool,
    offerings: Vec<OfferingIx>,
}

/// An offering, and what it belongs to.
#[derive(Debug)]
pub(crate) struct Offered {
    pub(crate) type_ix: TypeIx,
    /// Its position among the offerings of the size.
    way: usize,
    pub(crate) slot: SlotIx,
    /// What it takes from its host.
    pub(crate) footprint: Footprint,
}

/// What demands leave of a catalogue.
pub(crate) type Left = (Bits<SlotIx>, Bits<OfferingIx>);

/// Demands, and what they left.
#[derive(Clone, Copy)]
pub(crate) struct Before<'s> {
    pub(crate) requirements: &'s Requirements,
    pub(crate) slots: &'s Bits<SlotIx>,
    pub(crate) offerings: &'s Bits<OfferingIx>,
}

/// What a VM takes from its host. Disks are the storage's concern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footprint {
    pub(crate) cpu: Quantity,
    pub(crate) memory: Quantity,
}

impl Footprint {
    pub(crate) fn of(capacity: &Resources) -> Footprint {
        Footprint { cpu: capacity.get(CPU), memory: capacity.get(MEMORY) }
    }

    pub(crate) fn within(self, free: Footprint) -> bool {
        self.cpu <= free.cpu && self.memory <= free.memory
    }

    pub(crate) fn plus(self, other: Footprint) -> Footprint {
        Footprint { cpu: self.cpu + other.cpu, memory: self.memory + other.memory }
    }

    pub(crate) fn minus(self, other: Footprint) -> Footprint {
        Footprint { cpu: self.cpu - other.cpu, memory: self.memory - other.memory }
    }

    pub(crate) fn shortage_in(self, free: Footprint) -> Option<Shortage> {
        let short = [(CPU, self.cpu, free.cpu), (MEMORY, self.memory, free.memory)];
        let is_short = |(_, wanted, available): &(&str, Quantity, Quantity)| wanted > available;
        short.into_iter().find(is_short).map(|(resource, wanted, available)| {
            let resource = resource.to_owned();
            Shortage { resource, wanted, available }
        })
    }
}

impl Slot {
    fn is_offered(&self, offerings: &Bits<OfferingIx>) -> bool {
        self.offerings.iter().any(|offering| offerings.has(*offering))
    }
}

impl CatalogIndex {
    pub(crate) fn new(catalog: &Arc<Catalog>) -> CatalogIndex {
        let mut slots: Table<SlotIx, Slot> = Table::default();
        let mut listed: Vec<(usize, &Offering, Offered)> = Vec::new();
        let types = catalog.types();
        for (position, size) in types.iter().enumerate() {
            let type_ix = TypeIx::of(position);
            for group in size.allocatable_groups() {
                let is_overdrawn = group.allocatable.iter().any(|(_, amount)| amount.is_negative());
                let offerings = Vec::new();
                let slot = slots.push(Slot { type_ix, allocatable: group.allocatable, is_overdrawn, offerings });
                for way in group.offerings {
                    let Some(offering) = size.offerings.get(way) else { continue };
                    let footprint = Footprint::of(&size.capacity_with(&offering.overrides));
                    listed.push((position, offering, Offered { type_ix, way, slot, footprint }));
                }
            }
        }
        listed.sort_by_key(|(size, offering, offered)| (offering.price, *size, offered.way));
        let ways = LabelIndex::new(listed.iter().map(|(_, offering, _)| &offering.requirements));
        let offerings: Table<OfferingIx, Offered> = listed.into_iter().map(|(_, _, offered)| offered).collect();
        for (number, offered) in offerings.pairs() {
            slots[offered.slot].offerings.push(number);
        }
        let every = || types.iter().flat_map(|size| &size.offerings);
        CatalogIndex {
            slots,
            has_places: every().any(|way| way.place.is_some()),
            has_reserved: every().any(Offering::is_reserved),
            types: LabelIndex::new(types.iter().map(|size| &size.requirements)),
            ways,
            offerings,
            catalog: catalog.clone(),
        }
    }

    /// A size.
    pub(crate) fn size(&self, type_ix: TypeIx) -> &CatalogType {
        &self.catalog.types()[type_ix.position()]
    }

    /// The size of a slot.
    pub(crate) fn size_of(&self, slot: SlotIx) -> &CatalogType {
        self.size(self.slots[slot].type_ix)
    }

    /// An offering as it was written.
    pub(crate) fn way(&self, offering: OfferingIx) -> &Offering {
        let Offered { type_ix, way, .. } = self.offerings[offering];
        &self.size(type_ix).offerings[way]
    }

    /// Sizes whose labels share values with these demands.
    pub(crate) fn types_suiting(&self, requirements: &Requirements) -> Bits<TypeIx> {
        self.types.intersecting(requirements)
    }

    /// What demands leave: slots whose size suits, with an offering that does, and these offerings.
    pub(crate) fn left_by(&self, requirements: &Requirements) -> Left {
        let offerings = self.ways.intersecting(requirements);
        let types = self.types.intersecting(requirements);
        let suits = |slot: &Slot| types.has(slot.type_ix) && slot.is_offered(&offerings);
        let slots = Bits::those(self.slots.len(), |slot| suits(&self.slots[slot]));
        (slots, offerings)
    }

    /// The same for more demands, found from what those before left; nothing where it cannot be told from that. Where both
    /// speak of a label, only one value of it for each size and offering makes sure that less is left, and just that.
    pub(crate) fn left_by_more(&self, before: Before<'_>, wanted: &Requirements) -> Option<Left> {
        let is_single = |label: &str| self.types.is_single(label) && self.ways.is_single(label);
        if !wanted.iter().all(|(label, _)| before.requirements.get(label).is_none() || is_single(label)) {
            return None;
        }
        let (types, mut offerings) = (self.types.intersecting(wanted), self.ways.intersecting(wanted));
        offerings.keep(before.offerings);
        let suits = |slot: &Slot| types.has(slot.type_ix) && slot.is_offered(&offerings);
        let mut slots = Bits::none(self.slots.len());
        before.slots.iter().filter(|slot| suits(&self.slots[*slot])).for_each(|slot| slots.insert(slot));
        Some((slots, offerings))
    }

    /// Whether an offering of a slot is among these.
    pub(crate) fn slot_meets(&self, slot: SlotIx, offerings: &Bits<OfferingIx>) -> bool {
        self.slots[slot].is_offered(offerings)
    }
}
