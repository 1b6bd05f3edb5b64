//! One pod of each DaemonSet, as it would be on a new node.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{NodeSelector, Pod as KubePod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use tenon_model::PodKey;

use super::seen::Difference;

/// The pods of each DaemonSet, the newest last.
#[derive(Debug, Default)]
pub(super) struct DaemonPods(BTreeMap<PodKey, BTreeMap<Age, Arc<KubePod>>>);

/// When a pod was made, and its name and uid.
type Age = (Option<Time>, Option<String>, Option<String>);

impl DaemonPods {
    /// Takes note of pods that came and went. Returns the DaemonSets they belong to.
    pub(super) fn note(&mut self, Difference { gone, come }: &Difference<KubePod>) -> BTreeSet<PodKey> {
        let mut touched = BTreeSet::new();
        for (pod, set) in gone.iter().flat_map(|pod| owners(pod).map(move |set| (pod, set))) {
            if let Some(pods) = self.0.get_mut(&set) {
                pods.remove(&age(pod));
            }
            touched.insert(set);
        }
        for (pod, set) in come.iter().flat_map(|pod| owners(pod).map(move |set| (pod, set))) {
            self.0.entry(set.clone()).or_default().insert(age(pod), pod.clone());
            touched.insert(set);
        }
        self.0.retain(|_, pods| !pods.is_empty());
        touched
    }

    /// The newest pod of a DaemonSet.
    pub(super) fn newest(&self, set: &PodKey) -> Option<&KubePod> {
        self.0.get(set)?.last_key_value().map(|(_, pod)| pod.as_ref())
    }
}

fn age(pod: &KubePod) -> Age {
    let meta = &pod.metadata;
    (meta.creation_timestamp.clone(), meta.name.clone(), meta.uid.clone())
}

/// The DaemonSets a pod belongs to; there is at most one in practice.
fn owners(pod: &KubePod) -> impl Iterator<Item = PodKey> {
    let owners = pod.metadata.owner_references.iter().flatten();
    let sets = owners.filter(|owner| owner.api_version == "apps/v1" && owner.kind == "DaemonSet");
    let namespace = pod.namespace().unwrap_or_default();
    sets.map(move |set| PodKey { namespace: namespace.clone(), name: set.name.clone(), uid: String::new() })
}

/// One pod of a DaemonSet as it would be on a new node: like the newest there is, which knows what admission did to it, or
/// as the template says.
pub(super) fn daemon(set: &DaemonSet, newest: Option<&KubePod>) -> KubePod {
    let mut found = newest.cloned().unwrap_or_else(|| KubePod {
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
