//! How far is a Job?

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;

use super::board::{Board, controller_of};
use super::workloads::{read, says};

/// How far a Job is, as its status says it.
struct JobProgress {
    active: usize,
    succeeded: usize,
    failed: usize,
    is_done: bool,
}

/// A Job makes as many pods as may run at once until enough have succeeded.
pub(crate) async fn keep(board: &Board) -> Result<(), kube::Error> {
    for job in board.jobs.iter().filter(|job| job.metadata.deletion_timestamp.is_none()) {
        let Some(spec) = &job.spec else { continue };
        let phase =
            |pod: &&&Pod, wanted: &str| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some(wanted);
        let pods = board.pods_of(&job.uid().unwrap_or_default());
        let succeeded = pods.iter().filter(|pod| phase(pod, "Succeeded")).count();
        let failed = pods.iter().filter(|pod| phase(pod, "Failed")).count();
        let active = pods.len() - succeeded - failed;
        let wanted = usize::try_from(spec.completions.unwrap_or(1)).unwrap_or_default();
        let at_once = usize::try_from(spec.parallelism.unwrap_or(1)).unwrap_or_default();
        let is_done = succeeded >= wanted;
        let api: Api<Pod> = Api::namespaced(board.client.clone(), &job.namespace().unwrap_or_default());
        let missing = wanted.saturating_sub(succeeded).min(at_once).saturating_sub(active);
        for _ in 0..if is_done { 0 } else { missing } {
            api.create(&PostParams::default(), &pod_of(job)?).await?;
        }
        report(board, job, &JobProgress { active, succeeded, failed, is_done }).await?;
    }
    Ok(())
}

fn pod_of(job: &Job) -> Result<Pod, kube::Error> {
    let template = job.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
    let metadata = template.metadata.unwrap_or_default();
    read(json!({
        "metadata": {
            "generateName": format!("{}-", job.name_any()), "namespace": job.namespace(),
            "labels": metadata.labels, "annotations": metadata.annotations, "ownerReferences": [controller_of(job)],
        },
        "spec": template.spec,
    }))
}

async fn report(board: &Board, job: &Job, progress: &JobProgress) -> Result<(), kube::Error> {
    let JobProgress { active, succeeded, failed, is_done } = *progress;
    let mut status = json!({ "active": active, "succeeded": succeeded, "failed": failed });
    let stands = serde_json::to_value(&job.status).unwrap_or_default();
    let was_done = stands.get("completionTime").is_some_and(|time| !time.is_null());
    if says(&stands, &status) && was_done == is_done {
        return Ok(());
    }
    if is_done && !was_done {
        let now = board.time();
        status["completionTime"] = json!(now);
        status["conditions"] =
            json!([{ "type": "Complete", "status": "True", "lastTransitionTime": now, "lastProbeTime": now }]);
    }
    let api: Api<Job> = Api::namespaced(board.client.clone(), &job.namespace().unwrap_or_default());
    api.patch_status(&job.name_any(), &PatchParams::default(), &Patch::Merge(json!({ "status": status })))
        .await
        .map(drop)
}
