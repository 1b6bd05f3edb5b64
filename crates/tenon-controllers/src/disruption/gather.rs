//! What does the decision about disruption rest on? NodeClaims, Nodes, pods and NodePools, from the caches.

use std::collections::BTreeMap;
use std::sync::Arc;
use tenon_api::kube_objects::{Node, Pod};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use tenon_api::{CandidateObjects, NodeClaim, NodePool, disruption_pool, timestamp};
use tenon_engine::disruption::EmptinessInput;
use tenon_model::{CandidateNode, DisruptionPool, Timestamp};

use crate::context::{Context, is_ours};
use crate::provision::record_of;

/// The time as the engine counts it.
pub(crate) fn model_time(now: jiff::Timestamp) -> Timestamp {
    timestamp(&Time(now))
}

/// Everything the decision rests on.
pub(super) struct Gathered {
    pub(super) claims: Vec<Arc<NodeClaim>>,
    pub(super) pools: Vec<Arc<NodePool>>,
    pub(super) nodes: BTreeMap<String, Arc<Node>>,
    /// By the name of the Node they are bound to.
    pods: BTreeMap<Arc<str>, Vec<Arc<Pod>>>,
}

/// Reads the caches.
pub(super) fn gather(context: &Context) -> Gathered {
    let watched = &context.watched;
    let mut pods: BTreeMap<Arc<str>, Vec<Arc<Pod>>> = BTreeMap::new();
    // Nobody could destroy the VM of a node in a region that was taken out of the cloud config: such a node stays.
    let known = context.regions.names();
    let is_reachable = |claim: &NodeClaim| record_of(claim).is_none_or(|record| known.contains(&record.place.region));
    let claims: Vec<_> =
        watched.claims.state().into_iter().filter(|claim| is_ours(claim) && is_reachable(claim)).collect();
    let nodes = watched.nodes.state().into_iter().map(|node| (node.name_any(), node)).collect();
    for pod in watched.pods.state() {
        if let Some(node) = pod.node_name.clone() {
            pods.entry(node).or_default().push(pod);
        }
    }
    Gathered { claims, pools: watched.pools.state(), nodes, pods }
}

impl Gathered {
    /// The claim of this name.
    pub(super) fn claim(&self, name: &str) -> Option<&Arc<NodeClaim>> {
        self.claims.iter().find(|claim| claim.metadata.name.as_deref() == Some(name))
    }

    /// All of it for the engine.
    pub(super) fn emptiness_input(&self, context: &Context, now: jiff::Timestamp) -> EmptinessInput {
        let no_pods = Vec::new();
        let candidate = |claim: &Arc<NodeClaim>| {
            let pods = self.pods.get(claim.name_any().as_str()).unwrap_or(&no_pods);
            self.candidate(context, claim, pods, now)
        };
        EmptinessInput {
            now: model_time(now),
            pools: self.disruption_pools(),
            nodes: self.claims.iter().map(candidate).collect(),
        }
    }

    /// The NodePools for the engine.
    pub(super) fn disruption_pools(&self) -> Vec<DisruptionPool> {
        self.pools.iter().map(|pool| disruption_pool(pool)).collect()
    }

    /// One claim for the engine, with these pods on its Node.
    pub(super) fn candidate(
        &self,
        context: &Context,
        claim: &NodeClaim,
        pods: &[Arc<Pod>],
        now: jiff::Timestamp,
    ) -> CandidateNode {
        let name = claim.name_any();
        let objects = CandidateObjects {
            claim,
            node: self.nodes.get(&name).map(AsRef::as_ref),
            pods: pods.iter().map(AsRef::as_ref).collect(),
            is_nominated: context.memory.is_nominated(&name, now),
            gates: context.settings.planning.feature_gates,
        };
        objects.to_model(model_time(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_counts_time_as_the_clock_does() {
        for text in ["2026-03-11T10:10:01Z", "2026-03-11T10:10:01.000000001Z", "1969-12-31T23:59:59.5Z"] {
            let now: jiff::Timestamp = text.parse().unwrap();
            assert_eq!(
                (model_time(now).as_nanos(), model_time(now).to_string()),
                (now.as_nanosecond(), text.to_owned())
            );
        }
        assert_eq!(model_time(jiff::Timestamp::MAX), Timestamp::MAX, "spans are cut where the clock ends");
    }
}
