//! Which pods does a ReplicaSet delete when it is scaled down, and what stands on them about their order?

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_model::{NodeReplicas, Replica, WrittenCost};

use crate::kube_objects::Pod;
use crate::names;
use crate::pod_predicates::{bound_to, is_active, pod_key};

/// Pods of the cluster's own, which come and go with it and never keep a node for somebody.
const SYSTEM_NAMESPACE: &str = "kube-system";

/// Owners whose pods are made anew elsewhere, or are on every node.
const REPLACING: [(&str, &str); 3] = [("apps/v1", "ReplicaSet"), ("batch/v1", "Job"), ("apps/v1", "DaemonSet")];

/// The pods of each node, by its name.
pub fn replicas_by_node(pods: &[Arc<Pod>]) -> BTreeMap<String, NodeReplicas> {
    let mut nodes: BTreeMap<String, NodeReplicas> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| is_active(pod)) {
        let Some(node) = bound_to(pod) else { continue };
        let node = nodes.entry(node.to_owned()).or_default();
        node.is_pinned |= is_pinning(pod);
        node.replicas.extend(replica(pod));
    }
    nodes
}

/// The pod, if a ReplicaSet controls it.
pub fn replica(pod: &Pod) -> Option<Replica> {
    let text = |name: &str| pod.annotations().get(name).cloned();
    (controller(pod) == Some(("apps/v1", "ReplicaSet"))).then(|| Replica {
        pod: pod_key(pod).clone(),
        written: WrittenCost {
            cost: text(names::ANNOTATION_POD_DELETION_COST),
            mark: text(names::ANNOTATION_MANAGED_DELETION_COST),
        },
    })
}

/// Whether nobody would make the pod anew on another node if its owner were scaled down and up.
fn is_pinning(pod: &Pod) -> bool {
    pod.namespace() != SYSTEM_NAMESPACE && controller(pod).is_none_or(|owner| !REPLACING.contains(&owner))
}

/// API version and kind of the owner that controls a pod.
fn controller(pod: &Pod) -> Option<(&str, &str)> {
    let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true))?;
    Some((owner.api_version.as_str(), owner.kind.as_str()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(namespace: &str, (version, kind, controls): (&str, &str, bool), more: &Value) -> Arc<Pod> {
        let owner = json!({ "apiVersion": version, "kind": kind, "name": "o", "uid": "o", "controller": controls });
        let mut pod = json!({
            "metadata": { "name": "p", "namespace": namespace, "uid": "u", "ownerReferences": [owner] },
            "spec": { "nodeName": "n", "containers": [] }, "status": { "phase": "Running" },
        });
        for (part, fields) in more.as_object().into_iter().flatten() {
            for (field, value) in fields.as_object().into_iter().flatten() {
                pod[part][field] = value.clone();
            }
        }
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn node(pod: Arc<Pod>) -> NodeReplicas {
        replicas_by_node(&[pod]).remove("n").unwrap_or_default()
    }

    #[test]
    fn j7_only_pods_that_a_replica_set_controls_are_written() {
        let written = json!({ "metadata": { "annotations":
            { "controller.kubernetes.io/pod-deletion-cost": "-3", "tenon.dev/pod-deletion-cost": "-2", "other": "x" } } });
        let found = node(pod("shop", ("apps/v1", "ReplicaSet", true), &written));
        let expected = WrittenCost { cost: Some("-3".to_owned()), mark: Some("-2".to_owned()) };
        assert_eq!(found.replicas.iter().map(|replica| &replica.written).collect::<Vec<_>>(), [&expected]);
        for other in [("apps/v1", "ReplicaSet", false), ("apps/v1", "StatefulSet", true), ("x/v1", "ReplicaSet", true)]
        {
            assert!(node(pod("shop", other, &json!({}))).replicas.is_empty(), "{other:?}");
        }
        for ended in [json!({ "status": { "phase": "Succeeded" } }), json!({ "spec": { "nodeName": null } })] {
            assert!(node(pod("shop", ("apps/v1", "ReplicaSet", true), &ended)).replicas.is_empty(), "{ended}");
        }
    }

    #[test]
    fn j7_a_pod_that_nobody_makes_anew_elsewhere_pins_its_node_outside_of_kube_system() {
        let cases = [
            (("apps/v1", "ReplicaSet", true), false),
            (("batch/v1", "Job", true), false),
            (("apps/v1", "DaemonSet", true), false),
            (("apps/v1", "StatefulSet", true), true),
            (("x/v1", "ReplicaSet", true), true),
            (("apps/v1", "ReplicaSet", false), true),
        ];
        for (owner, is_pinned) in cases {
            assert_eq!(node(pod("shop", owner, &json!({}))).is_pinned, is_pinned, "{owner:?}");
            assert!(!node(pod("kube-system", owner, &json!({}))).is_pinned, "{owner:?}");
        }
    }
}
