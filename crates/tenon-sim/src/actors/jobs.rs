//! How far is a Job?

use serde_json::json;
use tenon_api::kube_objects::WirePod as Pod;

use super::board::Board;
use super::owner::Owner;

/// How far a Job is, as its status says it.
struct JobProgress {
    active: usize,
    succeeded: usize,
    failed: usize,
    is_done: bool,
}

/// A Job makes as many pods as may run at once until enough have succeeded.
pub(crate) async fn keep(board: &Board) -> Result<(), kube::Error> {
    for job in board.jobs.iter().filter(|job| !job.is_deleted()) {
        let phase =
            |pod: &&&Pod, wanted: &str| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some(wanted);
        let pods = board.pods_of(job);
        let succeeded = pods.iter().filter(|pod| phase(pod, "Succeeded")).count();
        let failed = pods.iter().filter(|pod| phase(pod, "Failed")).count();
        let active = pods.len() - succeeded - failed;
        let wanted = job.number("completions").unwrap_or(1);
        let at_once = job.number("parallelism").unwrap_or(1);
        let is_done = succeeded >= wanted;
        let missing = wanted.saturating_sub(succeeded).min(at_once).saturating_sub(active);
        for _ in 0..if is_done { 0 } else { missing } {
            job.create_pod(&board.client).await?;
        }
        report(board, job, &JobProgress { active, succeeded, failed, is_done }).await?;
    }
    Ok(())
}

async fn report(board: &Board, job: &Owner, progress: &JobProgress) -> Result<(), kube::Error> {
    let JobProgress { active, succeeded, failed, is_done } = *progress;
    let mut status = json!({ "active": active, "succeeded": succeeded, "failed": failed });
    let was_done = !job.object.data["status"]["completionTime"].is_null();
    if is_done && !was_done {
        let now = board.time();
        status["completionTime"] = json!(now);
        status["conditions"] =
            json!([{ "type": "Complete", "status": "True", "lastTransitionTime": now, "lastProbeTime": now }]);
    }
    job.report(&board.client, status).await
}
