//! One pod of each DaemonSet, as it would be on a new node.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{NodeSelector, Pod as KubePod, PodSpec};
use tenon_model::Pod;

use crate::objects::Objects;
use crate::pod;

/// A pod for each DaemonSet: the newest there is, which knows what admission did to it, or one from the template.
pub(super) fn daemons(objects: &Objects) -> Vec<Arc<Pod>> {
    objects.daemon_sets.iter().map(|set| Arc::new(pod::to_model(&daemon(set, objects)))).collect()
}

fn daemon(set: &DaemonSet, objects: &Objects) -> KubePod {
    let mut found = newest(set, objects).cloned().unwrap_or_else(|| KubePod {
        metadata: set.metadata.clone(),
        spec: set.spec.template.spec.clone(),
        status: None,
    });
    // Its controller pins each pod to a node by name; what it asks of any node stands in the template.
    let wanted = set.spec.template.spec.as_ref().and_then(required).cloned();
    if let Some(affinity) = found.spec.as_mut().and_then(|spec| spec.affinity.as_mut()?.node_affinity.as_mut()) {
        affinity.required_during_scheduling_ignored_during_execution = wanted;
    }
    found
}

fn required(spec: &PodSpec) -> Option<&NodeSelector> {
    spec.affinity.as_ref()?.node_affinity.as_ref()?.required_during_scheduling_ignored_during_execution.as_ref()
}

fn newest<'a>(set: &DaemonSet, objects: &'a Objects) -> Option<&'a KubePod> {
    let is_its_own = |pod: &&Arc<KubePod>| {
        let same_namespace = pod.metadata.namespace == set.metadata.namespace;
        let owners = pod.metadata.owner_references.iter().flatten();
        let mut owners = owners.filter(|owner| owner.api_version == "apps/v1" && owner.kind == "DaemonSet");
        same_namespace && owners.any(|owner| Some(&owner.name) == set.metadata.name.as_ref())
    };
    let own = objects.pods.iter().filter(is_its_own);
    own.max_by_key(|pod| (pod.metadata.creation_timestamp.clone(), pod.metadata.name.clone())).map(AsRef::as_ref)
}
