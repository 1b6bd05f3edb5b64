//! What do pods of one workload share? Pods with the same parts have one shape, which is computed once.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use tenon_model::{PodShape, Spread};

use crate::kube_objects::{Pod as KubePod, PodSpec, PodStatus, Recent};
use crate::pod;

/// The shapes of pods that are there.
#[derive(Debug, Default)]
pub(super) struct PodShapes {
    known: BTreeMap<Places, Known>,
    /// The last shapes of each workload, by where its owners are. Pods may differ in what no shape depends on, and have one shape.
    recent: BTreeMap<usize, Recent<PodShape>>,
    /// What no pod has any more is forgotten when there is more than this.
    limit: usize,
}

/// Where in memory the parts are that decide the shape of a pod. Equal parts in different places are computed twice.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Places {
    spec: usize,
    status: usize,
    labels: usize,
    annotations: usize,
    owners: usize,
    namespace: usize,
}

#[derive(Debug)]
struct Known {
    shape: Weak<PodShape>,
    /// Spread constraints that are not the pod's own.
    spreads: Arc<[Spread]>,
    /// Kept, so that nothing else can come to be at the same places.
    _parts: Parts,
}

#[derive(Debug)]
struct Parts {
    _spec: Option<Weak<PodSpec>>,
    _status: Option<Weak<PodStatus>>,
    _labels: Weak<BTreeMap<String, String>>,
    _annotations: Weak<BTreeMap<String, String>>,
    _owners: Weak<Vec<OwnerReference>>,
    _namespace: Weak<str>,
}

impl PodShapes {
    /// The shape of a pod. One without spread constraints of its own has these.
    pub(super) fn of(&mut self, found: &KubePod, spreads: &Arc<[Spread]>) -> Arc<PodShape> {
        let places = places(found);
        let known = self.known.get(&places).filter(|known| known.spreads == *spreads);
        if let Some(shape) = known.and_then(|known| known.shape.upgrade()) {
            return shape;
        }
        if self.known.len() >= self.limit {
            self.known.retain(|_, known| known.shape.strong_count() > 0);
            self.recent.retain(|_, recent| recent.is_held());
            // Twice what is needed, so that this is done rarely.
            self.limit = 2 * self.known.len() + 64;
        }
        let mut shape = pod::shape(found);
        if shape.spreads.is_empty() {
            shape.spreads = spreads.to_vec();
        }
        let mut shape = Arc::new(shape);
        self.recent.entry(places.owners).or_default().share(&mut shape);
        let known = Known { shape: Arc::downgrade(&shape), spreads: spreads.clone(), _parts: parts(found) };
        self.known.insert(places, known);
        shape
    }
}

fn places(pod: &KubePod) -> Places {
    let meta = &pod.metadata;
    Places {
        spec: pod.spec.as_ref().map_or(0, |spec| Arc::as_ptr(spec).addr()),
        status: pod.status.as_ref().map_or(0, |status| Arc::as_ptr(status).addr()),
        labels: Arc::as_ptr(&meta.labels).addr(),
        annotations: Arc::as_ptr(&meta.annotations).addr(),
        owners: Arc::as_ptr(&meta.owner_references).addr(),
        namespace: Arc::as_ptr(&meta.key.namespace).addr(),
    }
}

fn parts(pod: &KubePod) -> Parts {
    let meta = &pod.metadata;
    Parts {
        _spec: pod.spec.as_ref().map(Arc::downgrade),
        _status: pod.status.as_ref().map(Arc::downgrade),
        _labels: Arc::downgrade(&meta.labels),
        _annotations: Arc::downgrade(&meta.annotations),
        _owners: Arc::downgrade(&meta.owner_references),
        _namespace: Arc::downgrade(&meta.key.namespace),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::kube_objects::PodSharing;

    fn pod(name: &str, more: &Value) -> KubePod {
        let mut pod = json!({
            "metadata": { "name": name, "namespace": "shop", "uid": name, "ownerReferences":
                [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web" }] },
            "spec": { "nodeName": "n", "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1" } } }] },
        });
        for (part, value) in more.as_object().into_iter().flatten() {
            for (field, value) in value.as_object().into_iter().flatten() {
                pod[part][field] = value.clone();
            }
        }
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn spread_constraints_that_are_not_the_pod_s_own_belong_to_the_shape() {
        let (mut sharing, mut pods) = (PodSharing::default(), PodShapes::default());
        let [a, b] = ["a", "b"].map(|name| sharing.shared(pod(name, &json!({}))));
        let constraint = json!({ "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule" });
        let asker = crate::pod_affinity::Asker { namespace: "shop", labels: &BTreeMap::new() };
        let spread = asker.spread(&serde_json::from_value(constraint).unwrap());
        let plain = pods.of(&a, &Arc::default());
        let [first, second] = [&a, &b].map(|found| pods.of(found, &Arc::from([spread.clone()])));
        assert!(Arc::ptr_eq(&first, &second) && first.spreads == [spread] && plain.spreads.is_empty());
        assert_eq!(pods.of(&a, &Arc::default()), plain, "until they are gone again");
    }

    #[test]
    fn pods_of_a_daemon_set_share_a_shape_whatever_node_they_name() {
        let (mut sharing, mut pods) = (PodSharing::default(), PodShapes::default());
        let [a, b] = ["a", "b"].map(|node| {
            let names = json!({ "matchFields": [{ "key": "metadata.name", "operator": "In", "values": [node] }] });
            let required =
                json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [names] } });
            sharing.shared(pod(node, &json!({ "spec": { "affinity": { "nodeAffinity": required } } })))
        });
        assert_eq!(a.spec, b.spec, "nobody reads the name");
        let first = pods.of(&a, &Arc::default());
        assert!(Arc::ptr_eq(&first, &pods.of(&b, &Arc::default())));
    }

    #[test]
    fn pods_of_one_workload_share_a_shape() {
        let (mut sharing, mut pods) = (PodSharing::default(), PodShapes::default());
        let [a, b] = ["a", "b"].map(|name| sharing.shared(pod(name, &json!({}))));
        let first = pods.of(&a, &Arc::default());
        assert!(Arc::ptr_eq(&first, &pods.of(&b, &Arc::default())));
    }

    #[test]
    fn a_shared_shape_is_the_one_each_pod_has_by_itself() {
        let (mut sharing, mut pods) = (PodSharing::default(), PodShapes::default());
        let more = json!({ "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": "2" } } }] } });
        let kept = json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } });
        let resized = json!({ "status": { "containerStatuses": [{ "name": "c", "resources": { "requests": { "cpu": "4" } } }] } });
        let mut held = Vec::new();
        for (number, form) in [&json!({}), &more, &kept, &resized].into_iter().cycle().take(40).enumerate() {
            let found = sharing.shared(pod(&number.to_string(), form));
            let answer = pods.of(&found, &Arc::default());
            assert_eq!(*answer, pod::shape(&found), "{form}");
            // Every other one is gone at once, and something else may come to be at its places.
            held.extend((number % 2 == 0).then_some((found, answer)));
        }
    }

    #[test]
    fn shapes_that_no_pod_has_any_more_are_forgotten() {
        let mut pods = PodShapes::default();
        (0..10_000).for_each(|number| drop(pods.of(&pod(&number.to_string(), &json!({})), &Arc::default())));
        assert!(pods.known.len() < 100, "{}", pods.known.len());
    }
}
