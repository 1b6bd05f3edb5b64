//! Pods that need a node: those the scheduler found none for, and those whose node leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod as KubePod;
use kube::ResourceExt;
use tenon_model::{Effect, Owner, Pod, Seconds, Taint};

use super::budgets::is_held;
use crate::names::TAINT_DISRUPTED;
use crate::objects::Objects;
use crate::plan_options::{PlanOptions, PreferencePolicy};
use crate::pod;

/// Whether the scheduler tried the pod and found no place for it.
pub fn is_provisionable(pod: &KubePod) -> bool {
    let status = pod.status.as_ref();
    let mut conditions = status.into_iter().flat_map(|status| status.conditions.iter().flatten());
    let failed = conditions.any(|said| said.type_ == "PodScheduled" && said.reason.as_deref() == Some("Unschedulable"));
    let is_set = |text: Option<&String>| text.is_some_and(|text| !text.is_empty());
    let is_bound = is_set(pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref()));
    let is_promised = is_set(status.and_then(|status| status.nominated_node_name.as_ref()));
    failed && !is_bound && !is_promised && !stays_on_node(pod)
}

/// Whether it ran to its end.
pub fn is_terminal(pod: &KubePod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Failed" | "Succeeded"))
}

fn is_owned_by(pod: &KubePod, api_version: &str, kind: &str) -> bool {
    pod.owner_references().iter().any(|owner| owner.api_version == api_version && owner.kind == kind)
}

fn stays_on_node(pod: &KubePod) -> bool {
    is_owned_by(pod, "apps/v1", "DaemonSet") || is_owned_by(pod, "v1", "Node")
}

fn is_active(pod: &KubePod) -> bool {
    !is_terminal(pod) && pod.metadata.deletion_timestamp.is_none()
}

/// Pods of nodes that leave, as far as they will need another.
pub(super) fn moving(objects: &Objects, leaving: &BTreeSet<&str>, now: Seconds) -> Vec<Arc<Pod>> {
    if leaving.is_empty() {
        return Vec::new();
    }
    let theirs = objects.pods.iter().filter(|pod| bound_to(pod).is_some_and(|node| leaving.contains(node)));
    theirs.filter(|pod| can_move(pod, objects, now)).map(|pod| Arc::new(pod::to_model(pod))).collect()
}

/// The node a pod is on.
pub(super) fn bound_to(pod: &KubePod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|name| !name.is_empty())
}

/// Whether the pod of a node that leaves will need another: it has to run somewhere, and nothing keeps it from moving.
fn can_move(found: &KubePod, objects: &Objects, now: Seconds) -> bool {
    let is_terminating = found.metadata.deletion_timestamp.is_some();
    let is_wanted = is_active(found)
        // A leaving pod of a StatefulSet still counts: its successor has to wait for it and needs the same place.
        || (is_terminating && is_owned_by(found, "apps/v1", "StatefulSet"));
    if !is_wanted || stays_on_node(found) {
        return false;
    }
    let pod = pod::to_model(found);
    let started = found.status.as_ref().and_then(|status| status.start_time.as_ref());
    let since = started.map(|started| now.0.saturating_sub(started.0.as_second()).saturating_mul(1_000_000_000));
    let is_protected = is_active(found) && pod.protection.holds(since);
    let fence = Taint { key: TAINT_DISRUPTED.to_owned(), value: String::new(), effect: Effect::NoSchedule };
    let is_evictable = is_active(found) && !fence.is_tolerated_by(&pod.tolerations) && pod.owner != Owner::Node;
    let is_kept = is_evictable && is_held(found, &objects.disruption_budgets);
    !is_protected && !is_kept
}

/// Marks pods to which the operator's own spread constraints apply: they cannot be judged yet.
pub(super) fn with_default_spread(pods: &mut [Arc<Pod>], objects: &Objects, options: &PlanOptions) {
    let counts = |when: &str| when == "DoNotSchedule" || options.preference_policy == PreferencePolicy::Respect;
    if !options.default_spread.iter().any(|spread| counts(&spread.when_unsatisfiable)) {
        return;
    }
    let found: BTreeMap<Option<&str>, &Arc<KubePod>> =
        objects.pods.iter().map(|pod| (pod.metadata.uid.as_deref(), pod)).collect();
    for pod in pods.iter_mut().filter(|pod| pod.unsupported.is_none()) {
        let is_spread = found.get(&Some(&pod.key.uid)).is_some_and(|found| gets_default_spread(found, pod, objects));
        if is_spread {
            Arc::make_mut(pod).unsupported = Some("default topology spread constraints".to_owned());
        }
    }
}

/// They apply to a pod with none of its own that belongs to something.
fn gets_default_spread(found: &KubePod, pod: &Pod, objects: &Objects) -> bool {
    if !pod.spreads.is_empty() {
        return false;
    }
    let is_served = objects.services.iter().any(|service| {
        let chosen = service.spec.iter().flat_map(|spec| spec.selector.iter()).any(|chosen| {
            !chosen.is_empty() && chosen.iter().all(|(label, value)| pod.labels.get(label) == Some(value))
        });
        chosen && service.namespace().as_deref() == Some(&pod.key.namespace)
    });
    let owners = found.owner_references().iter().filter(|owner| owner.controller == Some(true));
    let kinds = ["ReplicaSet", "StatefulSet", "ReplicationController"];
    is_served || owners.into_iter().any(|owner| kinds.contains(&owner.kind.as_str()))
}
