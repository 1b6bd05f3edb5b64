//! What pods have in common, held once: pods of one workload differ in little more than their names.
//!
//! Only places in memory change, never what a pod says.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::pod::{Pod, PodMeta};
use super::pod_spec::{Container, PodSpec};
use super::pod_status::PodStatus;

/// Different values that are remembered of one workload. A rollout has two at a time; pods of a DaemonSet or StatefulSet differ
/// from each other, and looking through all of them would find nothing.
const REMEMBERED: usize = 4;

/// What was seen of whom, and is still held by a pod.
#[derive(Debug, Default)]
pub struct PodSharing {
    workloads: BTreeMap<Box<str>, Seen>,
    names: BTreeMap<Arc<str>, ()>,
    /// Names and workloads that nobody holds any more are forgotten when there are more than this.
    limit: usize,
}

/// What was seen of a workload.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    labels: Recent<BTreeMap<String, String>>,
    annotations: Recent<BTreeMap<String, String>>,
    owners: Recent<Vec<OwnerReference>>,
    containers: Recent<Vec<Container>>,
    init_containers: Recent<Vec<Container>>,
    specs: Recent<PodSpec>,
    statuses: Recent<PodStatus>,
}

impl PodSharing {
    /// The same pod, with everything that another pod of its workload has as well in the same place.
    pub fn shared(&mut self, mut pod: Pod) -> Pod {
        pod.node_name = pod.node_name.map(|name| self.name(name));
        let seen = self.metadata(&mut pod.metadata);
        pod.spec.iter_mut().for_each(|spec| seen.spec(spec));
        pod.status.iter_mut().for_each(|status| seen.status(status));
        pod
    }

    /// The same for metadata alone. Returns what was seen of the workload.
    pub(crate) fn metadata(&mut self, meta: &mut PodMeta) -> &mut Seen {
        self.forget_if_many();
        let namespace = self.name(meta.key.namespace.clone());
        // A key that somebody has already stays as it is.
        if let Some(key) = Arc::get_mut(&mut meta.key) {
            key.namespace = namespace;
        }
        let owner = meta.owner_references.first().map(|owner| owner.uid.as_str());
        let owner = owner.unwrap_or(&meta.key.namespace);
        let seen = self.workloads.entry(owner.into()).or_default();
        seen.labels.share(&mut meta.labels);
        seen.annotations.share(&mut meta.annotations);
        seen.owners.share(&mut meta.owner_references);
        seen
    }

    /// A name that many pods have.
    pub(crate) fn name(&mut self, name: Arc<str>) -> Arc<str> {
        match self.names.get_key_value(&name) {
            Some((known, ())) => known.clone(),
            None => {
                self.names.insert(name.clone(), ());
                name
            }
        }
    }

    fn forget_if_many(&mut self) {
        if self.names.len() + self.workloads.len() <= self.limit {
            return;
        }
        self.names.retain(|name, ()| Arc::strong_count(name) > 1);
        self.workloads.retain(|_, seen| seen.is_held());
        // Twice what is needed, so that this is done rarely.
        self.limit = 2 * (self.names.len() + self.workloads.len()) + 64;
    }
}

impl Seen {
    /// Puts a spec where the same one is.
    pub(crate) fn spec(&mut self, spec: &mut Arc<PodSpec>) {
        // A pod of a DaemonSet names its node, one of a StatefulSet its volumes; what runs in it is the same.
        if let Some(spec) = Arc::get_mut(spec) {
            self.containers.share(&mut spec.containers);
            self.init_containers.share(&mut spec.init_containers);
        }
        self.specs.share(spec);
    }

    /// The same for a status.
    pub(crate) fn status(&mut self, status: &mut Arc<PodStatus>) {
        self.statuses.share(status);
    }

    fn is_held(&self) -> bool {
        self.labels.is_held() || self.specs.is_held() || self.statuses.is_held()
    }
}

/// The last different values, the newest last.
#[derive(Debug)]
pub(crate) struct Recent<T>(Vec<Weak<T>>);

impl<T> Default for Recent<T> {
    fn default() -> Recent<T> {
        Recent(Vec::new())
    }
}

impl<T: PartialEq> Recent<T> {
    /// Where the same was seen, that takes the place of the value.
    pub(crate) fn share(&mut self, value: &mut Arc<T>) {
        if let Some(known) =
            self.0.iter().rev().filter_map(Weak::upgrade).find(|known| Arc::ptr_eq(known, value) || known == value)
        {
            *value = known;
            return;
        }
        self.0.retain(|known| known.strong_count() > 0);
        if self.0.len() >= REMEMBERED {
            self.0.remove(0);
        }
        self.0.push(Arc::downgrade(value));
    }

    /// Whether anybody still has one of them.
    pub(crate) fn is_held(&self) -> bool {
        self.0.iter().any(|known| known.strong_count() > 0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, owner: &str, more: &Value) -> Pod {
        let mut pod = json!({
            "metadata": {
                "name": name, "namespace": "shop", "uid": name, "labels": { "app": owner },
                "annotations": { "checksum/config": name, "karpenter.sh/do-not-disrupt": "true" },
                "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner }],
            },
            "spec": {
                "nodeName": "n1",
                "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1" } } }],
                "volumes": [{ "name": format!("token-{name}"), "projected": {} }],
            },
            "status": { "phase": "Running", "startTime": "2026-01-01T00:00:00Z", "podIP": name },
        });
        for (part, value) in more.as_object().into_iter().flatten() {
            for (field, value) in value.as_object().into_iter().flatten() {
                pod[part][field] = value.clone();
            }
        }
        serde_json::from_value(pod).unwrap()
    }

    fn same_places(a: &Pod, b: &Pod) -> [bool; 4] {
        let same = |a: Option<&Arc<PodSpec>>, b| a.zip(b).is_some_and(|(a, b)| Arc::ptr_eq(a, b));
        let status = a.status.as_ref().zip(b.status.as_ref()).is_some_and(|(a, b)| Arc::ptr_eq(a, b));
        let labels = Arc::ptr_eq(&a.metadata.labels, &b.metadata.labels);
        let owners = Arc::ptr_eq(&a.metadata.owner_references, &b.metadata.owner_references);
        [same(a.spec.as_ref(), b.spec.as_ref()), status, labels, owners]
    }

    #[test]
    fn pods_of_one_workload_hold_what_they_have_in_common_once() {
        let mut sharing = PodSharing::default();
        let [first, second] = ["a", "b"].map(|name| sharing.shared(pod(name, "web", &json!({}))));
        assert_eq!(same_places(&first, &second), [true; 4]);
        assert!(Arc::ptr_eq(first.node_name.as_ref().unwrap(), second.node_name.as_ref().unwrap()));
        assert_eq!((first.name(), second.name()), ("a", "b"));
    }

    #[test]
    fn sharing_changes_nothing_that_a_pod_says() {
        let mut sharing = PodSharing::default();
        let forms = [json!({}), json!({ "spec": { "priority": 5 } }), json!({ "status": { "phase": "Failed" } })];
        for number in 0..30 {
            let name = format!("p{}", number % 7);
            let made = pod(&name, &format!("o{}", number % 3), &forms[number % 3]);
            assert_eq!(sharing.shared(made.clone()), made);
        }
    }

    #[test]
    fn a_pod_that_differs_has_a_place_of_its_own() {
        let mut sharing = PodSharing::default();
        let first = sharing.shared(pod("a", "web", &json!({})));
        let other = sharing.shared(pod("b", "web", &json!({ "spec": { "priority": 5 } })));
        assert_eq!(same_places(&first, &other), [false, true, true, true]);
        let containers = |pod: &Pod| pod.spec.as_ref().map(|spec| spec.containers.clone()).unwrap();
        assert!(Arc::ptr_eq(&containers(&first), &containers(&other)), "what runs in it is the same");
    }

    #[test]
    fn what_nobody_holds_any_more_is_forgotten() {
        let mut sharing = PodSharing::default();
        let kept = sharing.shared(pod("kept", "kept", &json!({})));
        for number in 0..10_000 {
            let node = json!({ "spec": { "nodeName": format!("n{number}") } });
            sharing.shared(pod("p", &format!("o{number}"), &node));
        }
        assert!(sharing.workloads.len() + sharing.names.len() < 200);
        let again = sharing.shared(pod("again", "kept", &json!({})));
        assert_eq!(same_places(&kept, &again), [true; 4]);
    }
}
