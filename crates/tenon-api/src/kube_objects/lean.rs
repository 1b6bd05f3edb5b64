//! Objects without what no plan asks for, to be kept for long.
//!
//! Two versions of an object that differ only in what nobody asks for are then equal, and the second is no news.

use k8s_openapi::api::core::v1::NodeCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::node::Node;
use super::storage::{CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass};
use super::workload::{
    Namespace, ReplicaSet, ReplicaSetSpec, ReplicationController, ReplicationControllerSpec, Service, StatefulSet,
    StatefulSetSpec,
};
use crate::volumes::{BIND_COMPLETED, IS_DEFAULT};

/// An object of which only a part is asked for.
pub trait Lean {
    /// Drops the rest.
    fn make_lean(&mut self);
}

/// A name, whether it is being deleted, and these annotations.
fn keep(meta: &mut ObjectMeta, annotations: &[&str]) {
    let ObjectMeta { name, namespace, deletion_timestamp, annotations: written, .. } = std::mem::take(meta);
    let mut kept = written.unwrap_or_default();
    kept.retain(|name, _| annotations.contains(&name.as_str()));
    let annotations = (!kept.is_empty()).then_some(kept);
    *meta = ObjectMeta { name, namespace, deletion_timestamp, annotations, ..ObjectMeta::default() };
}

impl Lean for Node {
    fn make_lean(&mut self) {
        for said in self.status.iter_mut().flat_map(|status| status.conditions.iter_mut().flatten()) {
            // A heartbeat changes none of these. The reason says which repair policy a condition meets.
            let NodeCondition { type_, status, reason, last_transition_time, .. } = std::mem::take(said);
            *said = NodeCondition { type_, status, reason, last_transition_time, ..NodeCondition::default() };
        }
    }
}

impl Lean for PersistentVolumeClaim {
    fn make_lean(&mut self) {
        keep(&mut self.metadata, &[BIND_COMPLETED]);
    }
}

impl Lean for PersistentVolume {
    fn make_lean(&mut self) {
        keep(&mut self.metadata, &[]);
    }
}

impl Lean for StorageClass {
    fn make_lean(&mut self) {
        // The newest of several default classes counts.
        let created = self.metadata.creation_timestamp.take();
        keep(&mut self.metadata, &IS_DEFAULT);
        self.metadata.creation_timestamp = created;
    }
}

impl Lean for CSINode {
    fn make_lean(&mut self) {
        keep(&mut self.metadata, &[]);
    }
}

impl Lean for Namespace {
    fn make_lean(&mut self) {
        let labels = self.metadata.labels.take();
        keep(&mut self.metadata, &[]);
        self.metadata.labels = labels;
    }
}

impl Lean for Service {
    fn make_lean(&mut self) {
        keep(&mut self.metadata, &[]);
    }
}

impl Lean for ReplicaSet {
    fn make_lean(&mut self) {
        keep(&mut self.metadata, &[]);
        self.spec = ReplicaSetSpec { selector: self.spec.selector.take(), ..ReplicaSetSpec::default() };
        self.status = None;
    }
}

impl Lean for StatefulSet {
    fn make_lean(&mut self) {
        keep(&mut self.metadata, &[]);
        self.spec = StatefulSetSpec { selector: self.spec.selector.take(), ..StatefulSetSpec::default() };
        self.status = None;
    }
}

impl Lean for ReplicationController {
    fn make_lean(&mut self) {
        keep(&mut self.metadata, &[]);
        let selector = self.spec.selector.take();
        self.spec = ReplicationControllerSpec { selector, ..ReplicationControllerSpec::default() };
        self.status = None;
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    fn lean<K: Lean + DeserializeOwned>(value: &Value) -> K {
        let mut object: K = serde_json::from_value(value.clone()).unwrap();
        object.make_lean();
        object
    }

    #[test]
    fn what_decides_about_volumes_is_kept_and_the_rest_is_no_news() {
        let claim = |note: &str, bound: &str| {
            lean::<PersistentVolumeClaim>(&json!({
                "metadata": { "name": "a", "namespace": "n", "uid": note, "resourceVersion": note, "labels": { "x": note },
                    "annotations": { "note": note, (bound): "yes" } },
                "spec": { "volumeName": "v", "storageClassName": "c", "resources": { "note": note } },
                "status": { "phase": "Bound", "capacity": { "storage": note } },
            }))
        };
        let kept = claim("1", "pv.kubernetes.io/bind-completed");
        assert_eq!(kept, claim("2", "pv.kubernetes.io/bind-completed"));
        assert_ne!(kept, claim("1", "something-else"));
        assert_eq!((kept.volume_name(), kept.storage_class_name()), (Some("v"), Some("c")));
        let class: StorageClass =
            lean(&json!({ "metadata": { "name": "c", "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": { "storageclass.kubernetes.io/is-default-class": "true", "note": "x" } } }));
        assert!(class.metadata.creation_timestamp.is_some());
        assert_eq!(class.metadata.annotations.map(|kept| kept.len()), Some(1));
    }

    #[test]
    fn of_a_controller_of_pods_only_its_selector_is_kept() {
        let selector = json!({ "matchLabels": { "app": "web" } });
        let spec = json!({ "replicas": 3, "selector": selector, "template": { "spec": { "containers": [] } } });
        let set = json!({ "metadata": { "name": "a", "namespace": "n" }, "spec": spec, "status": { "replicas": 3 } });
        let kept: ReplicaSet = lean(&set);
        assert!(kept.spec.selector.is_some() && kept.spec.template.is_none() && kept.status.is_none());
        let kept: StatefulSet = lean(&set);
        assert!(kept.spec.selector.is_some() && kept.spec.template.spec.is_none() && kept.status.is_none());
    }

    #[test]
    fn of_the_conditions_of_a_node_only_what_repair_policies_look_at_is_kept() {
        let node = |beat: &str| {
            lean::<Node>(
                &json!({ "metadata": { "name": "n", "uid": "u", "annotations": { "a": "b" } }, "status": { "conditions":
                [{ "type": "Ready", "status": "True", "reason": "KubeletReady", "message": beat, "lastHeartbeatTime": beat }] } }),
            )
        };
        let kept = node("2026-01-01T00:00:00Z");
        assert_eq!(kept, node("2026-01-01T00:05:00Z"), "a heartbeat is no news");
        let said = kept.status.and_then(|status| status.conditions).unwrap_or_default();
        assert_eq!((said[0].type_.as_str(), said[0].status.as_str()), ("Ready", "True"));
        assert_eq!(
            (kept.metadata.uid.as_deref(), kept.metadata.annotations.map(|all| all.len())),
            (Some("u"), Some(1))
        );
    }

    #[test]
    fn the_labels_of_a_namespace_are_kept() {
        let namespace: Namespace =
            lean(&json!({ "metadata": { "name": "a", "labels": { "team": "red" }, "uid": "u" } }));
        assert_eq!(namespace.metadata.labels.map(|labels| labels["team"].clone()).as_deref(), Some("red"));
        assert_eq!(namespace.metadata.uid, None);
    }
}
