//! NodeOverlay: what some sizes cost or offer besides what the provider says.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::quantity::{ResourceMap, read_amounts, resources};
use crate::requirement::{Operator, QUALIFIED_NAME};

/// Changes the price or adds resources of instance types.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "karpenter.sh",
    version = "v1alpha1",
    kind = "NodeOverlay",
    plural = "nodeoverlays",
    shortname = "overlays",
    category = "karpenter",
    status = "NodeOverlayStatus",
    doc = "A NodeOverlay changes what some instance types cost or offer when nodes are planned.",
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Weight", type_ = "integer", json_path = ".spec.weight", priority = 1)
)]
#[x_kube(validation = Rule::new("!has(self.price) || !has(self.priceAdjustment)").message("set price or priceAdjustment, not both"))]
#[serde(rename_all = "camelCase")]
pub struct NodeOverlaySpec {
    /// Selects instance types and offerings by their labels. All requirements must be met.
    #[schemars(length(max = 100))]
    #[x_kube(
        merge_strategy = ListMerge::Atomic,
        validation = Rule::new("self.all(x, x.operator == 'NotIn' ? x.values.size() != 0 : true)").message("operator NotIn needs at least one value"),
        validation = Rule::new("self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)").message("operator In needs at least one value"),
        validation = Rule::new("self.all(x, (x.operator == 'Gt' || x.operator == 'Lt' || x.operator == 'Gte' || x.operator == 'Lte') ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)").message("operators Gt, Lt, Gte and Lte need exactly one value, a non-negative integer"),
    )]
    pub requirements: Vec<OverlayRequirement>,
    /// The change of the price: an amount such as `+0.5` or `-0.5`, or a percentage such as `+10%` or `-15.5%`, down to
    /// `-100%`. Cannot be used together with `price`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$"))]
    pub price_adjustment: Option<String>,
    /// The new price, as a decimal number such as `1.25`. Cannot be used together with `priceAdjustment`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^\d+(\.\d+)?$"))]
    pub price: Option<String>,
    /// Additional resources of the nodes, such as `example.com/gpu: 1`. The resources cpu, memory, ephemeral-storage
    /// and pods cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amounts")]
    #[schemars(schema_with = "resources")]
    #[x_kube(validation = Rule::new("self.all(x, !(x in ['cpu', 'memory', 'ephemeral-storage', 'pods']))").message("cpu, memory, ephemeral-storage and pods cannot be changed by an overlay"))]
    pub capacity: Option<ResourceMap>,
    /// If overlays conflict, the overlay with the higher weight applies, from 1 to 10000. Unset counts as 0; with equal
    /// weights, the name that is later in the alphabet applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub weight: Option<i32>,
}

/// A requirement on one label of an instance type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverlayRequirement {
    /// The label, for example `node.kubernetes.io/instance-type`, `topology.kubernetes.io/zone` or
    /// `karpenter.sh/nodepool`.
    #[schemars(length(max = 316), regex(pattern = QUALIFIED_NAME))]
    #[x_kube(
        validation = Rule::new("self in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || !self.find('^([^/]+)').endsWith('karpenter.sh')").message("of the domain karpenter.sh, only capacity-type and nodepool can be used"),
        validation = Rule::new("self != 'kubernetes.io/hostname'").message("kubernetes.io/hostname differs for every node and cannot be used here"),
    )]
    pub key: String,
    /// How the value of the label is compared with `values`. In and NotIn: whether the list contains the value. Exists
    /// and DoesNotExist: whether the label exists. Gt, Lt, Gte and Lte compare integers.
    pub operator: Operator,
    /// The values for the comparison: at least one for In and NotIn, exactly one integer for Gt, Lt, Gte and Lte, none
    /// for Exists and DoesNotExist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub values: Option<Vec<String>>,
}

/// The state of the overlay. Written by the autoscaler.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
pub struct NodeOverlayStatus {
    /// The conditions of the overlay. `Ready` requires ValidationSucceeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Option<Vec<Condition>>,
}
