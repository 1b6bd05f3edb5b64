//! What is offered, what demands leave of it, and in which order of price.

mod catalog;
mod prices;
mod requirement_states;

pub(crate) use catalog::{CatalogIndex, Footprint};
pub(crate) use prices::{PricedTypes, TypeLists};
pub(crate) use requirement_states::{State, States};
