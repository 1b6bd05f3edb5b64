//! How much a pod needs while it starts and while it runs, whichever is more.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as KubeQuantity;
use tenon_model::resources::PODS;
use tenon_model::{Quantity, Resources};

/// What a node must have free for the pod, as the scheduler counts it.
///
/// Containers run together, with every sidecar; before that, init containers run one after the other, each with the
/// sidecars started before it. A request at the level of the pod stands in place of what its containers add up to.
pub(crate) fn effective_requests(pod: &Pod) -> Resources {
    let spec = pod.spec.clone().unwrap_or_default();
    let mut running = Resources::default();
    for container in &spec.containers {
        running.add(&requests_of(pod, container));
    }
    let mut sidecars = Resources::default();
    let mut peak = Resources::default();
    for container in spec.init_containers.iter().flatten() {
        let requests = requests_of(pod, container);
        let mut now = sidecars.clone();
        now.add(&requests);
        peak = peak.or_larger(&now);
        if container.restart_policy.as_deref() == Some("Always") {
            sidecars = now;
        }
    }
    running.add(&sidecars);
    let mut needed = running.or_larger(&peak);
    for (resource, amount) in amounts(spec.resources.as_ref().and_then(|level| level.requests.as_ref())).iter() {
        needed = needed.with(resource, amount);
    }
    needed.add(&amounts(spec.overhead.as_ref()));
    needed.with(PODS, Quantity::whole(1))
}

/// A container's requests; while it is being resized, the larger of what it has and what it wants.
fn requests_of(pod: &Pod, container: &Container) -> Resources {
    let wanted = amounts(container.resources.as_ref().and_then(|resources| resources.requests.as_ref()));
    let Some(status) = status_of(pod, container) else { return wanted };
    let granted = amounts(status.allocated_resources.as_ref());
    let actual = amounts(status.resources.as_ref().and_then(|resources| resources.requests.as_ref()));
    wanted.or_larger(&granted).or_larger(&actual)
}

fn status_of<'a>(pod: &'a Pod, container: &Container) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let statuses = status.container_statuses.iter().flatten().chain(status.init_container_statuses.iter().flatten());
    statuses.into_iter().find(|status| status.name == container.name)
}

/// An amount the API server took is always readable; one that is not counts as nothing.
fn amounts(requests: Option<&BTreeMap<String, KubeQuantity>>) -> Resources {
    let readable =
        |(resource, amount): (&String, &KubeQuantity)| Some((resource.clone(), amount.0.parse::<Quantity>().ok()?));
    requests.into_iter().flatten().filter_map(readable).collect()
}
