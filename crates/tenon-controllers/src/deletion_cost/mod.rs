//! Writes `controller.kubernetes.io/pod-deletion-cost` on pods of ReplicaSets, so that scaling down empties the nodes that would be
//! disrupted next. Only with the feature gate PodDeletionCostManagement; without it, removes what was written before.
//!
//! `run` is the loop, `pass` looks at the cluster once (the order is decided by `tenon_engine::disruption`), `queue` has what is to be
//! written, `write` sends one of them.

mod pass;
mod queue;
mod run;
#[cfg(test)]
mod run_tests;
mod write;

pub(crate) use run::run;
