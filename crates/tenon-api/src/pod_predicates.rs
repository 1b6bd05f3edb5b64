//! What is true of a pod: has it ended, who owns it, may its node be disrupted, does it need another?
//!
//! The names are those of Karpenter's pod scheduling utilities. Planning, disruption and drains ask here and nowhere else.

use std::sync::Arc;

use crate::kube_objects::Pod;
use tenon_model::{Effect, JOB_LENGTH_S, PodKey, PodWorth, Protection, Taint, Timestamp};

use crate::names;
use crate::plan_options::FeatureGates;
use crate::pod;
use crate::timestamp::timestamp;

/// What a pod is found by.
pub fn pod_key(pod: &Pod) -> &Arc<PodKey> {
    &pod.metadata.key
}

/// Whether it ran to its end.
pub fn is_terminal(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Failed" | "Succeeded"))
}

/// Whether it is being deleted.
pub fn is_terminating(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
}

/// Whether it has neither ended nor been asked to.
pub fn is_active(pod: &Pod) -> bool {
    !is_terminal(pod) && !is_terminating(pod)
}

/// Whether a DaemonSet owns it: there is one on every node.
pub fn is_owned_by_daemon_set(pod: &Pod) -> bool {
    is_owned_by(pod, "apps/v1", "DaemonSet")
}

/// Whether the node itself owns it: a mirror of a static pod.
pub fn is_owned_by_node(pod: &Pod) -> bool {
    is_owned_by(pod, "v1", "Node")
}

/// Whether a StatefulSet owns it: its successor waits until it is gone.
pub fn is_owned_by_stateful_set(pod: &Pod) -> bool {
    is_owned_by(pod, "apps/v1", "StatefulSet")
}

/// Who controls it does not matter, only who owns it; as with Karpenter.
fn is_owned_by(pod: &Pod, api_version: &str, kind: &str) -> bool {
    pod.owner_references().iter().any(|owner| owner.api_version == api_version && owner.kind == kind)
}

/// Whether it stays on its node whatever happens to it.
fn is_bound_to_its_node(pod: &Pod) -> bool {
    is_owned_by_daemon_set(pod) || is_owned_by_node(pod)
}

/// Whether the scheduler tried the pod and found no node for it.
pub fn is_provisionable(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let mut conditions = status.into_iter().flat_map(|status| status.conditions.iter().flatten());
    let failed = conditions.any(|said| said.type_ == "PodScheduled" && said.reason.as_deref() == Some("Unschedulable"));
    let nominated = status.and_then(|status| status.nominated_node_name.as_deref()).filter(|node| !node.is_empty());
    failed && bound_to(pod).is_none() && nominated.is_none() && !is_bound_to_its_node(pod)
}

/// The node it is bound to.
pub fn bound_to(pod: &Pod) -> Option<&str> {
    pod.node_name.as_deref()
}

/// Whether it has to run somewhere else when its node is removed. A terminating pod of a StatefulSet still counts, because
/// its successor has to wait for it and needs the same place.
pub fn is_reschedulable(pod: &Pod) -> bool {
    let is_needed = is_active(pod) || (is_terminating(pod) && is_owned_by_stateful_set(pod));
    is_needed && !is_bound_to_its_node(pod)
}

/// Whether it is evicted when its node is drained.
pub fn is_evictable(pod: &Pod) -> bool {
    is_active(pod) && !is_owned_by_node(pod) && !tolerates_disrupted_taint(pod)
}

/// Whether it tolerates the taint of a node that is drained.
pub fn tolerates_disrupted_taint(pod: &Pod) -> bool {
    let taint = Taint { key: names::TAINT_DISRUPTED.to_owned(), value: String::new(), effect: Effect::NoSchedule };
    taint.is_tolerated_by(&pod::tolerations(pod))
}

/// Whether it asks now that its node be left alone. The annotation of a pod that has ended or is terminating counts no
/// more; that of a DaemonSet's pod does.
pub fn has_do_not_disrupt(pod: &Pod, now: Timestamp) -> bool {
    let annotation = pod.annotations().get(names::ANNOTATION_DO_NOT_DISRUPT);
    let Some(annotation) = annotation.filter(|_| is_active(pod)) else { return false };
    // Before it starts, its time has not begun to run.
    Protection::of(annotation).holds(pod.start_time.as_ref().map(|started| now.nanos_since(timestamp(started))))
}

/// What it costs to move it, from -10 to 10; 1 where it says nothing.
pub fn eviction_cost(pod: &Pod, gates: FeatureGates) -> f64 {
    pod_worth(pod, gates).eviction_cost()
}

/// What it says about its worth. An annotation that cannot be read says nothing, and the other one is not asked in its
/// place. Where deletion costs are managed, theirs is what a controller wrote, and no wish of the user; nor is one that Tenon
/// left behind when that was switched off.
pub fn pod_worth(pod: &Pod, gates: FeatureGates) -> PodWorth {
    let annotations = pod.annotations();
    let mark = annotations.get(names::ANNOTATION_MANAGED_DELETION_COST);
    let is_wish = |cost: &&String| !gates.pod_deletion_cost_management && Some(*cost) != mark;
    let of_kubernetes = || annotations.get(names::ANNOTATION_POD_DELETION_COST);
    let deletion_cost = annotations
        .get(names::ANNOTATION_DISRUPTION_COST)
        .or_else(|| of_kubernetes().filter(is_wish))
        .and_then(|text| text.parse::<i32>().ok())
        .unwrap_or_default();
    let priority = pod.spec.as_ref().and_then(|spec| spec.priority).unwrap_or_default();
    PodWorth { deletion_cost, priority, job_length_s: is_owned_by(pod, "batch/v1", "Job").then(|| job_length_s(pod)) }
}

/// How many seconds a pod of a Job runs at most, if it says so.
fn job_length_s(pod: &Pod) -> u32 {
    let deadline = pod.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
    deadline.and_then(|deadline| u32::try_from(deadline).ok()).unwrap_or(JOB_LENGTH_S)
}
