//! Requirements and taints: which nodes are wanted, and what keeps pods off them.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A qualified name: an optional DNS prefix, a slash, and a name.
pub(crate) const QUALIFIED_NAME: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";

/// How a label's value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Operator {
    /// The value is one of these.
    In,
    /// The value is none of these, or the label is absent.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The value is a number above this one.
    Gt,
    /// The value is a number below this one.
    Lt,
    /// The value is this number or above.
    Gte,
    /// The value is this number or below.
    Lte,
}

/// A demand on one label of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// The label.
    #[schemars(length(max = 316), regex(pattern = QUALIFIED_NAME))]
    #[x_kube(
        validation = Rule::new("self in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || !self.find('^([^/]+)').endsWith('karpenter.sh')").message("labels of the domain karpenter.sh are set by the autoscaler, not by hand"),
        validation = Rule::new("self != 'kubernetes.io/hostname'").message("kubernetes.io/hostname differs for every node, so it cannot be asked for here"),
    )]
    pub key: String,
    /// How its value is compared.
    pub operator: Operator,
    /// What it is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub values: Option<Vec<String>>,
    /// How many different values must remain possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub min_values: Option<i64>,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// They are not scheduled here.
    NoSchedule,
    /// They are scheduled here only if nothing else fits.
    PreferNoSchedule,
    /// They are not scheduled here and are evicted.
    NoExecute,
}

/// A mark on a node that keeps pods off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Its name.
    #[schemars(length(min = 1), regex(pattern = QUALIFIED_NAME))]
    pub key: String,
    /// An optional value, compared by tolerations only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = QUALIFIED_NAME))]
    pub value: Option<String>,
    /// What it does.
    pub effect: TaintEffect,
    /// When it was added; kept as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_added: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>,
}
