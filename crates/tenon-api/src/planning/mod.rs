//! Kubernetes objects as the engine sees them together: one [`Snapshot`], whether they come from files or from a cluster.

mod attach_limits;
mod budgets;
mod catalog;
mod conversion;
mod daemons;
mod default_spread;
mod disruption_inputs;
mod follower;
mod namespaces;
mod nodes;
mod overlays;
mod pod_holds;
mod pod_shapes;
mod pods;
mod pool_totals;
mod pools;
mod spread_sources;
mod version_cache;
mod volumes;

use crate::kube_objects::Node;
use std::sync::Arc;

use tenon_model::{Catalog, Options, ReservedMode, Resources, Seconds, Snapshot};

use crate::objects::{Kind, Objects};
use crate::plan_options::PlanOptions;
use crate::{NodeClaim, NodePool};

pub use crate::pod_predicates::{is_provisionable, is_terminal};
pub use catalog::catalog;
pub use disruption_inputs::disruption_inputs;
pub use follower::Follower;
pub use overlays::{EvaluatedOverlays, OverlaidCatalogs, OverlayFault};
pub use pool_totals::pool_totals;

/// What whoever gathers the objects knows besides.
pub trait Surroundings {
    /// What nodes of a pool are made of. The same one again means that nothing about it changed.
    fn catalog(&self, pool: &NodePool) -> Arc<Catalog>;
    /// Why a pool cannot be used, if it cannot.
    fn not_ready(&self, pool: &NodePool) -> Option<String>;
    /// What the machines of a pool are launched from, besides the pool: another text means that something about it changed.
    fn launched_from(&self, _pool: &NodePool) -> String {
        String::new()
    }
    /// What a claim's node has and leaves to pods, while the claim itself does not say so yet.
    fn expected(&self, claim: &NodeClaim) -> Option<(Resources, Resources)>;
    /// Why the objects of a kind are not known, if nobody may read them: a sentence with the next step. What depends on them
    /// waits.
    fn unreadable(&self, _kind: Kind) -> Option<String> {
        None
    }
    /// Whether nothing new goes to a node, although none of its taints says so yet.
    fn is_fenced(&self, _node: &Node) -> bool {
        false
    }
}

/// Everything as the engine sees it, looked at once. Hosts are the business of whoever knows some.
pub fn to_snapshot(objects: &Objects, around: &dyn Surroundings, options: &PlanOptions, now: Seconds) -> Snapshot {
    Follower::default().look(objects, around, options, now)
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
