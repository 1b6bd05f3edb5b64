//! NodePool: which nodes may be made, how many, and when they may go.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::disruption::Disruption;
use crate::quantity::{ResourceMap, read_amounts, resources};
use crate::requirement::{Requirement, Taint, of_pool};

/// A duration of hours, minutes and seconds.
pub(crate) const DURATION: &str = r"^([0-9]+(s|m|h))+$";
/// The same, or the word that switches it off.
pub(crate) const DURATION_OR_NEVER: &str = r"^(([0-9]+(s|m|h))+|Never)$";

/// Which nodes may be created, how many, and when they may be removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodePool",
    plural = "nodepools",
    category = "karpenter",
    status = "NodePoolStatus",
    doc = "A NodePool defines which nodes can be created for pending pods, how many at most, and when they can be removed.",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.nodes"),
    printcolumn(name = "NodeClass", type_ = "string", json_path = ".spec.template.spec.nodeClassRef.name"),
    printcolumn(name = "Nodes", type_ = "string", json_path = ".status.nodes"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Weight", type_ = "integer", json_path = ".spec.weight", priority = 1),
    printcolumn(name = "CPU", type_ = "string", json_path = ".status.resources.cpu", priority = 1),
    printcolumn(name = "Memory", type_ = "string", json_path = ".status.resources.memory", priority = 1)
)]
#[x_kube(
    validation = Rule::new("has(self.replicas) == has(oldSelf.replicas)").message("replicas cannot be added or removed later; create another NodePool"),
    validation = Rule::new("!has(self.replicas) || (!has(self.limits) || size(self.limits) == 0 || (size(self.limits) == 1 && 'nodes' in self.limits))").message("with replicas, the only allowed limit is nodes"),
    validation = Rule::new("!has(self.replicas) || !has(self.weight)").message("weight cannot be used together with replicas"),
)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolSpec {
    /// The template of every NodeClaim of the NodePool.
    pub template: ClaimTemplate,
    /// When nodes of the NodePool may be removed, and how many at the same time.
    #[serde(default)]
    #[schemars(extend("default" = { "consolidateAfter": "0s" }))]
    pub disruption: Disruption,
    /// The maximum total resources of all nodes of the NodePool, such as `cpu: 100` or `memory: 400Gi`; `nodes` limits
    /// the number of nodes. Unset: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amounts")]
    #[schemars(schema_with = "resources")]
    pub limits: Option<ResourceMap>,
    /// NodePools with a higher weight are tried first, from 1 to 100. Unset counts as 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<i32>,
    /// A fixed number of nodes (static NodePool) instead of nodes for pending pods. The number can be changed, but the
    /// field cannot be added or removed later. The only allowed limit is then `nodes`, and `weight` cannot be set.
    /// Alpha.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i64>,
}

/// The template of every NodeClaim of the NodePool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimTemplate {
    /// Labels and annotations of every node of the NodePool. Other metadata is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ClaimTemplateMetadata>,
    /// The specification of the nodes of the NodePool.
    pub spec: ClaimTemplateSpec,
}

/// Labels and annotations of every node of the NodePool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
pub struct ClaimTemplateMetadata {
    /// Labels of every node of the NodePool. Labels of the domain karpenter.sh are restricted, except
    /// `karpenter.sh/capacity-type`; so is `kubernetes.io/hostname`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "labels")]
    #[x_kube(
        merge_strategy = MapMerge::Atomic,
        validation = Rule::new("self.all(x, x in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || !x.find('^([^/]+)').endsWith('karpenter.sh'))").message("labels of the domain karpenter.sh are set by the autoscaler and cannot be used here"),
        validation = Rule::new("self.all(x, x != 'karpenter.sh/nodepool')").message("karpenter.sh/nodepool is set by the autoscaler and cannot be used here"),
        validation = Rule::new("self.all(x, x != 'kubernetes.io/hostname')").message("kubernetes.io/hostname differs for every node and cannot be used here"),
    )]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations of every node of the NodePool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = MapMerge::Granular)]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// The specification of the nodes of the NodePool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimTemplateSpec {
    /// Taints of the nodes. Only pods that tolerate them are scheduled on nodes of this NodePool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub taints: Option<Vec<Taint>>,
    /// Taints that the nodes have at start and that another component removes, such as a network plugin. Pods need not
    /// tolerate them; no pod is scheduled on a node until they are removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub startup_taints: Option<Vec<Taint>>,
    /// Requirements on the labels of the nodes, for example the allowed zones, instance types or architectures. All of
    /// them must be met. An empty list allows every instance type.
    #[schemars(schema_with = "of_pool", length(max = 100))]
    #[x_kube(
        merge_strategy = ListMerge::Atomic,
        validation = Rule::new("self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)").message("operator In needs at least one value"),
        validation = Rule::new("self.all(x, (x.operator == 'Gt' || x.operator == 'Lt' || x.operator == 'Gte' || x.operator == 'Lte') ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)").message("operators Gt, Lt, Gte and Lte need exactly one value, a non-negative integer"),
        validation = Rule::new("self.all(x, (x.operator == 'In' && has(x.minValues)) ? x.values.size() >= x.minValues : true)").message("minValues is greater than the number of values that operator In lists"),
    )]
    pub requirements: Vec<Requirement>,
    /// The ProxmoxNodeClass of the VMs. The name can be changed later, the group and the kind cannot.
    #[x_kube(
        validation = Rule::new("self.group == oldSelf.group").message("the group of nodeClassRef cannot be changed"),
        validation = Rule::new("self.kind == oldSelf.kind").message("the kind of nodeClassRef cannot be changed"),
    )]
    pub node_class_ref: NodeClassRef,
    /// How long a node may drain before it is removed together with its remaining pods, such as `30m`. Unset: no time
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION))]
    pub termination_grace_period: Option<String>,
    /// The age at which a node is replaced, such as `720h`; `Never` disables this. Default `720h`.
    #[serde(default = "default_expire_after")]
    #[schemars(regex(pattern = DURATION_OR_NEVER))]
    pub expire_after: String,
}

/// The node class of the VMs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct NodeClassRef {
    /// The API group without a version: `karpenter.proxmox.sinextra.dev`.
    #[schemars(regex(pattern = r"^[^/]*$"))]
    #[x_kube(validation = Rule::new("self != ''").message("group must not be empty"))]
    pub group: String,
    /// The kind: `ProxmoxNodeClass`.
    #[x_kube(validation = Rule::new("self != ''").message("kind must not be empty"))]
    pub kind: String,
    /// The name of the node class.
    #[x_kube(validation = Rule::new("self != ''").message("name must not be empty"))]
    pub name: String,
}

/// The state of the NodePool. Written by the autoscaler.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// The total resources of all nodes of the NodePool, to compare with the limits.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amounts")]
    #[schemars(schema_with = "resources")]
    pub resources: Option<ResourceMap>,
    /// The number of nodes of the NodePool.
    #[serde(default)]
    pub nodes: i64,
    /// The generation of the node class that was observed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_class_observed_generation: Option<i64>,
    /// The conditions of the NodePool. `Ready` requires ValidationSucceeded and NodeClassReady.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Option<Vec<Condition>>,
}

pub(crate) fn default_expire_after() -> String {
    "720h".to_owned()
}

fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 100,
        "additionalProperties": {
            "type": "string",
            "maxLength": 63,
            "pattern": r"^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
        },
    })
}
