//! The engine's view of what was gathered.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node as KubeNode, Pod as KubePod};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use tenon_api::{Condition, ConditionStatus, NodeClaim, NodePool, ProxmoxNodeClass, names, pod};
use tenon_model::{Effect, InstanceType, Node, Place, Pod, Pool, Quantity, Requirements, Resources, Snapshot, Taint};

use super::claims::class_of;
use super::gather::Gathered;
use super::hosts::{hosts, place_of, type_of};
use crate::context::is_our_class;
use crate::status::POOL_CONDITIONS;

/// Builds the snapshot.
pub fn to_snapshot(gathered: &Gathered, types: &[InstanceType]) -> Snapshot {
    let daemons: Vec<Pod> = gathered.daemons.iter().map(|set| daemon(set)).collect();
    Snapshot {
        pools: gathered
            .pools
            .iter()
            .filter(|pool| pool.metadata.deletion_timestamp.is_none())
            .filter(|pool| is_our_class(&pool.spec.template.spec.node_class_ref))
            .map(|found| pool(found, gathered, types))
            .collect(),
        types: types.to_vec(),
        hosts: hosts(gathered, types),
        nodes: nodes(gathered, types, &daemons),
        pods: gathered.pods.iter().filter(|pod| is_waiting(pod)).map(|pod| pod::to_model(pod)).collect(),
        daemons,
    }
}

/// Whether the scheduler tried the pod and found no place for it.
pub(crate) fn is_waiting(pod: &KubePod) -> bool {
    let status = pod.status.clone().unwrap_or_default();
    let failed = status
        .conditions
        .iter()
        .flatten()
        .any(|condition| condition.type_ == "PodScheduled" && condition.reason.as_deref() == Some("Unschedulable"));
    let is_bound = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
    let is_promised = status.nominated_node_name.is_some();
    let owners = pod.metadata.owner_references.iter().flatten();
    let is_daemon = owners.into_iter().any(|owner| owner.kind == "DaemonSet" || owner.kind == "Node");
    failed && !is_bound && !is_promised && !is_daemon && pod.metadata.deletion_timestamp.is_none()
}

fn daemon(set: &DaemonSet) -> Pod {
    let pod = KubePod { metadata: set.metadata.clone(), spec: set.spec.template.spec.clone(), status: None };
    pod::to_model(&pod)
}

/// Nodes that are there, and claims whose node is not there yet or does not take pods yet: those are what they will be,
/// not what they are while they come up.
fn nodes(gathered: &Gathered, types: &[InstanceType], daemons: &[Pod]) -> Vec<Node> {
    let used = used_by_node(&gathered.pods);
    let claim_of = |name: &str| gathered.claims.iter().find(|claim| claim.name_any() == name);
    let is_up = |name: &str| {
        let node = gathered.nodes.iter().find(|node| node.name_any() == name);
        node.is_some_and(|node| node.labels().get(names::LABEL_INITIALIZED).is_some_and(|value| value == "true"))
    };
    let there = gathered.nodes.iter().filter(|node| {
        let claim = claim_of(&node.name_any());
        is_usable(node) && claim.is_none_or(|claim| is_up(&node.name_any()) && !is_going(claim))
    });
    let there = there.map(|node| existing(node, used.get(&node.name_any())));
    let coming = gathered.claims.iter().filter(|claim| !is_going(claim) && !is_up(&claim.name_any()));
    let coming = coming.filter_map(|claim| in_flight(claim, types, daemons, used.get(&claim.name_any())));
    there.chain(coming).collect()
}

fn is_going(claim: &NodeClaim) -> bool {
    claim.metadata.deletion_timestamp.is_some()
}

fn is_usable(node: &KubeNode) -> bool {
    let is_cordoned = node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true));
    node.metadata.deletion_timestamp.is_none() && !is_cordoned
}

fn used_by_node(pods: &[Arc<KubePod>]) -> BTreeMap<String, Resources> {
    let mut used: BTreeMap<String, Resources> = BTreeMap::new();
    for found in pods {
        let phase = found.status.as_ref().and_then(|status| status.phase.as_deref());
        let Some(node) = found.spec.as_ref().and_then(|spec| spec.node_name.clone()) else { continue };
        if !matches!(phase, Some("Succeeded" | "Failed")) {
            used.entry(node).or_default().add(&pod::to_model(found).requests);
        }
    }
    used
}

fn existing(node: &KubeNode, used: Option<&Resources>) -> Node {
    let allocatable: Resources = node
        .status
        .iter()
        .flat_map(|status| status.allocatable.iter().flatten())
        .filter_map(|(resource, amount)| Some((resource.clone(), amount.0.parse::<Quantity>().ok()?)))
        .collect();
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    Node {
        name: node.name_any(),
        labels: Requirements::from_labels(node.labels()),
        taints: taints.filter_map(|taint| read_taint(&taint.key, taint.value.as_deref(), &taint.effect)).collect(),
        room: allocatable.without(used.unwrap_or(&Resources::default())),
    }
}

/// A node on its way has what its size leaves for pods, less its daemons, or less what is on it already. Pods it was made
/// for still wait, and find it.
fn in_flight(claim: &NodeClaim, types: &[InstanceType], daemons: &[Pod], used: Option<&Resources>) -> Option<Node> {
    let size = type_of(claim, types)?;
    let taints: Vec<Taint> = claim.spec.taints.iter().flatten().filter_map(api_taint).collect();
    let mut expected = Resources::default();
    for daemon in daemons {
        let is_kept_off = taints.iter().any(|taint| taint.is_a_bar() && !taint.is_tolerated_by(&daemon.tolerations));
        if !is_kept_off {
            expected.add(&daemon.requests);
        }
    }
    let taken = used.map_or_else(|| expected.clone(), |used| used.or_larger(&expected));
    let room = size.allocatable().without(&taken);
    let mut labels = Requirements::from_labels(claim.labels());
    labels.add_all(&requirements(&claim.spec.requirements));
    Some(Node { name: claim.name_any(), labels, taints, room })
}

fn pool(pool: &NodePool, gathered: &Gathered, types: &[InstanceType]) -> Pool {
    let template = &pool.spec.template;
    let mut wanted = requirements(&template.spec.requirements);
    let labels = template.metadata.iter().flat_map(|metadata| metadata.labels.iter().flatten());
    wanted.add_all(&Requirements::from_labels(labels));
    let class = class_of(&template.spec.node_class_ref.name, gathered);
    Pool {
        name: pool.name_any(),
        weight: pool.spec.weight.unwrap_or_default(),
        requirements: wanted,
        taints: template.spec.taints.iter().flatten().filter_map(api_taint).collect(),
        limits: pool
            .spec
            .limits
            .iter()
            .flatten()
            .filter_map(|(name, amount)| Some((name.clone(), amount_of(amount)?)))
            .collect(),
        used: used_by_pool(&pool.name_any(), gathered, types),
        places: class.map(|class| places(class)).unwrap_or_default(),
        not_ready: not_ready(pool.status.iter().flat_map(|status| status.conditions.iter().flatten()), POOL_CONDITIONS),
    }
}

fn used_by_pool(pool: &str, gathered: &Gathered, types: &[InstanceType]) -> Resources {
    let mut used = Resources::default();
    let ours = gathered
        .claims
        .iter()
        .filter(|claim| claim.labels().get(names::LABEL_NODEPOOL).is_some_and(|name| name == pool));
    for claim in ours {
        used.add(&Resources::default().with("nodes", Quantity::whole(1)));
        used.add(&type_of(claim, types).map(|size| size.capacity.clone()).unwrap_or_default());
    }
    used
}

/// Where VMs of a class can be made.
pub(crate) fn places(class: &ProxmoxNodeClass) -> Vec<Place> {
    let zones = class.status.iter().flat_map(|status| status.selected_zones.iter().flatten());
    zones.filter_map(|zone| place_of(zone)).collect()
}

/// Why an object cannot be used, if it cannot. The sum names only the condition that fails; what is in the way and the next
/// move stand on that one, which is one of `parts`.
pub(crate) fn not_ready<'a>(conditions: impl Iterator<Item = &'a Condition>, parts: &[&str]) -> Option<String> {
    let found: Vec<&Condition> = conditions.collect();
    let of = |type_: &str| found.iter().find(|condition| condition.type_ == type_);
    let Some(ready) = of("Ready") else { return Some("it was not judged yet".to_owned()) };
    if ready.status == ConditionStatus::True {
        return None;
    }
    let fails = |condition: &&&Condition| condition.status != ConditionStatus::True && !condition.message.is_empty();
    let cause = parts.iter().filter_map(|type_| of(type_)).find(fails);
    Some(cause.map_or_else(|| ready.reason.clone(), |cause| cause.message.clone()))
}

/// An amount as it stands in an object.
pub(crate) fn amount_of(amount: &IntOrString) -> Option<Quantity> {
    match amount {
        IntOrString::Int(number) => Some(Quantity::whole(i64::from(*number))),
        IntOrString::String(text) => text.parse().ok(),
    }
}

/// Demands as the engine knows them.
pub(crate) fn requirements(demands: &[tenon_api::Requirement]) -> Requirements {
    // What says nothing is told of by the pool's condition, and such a pool makes no nodes.
    let read = |requirement: &tenon_api::Requirement| {
        let demand = tenon_api::demand(requirement);
        let requirement = demand.requirement().ok()?;
        Some((demand.label, requirement))
    };
    demands.iter().filter_map(read).collect()
}

fn api_taint(taint: &tenon_api::Taint) -> Option<Taint> {
    read_taint(&taint.key, taint.value.as_deref(), &format!("{:?}", taint.effect))
}

fn read_taint(key: &str, value: Option<&str>, effect: &str) -> Option<Taint> {
    let effect = match effect {
        "NoSchedule" => Effect::NoSchedule,
        "PreferNoSchedule" => Effect::PreferNoSchedule,
        "NoExecute" => Effect::NoExecute,
        _ => return None,
    };
    Some(Taint { key: key.to_owned(), value: value.unwrap_or_default().to_owned(), effect })
}
