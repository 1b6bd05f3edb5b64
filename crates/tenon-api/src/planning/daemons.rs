//! One pod of each DaemonSet, as it would be on a new node.

use crate::kube_objects::{DaemonSet, Pod as KubePod, PodSpec};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::NodeSelector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::version_cache::Changes;

/// The pods of each DaemonSet, by its uid, the newest last.
#[derive(Debug, Default)]
pub(super) struct DaemonPods(BTreeMap<String, BTreeMap<Age, Arc<KubePod>>>);

/// When a pod was made; of equally new ones the first by name is taken.
type Age = (Option<Time>, Reverse<Box<str>>, Box<str>);

impl DaemonPods {
    /// Takes note of pods that came and went. Returns the uids of whoever controls them.
    pub(super) fn note(&mut self, Changes { removed, added }: &Changes<KubePod>) -> BTreeSet<String> {
        let mut touched = BTreeSet::new();
        for (pod, set) in removed.iter().filter_map(|pod| Some((pod, controller(pod)?))) {
            if let Some(pods) = self.0.get_mut(set) {
                pods.remove(&age(pod));
            }
            touched.insert(set.to_owned());
        }
        for (pod, set) in added.iter().filter_map(|pod| Some((pod, controller(pod)?))) {
            self.0.entry(set.to_owned()).or_default().insert(age(pod), pod.clone());
            touched.insert(set.to_owned());
        }
        self.0.retain(|_, pods| !pods.is_empty());
        touched
    }

    /// The newest pod of a DaemonSet.
    pub(super) fn newest(&self, set: &str) -> Option<&KubePod> {
        self.0.get(set)?.last_key_value().map(|(_, pod)| pod.as_ref())
    }
}

fn age(pod: &KubePod) -> Age {
    let meta = &pod.metadata;
    (meta.creation_timestamp.clone(), Reverse(meta.key.name.clone()), meta.key.uid.clone())
}

/// The uid of the DaemonSet that controls a pod.
fn controller(pod: &KubePod) -> Option<&str> {
    let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true))?;
    (owner.kind == "DaemonSet").then_some(owner.uid.as_str())
}

/// One pod of a DaemonSet as it would be on a new node: like the newest there is, which knows what admission did to it, or
/// as the template says.
pub(super) fn daemon(set: &DaemonSet, newest: Option<&KubePod>) -> KubePod {
    let mut found = newest.cloned().unwrap_or_else(|| KubePod {
        metadata: set.metadata.clone().into(),
        spec: set.spec.template.spec.clone().map(Arc::new),
        ..KubePod::default()
    });
    // Its controller pins each pod to a node by name; what it asks of any node stands in the template.
    if let Some(wanted) = set.spec.template.spec.as_ref().and_then(required).cloned()
        && let Some(spec) = found.spec.as_mut()
    {
        let affinity = Arc::make_mut(spec).affinity.get_or_insert_default().node_affinity.get_or_insert_default();
        affinity.required_during_scheduling_ignored_during_execution = Some(wanted);
    }
    found
}

fn required(spec: &PodSpec) -> Option<&NodeSelector> {
    spec.affinity.as_ref()?.node_affinity.as_ref()?.required_during_scheduling_ignored_during_execution.as_ref()
}
