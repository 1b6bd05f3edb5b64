//! What does a pool of fixed size have? Its claims, their nodes and pods, as the engine sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tenon_api::kube_objects::{Node, Pod};

use jiff::Timestamp;
use kube::ResourceExt;
use tenon_api::plan_options::FeatureGates;
use tenon_api::pod_predicates::{eviction_cost, has_do_not_disrupt, is_owned_by_daemon_set, is_terminal};
use tenon_api::{Condition, ConditionStatus, NodeClaim, NodePool, names};
use tenon_engine::static_pool::{Standing, StaticPool};
use tenon_engine::{Sparing, StaticNode, StaticPod, StaticStage, lifetime_remaining};
use tenon_model::Seconds;

use crate::context::{is_our_class, is_ours};
use crate::disruption::{model_time, parse_duration_or_never};
use crate::provision::is_being_emptied;

/// Whether a pool is ours, has a fixed number of nodes, and stays.
pub fn is_static(pool: &NodePool) -> bool {
    let is_ours = is_our_class(&pool.spec.template.spec.node_class_ref);
    is_ours && pool.spec.replicas.is_some() && pool.metadata.deletion_timestamp.is_none()
}

/// What was seen, and when.
#[derive(Debug, Clone, Default)]
pub struct StaticLook {
    /// Claims, of this pool or another.
    pub claims: Vec<Arc<NodeClaim>>,
    /// Nodes.
    pub nodes: Vec<Arc<Node>>,
    /// Pods.
    pub pods: Vec<Arc<Pod>>,
    /// The time.
    pub now: Timestamp,
    /// What an operator switched on.
    pub gates: FeatureGates,
}

impl StaticLook {
    /// What a pool has, as the engine sees it.
    pub fn of(&self, pool: &NodePool) -> StaticPool {
        let is_its = |claim: &&Arc<NodeClaim>| is_ours(claim) && pool_of(claim) == pool.metadata.name.as_deref();
        let index = self.index();
        StaticPool {
            replicas: pool.spec.replicas.map_or(0, at_most),
            limit: pool
                .spec
                .limits
                .as_ref()
                .and_then(|limits| Some(at_most(tenon_api::quantity_of(limits.get("nodes")?)?.value()))),
            is_ready: is_ready(pool),
            nodes: self.claims.iter().filter(is_its).map(|claim| self.node(claim, &index)).collect(),
        }
    }

    fn index(&self) -> Index<'_> {
        let mut index = Index::default();
        // A pod that is over is not missed.
        for pod in self.pods.iter().filter(|pod| !is_terminal(pod)) {
            if let Some(node) = pod.node_name.as_deref() {
                index.pods.entry(node).or_default().push(pod);
            }
        }
        let fenced = self.nodes.iter().filter(|node| is_being_emptied(node));
        index.fenced = fenced.filter_map(|node| node.metadata.name.as_deref()).collect();
        index
    }

    fn node(&self, claim: &NodeClaim, index: &Index<'_>) -> StaticNode {
        let name = claim.name_any();
        let has_vm = claim.status.as_ref().is_some_and(|status| status.provider_id.is_some());
        let has_launch = claim.annotations().contains_key(names::ANNOTATION_LAUNCH);
        let created = claim.metadata.creation_timestamp.as_ref().map_or(self.now, |time| time.0);
        let expires = parse_duration_or_never(&claim.spec.expire_after).ok().flatten();
        StaticNode {
            standing: standing(claim, index),
            stage: match (has_vm, has_launch) {
                (true, _) => StaticStage::Launched,
                (false, true) => StaticStage::Launching,
                (false, false) => StaticStage::Unplanned,
            },
            sparing: if has_vm && !has_launch { Sparing::NotOurs } else { Sparing::Free },
            created: Seconds(created.as_second()),
            lifetime_remaining: lifetime_remaining(
                expires.map(|whole| whole.as_secs()),
                self.now.duration_since(created).as_secs(),
            ),
            pods: index.pods.get(name.as_str()).into_iter().flatten().map(|pod| self.pod(pod)).collect(),
            name,
        }
    }

    fn pod(&self, pod: &Pod) -> StaticPod {
        StaticPod {
            is_daemon: is_owned_by_daemon_set(pod),
            forbids_disruption: has_do_not_disrupt(pod, model_time(self.now)),
            eviction_cost: eviction_cost(pod, self.gates),
        }
    }
}

/// What is asked of every claim, found once.
#[derive(Default)]
struct Index<'a> {
    /// The pods on each node.
    pods: BTreeMap<&'a str, Vec<&'a Pod>>,
    /// Nodes that pods are kept off because they are to go.
    fenced: BTreeSet<&'a str>,
}

fn standing(claim: &NodeClaim, index: &Index<'_>) -> Standing {
    let mut conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_marked = |told: &Condition| told.type_ == "DisruptionReason" && told.status == ConditionStatus::True;
    if claim.metadata.deletion_timestamp.is_some() {
        Standing::Deleting
    } else if conditions.any(is_marked) || index.fenced.contains(claim.name_any().as_str()) {
        Standing::PendingDisruption
    } else {
        Standing::Active
    }
}

fn pool_of(claim: &NodeClaim) -> Option<&str> {
    claim.labels().get(names::LABEL_NODEPOOL).map(String::as_str)
}

fn is_ready(pool: &NodePool) -> bool {
    let mut conditions = pool.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|told| told.type_ == "Ready" && told.status == ConditionStatus::True)
}

fn at_most(count: i64) -> u32 {
    u32::try_from(count.max(0)).unwrap_or(u32::MAX)
}
