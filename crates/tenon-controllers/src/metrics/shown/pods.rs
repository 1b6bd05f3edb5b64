//! What is known of each pod, in the labels of one gauge.

use kube::ResourceExt;
use tenon_api::kube_objects::Pod;
use tenon_api::names;
use tenon_api::pod_predicates::bound_to;

use super::Cluster;
use crate::metrics::catalogue::karpenter;
use crate::metrics::exposition::Exposition;
use crate::metrics::pod_times::{is_ready, phase};

/// Writes down every pod.
pub(super) fn show(cluster: &Cluster, page: &mut Exposition<'_>) {
    let Some(mut lines) = page.of(&karpenter::PODS_STATE) else { return };
    let nodes = cluster.nodes_by_name();
    let truth = |is_so: bool| if is_so { "true" } else { "false" };
    for pod in &cluster.pods {
        let node = bound_to(pod).unwrap_or_default();
        let labels = nodes.get(node).map(|node| node.labels());
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).map(String::as_str).unwrap_or_default();
        lines.number(
            &[
                pod.name(),
                pod.namespace(),
                &owner(pod),
                node,
                truth(!node.is_empty()),
                label(names::LABEL_NODEPOOL),
                label(names::LABEL_ZONE),
                label(names::LABEL_ARCH),
                label(names::LABEL_CAPACITY_TYPE),
                label(names::LABEL_INSTANCE_TYPE),
                phase(pod),
                truth(is_ready(pod)),
                truth(!node.is_empty() && cluster.is_managed(node)),
            ],
            1.0,
        );
    }
}

/// The path of the first owner, as the reference writes it.
fn owner(pod: &Pod) -> String {
    pod.owner_references().first().map_or_else(String::new, |owner| {
        let kind = owner.kind.to_lowercase();
        format!("/apis/{}/namespaces/{}/{kind}s/{}", owner.api_version, pod.namespace(), owner.name)
    })
}
