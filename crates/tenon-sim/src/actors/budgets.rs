//! How many pods of a PodDisruptionBudget may be disturbed now?

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use serde_json::json;
use tenon_api::kube_objects::{PodDisruptionBudgetSpec, WirePod as Pod};

use super::board::{Board, has_ended, is_ready, selects};
use super::owner::{Owner, read};

/// Counts for every budget.
pub(crate) async fn count(board: &Board) -> Result<(), kube::Error> {
    for budget in &board.budgets {
        budget.report(&board.client, counted(board, budget)?).await?;
    }
    Ok(())
}

fn counted(board: &Board, budget: &Owner) -> Result<serde_json::Value, kube::Error> {
    let spec: PodDisruptionBudgetSpec = read(budget.object.data["spec"].clone())?;
    // Without a selector a budget covers nothing; with an empty one, everything.
    let selects = |pod: &Pod| spec.selector.as_ref().is_some_and(|selector| selects(selector, pod.labels()));
    let is_covered = |pod: &&Pod| pod.namespace() == budget.object.namespace() && selects(pod);
    let pods: Vec<&Pod> = board.pods.iter().filter(is_covered).filter(|pod| !has_ended(pod)).collect();
    let is_healthy = |pod: &&&Pod| is_ready(pod) && pod.metadata.deletion_timestamp.is_none();
    let (expected, healthy) = (number(pods.len()), number(pods.iter().filter(is_healthy).count()));
    let desired = match (&spec.min_available, &spec.max_unavailable) {
        (Some(least), _) => amount(least, expected),
        (None, Some(most)) => (expected - amount(most, expected)).max(0),
        (None, None) => (expected - 1).max(0),
    };
    Ok(json!({
        "observedGeneration": budget.object.metadata.generation, "expectedPods": expected, "currentHealthy": healthy,
        "desiredHealthy": desired, "disruptionsAllowed": (healthy - desired).max(0),
    }))
}

/// A share is rounded up, as the real one does.
fn amount(wanted: &IntOrString, of: i64) -> i64 {
    match wanted {
        IntOrString::Int(number) => i64::from(*number),
        IntOrString::String(share) => {
            let percent: i64 = share.trim_end_matches('%').parse().unwrap_or(100);
            (percent * of + 99) / 100
        }
    }
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
