//! Settings a ProxmoxNodeClass hands to the kubelet of its nodes.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Kubelet settings of the nodes, part of their first-boot data. Unset fields keep the kubelet's default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KubeletConfiguration {
    /// `static` reserves whole cores for Guaranteed pods with integer CPU requests; `none` shares all cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "cpu_manager_policy")]
    pub cpu_manager_policy: Option<String>,
    /// Whether CPU limits of containers are enforced.
    #[serde(rename = "cpuCFSQuota", skip_serializing_if = "Option::is_none")]
    pub cpu_cfs_quota: Option<bool>,
    /// The period of CPU limits (CFS quota), as a duration such as `100ms`.
    #[serde(rename = "cpuCFSQuotaPeriod", skip_serializing_if = "Option::is_none")]
    pub cpu_cfs_quota_period: Option<String>,
    /// How strictly CPUs, memory and devices are aligned on one NUMA node: none, best-effort, restricted or
    /// single-numa-node.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "topology_manager_policy")]
    pub topology_manager_policy: Option<String>,
    /// Whether the topology manager policy applies to each `container` or to the whole `pod`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "topology_manager_scope")]
    pub topology_manager_scope: Option<String>,
    /// The disk usage in percent above which unused images are always removed. It must be greater than the low
    /// threshold.
    #[serde(rename = "imageGCHighThresholdPercent", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_high_threshold_percent: Option<i32>,
    /// The disk usage in percent below which unused images are never removed.
    #[serde(rename = "imageGCLowThresholdPercent", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub image_gc_low_threshold_percent: Option<i32>,
    /// How long the shutdown of the node waits for its pods, as a duration such as `30s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown_grace_period: Option<String>,
    /// Unsafe sysctls that pods may set, such as `net.core.somaxconn` or `kernel.msg*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_unsafe_sysctls: Option<Vec<String>>,
    /// Addresses of the name servers for pods, at most three.
    #[serde(rename = "clusterDNS", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 3))]
    pub cluster_dns: Option<Vec<String>>,
    /// The maximum number of pods on a node, from 10 to 250.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 10, max = 250))]
    pub max_pods: Option<i32>,
    /// Whether the kubelet refuses to start on a node with swap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_swap_on: Option<bool>,
}

fn words(words: &[&str]) -> Schema {
    json_schema!({ "type": "string", "enum": words })
}

fn cpu_manager_policy(_: &mut SchemaGenerator) -> Schema {
    words(&["none", "static"])
}

fn topology_manager_policy(_: &mut SchemaGenerator) -> Schema {
    words(&["restricted", "best-effort", "none", "single-numa-node"])
}

fn topology_manager_scope(_: &mut SchemaGenerator) -> Schema {
    words(&["container", "pod"])
}
