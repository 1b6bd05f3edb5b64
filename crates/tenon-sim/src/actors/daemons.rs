//! Which nodes should have a DaemonSet's pod, and which have one?

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod, Toleration};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::json;
use tenon_api::pod;

use super::board::{Board, controller_of, has_ended};
use super::scheduler::{barring, matches};
use super::workloads::read;

/// Taints every daemon puts up with: it is there to mend what they speak of.
const TOLERATED: [&str; 6] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/unschedulable",
];

/// Every DaemonSet has a pod on every node that lets it on.
pub(crate) async fn keep(board: &Board) -> Result<(), kube::Error> {
    for set in board.daemon_sets.iter().filter(|set| set.metadata.deletion_timestamp.is_none()) {
        let api: Api<Pod> = Api::namespaced(board.client.clone(), &set.namespace().unwrap_or_default());
        let pods = board.pods_of(&set.uid().unwrap_or_default());
        let on = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        for node in &board.nodes {
            let wanted = pod_for(set, node)?;
            let is_there = pods.iter().any(|pod| on(pod).as_deref() == Some(&node.name_any()) && !has_ended(pod));
            if !is_there && is_let_on(&wanted, node) {
                api.create(&PostParams::default(), &wanted).await?;
            }
        }
        let is_lost = |pod: &&&Pod| !board.nodes.iter().any(|node| on(pod).as_deref() == Some(&node.name_any()));
        for pod in pods.iter().filter(is_lost).filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
            api.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await?;
        }
    }
    Ok(())
}

fn is_let_on(pod: &Pod, node: &Node) -> bool {
    let wanted = pod::to_model(pod);
    node.metadata.deletion_timestamp.is_none() && barring(&wanted, node).is_none() && matches(&wanted, node)
}

/// Bound from the start: nobody else could decide it.
fn pod_for(set: &DaemonSet, node: &Node) -> Result<Pod, kube::Error> {
    let template = set.spec.template.clone();
    let metadata = template.metadata.unwrap_or_default();
    let mut spec = template.spec.unwrap_or_default();
    spec.node_name = Some(node.name_any());
    let tolerations = spec.tolerations.get_or_insert_default();
    tolerations.extend(TOLERATED.map(|key| Toleration {
        key: Some(key.to_owned()),
        operator: Some("Exists".to_owned()),
        ..Toleration::default()
    }));
    read(json!({
        "metadata": {
            "generateName": format!("{}-", set.name_any()), "namespace": set.namespace(),
            "labels": metadata.labels, "annotations": metadata.annotations, "ownerReferences": [controller_of(set)],
        },
        "spec": spec,
    }))
}
