//! How many pods should a Deployment have, and how many has it?

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::board::{Board, controller_of, has_ended, is_ready};

/// The label that tells the ReplicaSets of a Deployment apart.
const TEMPLATE_HASH: &str = "pod-template-hash";

/// Every Deployment has one ReplicaSet for its present template; older ones are scaled down at once.
pub(crate) async fn keep_deployments(board: &Board) -> Result<(), kube::Error> {
    for deployment in board.deployments.iter().filter(|found| found.metadata.deletion_timestamp.is_none()) {
        let spec = &deployment.spec;
        let (hash, wanted) = (hash(&spec.template), spec.replicas.unwrap_or(1));
        let uid = deployment.uid().unwrap_or_default();
        let sets: Vec<&ReplicaSet> = board
            .replica_sets
            .iter()
            .filter(|set| set.owner_references().iter().any(|owner| owner.uid == uid))
            .collect();
        let is_present = |set: &&&ReplicaSet| set.labels().get(TEMPLATE_HASH) == Some(&hash);
        if !sets.iter().any(|set| is_present(&set)) {
            create_set(board, deployment, &hash, wanted).await?;
        }
        for set in &sets {
            let replicas = if is_present(&set) { wanted } else { 0 };
            scale(board, set, replicas).await?;
        }
        report_deployment(board, deployment, &sets).await?;
    }
    Ok(())
}

fn hash(template: &PodTemplateSpec) -> String {
    let text = serde_json::to_string(template).unwrap_or_default();
    Sha256::digest(text).iter().take(5).map(|byte| format!("{byte:02x}")).collect()
}

async fn create_set(board: &Board, owner: &Deployment, hash: &str, replicas: i32) -> Result<(), kube::Error> {
    let spec = &owner.spec;
    let labelled = |labels: Option<&std::collections::BTreeMap<String, String>>| {
        let mut labels = labels.cloned().unwrap_or_default();
        labels.insert(TEMPLATE_HASH.to_owned(), hash.to_owned());
        labels
    };
    let mut template = spec.template.clone();
    let metadata = template.metadata.get_or_insert_default();
    metadata.labels = Some(labelled(metadata.labels.as_ref()));
    let mut selector = spec.selector.clone();
    selector.match_labels = Some(labelled(selector.match_labels.as_ref()));
    let set: ReplicaSet = read(json!({
        "metadata": {
            "name": format!("{}-{hash}", owner.name_any()), "namespace": owner.namespace(),
            "labels": metadata.labels, "ownerReferences": [controller_of(owner)],
        },
        "spec": { "replicas": replicas, "selector": selector, "template": template },
    }))?;
    let api: Api<ReplicaSet> = Api::namespaced(board.client.clone(), &owner.namespace().unwrap_or_default());
    api.create(&PostParams::default(), &set).await.map(drop)
}

async fn scale(board: &Board, set: &ReplicaSet, replicas: i32) -> Result<(), kube::Error> {
    if set.spec.replicas == Some(replicas) {
        return Ok(());
    }
    let api: Api<ReplicaSet> = Api::namespaced(board.client.clone(), &set.namespace().unwrap_or_default());
    let patch = json!({ "spec": { "replicas": replicas } });
    api.patch(&set.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
}

async fn report_deployment(board: &Board, deployment: &Deployment, sets: &[&ReplicaSet]) -> Result<(), kube::Error> {
    let pods: Vec<&Pod> = sets.iter().flat_map(|set| board.pods_of(&set.uid().unwrap_or_default())).collect();
    let ready = pods.iter().filter(|pod| is_ready(pod)).count();
    let status = json!({
        "observedGeneration": deployment.metadata.generation, "replicas": pods.len(), "updatedReplicas": pods.len(),
        "readyReplicas": ready, "availableReplicas": ready,
    });
    let stands = serde_json::to_value(&deployment.status).unwrap_or_default();
    if says(&stands, &status) {
        return Ok(());
    }
    let api: Api<Deployment> = Api::namespaced(board.client.clone(), &deployment.namespace().unwrap_or_default());
    api.patch_status(&deployment.name_any(), &PatchParams::default(), &Patch::Merge(json!({ "status": status })))
        .await
        .map(drop)
}

/// Every ReplicaSet has as many pods as it says; of too many, those that do not run yet go first.
pub(crate) async fn keep_replica_sets(board: &Board) -> Result<(), kube::Error> {
    for set in board.replica_sets.iter().filter(|set| set.metadata.deletion_timestamp.is_none()) {
        let wanted = usize::try_from(set.spec.replicas.unwrap_or(1)).unwrap_or_default();
        let all = board.pods_of(&set.uid().unwrap_or_default());
        let mut alive: Vec<&Pod> =
            all.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none() && !has_ended(pod)).collect();
        let api: Api<Pod> = Api::namespaced(board.client.clone(), &set.namespace().unwrap_or_default());
        for _ in alive.len()..wanted {
            api.create(&PostParams::default(), &pod_of(set)?).await?;
        }
        alive.sort_by_key(|pod| (is_ready(pod), pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())));
        for pod in alive.iter().take(alive.len().saturating_sub(wanted)) {
            api.delete(&pod.name_any(), &DeleteParams::default()).await?;
        }
        report_set(board, set, &alive).await?;
    }
    Ok(())
}

async fn report_set(board: &Board, set: &ReplicaSet, alive: &[&Pod]) -> Result<(), kube::Error> {
    let ready = alive.iter().filter(|pod| is_ready(pod)).count();
    let status = json!({ "replicas": alive.len(), "readyReplicas": ready, "availableReplicas": ready });
    if says(&serde_json::to_value(&set.status).unwrap_or_default(), &status) {
        return Ok(());
    }
    let api: Api<ReplicaSet> = Api::namespaced(board.client.clone(), &set.namespace().unwrap_or_default());
    api.patch_status(&set.name_any(), &PatchParams::default(), &Patch::Merge(json!({ "status": status })))
        .await
        .map(drop)
}

fn pod_of(set: &ReplicaSet) -> Result<Pod, kube::Error> {
    let template = set.spec.template.clone().unwrap_or_default();
    let metadata = template.metadata.unwrap_or_default();
    read(json!({
        "metadata": {
            "generateName": format!("{}-", set.name_any()), "namespace": set.namespace(),
            "labels": metadata.labels, "annotations": metadata.annotations, "ownerReferences": [controller_of(set)],
        },
        "spec": template.spec,
    }))
}

/// Whether a status says all of this already. Numbers that are nothing may be left out.
pub(crate) fn says(stands: &Value, wanted: &Value) -> bool {
    let is_nothing = |value: &Value| value.is_null() || *value == json!(0);
    wanted.as_object().into_iter().flatten().all(|(key, value)| {
        let present = stands.get(key).unwrap_or(&Value::Null);
        present == value || (is_nothing(present) && is_nothing(value))
    })
}

/// An object of our own making.
pub(crate) fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, kube::Error> {
    serde_json::from_value(value).map_err(kube::Error::SerdeError)
}
