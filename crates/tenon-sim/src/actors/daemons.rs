//! Which nodes should have a DaemonSet's pod, and which have one?

use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use tenon_api::kube_objects::{Node, WirePod as Pod};
use tenon_api::pod;

use super::board::{Board, has_ended};
use super::owner::{Owner, create, read};
use super::scheduler::{barring, matches};

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
    for set in board.daemon_sets.iter().filter(|set| !set.is_deleted()) {
        let pods = board.pods_of(set);
        let on = |pod: &Pod| pod.node_name().map(str::to_owned);
        for node in &board.nodes {
            let is_there = pods.iter().any(|pod| on(pod).as_deref() == Some(&node.name_any()) && !has_ended(pod));
            let wanted = pod_for(set, node);
            if !is_there && is_let_on(&read(wanted.clone())?, node) {
                create::<Pod>(&board.client, wanted).await?;
            }
        }
        let api: Api<Pod> = Api::namespaced(board.client.clone(), &set.namespace());
        let is_lost = |pod: &&&Pod| !board.nodes.iter().any(|node| on(pod).as_deref() == Some(&node.name_any()));
        for pod in pods.iter().filter(is_lost).filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
            api.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await?;
        }
    }
    Ok(())
}

fn is_let_on(pod: &Pod, node: &Node) -> bool {
    let wanted = pod::to_model(&pod.clone().into());
    node.metadata.deletion_timestamp.is_none() && barring(&wanted, node).is_none() && matches(&wanted, node)
}

/// Bound from the start: nobody else could decide it.
fn pod_for(set: &Owner, node: &Node) -> Value {
    let mut pod = set.pod();
    let spec = &mut pod["spec"];
    spec["nodeName"] = json!(node.name_any());
    let own = spec["tolerations"].as_array().cloned().unwrap_or_default();
    let tolerated = TOLERATED.map(|key| json!({ "key": key, "operator": "Exists" }));
    spec["tolerations"] = own.into_iter().chain(tolerated).collect();
    pod
}
