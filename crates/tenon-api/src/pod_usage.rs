//! What do pods request, and how much may they use at most? For whoever adds up what nodes are used for.

use tenon_model::resources::PODS;
use tenon_model::{Quantity, Resources};

use crate::kube_objects::{Container, Pod};
use crate::pod_requests::effective_requests;
use crate::quantity::{KubeResources, kube_resources};

/// What a node keeps free for the pod, with the pod itself as one of resource `pods`.
pub fn pod_requests(pod: &Pod) -> Resources {
    effective_requests(pod)
}

/// What the pod may use at most, as far as it is limited: its containers together, or the largest init container.
pub fn pod_limits(pod: &Pod) -> Resources {
    let one = Resources::default().with(PODS, Quantity::whole(1));
    let Some(spec) = &pod.spec else { return one };
    let limits = |container: &Container| {
        kube_resources(container.resources.as_ref().and_then(|resources| resources.limits.as_ref()))
    };
    let mut total = Resources::default();
    spec.containers.iter().for_each(|container| total.add(&limits(container)));
    for container in spec.init_containers.iter() {
        total = total.or_larger(&limits(container));
    }
    let level = spec.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    for (resource, amount) in kube_resources(level).iter() {
        total = total.with(resource, amount);
    }
    total.add(&one);
    total
}

/// What Kubernetes writes of a node, as resources.
pub fn node_resources(map: Option<&KubeResources>) -> Resources {
    kube_resources(map)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_are_those_of_all_containers_or_of_the_largest_init_container() {
        let limited = |cpu: &str| json!({ "name": cpu, "resources": { "limits": { "cpu": cpu } } });
        let pod = |init: &str| -> Pod {
            let spec = json!({ "containers": [limited("1"), limited("2")], "initContainers": [limited(init)] });
            serde_json::from_value(json!({ "metadata": { "name": "a", "namespace": "n" }, "spec": spec })).unwrap()
        };
        assert_eq!(pod_limits(&pod("500m")).get("cpu"), Quantity::whole(3));
        assert_eq!(pod_limits(&pod("8")).get("cpu"), Quantity::whole(8));
        assert_eq!(pod_limits(&pod("8")).get("pods"), Quantity::whole(1));
    }
}
