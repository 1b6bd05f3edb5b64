//! How many pods should a Deployment have, and how many has it?

use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tenon_api::kube_objects::{ReplicaSet, WirePod as Pod};
use tenon_api::names;

use super::board::{Board, has_ended, is_ready};
use super::owner::{Owner, create};

/// The label that tells the ReplicaSets of a Deployment apart.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// Every Deployment has one ReplicaSet for its present template; older ones are scaled down at once.
pub(crate) async fn keep_deployments(board: &Board) -> Result<(), kube::Error> {
    for deployment in board.deployments.iter().filter(|found| !found.is_deleted()) {
        let (hash, wanted) = (hash(deployment.template()), deployment.number("replicas").unwrap_or(1));
        let sets: Vec<&Owner> = board.replica_sets.iter().filter(|set| deployment.owns(&set.object)).collect();
        let is_present = |set: &&&Owner| set.object.labels().get(TEMPLATE_HASH) == Some(&hash);
        if !sets.iter().any(|set| is_present(&set)) {
            create_set(board, deployment, &hash, wanted).await?;
        }
        for set in &sets {
            let replicas = if is_present(&set) { wanted } else { 0 };
            set.scale(&board.client, replicas).await?;
        }
        report_deployment(board, deployment, &sets).await?;
    }
    Ok(())
}

fn hash(template: &Value) -> String {
    Sha256::digest(template.to_string()).iter().take(5).map(|byte| format!("{byte:02x}")).collect()
}

async fn create_set(board: &Board, owner: &Owner, hash: &str, replicas: usize) -> Result<(), kube::Error> {
    let (mut template, mut selector) = (owner.template().clone(), owner.object.data["spec"]["selector"].clone());
    template["metadata"]["labels"][TEMPLATE_HASH] = json!(hash);
    selector["matchLabels"][TEMPLATE_HASH] = json!(hash);
    let set = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{}-{hash}", owner.object.name_any()), "namespace": owner.namespace(),
            "labels": template["metadata"]["labels"], "ownerReferences": [owner.reference()],
        },
        "spec": { "replicas": replicas, "selector": selector, "template": template },
    });
    create::<ReplicaSet>(&board.client, set).await
}

async fn report_deployment(board: &Board, deployment: &Owner, sets: &[&Owner]) -> Result<(), kube::Error> {
    let pods: Vec<&Pod> = sets.iter().flat_map(|set| board.pods_of(set)).collect();
    let ready = pods.iter().filter(|pod| is_ready(pod)).count();
    let status = json!({
        "observedGeneration": deployment.object.metadata.generation, "replicas": pods.len(),
        "updatedReplicas": pods.len(), "readyReplicas": ready, "availableReplicas": ready,
    });
    deployment.report(&board.client, status).await
}

/// What somebody wrote on a pod for this; 0 if nothing can be read.
fn deletion_cost(pod: &Pod) -> i32 {
    let written = pod.annotations().get(names::ANNOTATION_POD_DELETION_COST);
    written.and_then(|cost| cost.parse().ok()).unwrap_or_default()
}

/// Every ReplicaSet has as many pods as it says; of too many, those that do not run yet go first, then those
/// that cost least to delete.
pub(crate) async fn keep_replica_sets(board: &Board) -> Result<(), kube::Error> {
    for set in board.replica_sets.iter().filter(|set| !set.is_deleted()) {
        let wanted = set.number("replicas").unwrap_or(1);
        let mut alive: Vec<&Pod> = board
            .pods_of(set)
            .into_iter()
            .filter(|pod| pod.metadata.deletion_timestamp.is_none() && !has_ended(pod))
            .collect();
        for _ in alive.len()..wanted {
            set.create_pod(&board.client).await?;
        }
        alive.sort_by_key(|pod| (is_ready(pod), pod.node_name().is_some(), deletion_cost(pod)));
        let api: Api<Pod> = Api::namespaced(board.client.clone(), &set.namespace());
        for pod in alive.iter().take(alive.len().saturating_sub(wanted)) {
            api.delete(&pod.name_any(), &DeleteParams::default()).await?;
        }
        let ready = alive.iter().filter(|pod| is_ready(pod)).count();
        let status = json!({ "replicas": alive.len(), "readyReplicas": ready, "availableReplicas": ready });
        set.report(&board.client, status).await?;
    }
    Ok(())
}
