//! Do the gauges say what the stores say, and nothing of what is gone from them?

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};
use tenon_model::InstanceType;

use super::catalogue::Metric;
use super::exposition::Exposition;
use super::shown::Cluster;

const CREATED: &str = "2026-01-01T00:00:00Z";

fn object<K: serde::de::DeserializeOwned>(value: Value) -> Arc<K> {
    Arc::new(serde_json::from_value(value).unwrap())
}

/// A cluster with so many nodes of one pool, each with a NodeClaim and two pods.
fn cluster(nodes: usize) -> Cluster {
    let labels = json!({
        "karpenter.sh/nodepool": "default", "karpenter.sh/capacity-type": "on-demand",
        "node.kubernetes.io/instance-type": "2VCPU-4GB", "topology.kubernetes.io/zone": "pve1",
        "topology.kubernetes.io/region": "lab", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
    });
    let conditions =
        json!([{ "type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": CREATED }]);
    let node = |name: &String| {
        object(json!({
            "metadata": { "name": name, "labels": labels, "creationTimestamp": CREATED },
            "status": { "capacity": { "cpu": "2", "memory": "4Gi" }, "allocatable": { "cpu": "1500m", "memory": "3Gi" },
                "conditions": conditions },
        }))
    };
    let claim = |name: &String| {
        object(json!({
            "metadata": { "name": name, "labels": labels },
            "spec": { "requirements": [], "nodeClassRef":
                { "group": "karpenter.proxmox.sinextra.dev", "kind": "ProxmoxNodeClass", "name": "n" } },
            "status": { "providerID": format!("proxmox://lab/{name}"), "conditions": conditions },
        }))
    };
    let pod = |name: &str, node: &str, owner: &str| {
        let owner = json!([{ "apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "u" }]);
        let resources = json!({ "requests": { "cpu": "250m" }, "limits": { "cpu": "500m" } });
        object(json!({
            "metadata": { "name": format!("{name}-{node}"), "namespace": "work", "ownerReferences": owner },
            "spec": { "nodeName": node, "containers": [{ "name": "c", "resources": resources }] },
            "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] },
        }))
    };
    let names: Vec<String> = (0..nodes).map(|number| format!("node-{number:03}")).collect();
    let pool = object(json!({
        "metadata": { "name": "default" },
        "spec": { "limits": { "cpu": "100" }, "template": { "spec": { "requirements": [], "nodeClassRef":
            { "group": "karpenter.proxmox.sinextra.dev", "kind": "ProxmoxNodeClass", "name": "n" } } } },
        "status": { "resources": { "cpu": "2", "memory": "4Gi", "nodes": "1" }, "conditions": conditions },
    }));
    Cluster {
        now: Timestamp::from_second(CREATED.parse::<Timestamp>().unwrap().as_second() + 60).unwrap(),
        nodes: names.iter().map(node).collect(),
        pods: names.iter().flat_map(|name| [pod("web", name, "ReplicaSet"), pod("agent", name, "DaemonSet")]).collect(),
        claims: names.iter().map(claim).collect(),
        pools: vec![pool],
        types: vec![InstanceType {
            name: "2VCPU-4GB".to_owned(),
            price: Some(tenon_model::Price::new(0.5)),
            ..InstanceType::built_in().remove(0)
        }],
    }
}

fn text(cluster: &Cluster) -> String {
    let mut page = Exposition::without(|_| false);
    cluster.show(&mut page);
    page.text()
}

#[test]
fn nodes_pods_pools_and_conditions_read_as_in_the_reference() {
    let text = text(&cluster(2));
    let of = |name: &str, more: &str| {
        format!(
            "{name}{{arch=\"amd64\",capacity_type=\"on-demand\",instance_cpu_type=\"\",instance_family=\"\",\
             instance_image_id=\"\",instance_type=\"2VCPU-4GB\",nodepool=\"default\",os=\"linux\",region=\"lab\",\
             windows_build=\"\",zone=\"pve1\",node_name=\"node-000\",phase=\"\",managed=\"true\"{more}}} "
        )
    };
    let cpu = ",resource_type=\"cpu\"";
    for (line, value) in [
        (of("karpenter_nodes_allocatable", cpu), "1.5"),
        (of("karpenter_nodes_allocatable", ",resource_type=\"memory\""), "3221225472"),
        (of("karpenter_nodes_system_overhead", cpu), "0.5"),
        (of("karpenter_nodes_total_pod_requests", cpu), "0.5"),
        (of("karpenter_nodes_total_pod_limits", cpu), "1"),
        (of("karpenter_nodes_total_daemon_requests", cpu), "0.25"),
        (of("karpenter_nodes_total_daemon_limits", cpu), "0.5"),
        (of("karpenter_nodes_total_pod_requests", ",resource_type=\"pods\""), "2"),
        (of("karpenter_nodes_current_lifetime_seconds", ""), "60"),
        ("karpenter_nodepools_limit{resource_type=\"cpu\",nodepool=\"default\"} ".to_owned(), "100"),
        ("karpenter_nodepools_usage{resource_type=\"nodes\",nodepool=\"default\"} ".to_owned(), "1"),
        ("karpenter_nodepools_cost_total{nodepool=\"default\"} ".to_owned(), "1"),
        (
            "karpenter_pods_state{name=\"web-node-001\",namespace=\"work\",owner=\"/apis/apps/v1/namespaces/work/replicasets/o\",\
             node=\"node-001\",scheduled=\"true\",nodepool=\"default\",zone=\"pve1\",arch=\"amd64\",capacity_type=\"on-demand\",\
             instance_type=\"2VCPU-4GB\",phase=\"Running\",ready=\"true\",managed=\"true\"} "
                .to_owned(),
            "1",
        ),
        (
            "operator_status_condition_count{namespace=\"\",name=\"node-000\",group=\"karpenter.sh\",kind=\"NodeClaim\",\
             type=\"Ready\",status=\"True\",reason=\"Ready\"} "
                .to_owned(),
            "1",
        ),
        (
            "operator_status_condition_current_status_seconds{namespace=\"\",name=\"default\",group=\"karpenter.sh\",\
             kind=\"NodePool\",type=\"Ready\",status=\"True\",reason=\"Ready\"} "
                .to_owned(),
            "60",
        ),
    ] {
        assert!(text.contains(&format!("{line}{value}\n")), "{line}{value}\n\n{text}");
    }
    let used = "karpenter_cluster_utilization_percent{resource_type=\"cpu\"} 33.33";
    assert!(text.contains(used), "{text}");
}

#[test]
fn two_hundred_nodes_that_came_and_went_leave_no_sample_behind() {
    let count = |nodes: usize| text(&cluster(nodes)).lines().filter(|line| !line.starts_with('#')).count();
    let none = count(0);
    // One for each resource of all nodes together; the rest is of each node.
    let shared = text(&cluster(1)).matches("karpenter_cluster_utilization_percent{").count();
    let each = count(1) - none - shared;
    assert!(each < 40, "{each}");
    assert_eq!(count(200) - none - shared, 200 * each);
    assert_eq!(count(0), none);
}

#[test]
fn without_cluster_state_only_what_is_not_of_single_objects_is_left() {
    let metrics = super::Metrics::default();
    metrics.leave_out_cluster_state();
    metrics.state.count_nodes(3);
    let book = super::conditions::ConditionBook::default();
    let mut page = Exposition::without(|metric: &Metric| metric.is_cluster_state);
    cluster(3).show(&mut page);
    book.show(&mut page);
    assert_eq!(page.text(), "");
    assert!(metrics.text().contains("karpenter_cluster_state_node_count 3\n"));
}
