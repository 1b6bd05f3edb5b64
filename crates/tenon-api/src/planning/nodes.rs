//! Nodes that are there, and claims whose node is not: what they are, and what their pods use.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use tenon_model::{HostPort, NodeStage, NodeState, Owner, PodKey, Resources, Taint};

use super::Surroundings;
use super::amounts::{node_taint, of_object, of_resource_map, taint};
use super::pods::is_terminal;
use crate::names::{ANNOTATION_LAUNCH, LABEL_INITIALIZED, LABEL_INSTANCE_TYPE, LABEL_NODEPOOL, LABEL_REGISTERED};
use crate::objects::Objects;
use crate::{ConditionStatus, NodeClaim, pod};

/// On claims whose node is being started again.
const REBOOTING: &str = "Rebooting";

/// What the pods on a node use.
#[derive(Debug, Default, Clone)]
struct Usage {
    bound: Resources,
    daemons: Resources,
    ports: Vec<(PodKey, HostPort)>,
}

/// All nodes and claims, each machine once.
pub(super) fn nodes(objects: &Objects, around: &dyn Surroundings) -> Vec<NodeState> {
    let usage = usage(objects);
    let mut states = Vec::new();
    let mut matched: Vec<&str> = Vec::new();
    let by_provider: BTreeMap<&str, &Arc<Node>> =
        objects.nodes.iter().filter_map(|node| Some((provider_id(node)?, node))).collect();
    let by_name: BTreeMap<&str, &Arc<Node>> =
        objects.nodes.iter().filter_map(|node| Some((node.metadata.name.as_deref()?, node))).collect();
    for claim in &objects.node_claims {
        let id = claim.status.as_ref().and_then(|status| status.provider_id.as_deref()).filter(|id| !id.is_empty());
        let has_launch = claim.annotations().contains_key(ANNOTATION_LAUNCH);
        if id.is_none() && !has_launch {
            continue;
        }
        let named = || by_name.get(claim.metadata.name.as_deref()?).filter(|_| has_launch);
        let node = id.and_then(|id| by_provider.get(id)).or_else(named).copied();
        matched.extend(node.and_then(|node| node.metadata.name.as_deref()));
        let used = node.and_then(|node| usage.get(&node.name_any())).cloned().unwrap_or_default();
        states.extend(claimed(claim, node.filter(|node| is_known(node)).map(AsRef::as_ref), around, used));
    }
    let alone = |node: &&Arc<Node>| node.metadata.name.as_deref().is_some_and(|name| !matched.contains(&name));
    for node in objects.nodes.iter().filter(alone).filter(|node| is_known(node)) {
        states.push(unclaimed(node, usage.get(&node.name_any()).cloned().unwrap_or_default()));
    }
    states.sort_by(|a, b| a.name.cmp(&b.name));
    states
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
fn claimed(claim: &NodeClaim, node: Option<&Node>, around: &dyn Surroundings, used: Usage) -> Option<NodeState> {
    let registered = node.filter(|node| says(node, LABEL_REGISTERED));
    let is_initialized = node.is_some_and(|node| says(node, LABEL_INITIALIZED));
    let own = |taints: &Option<Vec<crate::Taint>>| taints.iter().flatten().map(taint).collect::<Vec<Taint>>();
    let (capacity, allocatable) = match node.filter(|_| is_initialized) {
        Some(node) => offered(node),
        None => promised(claim, node, around)?,
    };
    let labels = registered.map_or_else(|| claim.labels(), |node| node.labels()).clone();
    let pool = labels.get(LABEL_NODEPOOL).filter(|pool| !pool.is_empty()).cloned();
    Some(NodeState {
        name: registered.map_or_else(|| claim.name_any(), ResourceExt::name_any),
        pool,
        is_managed: true,
        labels,
        taints: registered.map_or_else(|| own(&claim.spec.taints), taints),
        startup_taints: own(&claim.spec.startup_taints),
        capacity,
        allocatable,
        bound: used.bound,
        bound_daemons: used.daemons,
        host_ports: used.ports,
        stage: match is_initialized {
            _ if is_rebooting(claim) => NodeStage::Rebooting,
            true => NodeStage::Initialized,
            false => NodeStage::Rising,
        },
        is_leaving: claim.metadata.deletion_timestamp.is_some(),
    })
}

fn is_rebooting(claim: &NodeClaim) -> bool {
    let conditions = claim.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|said| said.type_ == REBOOTING && said.status == ConditionStatus::True)
}

/// A node nobody claimed. It is what it says.
fn unclaimed(node: &Node, used: Usage) -> NodeState {
    let (capacity, allocatable) = offered(node);
    NodeState {
        name: node.name_any(),
        pool: node.labels().get(LABEL_NODEPOOL).filter(|pool| !pool.is_empty()).cloned(),
        is_managed: false,
        labels: node.labels().clone(),
        taints: taints(node),
        startup_taints: Vec::new(),
        capacity,
        allocatable,
        bound: used.bound,
        bound_daemons: used.daemons,
        host_ports: used.ports,
        stage: NodeStage::Initialized,
        is_leaving: node.metadata.deletion_timestamp.is_some(),
    }
}

fn taints(node: &Node) -> Vec<Taint> {
    node.spec.iter().flat_map(|spec| spec.taints.iter().flatten()).filter_map(node_taint).collect()
}

fn offered(node: &Node) -> (Resources, Resources) {
    let status = node.status.as_ref();
    let amounts = |of: fn(&k8s_openapi::api::core::v1::NodeStatus) -> Option<&super::amounts::Amounts>| {
        of_object(status.and_then(of))
    };
    (amounts(|status| status.capacity.as_ref()), amounts(|status| status.allocatable.as_ref()))
}

/// What a node that comes up will have: the kubelet reports nothing of some resources at first, and the claim knows.
fn promised(claim: &NodeClaim, node: Option<&Node>, around: &dyn Surroundings) -> Option<(Resources, Resources)> {
    let status = claim.status.as_ref();
    let said = (
        of_resource_map(status.and_then(|status| status.capacity.as_ref())),
        of_resource_map(status.and_then(|status| status.allocatable.as_ref())),
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

/// What pods use, by the node they are bound to. What is over uses nothing.
fn usage(objects: &Objects) -> BTreeMap<String, Usage> {
    let mut usage: BTreeMap<String, Usage> = BTreeMap::new();
    for found in objects.pods.iter().filter(|pod| !is_terminal(pod)) {
        let node = found.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).filter(|name| !name.is_empty());
        let Some(node) = node else { continue };
        let pod = pod::to_model(found);
        let used = usage.entry(node.to_owned()).or_default();
        used.bound.add(&pod.requests);
        if pod.owner == Owner::DaemonSet {
            used.daemons.add(&pod.requests);
        }
        used.ports.extend(pod.host_ports.into_iter().map(|port| (pod.key.clone(), port)));
    }
    usage
}
