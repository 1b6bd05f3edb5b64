//! How things are numbered, which of them are meant, and whether one is known already.

mod bitset;
mod ids;
mod interner;
mod labels;

pub(crate) use bitset::Bits;
pub(crate) use ids::{
    AskIx, CatalogIx, DemandIx, HostIx, Id, NodeIx, OfferingIx, OpenIx, PodClassIx, PodCountIx, PodIx, SlotIx, StateIx,
    Table, TemplateIx, TolerationsIx, TypeIx, TypeListIx,
};
pub(crate) use interner::{Interner, NumberMap, fixed_hash};
pub(crate) use labels::LabelIndex;
