//! Whether a disruption budget keeps a pod where it is for good.

use crate::kube_objects::{Pod, PodDisruptionBudget};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use crate::pod_affinity::selector;

/// Whether no pod like this can ever be asked to leave: a budget says so, or several speak of it, which the eviction API
/// refuses.
pub(super) fn is_held(pod: &Pod, budgets: &[Arc<PodDisruptionBudget>]) -> bool {
    match own_budgets(pod, budgets).as_slice() {
        [] => false,
        [one] => blocks_all(one) && !lets_unhealthy_go(one, pod),
        _ => true,
    }
}

/// The budgets that choose a pod.
pub(super) fn own_budgets<'b>(pod: &Pod, budgets: &'b [Arc<PodDisruptionBudget>]) -> Vec<&'b Arc<PodDisruptionBudget>> {
    let is_own = |budget: &&Arc<PodDisruptionBudget>| {
        budget.namespace().unwrap_or_default() == pod.namespace() && speaks_of(budget, pod)
    };
    budgets.iter().filter(is_own).collect()
}

fn speaks_of(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let chosen: Option<&LabelSelector> = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    chosen.is_some_and(|chosen| selector(chosen).chooses(pod.labels()))
}

pub(super) fn blocks_all(budget: &PodDisruptionBudget) -> bool {
    let Some(spec) = &budget.spec else { return false };
    let is = |amount: &Option<IntOrString>, number: Option<i32>, text: &str| match amount {
        Some(IntOrString::Int(found)) => Some(*found) == number,
        Some(IntOrString::String(found)) => found == text,
        None => false,
    };
    is(&spec.max_unavailable, Some(0), "0%") || is(&spec.min_available, None, "100%")
}

/// Whether a budget allows no disruption at the moment. Of one without status nothing is known, and nothing is held.
pub(super) fn blocks_now(budget: &PodDisruptionBudget) -> bool {
    budget.status.as_ref().is_some_and(|status| status.disruptions_allowed.unwrap_or_default() <= 0)
}

pub(super) fn lets_unhealthy_go(budget: &PodDisruptionBudget, pod: &Pod) -> bool {
    let policy = budget.spec.as_ref().and_then(|spec| spec.unhealthy_pod_eviction_policy.as_deref());
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_unhealthy = conditions.into_iter().any(|said| said.type_ == "Ready" && said.status == "False");
    policy == Some("AlwaysAllow") && is_unhealthy
}
