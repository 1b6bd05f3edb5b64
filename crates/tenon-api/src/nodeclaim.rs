//! NodeClaim: one node that is wanted, from intent to gone.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::{Condition, relaxed};
use crate::nodepool::{DURATION, DURATION_OR_NEVER, NodeClassRef, default_expire_after};
use crate::quantity::{ResourceMap, read_amounts, resources};
use crate::requirement::{Requirement, Taint};
use crate::timestamp::TimeSchema;

/// The node to create. The spec of a NodeClaim never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodeClaim",
    plural = "nodeclaims",
    category = "karpenter",
    status = "NodeClaimStatus",
    doc = "A NodeClaim is the request for one node, from the decision to create it until its VM is destroyed. The controller creates NodeClaims.",
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
#[x_kube(validation = Rule::new("self == oldSelf").message("the spec of a NodeClaim cannot be changed; delete the NodeClaim and create another one"))]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimSpec {
    /// Taints of the node. Only pods that tolerate them are scheduled on the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub taints: Option<Vec<Taint>>,
    /// Taints that the node has at start and that another component removes. No pod is scheduled until they are
    /// removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub startup_taints: Option<Vec<Taint>>,
    /// Requirements on the labels of the node. All of them must be met; what they leave open is chosen at launch.
    #[schemars(length(max = 100))]
    #[x_kube(
        merge_strategy = ListMerge::Atomic,
        validation = Rule::new("self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)").message("operator In needs at least one value"),
        validation = Rule::new("self.all(x, (x.operator == 'Gt' || x.operator == 'Lt' || x.operator == 'Gte' || x.operator == 'Lte') ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)").message("operators Gt, Lt, Gte and Lte need exactly one value, a non-negative integer"),
        validation = Rule::new("self.all(x, (x.operator == 'In' && has(x.minValues)) ? x.values.size() >= x.minValues : true)").message("minValues is greater than the number of values that operator In lists"),
    )]
    pub requirements: Vec<Requirement>,
    /// The resources that the pods of the node need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequests>,
    /// The ProxmoxNodeClass of the VM.
    pub node_class_ref: NodeClassRef,
    /// How long the node may drain before it is removed together with its remaining pods, such as `30m`. Unset: no
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION))]
    pub termination_grace_period: Option<String>,
    /// The age at which the node is replaced, such as `720h`; `Never` disables this. Default `720h`.
    #[serde(default = "default_expire_after")]
    #[schemars(regex(pattern = DURATION_OR_NEVER))]
    pub expire_after: String,
}

/// The resources that the node must have at least.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceRequests {
    /// Amounts by resource name, such as `cpu: 1500m`, for the pods of the node including those of DaemonSets.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amounts")]
    #[schemars(schema_with = "resources")]
    pub requests: Option<ResourceMap>,
}

/// The state of the node. Written by the autoscaler.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimStatus {
    /// The name of the Node, after it has registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The VM, as `proxmox://region/vmid`.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The image from which the VM was created.
    #[serde(default, rename = "imageID", skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// The resources of the VM.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amounts")]
    #[schemars(schema_with = "resources")]
    pub capacity: Option<ResourceMap>,
    /// The resources that are available to pods.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amounts")]
    #[schemars(schema_with = "resources")]
    pub allocatable: Option<ResourceMap>,
    /// The conditions of the node. `Ready` requires Launched, Registered and Initialized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "relaxed")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Option<Vec<Condition>>,
    /// When a pod was last added to or removed from the node. Consolidation waits for consolidateAfter from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TimeSchema>")]
    pub last_pod_event_time: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>,
}
