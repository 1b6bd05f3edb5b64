//! Requirements and taints: which nodes are wanted, and what keeps pods off them.

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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
    /// The label, for example `kubernetes.io/arch` or `node.kubernetes.io/instance-type`. Labels of the domain
    /// karpenter.sh are the autoscaler's own, except `karpenter.sh/capacity-type`.
    #[schemars(length(max = 316), regex(pattern = QUALIFIED_NAME))]
    #[x_kube(
        validation = Rule::new("self in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || !self.find('^([^/]+)').endsWith('karpenter.sh')").message("labels of the domain karpenter.sh are set by the autoscaler, not by hand"),
        validation = Rule::new("self != 'kubernetes.io/hostname'").message("kubernetes.io/hostname differs for every node, so it cannot be asked for here"),
    )]
    pub key: String,
    /// How the label's value is compared with `values`. In and NotIn look for the value in the list; Exists and
    /// DoesNotExist only ask whether the label is there; Gt, Lt, Gte and Lte compare numbers.
    pub operator: Operator,
    /// What the label's value is compared with: at least one for In, exactly one whole number for Gt, Lt, Gte and Lte,
    /// none for Exists and DoesNotExist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub values: Option<Vec<String>>,
    /// How many different values of the label must remain possible when a node is chosen, from 1 to 50. Unset asks for
    /// none in particular. Alpha.
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
            "message": "karpenter.sh/nodepool is set by the autoscaler, not by hand",
        }));
    }
    list
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

/// A mark on a node that keeps pods off, unless they tolerate it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// The taint's name, for example `example.com/gpu`.
    #[schemars(length(min = 1), regex(pattern = QUALIFIED_NAME))]
    pub key: String,
    /// The taint's value, which tolerations may ask for. Leave it out for none; an empty text is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = QUALIFIED_NAME))]
    pub value: Option<String>,
    /// What happens to pods that do not tolerate it: NoSchedule keeps new ones off, PreferNoSchedule tries to, NoExecute
    /// also evicts those that run.
    pub effect: TaintEffect,
    /// When the taint was added. Kept as written and not acted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_added: Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>,
}
