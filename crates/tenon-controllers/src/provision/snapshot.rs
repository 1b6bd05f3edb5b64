//! The engine's view of what was gathered.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node as KubeNode, Pod as KubePod};
use kube::ResourceExt;
use tenon_api::{ConditionStatus, NodeClaim, NodePool, names, pod};
use tenon_model::{
    Effect, InstanceType, Node, Operator, Place, Pod, Pool, Quantity, Requirement, Requirements, Resources, Snapshot,
    Taint,
};

use super::gather::Gathered;
use super::hosts::{hosts, type_of};

/// Builds the snapshot.
pub fn to_snapshot(gathered: &Gathered, types: &[InstanceType]) -> Snapshot {
    let daemons: Vec<Pod> = gathered.daemons.iter().map(daemon).collect();
    Snapshot {
        pools: gathered
            .pools
            .iter()
            .filter(|pool| pool.metadata.deletion_timestamp.is_none())
            .map(|found| pool(found, gathered, types))
            .collect(),
        types: types.to_vec(),
        hosts: hosts(&gathered.estate, &gathered.claims, types),
        nodes: nodes(gathered, types, &daemons),
        pods: gathered.pods.iter().filter(|pod| is_waiting(pod)).map(pod::to_model).collect(),
        daemons,
    }
}

/// Whether the scheduler tried the pod and found no place for it.
fn is_waiting(pod: &KubePod) -> bool {
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

/// Nodes that are there, and claims that have none yet.
fn nodes(gathered: &Gathered, types: &[InstanceType], daemons: &[Pod]) -> Vec<Node> {
    let registered: Vec<&KubeNode> = gathered.nodes.iter().filter(|node| is_usable(node)).collect();
    let used = used_by_node(&gathered.pods);
    let there = registered.iter().map(|node| existing(node, used.get(&node.name_any())));
    let claims = gathered.claims.iter().filter(|claim| {
        claim.metadata.deletion_timestamp.is_none()
            && !gathered.nodes.iter().any(|node| node.name_any() == claim.name_any())
    });
    let coming = claims.filter_map(|claim| in_flight(claim, types, daemons));
    there.chain(coming).collect()
}

fn is_usable(node: &KubeNode) -> bool {
    let is_cordoned = node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true));
    node.metadata.deletion_timestamp.is_none() && !is_cordoned
}

fn used_by_node(pods: &[KubePod]) -> BTreeMap<String, Resources> {
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

/// A node on its way has what its size leaves for pods, less its daemons. Pods it was made for still wait, and find it.
fn in_flight(claim: &NodeClaim, types: &[InstanceType], daemons: &[Pod]) -> Option<Node> {
    let size = type_of(claim, types)?;
    let taints: Vec<Taint> = claim.spec.taints.iter().flatten().filter_map(api_taint).collect();
    let mut room = size.allocatable();
    for daemon in daemons {
        let is_kept_off = taints.iter().any(|taint| taint.is_a_bar() && !taint.is_tolerated_by(&daemon.tolerations));
        if !is_kept_off {
            room = room.without(&daemon.requests);
        }
    }
    let mut labels = Requirements::from_labels(claim.labels());
    labels.add_all(&requirements(&claim.spec.requirements));
    Some(Node { name: claim.name_any(), labels, taints, room })
}

fn pool(pool: &NodePool, gathered: &Gathered, types: &[InstanceType]) -> Pool {
    let template = &pool.spec.template;
    let mut wanted = requirements(&template.spec.requirements);
    let labels = template.metadata.iter().flat_map(|metadata| metadata.labels.iter().flatten());
    wanted.add_all(&Requirements::from_labels(labels));
    let class = gathered.classes.iter().find(|class| class.name_any() == template.spec.node_class_ref.name);
    let zones = class
        .and_then(|class| class.status.as_ref())
        .and_then(|status| status.selected_zones.clone())
        .unwrap_or_default();
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
        places: zones.iter().filter_map(|zone| place_of(zone)).collect(),
        not_ready: not_ready(pool),
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

fn not_ready(pool: &NodePool) -> Option<String> {
    let conditions = pool.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let found: Vec<_> = conditions.collect();
    let ready = found.iter().find(|condition| condition.type_ == "Ready");
    match ready {
        Some(ready) if ready.status == ConditionStatus::True => None,
        Some(ready) => Some(if ready.message.is_empty() { ready.reason.clone() } else { ready.message.clone() }),
        None => Some("it was not judged yet".to_owned()),
    }
}

/// The place in `region/host/template`.
fn place_of(zone: &str) -> Option<Place> {
    let mut parts = zone.splitn(3, '/');
    Some(Place { region: parts.next()?.to_owned(), host: parts.next()?.parse().ok()? })
}

fn amount_of(amount: &k8s_openapi::apimachinery::pkg::util::intstr::IntOrString) -> Option<Quantity> {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
    match amount {
        IntOrString::Int(number) => Some(Quantity::whole(i64::from(*number))),
        IntOrString::String(text) => text.parse().ok(),
    }
}

fn requirements(demands: &[tenon_api::Requirement]) -> Requirements {
    let demand = |demand: &tenon_api::Requirement| {
        let operator = match demand.operator {
            tenon_api::Operator::In => Operator::In,
            tenon_api::Operator::NotIn => Operator::NotIn,
            tenon_api::Operator::Exists => Operator::Exists,
            tenon_api::Operator::DoesNotExist => Operator::DoesNotExist,
            tenon_api::Operator::Gt => Operator::Gt,
            tenon_api::Operator::Lt => Operator::Lt,
            tenon_api::Operator::Gte => Operator::Gte,
            tenon_api::Operator::Lte => Operator::Lte,
        };
        let requirement = Requirement::new(operator, demand.values.iter().flatten().cloned())?;
        Some((names::canonical_label(&demand.key).to_owned(), requirement))
    };
    demands.iter().filter_map(demand).collect()
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
