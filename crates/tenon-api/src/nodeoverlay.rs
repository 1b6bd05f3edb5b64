//! NodeOverlay: what some sizes cost or offer besides what the provider says.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::quantity::{ResourceMap, read_amounts, resources};
use crate::requirement::{Operator, QUALIFIED_NAME};

/// What some sizes cost or offer besides what is known of them.
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
#[x_kube(validation = Rule::new("!has(self.price) || !has(self.priceAdjustment)").message("give price or priceAdjustment, not both"))]
#[serde(rename_all = "camelCase")]
pub struct NodeOverlaySpec {
    /// Which instance types and offerings are meant, by their labels. All must hold.
    #[schemars(length(max = 100))]
    #[x_kube(
        merge_strategy = ListMerge::Atomic,
        validation = Rule::new("self.all(x, x.operator == 'NotIn' ? x.values.size() != 0 : true)").message("operator NotIn needs at least one value"),
        validation = Rule::new("self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)").message("operator In needs at least one value"),
        validation = Rule::new("self.all(x, (x.operator == 'Gt' || x.operator == 'Lt' || x.operator == 'Gte' || x.operator == 'Lte') ? (x.values.size() == 1 && int(x.values[0]) >= 0) : true)").message("operators Gt, Lt, Gte and Lte need exactly one value, a whole number that is not negative"),
    )]
    pub requirements: Vec<OverlayRequirement>,
    /// What is added to or taken from the price: an amount such as `+0.5` or `-0.5`, or a share such as `+10%` or `-15.5%`,
    /// down to `-100%`. Not together with `price`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$"))]
    pub price_adjustment: Option<String>,
    /// The price instead of the known one, as a decimal number such as `1.25`. Not together with `priceAdjustment`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^\d+(\.\d+)?$"))]
    pub price: Option<String>,
    /// Resources the nodes offer besides, such as `example.com/gpu: 1`. Those every node has (cpu, memory,
    /// ephemeral-storage, pods) cannot be changed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_amounts")]
    #[schemars(schema_with = "resources")]
    #[x_kube(validation = Rule::new("self.all(x, !(x in ['cpu', 'memory', 'ephemeral-storage', 'pods']))").message("cpu, memory, ephemeral-storage and pods are the VM's own and cannot be overlaid"))]
    pub capacity: Option<ResourceMap>,
    /// Where overlays say different things, the one with the higher weight wins, from 1 to 10000. Unset counts as 0; among
    /// equals the name that comes later in the alphabet wins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub weight: Option<i32>,
}

/// A demand on one label of an instance type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct OverlayRequirement {
    /// The label, for example `node.kubernetes.io/instance-type`, `topology.kubernetes.io/zone` or `karpenter.sh/nodepool`.
    #[schemars(length(max = 316), regex(pattern = QUALIFIED_NAME))]
    #[x_kube(
        validation = Rule::new("self in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || !self.find('^([^/]+)').endsWith('karpenter.sh')").message("of the domain karpenter.sh only capacity-type and nodepool can be asked for"),
        validation = Rule::new("self != 'kubernetes.io/hostname'").message("kubernetes.io/hostname differs for every node, so it cannot be asked for here"),
    )]
    pub key: String,
    /// How the label's value is compared with `values`. In and NotIn look for the value in the list; Exists and
    /// DoesNotExist only ask whether the label is there; Gt, Lt, Gte and Lte compare numbers.
    pub operator: Operator,
    /// What the label's value is compared with: at least one for In and NotIn, exactly one whole number for Gt, Lt, Gte and
    /// Lte, none for Exists and DoesNotExist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub values: Option<Vec<String>>,
}

/// Whether the overlay is in force. Written by the autoscaler.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
pub struct NodeOverlayStatus {
    /// What is true of the overlay now. `Ready` needs ValidationSucceeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub conditions: Option<Vec<Condition>>,
}
