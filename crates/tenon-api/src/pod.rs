//! A Kubernetes Pod as the engine sees it: what it needs, which nodes it wants, what it puts up with.
//!
//! A demand that cannot be read makes the pod unplaceable, by name. What of the rest it can judge, the engine decides.

use crate::kube_objects::{Container, Pod as KubePod, PodSpec};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Toleration as KubeToleration;
use tenon_model::{
    Effect, HostPort, Owner, Pod, PodShape, PodStorage, Protection, Seconds, Tolerated, Toleration, Volume,
};

use crate::names::ANNOTATION_DO_NOT_DISRUPT;
use crate::node_affinity;
use crate::pod_affinity::Asker;
use crate::pod_predicates::pod_key;
use crate::pod_requests::effective_requests;

/// The pod for the engine.
pub fn to_model(pod: &KubePod) -> Pod {
    with_shape(pod, Arc::new(shape(pod)))
}

/// The pod for the engine, where it is known what it shares with others.
pub(crate) fn with_shape(pod: &KubePod, shape: Arc<PodShape>) -> Pod {
    Pod {
        key: pod_key(pod).clone(),
        created: pod.metadata.creation_timestamp.as_ref().map(|time| Seconds(time.0.as_second())),
        is_pending: pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Pending"),
        volumes: claims(pod),
        // Where they are is not written on the pod.
        storage: PodStorage::default(),
        shape,
    }
}

/// What the pod asks for and is chosen by. It depends on its spec, status, labels, annotations, owners and namespace, and
/// on nothing else (`planning/pod_shapes.rs` relies on that).
pub(crate) fn shape(pod: &KubePod) -> PodShape {
    let nothing = PodSpec::default();
    let spec = pod.spec.as_deref().unwrap_or(&nothing);
    let labels = pod.metadata.labels.clone();
    let (alternatives, unreadable) = node_affinity::alternatives(spec);
    let asker = Asker { namespace: pod.namespace(), labels: &labels };
    let (affinities, spreads) = (asker.affinities(spec), asker.spreads(spec));
    PodShape {
        requests: effective_requests(pod),
        alternatives,
        tolerations: tolerations(pod),
        priority: spec.priority.unwrap_or_default(),
        preferred: node_affinity::preferred(spec),
        host_ports: host_ports(spec),
        spreads,
        pod_affinity: affinities.pod_affinity,
        pod_anti_affinity: affinities.pod_anti_affinity,
        preferred_pod_affinity: affinities.preferred_pod_affinity,
        preferred_pod_anti_affinity: affinities.preferred_pod_anti_affinity,
        gates: spec.scheduling_gates.iter().flatten().map(|gate| gate.name.clone()).collect(),
        resource_claims: resource_claims(spec),
        owner: owner(pod),
        protection: protection(pod),
        labels,
        unsupported: unreadable,
    }
}

/// What is wrong with what a pod asks of its node, for whoever wrote it: all of it, each as a sentence.
pub fn faults(pod: &KubePod) -> Vec<String> {
    pod.spec.as_deref().map(node_affinity::faults).unwrap_or_default()
}

/// Whether the pod wants no node of any pool. Nobody who wrote that needs to be told that no node is made for it.
pub fn is_for_others(pod: &KubePod) -> bool {
    pod.spec.as_deref().is_some_and(node_affinity::is_for_others)
}

/// Ports of the node that containers and sidecars take. With the node's network, every port is one of the node's; the API
/// server writes that into pods, but not into the template a pod will be made from.
fn host_ports(spec: &PodSpec) -> Vec<HostPort> {
    let is_sidecar = |container: &&Container| container.restart_policy.as_deref() == Some("Always");
    let sidecars = spec.init_containers.iter().filter(is_sidecar);
    let ports = spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten());
    ports
        .filter_map(|port| {
            let on_the_node = spec.host_network.unwrap_or_default().then_some(port.container_port);
            let number = port.host_port.filter(|number| *number != 0).or(on_the_node)?;
            let address = port.host_ip.as_deref().and_then(|text| text.parse().ok());
            Some(HostPort {
                address: address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
                port: u16::try_from(number).ok().filter(|number| *number != 0)?,
                protocol: port.protocol.clone().unwrap_or_else(|| "TCP".to_owned()),
            })
        })
        .collect()
}

/// The claims of storage that a pod has, by name in its own namespace.
pub fn claims(pod: &KubePod) -> Vec<Volume> {
    pod.spec.as_deref().map(|spec| volumes(pod.name(), spec)).unwrap_or_default()
}

/// Claims of storage; one that is made with the pod is named after both.
fn volumes(pod: &str, spec: &PodSpec) -> Vec<Volume> {
    let claim = |volume: &crate::kube_objects::Volume| {
        if let Some(claim) = &volume.persistent_volume_claim {
            return Some(Volume { claim: claim.claim_name.clone(), is_ephemeral: false });
        }
        let is_ephemeral = volume.ephemeral.is_some();
        is_ephemeral.then(|| Volume { claim: format!("{pod}-{}", volume.name), is_ephemeral })
    };
    spec.volumes.iter().flatten().filter_map(claim).collect()
}

/// Names of claimed devices: of the pod, and those only a container names.
fn resource_claims(spec: &PodSpec) -> Vec<String> {
    let containers = spec.containers.iter().chain(spec.init_containers.iter());
    let resources = containers.filter_map(|container| container.resources.as_ref());
    let by_containers = resources.flat_map(|resources| resources.claims.iter().flatten()).map(|claim| &claim.name);
    let mut names: Vec<String> = spec.resource_claims.iter().flatten().map(|claim| claim.name.clone()).collect();
    for name in by_containers {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Whoever makes the pod anew, as far as it matters. The reference does not ask who controls it, only who owns it.
fn owner(pod: &KubePod) -> Owner {
    let owners = pod.owner_references().iter();
    let mut kinds = owners.map(|owner| match (owner.api_version.as_str(), owner.kind.as_str()) {
        ("apps/v1", "DaemonSet") => Owner::DaemonSet,
        ("v1", "Node") => Owner::Node,
        ("apps/v1", "StatefulSet") => Owner::StatefulSet,
        _ => Owner::Other,
    });
    // What stays on its node whatever happens says more than what comes back elsewhere.
    let first = kinds.next().unwrap_or(Owner::Nobody);
    kinds.fold(first, Ord::min)
}

/// Whether the pod asks that its node be left alone.
fn protection(pod: &KubePod) -> Protection {
    pod.annotations().get(ANNOTATION_DO_NOT_DISRUPT).map_or(Protection::None, |wish| Protection::of(wish))
}

/// Taints the pod tolerates.
pub(crate) fn tolerations(pod: &KubePod) -> Vec<Toleration> {
    let tolerations = pod.spec.iter().flat_map(|spec| spec.tolerations.iter().flatten());
    tolerations.filter_map(toleration).collect()
}

/// A toleration of a kind we do not know tolerates nothing: then a node is not made where one might have been.
fn toleration(toleration: &KubeToleration) -> Option<Toleration> {
    let text = || toleration.value.clone().unwrap_or_default();
    let value = match toleration.operator.as_deref() {
        None | Some("" | "Equal") => Tolerated::Equal(text()),
        Some("Exists") => Tolerated::Exists,
        Some("Lt") => Tolerated::Below(text()),
        Some("Gt") => Tolerated::Above(text()),
        Some(_) => return None,
    };
    let effect = match toleration.effect.as_deref() {
        None | Some("") => None,
        Some("NoSchedule") => Some(Effect::NoSchedule),
        Some("PreferNoSchedule") => Some(Effect::PreferNoSchedule),
        Some("NoExecute") => Some(Effect::NoExecute),
        Some(_) => return None,
    };
    Some(Toleration { key: toleration.key.clone().filter(|key| !key.is_empty()), value, effect })
}
