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

/// Which nodes may be made, how many, and when they may go.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodePool",
    plural = "nodepools",
    category = "karpenter",
    status = "NodePoolStatus",
    doc = "A NodePool says which nodes may be made for pods that wait, how many at most, and when they may go again.",
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
    validation = Rule::new("has(self.replicas) == has(oldSelf.replicas)").message("replicas can be neither added nor removed later: make another NodePool"),
    validation = Rule::new("!has(self.replicas) || (!has(self.limits) || size(self.limits) == 0 || (size(self.limits) == 1 && 'nodes' in self.limits))").message("with replicas, the only possible limit is nodes"),
    validation = Rule::new("!has(self.replicas) || !has(self.weight)").message("with replicas, there is no weight"),
)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolSpec {
    /// What every NodeClaim of the pool is made from.
    pub template: ClaimTemplate,
    /// When nodes of the pool may be taken away, and how many at once.
    #[serde(default)]
    #[schemars(extend("default" = { "consolidateAfter": "0s" }))]
    pub disruption: Disruption,
    /// The most the pool's nodes may have together, by resource, such as `cpu: 100` or `memory: 400Gi`; `nodes` counts
    /// them. Unset sets no limit.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amounts")]
    #[schemars(schema_with = "resources")]
    pub limits: Option<ResourceMap>,
    /// Pools with a higher weight are tried first, from 1 to 100. Unset counts as 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<i32>,
    /// A fixed number of nodes instead of as many as pods need. It can be changed, but neither added nor removed later; with
    /// it the only limit is `nodes` and there is no weight. Unset makes nodes as pods need them. Alpha.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i64>,
}

/// What every NodeClaim of the pool is made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimTemplate {
    /// Labels and annotations for every node of the pool. Nothing else of an object's metadata is kept here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ClaimTemplateMetadata>,
    /// What the nodes of the pool are like.
    pub spec: ClaimTemplateSpec,
}

/// Labels and annotations for every node of the pool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
pub struct ClaimTemplateMetadata {
    /// Labels every node of the pool gets. Those of the domain karpenter.sh are the autoscaler's own, except
    /// `karpenter.sh/capacity-type`; `kubernetes.io/hostname` differs for every node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "labels")]
    #[x_kube(
        merge_strategy = MapMerge::Atomic,
        validation = Rule::new("self.all(x, x in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || !x.find('^([^/]+)').endsWith('karpenter.sh'))").message("labels of the domain karpenter.sh are set by the autoscaler, not by hand"),
        validation = Rule::new("self.all(x, x != 'karpenter.sh/nodepool')").message("karpenter.sh/nodepool is set by the autoscaler, not by hand"),
        validation = Rule::new("self.all(x, x != 'kubernetes.io/hostname')").message("kubernetes.io/hostname differs for every node, so it cannot be asked for here"),
    )]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations every node of the pool gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = MapMerge::Granular)]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// What the nodes of the pool are like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimTemplateSpec {
    /// Taints the nodes have for good: only pods that tolerate them get nodes of this pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub taints: Option<Vec<Taint>>,
    /// Taints the nodes start with and somebody else takes away, such as a network plugin. Pods need not tolerate them; a
    /// node takes no pods until they are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub startup_taints: Option<Vec<Taint>>,
    /// What the nodes' labels must be, for example which zones, sizes or architectures are allowed. All must hold. An empty
    /// list allows every size the class offers.
    #[schemars(schema_with = "of_pool", length(max = 100))]
    #[x_kube(
        merge_strategy = ListMerge::Atomic,
        validation = Rule::new("self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)").message("operator In needs at least one value"),
        validation = Rule::new("self.all(x, (x.operator == 'Gt' || x.operator == 'Lt' || x.operator == 'Gte' || x.operator == 'Lte') ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)").message("operators Gt, Lt, Gte and Lte need exactly one value, a whole number that is not negative"),
        validation = Rule::new("self.all(x, (x.operator == 'In' && has(x.minValues)) ? x.values.size() >= x.minValues : true)").message("minValues asks for more values than operator In lists"),
    )]
    pub requirements: Vec<Requirement>,
    /// The ProxmoxNodeClass that says what the VMs are made of. Its name may change; its group and
    /// kind may not.
    #[x_kube(
        validation = Rule::new("self.group == oldSelf.group").message("the group of nodeClassRef cannot change"),
        validation = Rule::new("self.kind == oldSelf.kind").message("the kind of nodeClassRef cannot change"),
    )]
    pub node_class_ref: NodeClassRef,
    /// How long pods may take to leave a node before it goes with them, such as `30m`. Unset waits for as long as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION))]
    pub termination_grace_period: Option<String>,
    /// How old a node may become before it is replaced, such as `720h`; `Never` for no limit. Default `720h`.
    #[serde(default = "default_expire_after")]
    #[schemars(regex(pattern = DURATION_OR_NEVER))]
    pub expire_after: String,
}

/// The object that says what the VMs are made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct NodeClassRef {
    /// Its API group without a version: `karpenter.proxmox.sinextra.dev`.
    #[schemars(regex(pattern = r"^[^/]*$"))]
    #[x_kube(validation = Rule::new("self != ''").message("group must be given"))]
    pub group: String,
    /// Its kind: `ProxmoxNodeClass`.
    #[x_kube(validation = Rule::new("self != ''").message("kind must be given"))]
    pub kind: String,
    /// Its name.
    #[x_kube(validation = Rule::new("self != ''").message("name must be given"))]
    pub name: String,
}

/// How far the pool is. Written by the autoscaler.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// What the pool's nodes have together, to compare with the limits.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amounts")]
    #[schemars(schema_with = "resources")]
    pub resources: Option<ResourceMap>,
    /// How many nodes the pool has.
    #[serde(default)]
    pub nodes: i64,
    /// The generation of the NodeClass that was looked at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_class_observed_generation: Option<i64>,
    /// What is true of the pool now. `Ready` needs ValidationSucceeded and NodeClassReady.
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
