//! Requirements and taints: which nodes are wanted, and what keeps pods off them.

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::timestamp::TimeSchema;

/// A qualified name: an optional DNS prefix, a slash, and a name.
pub(crate) const QUALIFIED_NAME: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";

/// How the value of a label is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Operator {
    /// The value is one of these.
    In,
    /// The value is none of these, or the label is absent.
    NotIn,
    /// The label exists.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The value is greater than this number.
    Gt,
    /// The value is less than this number.
    Lt,
    /// The value is greater than or equal to this number.
    Gte,
    /// The value is less than or equal to this number.
    Lte,
}

/// A requirement on one label of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// The label, for example `kubernetes.io/arch` or `node.kubernetes.io/instance-type`. Labels of the domain
    /// karpenter.sh are restricted, except `karpenter.sh/capacity-type`.
    #[schemars(length(max = 316), regex(pattern = QUALIFIED_NAME))]
    #[x_kube(
        validation = Rule::new("self in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || !self.find('^([^/]+)').endsWith('karpenter.sh')").message("labels of the domain karpenter.sh are set by the autoscaler and cannot be used here"),
        validation = Rule::new("self != 'kubernetes.io/hostname'").message("kubernetes.io/hostname differs for every node and cannot be used here"),
    )]
    pub key: String,
    /// How the value of the label is compared with `values`. In and NotIn: whether the list contains the value. Exists
    /// and DoesNotExist: whether the label exists. Gt, Lt, Gte and Lte compare integers.
    pub operator: Operator,
    /// The values for the comparison: at least one for In, exactly one integer for Gt, Lt, Gte and Lte, none for Exists
    /// and DoesNotExist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub values: Option<Vec<String>>,
    /// How many different values of the label must remain possible when an instance type is chosen, from 1 to 50.
    /// Unset: no minimum. Alpha.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50), transform = without_format)]
    pub min_values: Option<i64>,
}

/// The schema of a whole number whose size only its bounds tell.
pub(crate) fn without_format(schema: &mut Schema) {
    schema.remove("format");
}

/// The schema of a pool's requirements: as a claim's, but the pool is not named in them.
pub(crate) fn of_pool(generator: &mut SchemaGenerator) -> Schema {
    let mut list = generator.subschema_for::<Vec<Requirement>>();
    let rules = list.get_mut("items").and_then(|item| item.pointer_mut("/properties/key/x-kubernetes-validations"));
    if let Some(Value::Array(rules)) = rules {
        rules.push(json!({
            "rule": "self != 'karpenter.sh/nodepool'",
            "message": "karpenter.sh/nodepool is set by the autoscaler and cannot be used here",
        }));
    }
    list
}

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// They are not scheduled on the node.
    NoSchedule,
    /// They are scheduled on the node only if no other node fits.
    PreferNoSchedule,
    /// They are not scheduled on the node, and running pods are evicted.
    NoExecute,
}

/// A taint of a node. Only pods that tolerate the taint are scheduled on the node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// The key of the taint, for example `example.com/gpu`.
    #[schemars(length(min = 1), regex(pattern = QUALIFIED_NAME))]
    pub key: String,
    /// The value of the taint. Unset: no value. An empty string is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = QUALIFIED_NAME))]
    pub value: Option<String>,
    /// What happens to pods that do not tolerate the taint. NoSchedule: they are not scheduled. PreferNoSchedule: they
    /// are scheduled only if no other node fits. NoExecute: they are not scheduled, and running pods are evicted.
    pub effect: TaintEffect,
    /// When the taint was added. Kept as written; it has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<TimeSchema>")]
    pub time_added: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>,
}
