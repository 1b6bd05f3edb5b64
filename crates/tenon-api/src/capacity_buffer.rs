//! CapacityBuffer: room that is kept free for pods that are still to come.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::quantity::{ResourceMap, read_amounts, resources};

/// Which pods room is kept for, and for how many.
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
    validation = Rule::new("!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)").message("with podTemplateRef, say how much: replicas, limits, or both"),
    validation = Rule::new("!(has(self.podTemplateRef) && has(self.scalableRef))").message("give podTemplateRef or scalableRef, not both"),
)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBufferSpec {
    /// How the room is kept. `buffer.x-k8s.io/active-capacity`, the default, keeps nodes for it running.
    #[serde(default = "default_strategy")]
    pub provisioning_strategy: String,
    /// The PodTemplate of the same namespace that says what one pod needs. Needs `replicas` or `limits`; not together with
    /// `scalableRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<PodTemplateRef>,
    /// The workload of the same namespace whose pods room is kept for. Not together with `podTemplateRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scalable_ref: Option<ScalableRef>,
    /// For how many pods room is kept. With `percentage` the larger number counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i32>,
    /// For how many pods room is kept, in percent of the replicas of `scalableRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub percentage: Option<i32>,
    /// The most room that is kept, by resource, such as `cpu: 10`. Alone, room is kept for as many pods as fit in it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amounts")]
    #[schemars(schema_with = "resources")]
    pub limits: Option<ResourceMap>,
}

/// A PodTemplate of the same namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PodTemplateRef {
    /// The name of the PodTemplate.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// A workload of the same namespace that has a scale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScalableRef {
    /// The API group of the workload, such as `apps`. Unset is the core group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// The kind of the workload, such as `Deployment`.
    #[schemars(length(min = 1))]
    pub kind: String,
    /// The name of the workload.
    #[schemars(length(min = 1))]
    pub name: String,
}

/// What the buffer came to. Written by the autoscaler.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CapacityBufferStatus {
    /// The PodTemplate that says what one pod needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_ref: Option<PodTemplateRef>,
    /// For how many pods room is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// The generation of the PodTemplate that was looked at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template_generation: Option<i64>,
    /// How the room is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning_strategy: Option<String>,
    /// What is true of the buffer now: ReadyForProvisioning and Provisioning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Option<Vec<Condition>>,
}

fn default_strategy() -> String {
    "buffer.x-k8s.io/active-capacity".to_owned()
}
