//! NodePool: which nodes may be made, how many, and when they may go.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::quantity::{ResourceMap, resources};
use crate::requirement::{Requirement, Taint};

/// A duration of hours, minutes and seconds.
pub(crate) const DURATION: &str = r"^([0-9]+(s|m|h))+$";
/// The same, or the word that switches it off.
pub(crate) const DURATION_OR_NEVER: &str = r"^(([0-9]+(s|m|h))+|Never)$";

/// What the nodes of a pool are like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1",
    kind = "NodePool",
    plural = "nodepools",
    category = "karpenter",
    status = "NodePoolStatus",
    doc = "Which nodes may be made, how many, and when they may go.",
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
    /// When nodes may be taken away.
    #[serde(default)]
    pub disruption: Disruption,
    /// The most the pool's nodes may have together; `nodes` counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "resources")]
    pub limits: Option<ResourceMap>,
    /// Pools with a higher weight are tried first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub weight: Option<i32>,
    /// A fixed number of nodes instead of as many as pods need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub replicas: Option<i64>,
}

/// What every NodeClaim of a pool is made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimTemplate {
    /// Labels and annotations for the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ClaimTemplateMetadata>,
    /// What the node is like.
    pub spec: ClaimTemplateSpec,
}

/// Labels and annotations for every node of a pool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
pub struct ClaimTemplateMetadata {
    /// Labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "labels")]
    #[x_kube(
        merge_strategy = MapMerge::Atomic,
        validation = Rule::new("self.all(x, x in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || !x.find('^([^/]+)').endsWith('karpenter.sh'))").message("labels of the domain karpenter.sh are set by the autoscaler, not by hand"),
        validation = Rule::new("self.all(x, x != 'karpenter.sh/nodepool')").message("karpenter.sh/nodepool is set by the autoscaler, not by hand"),
        validation = Rule::new("self.all(x, x != 'kubernetes.io/hostname')").message("kubernetes.io/hostname differs for every node, so it cannot be asked for here"),
    )]
    pub labels: Option<BTreeMap<String, String>>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// What the nodes of a pool are like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimTemplateSpec {
    /// Taints the nodes have for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub taints: Option<Vec<Taint>>,
    /// Taints the nodes start with and somebody else takes away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub startup_taints: Option<Vec<Taint>>,
    /// Labels the nodes must or must not have.
    #[schemars(length(max = 100))]
    #[x_kube(
        merge_strategy = ListMerge::Atomic,
        validation = Rule::new("self.all(x, x.key != 'karpenter.sh/nodepool')").message("karpenter.sh/nodepool is set by the autoscaler, not by hand"),
        validation = Rule::new("self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)").message("operator In needs at least one value"),
        validation = Rule::new("self.all(x, x.operator in ['Gt', 'Lt', 'Gte', 'Lte'] ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)").message("operators Gt, Lt, Gte and Lte need exactly one value, a whole number that is not negative"),
        validation = Rule::new("self.all(x, (x.operator == 'In' && has(x.minValues)) ? x.values.size() >= x.minValues : true)").message("minValues asks for more values than operator In lists"),
    )]
    pub requirements: Vec<Requirement>,
    /// Where the details of the VMs stand.
    #[x_kube(
        validation = Rule::new("self.group == oldSelf.group").message("the group of nodeClassRef cannot change"),
        validation = Rule::new("self.kind == oldSelf.kind").message("the kind of nodeClassRef cannot change"),
    )]
    pub node_class_ref: NodeClassRef,
    /// How long pods may take to leave before a node goes anyway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = DURATION))]
    pub termination_grace_period: Option<String>,
    /// How old a node may become.
    #[serde(default = "default_expire_after")]
    #[schemars(regex(pattern = DURATION_OR_NEVER))]
    pub expire_after: String,
}

/// Where the details of a VM stand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct NodeClassRef {
    /// Its API group, without a version.
    #[schemars(regex(pattern = r"^[^/]*$"))]
    #[x_kube(validation = Rule::new("self != ''").message("group must be given"))]
    pub group: String,
    /// Its kind.
    #[x_kube(validation = Rule::new("self != ''").message("kind must be given"))]
    pub kind: String,
    /// Its name.
    #[x_kube(validation = Rule::new("self != ''").message("name must be given"))]
    pub name: String,
}

/// When nodes may be taken away.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How long a node must be quiet first.
    #[serde(default = "default_consolidate_after")]
    #[schemars(regex(pattern = DURATION_OR_NEVER))]
    pub consolidate_after: String,
    /// Which nodes may go to save money.
    #[serde(default)]
    pub consolidation_policy: ConsolidationPolicy,
    /// How many may go at once, and when.
    #[serde(default = "default_budgets")]
    #[schemars(length(max = 50))]
    #[x_kube(
        merge_strategy = ListMerge::Atomic,
        validation = Rule::new("self.all(x, has(x.schedule) == has(x.duration))").message("schedule and duration go together: give both or neither"),
    )]
    pub budgets: Vec<Budget>,
}

/// Which nodes may go to save money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConsolidationPolicy {
    /// Only nodes without pods of their own.
    WhenEmpty,
    /// Also nodes whose pods fit elsewhere or on something cheaper.
    #[default]
    WhenEmptyOrUnderutilized,
    /// As the last one, with care for how much is disturbed.
    Balanced,
}

/// How many nodes may go at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
pub struct Budget {
    /// The reasons it counts for; all if unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub reasons: Option<Vec<DisruptionReason>>,
    /// A number, or a share of the pool's nodes.
    #[serde(default = "default_budget_nodes")]
    #[schemars(regex(pattern = r"^((100|[0-9]{1,2})%|[0-9]+)$"))]
    pub nodes: String,
    /// When it begins to count, as a cron line in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(
        pattern = r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$"
    ))]
    pub schedule: Option<String>,
    /// How long it counts each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$"))]
    pub duration: Option<String>,
}

/// Why a node may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DisruptionReason {
    /// Its pods fit elsewhere.
    Underutilized,
    /// It has no pods of its own.
    Empty,
    /// It is not what its pool says any more.
    Drifted,
    /// It is broken.
    Unhealthy,
}

/// How far the pool is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// What its nodes have together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "resources")]
    pub resources: Option<ResourceMap>,
    /// How many nodes it has.
    #[serde(default)]
    pub nodes: i64,
    /// The generation of the NodeClass that was looked at last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_class_observed_generation: Option<i64>,
    /// What is true of it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Option<Vec<Condition>>,
}

impl Default for Disruption {
    fn default() -> Disruption {
        Disruption {
            consolidate_after: default_consolidate_after(),
            consolidation_policy: ConsolidationPolicy::default(),
            budgets: default_budgets(),
        }
    }
}

pub(crate) fn default_expire_after() -> String {
    "720h".to_owned()
}

fn default_consolidate_after() -> String {
    "0s".to_owned()
}

fn default_budget_nodes() -> String {
    "10%".to_owned()
}

fn default_budgets() -> Vec<Budget> {
    vec![Budget { reasons: None, nodes: default_budget_nodes(), schedule: None, duration: None }]
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
