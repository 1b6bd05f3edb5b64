//! What can be read off the stores: gauges of pods, nodes, NodePools, conditions, instance types and hosts.
//!
//! Nothing is remembered: what is gone from a store is gone from the next answer.

mod conditions;
mod hosts;
mod instance_types;
mod nodes;
mod pods;
mod pools;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use tenon_api::kube_objects::{Node, Pod};
use tenon_api::{NodeClaim, NodePool};
use tenon_model::resources::CPU;
use tenon_model::{InstanceType, Quantity, Resources};

use super::catalogue::karpenter;
use super::exposition::Exposition;
use crate::context::{Context, is_ours};

/// What gauges are read off.
pub(super) struct Cluster {
    pub(super) now: Timestamp,
    pub(super) nodes: Vec<Arc<Node>>,
    pub(super) pods: Vec<Arc<Pod>>,
    pub(super) claims: Vec<Arc<NodeClaim>>,
    pub(super) pools: Vec<Arc<NodePool>>,
    pub(super) types: Vec<InstanceType>,
}

impl Cluster {
    fn read(context: &Context) -> Cluster {
        let watched = &context.watched;
        let mut nodes = watched.nodes.state();
        nodes.sort_by_key(|node| node.name_any());
        let mut pools = watched.pools.state();
        pools.sort_by_key(|pool| pool.name_any());
        let mut claims = watched.claims.state_filter(is_ours);
        claims.sort_by_key(|claim| claim.name_any());
        let (now, types) = (context.clock.now(), context.settings.types.clone());
        Cluster { now, nodes, pods: watched.pods.state(), claims, pools, types }
    }

    /// Every node by its name.
    fn nodes_by_name(&self) -> BTreeMap<&str, &Node> {
        self.nodes.iter().filter_map(|node| Some((node.metadata.name.as_deref()?, node.as_ref()))).collect()
    }

    /// Whether a node of this name has a NodeClaim of ours.
    fn is_managed(&self, name: &str) -> bool {
        self.claims.binary_search_by(|claim| claim.metadata.name.as_deref().unwrap_or_default().cmp(name)).is_ok()
    }

    /// What of it is of single pods, nodes, NodePools and conditions.
    pub(super) fn show(&self, page: &mut Exposition<'_>) {
        nodes::show(self, page);
        pods::show(self, page);
        pools::show(self, page);
        conditions::show(self, page);
    }
}

/// Writes all of it down.
pub(super) fn show(context: &Context, page: &mut Exposition<'_>) {
    let cluster = Cluster::read(context);
    // Not to be worked out for a page that is without it.
    if page.of(&karpenter::PODS_STATE).is_some() {
        cluster.show(page);
    }
    hosts::show(context, &cluster, page);
    instance_types::show(context, page);
}

impl super::Metrics {
    /// Compares the conditions of all objects with the last look.
    pub(crate) fn look_at_conditions(&self, context: &Context) {
        let cluster = Cluster::read(context);
        self.conditions.look(conditions::objects(&cluster), cluster.now);
    }
}

/// A resource as the reference's labels spell it.
fn resource_label(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

/// Cores, bytes, or whatever the resource is counted in.
fn amount(resource: &str, quantity: Quantity) -> f64 {
    if resource == CPU { quantity.milli_value() as f64 / 1e3 } else { quantity.value() as f64 }
}

/// Every resource as its label and its amount.
fn amounts(resources: &Resources) -> impl Iterator<Item = (String, f64)> {
    resources.iter().map(|(name, quantity)| (resource_label(name), amount(name, quantity)))
}
