//! Where may a pod go because of other pods? Spread, affinity and anti-affinity.
//!
//! `groups` says which constraints are one, `domains` what pods are spread over, `node_filter` which nodes count, `counts` how many
//! pods are where. `valid` says which domains a constraint allows, `choice` which of them is taken on a node.
//!
//! Counts decide which domains are asked for, never what the answer to that is. So everything that was refused for its labels,
//! size or price stays refused however pods are counted.

mod bound;
mod build;
mod choice;
mod counts;
mod domains;
mod groups;
mod node_filter;
mod selection;
mod valid;

pub(crate) use build::{Build, Topology, World};
pub(crate) use choice::{Allowed, Choices, Picked, combined, of_key};
pub(crate) use counts::{Counts, Spot};
pub(crate) use domains::{Key, Provider};
pub(crate) use groups::{Group, Kind, View};
pub(crate) use node_filter::{Meanings, NodeFilter, Unsaid};
pub(crate) use selection::{Relevant, counts};
pub(crate) use valid::{Valid, valid};
