//! How things are numbered, which of them are meant, and whether one is known already.

mod bitset;
mod ids;
mod interner;
mod labels;

pub(crate) use bitset::Bits;
pub(crate) use ids::{
    AskIx, CatalogIx, ChoiceIx, DemandIx, DomainIx, DriverIx, FilterIx, GroupIx, HostIx, Id, KeyIx, NodeIx, OfferingIx,
    OpenIx, PodClassIx, PodCountIx, PodIx, SlotIx, StateIx, Table, TemplateIx, TolerationsIx, TypeIx, TypeListIx,
    ViewIx, VolumeIx,
};
pub(crate) use interner::{Interner, NumberMap, fixed_hash};
pub(crate) use labels::LabelIndex;
