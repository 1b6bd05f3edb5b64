//! When a NodePool's nodes may be taken away, and how many at once.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::nodepool::DURATION_OR_NEVER;

/// When nodes of the pool may be taken away, and how many at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// How long no pod may have come to or left a node before it can go to save money, such as `30s`, `5m` or `1h30m`;
    /// `Never` switches that off. Default `0s`.
    #[serde(default = "default_consolidate_after")]
    #[schemars(regex(pattern = DURATION_OR_NEVER))]
    pub consolidate_after: String,
    /// Which nodes may go to save money. WhenEmpty: those without pods of their own. WhenEmptyOrUnderutilized: also those
    /// whose pods fit elsewhere or on something cheaper. Balanced: the same, weighed against how much it disturbs.
    /// Default WhenEmptyOrUnderutilized.
    #[serde(default)]
    pub consolidation_policy: ConsolidationPolicy,
    /// How many nodes may be on their way out at once, and when. The strictest budget that counts wins. Default one of
    /// `10%`; an empty list sets no bound.
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

/// How many nodes may be on their way out at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[schemars(extend("required" = ["nodes"]))]
pub struct Budget {
    /// The reasons this budget counts for. Unset counts for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 50))]
    #[x_kube(merge_strategy = ListMerge::Set)]
    pub reasons: Option<Vec<DisruptionReason>>,
    /// How many nodes: a number such as `5`, or a share of the pool such as `10%`, rounded up. `0` lets none go. Default
    /// `10%`.
    #[serde(default = "default_budget_nodes")]
    #[schemars(regex(pattern = r"^((100|[0-9]{1,2})%|[0-9]+)$"))]
    pub nodes: String,
    /// When the budget begins to count: five cron fields in UTC, such as `0 9 * * mon-fri`, or `@daily` and the like. Needs
    /// `duration`. Unset counts always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(
        pattern = r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$"
    ))]
    pub schedule: Option<String>,
    /// How long the budget counts each time its schedule hits, in hours and minutes such as `8h` or `1h30m`. Needs
    /// `schedule`.
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
