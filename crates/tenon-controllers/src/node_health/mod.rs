//! Deletes broken nodes at once, as Karpenter did before version 1.15 (`--legacy-node-repair`). Which ones is decided by
//! `tenon_engine::disruption::judge_node_health`.
//!
//! `pass` looks at all Nodes, and deletes NodeClaims. `count` counts broken nodes that were repaired, by whichever way.

mod count;
mod pass;
#[cfg(test)]
mod pass_tests;

pub(crate) use count::{Repaired, count_repaired};
pub(crate) use pass::run;
