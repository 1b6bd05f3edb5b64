//! CapacityBuffer: room that is kept free for pods that are still to come.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::quantity::{ResourceMap, read_amounts, resources};

/// Spare capacity that is kept for pods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "autoscaling.x-k8s.io",
    version = "v1beta1",
    kind = "CapacityBuffer",
    plural = "capacitybuffers",
    shortname = "cb",
    category = "autoscaling",
    namespaced,
    status = "CapacityBufferStatus",
    doc = "A CapacityBuffer keeps room free on nodes for pods that are still to come.",
    printcolumn(name = "Strategy", type_ = "string", json_path = ".spec.provisioningStrategy"),
    printcolumn(name = "PodTemplate", type_ = "string", json_path = ".status.podTemplateRef.name"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".status.replicas"),
    printcolumn(name = "ConditionsType", type_ = "string", json_path = ".status.conditions[*].type"),
    printcolumn(name = "ConditionsStatus", type_ = "string", json_path = ".status.conditions[*].status"),
    printcolumn(name = "ConditionsReason", type_ = "string", json_path = ".status.conditions[*].reason"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    validation = Rule::new("!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)").message("with podTemplateRef, set replicas, limits, or both"),
    validation = Rule::new("!(has(self.podTemplateRef) && has(self.scalableRef))").message("set podTemplateRef or scalableRef, not both"),
)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBufferSpec {
    /// How the capacity is provided. `buffer.x-k8s.io/active-capacity`, the default, keeps running nodes.
    #[serde(default = "default_strategy")]
    pub provisioning_strategy: String,
    /// The PodTemplate in the same namespace with the requests of one pod. Requires `replicas` or `limits`; cannot be
    /// used together with `scalableRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<PodTemplateRef>,
    /// The workload in the same namespace whose pods need the capacity. Cannot be used together with `podTemplateRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scalable_ref: Option<ScalableRef>,
    /// The number of pods for which capacity is kept. With `percentage`, the larger number applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// The number of pods for which capacity is kept, in percent of the replicas of `scalableRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub percentage: Option<i32>,
    /// The maximum capacity, by resource, such as `cpu: 10`. Without other fields, capacity is kept for as many pods as
    /// fit.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amounts")]
    #[schemars(schema_with = "resources")]
    pub limits: Option<ResourceMap>,
}

/// A PodTemplate in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PodTemplateRef {
    /// The name of the PodTemplate.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// A scalable workload in the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScalableRef {
    /// The API group of the workload, such as `apps`. Unset: the core group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// The kind of the workload, such as `Deployment`.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// The name of the workload.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// The state of the buffer. Written by the autoscaler.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBufferStatus {
    /// The PodTemplate with the requests of one pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<PodTemplateRef>,
    /// The number of pods for which capacity is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The generation of the PodTemplate that was observed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_generation: Option<i64>,
    /// How the capacity is provided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning_strategy: Option<String>,
    /// The conditions of the buffer: ReadyForProvisioning and Provisioning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Option<Vec<Condition>>,
}

fn default_strategy() -> String {
    "buffer.x-k8s.io/active-capacity".to_owned()
}
