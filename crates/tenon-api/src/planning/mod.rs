//! Kubernetes objects as the engine sees them together: one [`Snapshot`], whether they come from files or from a cluster.

mod amounts;
mod budgets;
mod catalog;
mod daemons;
mod nodes;
mod pods;
mod pools;

use std::sync::Arc;

use tenon_model::{Catalog, Options, ReservedMode, Resources, Seconds, Snapshot};

use crate::objects::Objects;
use crate::plan_options::PlanOptions;
use crate::{NodeClaim, NodePool};

pub use catalog::catalog;
pub use pods::{is_provisionable, is_terminal};

/// What whoever gathers the objects knows besides.
pub trait Surroundings {
    /// What nodes of a pool are made of.
    fn catalog(&self, pool: &NodePool) -> Arc<Catalog>;
    /// Why a pool cannot be used, if it cannot.
    fn not_ready(&self, pool: &NodePool) -> Option<String>;
    /// What a claim's node has and leaves to pods, while the claim itself does not say so yet.
    fn expected(&self, claim: &NodeClaim) -> Option<(Resources, Resources)>;
}

/// Everything as the engine sees it. Hosts are the business of whoever knows some.
pub fn to_snapshot(objects: &Objects, around: &dyn Surroundings, options: &PlanOptions, now: Seconds) -> Snapshot {
    let nodes = nodes::nodes(objects, around);
    let (pods, invalid) = pods::waiting(objects, &nodes, options, now);
    Snapshot {
        pools: pools::pools(objects, around, &nodes),
        hosts: Vec::new(),
        repelled: pods::repelled(objects, &nodes),
        nodes: nodes.into_iter().map(Arc::new).collect(),
        pods,
        invalid,
        daemons: daemons::daemons(objects),
        options: options.engine(),
        now,
    }
}

impl PlanOptions {
    /// What the engine needs to know of them.
    pub fn engine(&self) -> Options {
        Options {
            preferences: self.preference_policy,
            min_values: self.min_values_policy,
            reserved: if self.feature_gates.reserved_capacity { ReservedMode::Strict } else { ReservedMode::Off },
            ignore_resource_claims: self.ignore_dra_requests,
            ..Options::default()
        }
    }
}
