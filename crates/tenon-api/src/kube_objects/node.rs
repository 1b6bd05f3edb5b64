//! Nodes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeAddress, NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use super::meta::{metadata, or_default, resource};

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Its name and labels.
    #[serde(deserialize_with = "metadata")]
    pub metadata: ObjectMeta,
    /// What is decided about it.
    pub spec: Option<NodeSpec>,
    /// What its kubelet says of it.
    pub status: Option<NodeStatus>,
}

resource!(Node, ClusterResourceScope, "", "v1", "nodes");

/// What is decided about a node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSpec {
    /// The machine it runs on.
    #[serde(rename = "providerID")]
    pub provider_id: Option<String>,
    /// Taints that keep pods off.
    pub taints: Option<Vec<Taint>>,
    /// Whether the scheduler skips it.
    pub unschedulable: Option<bool>,
}

/// What a kubelet says of its node.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeStatus {
    /// What pods may use.
    pub allocatable: Option<BTreeMap<String, Quantity>>,
    /// What it has.
    pub capacity: Option<BTreeMap<String, Quantity>>,
    /// What is true of it.
    pub conditions: Option<Vec<NodeCondition>>,
    /// Where it is reached.
    pub addresses: Option<Vec<NodeAddress>>,
    /// The machine it runs on.
    pub node_info: Option<NodeSystemInfo>,
}

/// The machine a node runs on.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeSystemInfo {
    /// What the firmware calls the machine.
    #[serde(rename = "systemUUID", deserialize_with = "or_default")]
    pub system_uuid: String,
    /// Another one after each start.
    #[serde(rename = "bootID", deserialize_with = "or_default")]
    pub boot_id: String,
}
