//! NodeClaim: one node that is wanted, from intent to gone.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::{Condition, relaxed};
use crate::nodepool::{DURATION, DURATION_OR_NEVER, NodeClassRef, default_expire_after};
use crate::quantity::{ResourceMap, read_amounts, resources};
use crate::requirement::{Requirement, Taint};

/// What node is wanted. It never changes: a different wish is a different NodeClaim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodeClaim",
    plural = "nodeclaims",
    category = "karpenter",
    status = "NodeClaimStatus",
    doc = "A NodeClaim is one node that is wanted, from the decision to make it until its VM is gone. The autoscaler makes them.",
    printcolumn(name = "Type", type_ = "string", json_path = ".metadata.labels.node\\.kubernetes\\.io/instance-type"),
    printcolumn(name = "Capacity", type_ = "string", json_path = ".metadata.labels.karpenter\\.sh/capacity-type"),
    printcolumn(name = "Zone", type_ = "string", json_path = ".metadata.labels.topology\\.kubernetes\\.io/zone"),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.nodeName"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "ImageID", type_ = "string", json_path = ".status.imageID", priority = 1),
    printcolumn(name = "ID", type_ = "string", json_path = ".status.providerID", priority = 1),
    printcolumn(
        name = "NodePool",
        type_ = "string",
        json_path = ".metadata.labels.karpenter\\.sh/nodepool",
        priority = 1
    ),
    printcolumn(name = "NodeClass", type_ = "string", json_path = ".spec.nodeClassRef.name", priority = 1),
    printcolumn(
        name = "Drifted",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Drifted\")].status",
        priority = 1
    )
)]
#[x_kube(validation = Rule::new("self == oldSelf").message("the spec of a NodeClaim never changes: delete it and let another be made"))]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimSpec {
    /// Taints the node has for good: only pods that tolerate them run on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub taints: Option<Vec<Taint>>,
    /// Taints the node starts with and somebody else takes away. It takes no pods until they are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub startup_taints: Option<Vec<Taint>>,
    /// What the node's labels must be. All must hold; what they leave open is chosen when the VM is made.
    #[schemars(length(max = 100))]
    #[x_kube(
        merge_strategy = ListMerge::Atomic,
        validation = Rule::new("self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)").message("operator In needs at least one value"),
        validation = Rule::new("self.all(x, (x.operator == 'Gt' || x.operator == 'Lt' || x.operator == 'Gte' || x.operator == 'Lte') ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)").message("operators Gt, Lt, Gte and Lte need exactly one value, a whole number that is not negative"),
        validation = Rule::new("self.all(x, (x.operator == 'In' && has(x.minValues)) ? x.values.size() >= x.minValues : true)").message("minValues asks for more values than operator In lists"),
    )]
    pub requirements: Vec<Requirement>,
    /// What the pods that asked for the node need together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequests>,
    /// The ProxmoxNodeClass that says what the VM is made of.
    pub node_class_ref: NodeClassRef,
    /// How long pods may take to leave the node before it goes with them, such as `30m`. Unset waits for as long as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION))]
    pub termination_grace_period: Option<String>,
    /// How old the node may become before it is replaced, such as `720h`; `Never` for no limit. Default `720h`.
    #[serde(default = "default_expire_after")]
    #[schemars(regex(pattern = DURATION_OR_NEVER))]
    pub expire_after: String,
}

/// What a node must at least offer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceRequests {
    /// Resource names with their amounts, such as `cpu: 1500m`. Pods and the daemons that run beside them are counted.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amounts")]
    #[schemars(schema_with = "resources")]
    pub requests: Option<ResourceMap>,
}

/// How far the node is. Written by the autoscaler.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimStatus {
    /// The name of the Node, once it registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The VM, as `proxmox://region/vmid`.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The image the VM was made from.
    #[serde(default, rename = "imageID", skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// What the VM has, by resource.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amounts")]
    #[schemars(schema_with = "resources")]
    pub capacity: Option<ResourceMap>,
    /// What of it pods can have, by resource.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amounts")]
    #[schemars(schema_with = "resources")]
    pub allocatable: Option<ResourceMap>,
    /// What is true of the node now. `Ready` needs Launched, Registered and Initialized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "relaxed")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Option<Vec<Condition>>,
    /// When a pod came to or left the node last. It must be quiet for the pool's consolidateAfter before it can go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_pod_event_time: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>,
}
