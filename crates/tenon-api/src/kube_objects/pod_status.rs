//! What became of a pod.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodCondition, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::meta::or_default;

/// What became of a pod.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// What the pod as a whole was granted.
    pub allocated_resources: Option<BTreeMap<String, Quantity>>,
    /// What is true of it. A [`Pod`](super::Pod) knows what and why in a word: since when differs from pod to pod, and nobody asks.
    pub conditions: Option<Vec<PodCondition>>,
    /// Its containers.
    pub container_statuses: Option<Vec<ContainerStatus>>,
    /// Its init containers.
    pub init_container_statuses: Option<Vec<ContainerStatus>>,
    /// The node it waits for others to leave.
    pub nominated_node_name: Option<String>,
    /// How far it is.
    pub phase: Option<String>,
    /// What it has as a whole.
    pub resources: Option<ResourceRequirements>,
    /// When a node took it. A [`Pod`](super::Pod) has it beside what it shares with others.
    pub(crate) start_time: Option<Time>,
    /// What says that a cluster knows the pod, and nothing else.
    #[serde(rename = "qosClass")]
    pub(crate) qos_class: Option<IgnoredAny>,
    #[serde(rename = "hostIP")]
    pub(crate) host_ip: Option<IgnoredAny>,
    #[serde(rename = "podIP")]
    pub(crate) pod_ip: Option<IgnoredAny>,
    pub(crate) message: Option<IgnoredAny>,
    pub(crate) reason: Option<IgnoredAny>,
}

/// What became of a container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// What it was granted.
    pub allocated_resources: Option<BTreeMap<String, Quantity>>,
    /// Its name in the pod.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// What it has.
    pub resources: Option<ResourceRequirements>,
}
