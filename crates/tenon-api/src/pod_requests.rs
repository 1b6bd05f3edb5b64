//! How much a pod needs while it starts and while it runs, whichever is more.
//!
//! The rules are the scheduler's: what a pod is counted with here is what it is counted with there.

use crate::kube_objects::{Container, ContainerStatus, Pod, PodSpec, PodStatus};
use k8s_openapi::api::core::v1::ResourceRequirements;
use tenon_model::resources::{CPU, HUGE_PAGES, MEMORY, PODS};
use tenon_model::{Quantity, Resources};

use crate::quantity::kube_resources;

/// What a node must have free for the pod.
///
/// Containers run together, with every sidecar; before that, init containers run one after the other, each with the
/// sidecars started before it. A request at the level of the pod stands in place of what its containers add up to, and
/// overhead comes on top. What its status says counts once it has a node, because only there it can be resized.
pub(crate) fn effective_requests(pod: &Pod) -> Resources {
    let Some(spec) = &pod.spec else { return Resources::default().with(PODS, Quantity::whole(1)) };
    let mut needed = of_containers(pod, spec);
    for (resource, amount) in of_the_pod(pod, spec, &needed).iter() {
        needed = needed.with(resource, amount);
    }
    needed.add(&kube_resources(spec.overhead.as_ref()));
    let rounded = needed.iter().map(|(resource, amount)| (resource, counted(resource, amount)));
    rounded.collect::<Resources>().with(PODS, Quantity::whole(1))
}

/// The scheduler counts thousandths of cores, and wholes of everything else.
fn counted(resource: &str, amount: Quantity) -> Quantity {
    let rounded = if resource == CPU { Quantity::milli(amount.milli_value()) } else { Quantity::whole(amount.value()) };
    rounded.with_format(amount.format())
}

fn of_containers(pod: &Pod, spec: &PodSpec) -> Resources {
    let mut running = Resources::default();
    for container in spec.containers.iter() {
        running.add(&resized(pod, container));
    }
    let mut sidecars = Resources::default();
    let mut peak = Resources::default();
    for container in spec.init_containers.iter() {
        // Only what keeps running can be resized.
        let is_sidecar = container.restart_policy.as_deref() == Some("Always");
        let requests = if is_sidecar { resized(pod, container) } else { written(container.resources.as_ref()) };
        let mut now = sidecars.clone();
        now.add(&requests);
        peak = peak.or_larger(&now);
        if is_sidecar {
            running.add(&requests);
            sidecars = now;
        }
    }
    running.or_larger(&peak)
}

/// What is asked at the level of the pod, where only cores, memory and huge pages can be. A limit stands for a missing
/// request if the containers do not name the resource; for huge pages it always does.
fn of_the_pod(pod: &Pod, spec: &PodSpec, of_containers: &Resources) -> Resources {
    let Some(level) = &spec.resources else { return Resources::default() };
    let asked = kube_resources(level.requests.as_ref());
    let allowed = kube_resources(level.limits.as_ref());
    let defaulted = allowed
        .iter()
        .filter(|(resource, _)| !asked.names(resource) && (is_huge_pages(resource) || !of_containers.names(resource)));
    let mut requests: Resources = asked.iter().chain(defaulted).filter(|(resource, _)| is_for_pods(resource)).collect();
    // While the pod as a whole is resized, it counts as the larger of what it has and what it wants.
    if let Some(status) = status_on_node(pod).filter(|status| status.resources.is_some()) {
        let actual = kube_resources(status.resources.as_ref().and_then(|resources| resources.requests.as_ref()));
        let counts = largest(pod, &requests, &actual, &kube_resources(status.allocated_resources.as_ref()));
        requests = requests.iter().map(|(resource, _)| (resource, counts.get(resource))).collect();
    }
    requests
}

/// A container's requests; while it is being resized, the larger of what it has and what it wants.
fn resized(pod: &Pod, container: &Container) -> Resources {
    let wanted = written(container.resources.as_ref());
    let Some(status) = status_of(pod, container) else { return wanted };
    let Some(resources) = &status.resources else { return wanted };
    let granted = kube_resources(status.allocated_resources.as_ref());
    largest(pod, &wanted, &kube_resources(resources.requests.as_ref()), &granted)
}

/// A wish that can never be granted does not count.
fn largest(pod: &Pod, wanted: &Resources, actual: &Resources, granted: &Resources) -> Resources {
    let held = actual.or_larger(granted);
    if is_resize_infeasible(pod) { held } else { held.or_larger(wanted) }
}

fn is_resize_infeasible(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let pending = conditions.into_iter().find(|condition| condition.type_ == "PodResizePending");
    pending.is_some_and(|condition| condition.reason.as_deref() == Some("Infeasible"))
}

fn status_on_node(pod: &Pod) -> Option<&PodStatus> {
    pod.node_name.as_ref()?;
    pod.status.as_deref()
}

fn status_of<'a>(pod: &'a Pod, container: &Container) -> Option<&'a ContainerStatus> {
    let status = status_on_node(pod)?;
    let statuses = status.container_statuses.iter().flatten().chain(status.init_container_statuses.iter().flatten());
    statuses.into_iter().find(|status| status.name == container.name)
}

/// A container's requests as they are written. A limit stands for a missing request: the API server fills it in for
/// pods, but not for the template a pod will be made from.
fn written(resources: Option<&ResourceRequirements>) -> Resources {
    let Some(resources) = resources else { return Resources::default() };
    let limits = kube_resources(resources.limits.as_ref());
    let requests = kube_resources(resources.requests.as_ref());
    let missing = limits.iter().filter(|(resource, _)| !requests.names(resource));
    requests.iter().chain(missing).collect()
}

fn is_for_pods(resource: &str) -> bool {
    resource == CPU || resource == MEMORY || is_huge_pages(resource)
}

fn is_huge_pages(resource: &str) -> bool {
    resource.starts_with(HUGE_PAGES)
}
