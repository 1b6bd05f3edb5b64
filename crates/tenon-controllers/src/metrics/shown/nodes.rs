//! What do nodes have, and what do the pods on them request and use at most?

use std::collections::BTreeMap;

use kube::ResourceExt;
use tenon_api::kube_objects::{Node, Pod};
use tenon_api::names;
use tenon_api::pod_predicates::{bound_to, is_owned_by_daemon_set, is_terminal};
use tenon_api::pod_usage::{node_resources, pod_limits, pod_requests};
use tenon_model::Resources;
use tenon_model::labels::WINDOWS_BUILD;

use super::{Cluster, amount, amounts, resource_label};
use crate::metrics::catalogue::{Metric, karpenter};
use crate::metrics::exposition::Exposition;

/// The labels of nodes that are labels of the metrics, in the order of the catalogue.
const WELL_KNOWN: [&str; 11] = [
    names::LABEL_ARCH,
    names::LABEL_CAPACITY_TYPE,
    names::LABEL_INSTANCE_CPU_TYPE,
    names::LABEL_INSTANCE_FAMILY,
    names::LABEL_INSTANCE_IMAGE_ID,
    names::LABEL_INSTANCE_TYPE,
    names::LABEL_NODEPOOL,
    names::LABEL_OS,
    names::LABEL_REGION,
    WINDOWS_BUILD,
    names::LABEL_ZONE,
];

/// What the pods on a node add up to.
#[derive(Debug, Default)]
struct Usage {
    requests: Resources,
    limits: Resources,
    daemon_requests: Resources,
    daemon_limits: Resources,
}

impl Usage {
    fn add(&mut self, pod: &Pod) {
        let (requests, limits) = (pod_requests(pod), pod_limits(pod));
        self.requests.add(&requests);
        self.limits.add(&limits);
        if is_owned_by_daemon_set(pod) {
            self.daemon_requests.add(&requests);
            self.daemon_limits.add(&limits);
        }
    }
}

/// Writes down every node, and all of them together.
pub(super) fn show(cluster: &Cluster, page: &mut Exposition<'_>) {
    let mut usages: BTreeMap<&str, Usage> = BTreeMap::new();
    for pod in cluster.pods.iter().filter(|pod| !is_terminal(pod)) {
        if let Some(node) = bound_to(pod) {
            usages.entry(node).or_default().add(pod);
        }
    }
    let (mut have, mut requested) = (Resources::default(), Resources::default());
    for node in &cluster.nodes {
        let name = node.name_any();
        let usage = usages.remove(name.as_str()).unwrap_or_default();
        let status = node.status.as_ref();
        let allocatable = node_resources(status.and_then(|status| status.allocatable.as_ref()));
        let capacity = node_resources(status.and_then(|status| status.capacity.as_ref()));
        have.add(&allocatable);
        requested.add(&usage.requests);
        let labels = labels(cluster, node, name);
        for (metric, resources) in [
            (&karpenter::NODES_ALLOCATABLE, &allocatable),
            (&karpenter::NODES_OVERHEAD, &capacity.without(&allocatable)),
            (&karpenter::NODES_POD_REQUESTS, &usage.requests),
            (&karpenter::NODES_POD_LIMITS, &usage.limits),
            (&karpenter::NODES_DAEMON_REQUESTS, &usage.daemon_requests),
            (&karpenter::NODES_DAEMON_LIMITS, &usage.daemon_limits),
        ] {
            write(page, metric, (&labels, resources));
        }
        if let (Some(created), Some(mut lines)) =
            (&node.metadata.creation_timestamp, page.of(&karpenter::NODES_CURRENT_LIFETIME))
        {
            lines.number(&labels, cluster.now.duration_since(created.0).as_secs_f64());
        }
    }
    let Some(mut lines) = page.of(&karpenter::CLUSTER_UTILIZATION) else { return };
    for (name, has) in have.iter().filter(|(_, has)| !has.is_zero()) {
        let share = 100.0 * amount(name, requested.get(name)) / amount(name, has);
        lines.number(&[resource_label(name)], share);
    }
}

fn labels(cluster: &Cluster, node: &Node, name: String) -> Vec<String> {
    let label = |key: &str| node.labels().get(key).cloned().unwrap_or_default();
    let managed = cluster.is_managed(&name).to_string();
    WELL_KNOWN.iter().map(|key| label(key)).chain([name, String::new(), managed]).collect()
}

fn write(page: &mut Exposition<'_>, metric: &'static Metric, (labels, resources): (&[String], &Resources)) {
    let Some(mut lines) = page.of(metric) else { return };
    for (resource, amount) in amounts(resources) {
        let values: Vec<&str> = labels.iter().map(String::as_str).chain([resource.as_str()]).collect();
        lines.number(&values, amount);
    }
}
