//! Nodes that are there, and claims whose node is not: which belong together, and what they are.

use crate::disruption_record::is_being_replaced;
use crate::kube_objects::Node;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;
use tenon_model::{Effect, NodeStage, NodeState, RepairPolicies, Resources, Taint};

use super::Surroundings;
use super::conversion::{node_taint, taint};
use crate::candidate::disruption_facts;
use crate::names::{ANNOTATION_LAUNCH, LABEL_INITIALIZED, LABEL_INSTANCE_TYPE, LABEL_NODEPOOL, LABEL_REGISTERED};
use crate::objects::Objects;
use crate::quantity::kube_resources;
use crate::{ConditionStatus, NodeClaim, ResourceMap, resources_of};

/// On claims whose node is being started again.
const REBOOTING: &str = "Rebooting";

/// On claims whose machine is being taken away, whoever asked for it.
const TERMINATING: &str = "InstanceTerminating";

/// What Kubernetes marks a cordoned node with, a moment after it was cordoned.
const CORDONED: &str = "node.kubernetes.io/unschedulable";

/// A machine: a claim and its node, a claim whose node is not there, or a node nobody claimed.
pub(super) struct Machine<'a> {
    /// What it is found by.
    pub(super) id: String,
    pub(super) claim: Option<&'a Arc<NodeClaim>>,
    pub(super) node: Option<&'a Arc<Node>>,
}

/// All nodes and claims, each machine once, in whatever order they are listed. Where several say that they are the same
/// machine, the first by name is believed.
pub(super) fn machines(objects: &Objects) -> Vec<Machine<'_>> {
    let mut found = Vec::new();
    let (mut matched, mut ids): (BTreeSet<&str>, BTreeSet<&str>) = (BTreeSet::new(), BTreeSet::new());
    let by_name: BTreeMap<&str, &Arc<Node>> =
        objects.nodes.iter().filter_map(|node| Some((node.metadata.name.as_deref()?, node))).collect();
    // The last one stays, so the first by name comes last.
    let by_provider: BTreeMap<&str, &Arc<Node>> =
        by_name.values().rev().filter_map(|node| Some((provider_id(node)?, *node))).collect();
    let mut claims: Vec<&Arc<NodeClaim>> = objects.node_claims.iter().collect();
    claims.sort_by_key(|claim| claim.metadata.name.as_deref());
    for claim in claims {
        let id = claim.status.as_ref().and_then(|status| status.provider_id.as_deref()).filter(|id| !id.is_empty());
        if id.is_some_and(|id| !ids.insert(id)) {
            continue;
        }
        let has_launch = claim.annotations().contains_key(ANNOTATION_LAUNCH);
        if id.is_none() && !has_launch {
            continue;
        }
        let named = || by_name.get(claim.metadata.name.as_deref()?).filter(|_| has_launch);
        let node = id.and_then(|id| by_provider.get(id)).or_else(named).copied();
        matched.extend(node.and_then(|node| node.metadata.name.as_deref()));
        // A node that does not say what it is yet is no part of its claim's machine.
        let node = node.filter(|node| is_known(node));
        found.push(Machine { id: format!("nodeclaim/{}", claim.name_any()), claim: Some(claim), node });
    }
    let alone = |node: &&Arc<Node>| node.metadata.name.as_deref().is_some_and(|name| !matched.contains(name));
    for node in objects.nodes.iter().filter(alone).filter(|node| is_known(node)) {
        found.push(Machine::unclaimed(node));
    }
    found.extend(unidentified(objects, &found));
    found
}

/// Nodes of pools that do not say yet what they are. Their claims, if they have any, are machines of their own; of a claim with
/// the same name nobody could tell the two apart.
fn unidentified<'a>(objects: &'a Objects, found: &[Machine<'a>]) -> Vec<Machine<'a>> {
    let claims: BTreeSet<&str> = found.iter().filter_map(|machine| machine.claim?.metadata.name.as_deref()).collect();
    let is_apart = |node: &&Arc<Node>| node.metadata.name.as_deref().is_some_and(|name| !claims.contains(name));
    let nodes = objects.nodes.iter().filter(|node| !is_known(node)).filter(is_apart);
    nodes.map(Machine::unclaimed).collect()
}

impl<'a> Machine<'a> {
    fn unclaimed(node: &'a Arc<Node>) -> Machine<'a> {
        Machine { id: format!("node/{}", node.name_any()), claim: None, node: Some(node) }
    }
}

impl Machine<'_> {
    /// The name under which pods are bound to it, if it has a Node.
    pub(super) fn node_name(&self) -> Option<&str> {
        self.node.and_then(|node| node.metadata.name.as_deref())
    }

    /// The labels it counts with: those of its claim until it registered.
    pub(super) fn labels(&self) -> Option<&BTreeMap<String, String>> {
        let registered = self.node.filter(|node| self.claim.is_none() || says(node, LABEL_REGISTERED));
        registered.map(|node| node.labels()).or_else(|| self.claim.map(|claim| claim.labels()))
    }

    /// What it is like, without its labels; what its pods use is not in it. None as long as nobody knows its size.
    pub(super) fn state(&self, around: &dyn Surroundings, repair: &RepairPolicies) -> Option<NodeState> {
        let mut state = match (self.claim, self.node) {
            (Some(claim), node) => claimed((claim, node.map(AsRef::as_ref)), around, repair)?,
            (None, node) => unclaimed(node?),
        };
        let fence = Taint { key: CORDONED.to_owned(), value: String::new(), effect: Effect::NoSchedule };
        let is_fenced = self.node.is_some_and(|node| around.is_fenced(node));
        if is_fenced && !state.taints.iter().any(|taint| taint.is_same_as(&fence)) {
            state.taints.push(fence);
        }
        Some(state)
    }
}

fn provider_id(node: &Node) -> Option<&str> {
    node.spec.as_ref()?.provider_id.as_deref().filter(|id| !id.is_empty())
}

/// A node of a pool counts once it says which machine it is and what size, or takes pods already.
fn is_known(node: &Node) -> bool {
    let has = |label: &str| node.labels().get(label).is_some_and(|value| !value.is_empty());
    let is_initialized = says(node, LABEL_INITIALIZED);
    !has(LABEL_NODEPOOL) || (provider_id(node).is_some() && (is_initialized || has(LABEL_INSTANCE_TYPE)))
}

fn says(node: &Node, label: &str) -> bool {
    node.labels().get(label).is_some_and(|value| value == "true")
}

/// A machine of ours: what its claim says until its node registered, and what its node says from then on.
fn claimed(
    (claim, node): (&NodeClaim, Option<&Node>),
    around: &dyn Surroundings,
    repair: &RepairPolicies,
) -> Option<NodeState> {
    let registered = node.filter(|node| says(node, LABEL_REGISTERED));
    let is_initialized = node.is_some_and(|node| says(node, LABEL_INITIALIZED));
    let own = |taints: &Option<Vec<crate::Taint>>| taints.iter().flatten().map(taint).collect::<Vec<Taint>>();
    let (capacity, allocatable) = match node.filter(|_| is_initialized) {
        Some(node) => offered(node),
        None => promised(claim, node, around)?,
    };
    let labels = registered.map_or_else(|| claim.labels(), |node| node.labels());
    let pool = labels.get(LABEL_NODEPOOL).filter(|pool| !pool.is_empty()).cloned();
    Some(NodeState {
        name: registered.map_or_else(|| claim.name_any(), ResourceExt::name_any),
        pool,
        is_managed: true,
        taints: registered.map_or_else(|| own(&claim.spec.taints), taints),
        startup_taints: own(&claim.spec.startup_taints),
        capacity,
        allocatable,
        stage: match is_initialized {
            _ if says_of_itself(claim, REBOOTING) => NodeStage::Rebooting,
            true => NodeStage::Initialized,
            false => NodeStage::Rising,
        },
        is_leaving: claim.metadata.deletion_timestamp.is_some()
            || says_of_itself(claim, TERMINATING)
            || is_being_replaced(claim),
        disruption: Some(Arc::new(disruption_facts(claim, node, repair))),
        ..NodeState::default()
    })
}

fn says_of_itself(claim: &NodeClaim, condition: &str) -> bool {
    let conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|said| said.type_ == condition && said.status == ConditionStatus::True)
}

/// A node nobody claimed. It is what it says.
fn unclaimed(node: &Node) -> NodeState {
    let (capacity, allocatable) = offered(node);
    let is_unidentified = !is_known(node);
    let pool = node.labels().get(LABEL_NODEPOOL).filter(|pool| !pool.is_empty() && !is_unidentified);
    NodeState {
        name: node.name_any(),
        pool: pool.cloned(),
        is_unidentified,
        is_managed: false,
        taints: taints(node),
        startup_taints: Vec::new(),
        capacity,
        allocatable,
        stage: NodeStage::Initialized,
        is_leaving: node.metadata.deletion_timestamp.is_some() && !is_unidentified,
        ..NodeState::default()
    }
}

fn taints(node: &Node) -> Vec<Taint> {
    node.spec.iter().flat_map(|spec| spec.taints.iter().flatten()).filter_map(node_taint).collect()
}

fn offered(node: &Node) -> (Resources, Resources) {
    let status = node.status.as_ref();
    let capacity = status.and_then(|status| status.capacity.as_ref());
    let allocatable = status.and_then(|status| status.allocatable.as_ref());
    (kube_resources(capacity), kube_resources(allocatable))
}

/// What a node that comes up will have: the kubelet reports nothing of some resources at first, and the claim knows.
fn promised(claim: &NodeClaim, node: Option<&Node>, around: &dyn Surroundings) -> Option<(Resources, Resources)> {
    let status = claim.status.as_ref();
    let read = |map: Option<&ResourceMap>| map.map(resources_of).unwrap_or_default();
    let said = (
        read(status.and_then(|status| status.capacity.as_ref())),
        read(status.and_then(|status| status.allocatable.as_ref())),
    );
    let is_silent = said.1.iter().next().is_none();
    let (capacity, allocatable) = if is_silent { around.expected(claim)? } else { said };
    let Some((now, now_allocatable)) = node.map(offered) else { return Some((capacity, allocatable)) };
    let filled = |now: Resources, later: &Resources| {
        let missing = later.iter().filter(|(name, _)| now.get(name).is_zero()).collect::<Vec<_>>();
        missing.into_iter().fold(now.clone(), |all, (name, amount)| all.with(name, amount))
    };
    Some((filled(now, &capacity), filled(now_allocatable, &allocatable)))
}
