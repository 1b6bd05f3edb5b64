//! Pods whose node is removed and that need another, and pods that the operator's spread constraints apply to.

use crate::kube_objects::Pod as KubePod;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;
use tenon_model::{Pod, Seconds, Timestamp};

use super::budgets::is_held;
use crate::objects::Objects;
use crate::plan_options::{PlanOptions, PreferencePolicy};
use crate::pod;
use crate::pod_predicates::{bound_to, has_do_not_disrupt, is_evictable, is_reschedulable};

/// Pods of nodes that leave, as far as they will need another.
pub(super) fn moving(objects: &Objects, leaving: &BTreeSet<&str>, now: Seconds) -> Vec<Arc<Pod>> {
    if leaving.is_empty() {
        return Vec::new();
    }
    let theirs = objects.pods.iter().filter(|pod| bound_to(pod).is_some_and(|node| leaving.contains(node)));
    let now = Timestamp::from(now);
    theirs.filter(|pod| can_move(pod, objects, now)).map(|pod| Arc::new(pod::to_model(pod))).collect()
}

/// Whether the pod of a node that is removed will need another: it has to run somewhere, and nothing keeps it from moving.
fn can_move(pod: &KubePod, objects: &Objects, now: Timestamp) -> bool {
    let is_held = || is_evictable(pod) && is_held(pod, &objects.disruption_budgets);
    is_reschedulable(pod) && !has_do_not_disrupt(pod, now) && !is_held()
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
