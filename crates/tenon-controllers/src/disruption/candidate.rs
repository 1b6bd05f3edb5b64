//! Nodes as the rules for empty ones see them, from the caches, and once more from the API server before one is deleted.

use std::collections::BTreeMap;
use std::sync::Arc;
use tenon_api::kube_objects::{Node, Pod};

use kube::ResourceExt;
use tenon_api::{CandidateObjects, NodeClaim, NodePool, disruption_pool};
use tenon_engine::disruption::{DisruptionBlocked, EmptinessInput, validate_emptiness};
use tenon_model::CandidateNode;

use super::gather::model_time;
use crate::claim::{ClaimError, pods_on};
use crate::context::{Context, is_ours};
use crate::provision::record_of;

/// What the caches show.
pub(super) struct Shown {
    pub(super) claims: Vec<Arc<NodeClaim>>,
    pub(super) pools: Vec<Arc<NodePool>>,
    pub(super) nodes: BTreeMap<String, Arc<Node>>,
    /// By the name of the Node they are bound to.
    pods: BTreeMap<Arc<str>, Vec<Arc<Pod>>>,
}

/// Whether the VM of a claim can be destroyed: nobody could in a region that was taken out of the cloud config.
pub(super) fn is_reachable(context: &Context, claim: &NodeClaim) -> bool {
    record_of(claim).is_none_or(|record| context.regions.names().contains(&record.place.region))
}

impl Shown {
    /// Reads the caches.
    pub(super) fn read(context: &Context) -> Shown {
        let watched = &context.watched;
        let mut pods: BTreeMap<Arc<str>, Vec<Arc<Pod>>> = BTreeMap::new();
        for pod in watched.pods.state() {
            if let Some(node) = pod.node_name.clone() {
                pods.entry(node).or_default().push(pod);
            }
        }
        let mut claims = context.memory.with_fresh(watched.claims.state());
        claims.retain(|claim| is_ours(claim) && is_reachable(context, claim));
        claims.sort_by_key(|claim| claim.name_any());
        let nodes = watched.nodes.state().into_iter().map(|node| (node.name_any(), node)).collect();
        Shown { claims, pools: watched.pools.state(), nodes, pods }
    }

    /// The claim of this name.
    pub(super) fn claim(&self, name: &str) -> Option<&Arc<NodeClaim>> {
        self.claims.iter().find(|claim| claim.metadata.name.as_deref() == Some(name))
    }

    /// All of it for the engine.
    pub(super) fn emptiness_input(&self, context: &Context, now: jiff::Timestamp) -> EmptinessInput {
        let no_pods = Vec::new();
        let nodes = self.claims.iter().map(|claim| {
            let name = claim.name_any();
            let pods = self.pods.get(name.as_str()).unwrap_or(&no_pods);
            candidate(context, &ClaimWithPods { claim, node: self.nodes.get(&name), pods }, now)
        });
        EmptinessInput {
            now: model_time(now),
            pools: self.pools.iter().map(|pool| disruption_pool(pool)).collect(),
            nodes: nodes.collect(),
        }
    }
}

/// A claim with its Node and the pods on it.
struct ClaimWithPods<'a> {
    claim: &'a NodeClaim,
    node: Option<&'a Arc<Node>>,
    pods: &'a [Arc<Pod>],
}

fn candidate(context: &Context, seen: &ClaimWithPods<'_>, now: jiff::Timestamp) -> CandidateNode {
    let claim = seen.claim;
    let objects = CandidateObjects {
        claim,
        node: seen.node.map(AsRef::as_ref),
        pods: seen.pods.iter().map(AsRef::as_ref).collect(),
        is_nominated: context.memory.is_nominated(&claim.name_any(), now),
        gates: context.settings.planning.feature_gates,
    };
    objects.to_model(model_time(now))
}

/// Whether a node that was marked is still empty, with its pods as the API server has them: one may have been bound just before
/// the mark.
pub(super) async fn is_still_empty(
    context: &Context,
    claim: &NodeClaim,
    node: Option<&Arc<Node>>,
) -> Result<Result<(), DisruptionBlocked>, ClaimError> {
    let pods = match node {
        Some(node) => pods_on(context, node).await?,
        None => Vec::new(),
    };
    let now = context.clock.now();
    let candidate = candidate(context, &ClaimWithPods { claim, node, pods: &pods }, now);
    let pools: Vec<_> = context.watched.pools.state().iter().map(|pool| disruption_pool(pool)).collect();
    Ok(validate_emptiness(&candidate, &pools, model_time(now)).map(drop))
}
