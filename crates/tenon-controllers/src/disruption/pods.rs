//! Does a pod hold its node: by asking to be left alone, or by having to run somewhere?

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use tenon_api::names;

use super::duration::parse_go_duration;

/// Costs far outside say no more than these, and one pod must not outweigh all others.
const COST_LIMITS: (f64, f64) = (-10.0, 10.0);
/// Whoever uses the whole range of a cost moves the result by 16.
const COST_UNIT: f64 = 134_217_728.0;
/// Whoever uses the whole range of priorities moves the result by 64, so the highest always reach the limit.
const PRIORITY_UNIT: f64 = 33_554_432.0;

/// `namespace/name`.
pub(crate) fn key(pod: &Pod) -> String {
    format!("{}/{}", pod.metadata.namespace.as_deref().unwrap_or_default(), pod.name_any())
}

/// Whether the pod asks that its node be left alone. The wish of a pod that is over or leaving counts no more; that of
/// a daemon's pod does.
pub(crate) fn forbids_disruption(pod: &Pod, now: Timestamp) -> bool {
    is_active(pod) && pod.annotations().get(names::ANNOTATION_DO_NOT_DISRUPT).is_some_and(|wish| holds(wish, pod, now))
}

/// Whether the node is needed for this pod: it has to run somewhere, and moving it costs something.
pub(crate) fn needs_node(pod: &Pod) -> bool {
    is_reschedulable(pod) && eviction_cost(pod) > 0.0
}

/// What it costs to move a pod, from -10 to 10; 1 where nobody says anything.
///
/// An annotation that cannot be read says nothing, and the other one is not asked in its place.
pub fn eviction_cost(pod: &Pod) -> f64 {
    let annotations = pod.annotations();
    let cost = annotations
        .get(names::ANNOTATION_DISRUPTION_COST)
        .or_else(|| annotations.get(names::ANNOTATION_POD_DELETION_COST))
        .and_then(|text| text.parse::<i32>().ok())
        .unwrap_or_default();
    let priority = pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default();
    let sum = 1.0 + f64::from(cost) / COST_UNIT + f64::from(priority) / PRIORITY_UNIT;
    sum.clamp(COST_LIMITS.0, COST_LIMITS.1)
}

fn holds(wish: &str, pod: &Pod, now: Timestamp) -> bool {
    if wish == "true" {
        return true;
    }
    let started = pod.status.as_ref().and_then(|status| status.start_time.as_ref());
    parse_go_duration(wish).filter(|wanted| *wanted > SignedDuration::ZERO).is_some_and(|wanted| {
        // Before it starts, its time has not begun to run.
        started.is_none_or(|started| now.duration_since(started.0) < wanted)
    })
}

pub(crate) fn is_active(pod: &Pod) -> bool {
    !is_terminal(pod) && !is_terminating(pod)
}

/// A leaving pod of a StatefulSet still counts, because its successor has to wait for it and needs the same place.
fn is_reschedulable(pod: &Pod) -> bool {
    let is_wanted = is_active(pod) || (is_terminating(pod) && is_owned_by(pod, "apps/v1", "StatefulSet"));
    is_wanted && !is_owned_by(pod, "apps/v1", "DaemonSet") && !is_owned_by(pod, "v1", "Node")
}

pub(crate) fn is_terminal(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Failed" | "Succeeded"))
}

pub(crate) fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

pub(crate) fn is_owned_by(pod: &Pod, api_version: &str, kind: &str) -> bool {
    pod.owner_references().iter().any(|owner| owner.api_version == api_version && owner.kind == kind)
}
