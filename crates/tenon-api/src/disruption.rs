//! When a NodePool's nodes may be taken away, and how many at once.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::nodepool::DURATION_OR_NEVER;

/// When nodes of the NodePool may be removed, and how many at the same time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How long a node must have had no pod added or removed before it can be consolidated, such as `30s`, `5m` or
    /// `1h30m`; `Never` disables consolidation. Default `0s`.
    #[serde(default = "default_consolidate_after")]
    #[schemars(regex(pattern = DURATION_OR_NEVER))]
    pub consolidate_after: String,
    /// Which nodes can be consolidated. WhenEmpty: nodes that run no pods except those of DaemonSets.
    /// WhenEmptyOrUnderutilized: also nodes whose pods fit on other or cheaper nodes. Balanced: the same, weighed
    /// against the disruption of the pods. Default WhenEmptyOrUnderutilized.
    #[serde(default)]
    pub consolidation_policy: ConsolidationPolicy,
    /// How many nodes may be disrupted at the same time, and when. The strictest active budget applies. Default: one
    /// budget of `10%`. An empty list sets no limit.
    #[serde(default = "default_budgets")]
    #[schemars(length(max = 50))]
    #[x_kube(
        merge_strategy = ListMerge::Atomic,
        validation = Rule::new("self.all(x, has(x.schedule) == has(x.duration))").message("schedule and duration must be set together"),
    )]
    pub budgets: Vec<Budget>,
}

/// Which nodes can be consolidated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConsolidationPolicy {
    /// Only nodes that run no pods except those of DaemonSets.
    WhenEmpty,
    /// Also nodes whose pods fit on other or cheaper nodes.
    #[default]
    WhenEmptyOrUnderutilized,
    /// The same, weighed against the disruption of the pods.
    Balanced,
}

/// How many nodes may be disrupted at the same time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[schemars(extend("required" = ["nodes"]))]
pub struct Budget {
    /// The disruption reasons to which this budget applies. Unset: all reasons.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub reasons: Option<Vec<DisruptionReason>>,
    /// The number of nodes: a number such as `5`, or a percentage of the nodes of the NodePool such as `10%`, rounded
    /// up. `0` blocks disruption. Default `10%`.
    #[serde(default = "default_budget_nodes")]
    #[schemars(regex(pattern = r"^((100|[0-9]{1,2})%|[0-9]+)$"))]
    pub nodes: String,
    /// When the budget becomes active: a cron schedule of five fields in UTC, such as `0 9 * * mon-fri`, or a name such
    /// as `@daily`. Requires `duration`. Unset: always active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(
        pattern = r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$"
    ))]
    pub schedule: Option<String>,
    /// How long the budget stays active each time, in hours and minutes such as `8h` or `1h30m`. Requires `schedule`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$"))]
    pub duration: Option<String>,
}

/// Why a node is disrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DisruptionReason {
    /// Its pods fit on other nodes.
    Underutilized,
    /// It runs no pods except those of DaemonSets.
    Empty,
    /// It no longer matches its NodePool or node class.
    Drifted,
    /// It is unhealthy.
    Unhealthy,
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

fn default_consolidate_after() -> String {
    "0s".to_owned()
}

fn default_budget_nodes() -> String {
    "10%".to_owned()
}

fn default_budgets() -> Vec<Budget> {
    vec![Budget { reasons: None, nodes: default_budget_nodes(), schedule: None, duration: None }]
}
