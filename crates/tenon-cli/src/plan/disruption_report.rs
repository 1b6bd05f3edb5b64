//! Which nodes would be disrupted, as plain data: part of the JSON and YAML of a plan.
//!
//! Other programs read it: keys stay, and what is added later is optional.

use serde::{Deserialize, Serialize};

use super::report::NewClaim;

/// What would be done to nodes, and why others stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionReport {
    /// The time of the first round.
    pub now: String,
    /// What is done in each round.
    pub rounds: Vec<Round>,
    /// Nodes that stay in the last round that was planned.
    pub kept: Vec<Kept>,
    /// What the budgets of each NodePool allowed in that round.
    pub budgets: Vec<PoolBudget>,
    /// How much, and how long it took.
    pub stats: DisruptionStats,
}

/// What is done at once.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Round {
    /// The moves, all found by one method.
    pub commands: Vec<RoundCommand>,
}

/// One move.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RoundCommand {
    /// How it was found.
    pub method: String,
    /// What budgets know it by.
    pub reason: String,
    /// Nodes that go.
    pub nodes: Vec<DisruptedNode>,
    /// What comes for them. Of a static NodePool only the name of the pool is set.
    pub replacements: Vec<NewClaim>,
    /// What is wrong with a node that is repaired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// What is done about it: `RebootNode` if its VM is only rebooted, and nothing comes for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Why a node goes before what comes for it is there, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminate_first: Option<String>,
    /// Where pods go.
    pub moves: Vec<PodMove>,
    /// How much less is paid afterwards.
    pub savings: f64,
    /// The lowest score of the NodePools whose policy is `Balanced`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// A node that goes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DisruptedNode {
    /// The Node.
    pub name: String,
    /// Its NodeClaim.
    pub node_claim: String,
    /// Its NodePool.
    pub node_pool: String,
    /// Its instance type.
    pub instance_type: String,
    /// What it costs, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
    /// What it costs to move its pods.
    pub disruption_cost: f64,
}

/// A pod and where it goes: to a node, or to a replacement by its place in the list.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodMove {
    /// The pod, as `namespace/name`.
    pub pod: String,
    /// The Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The replacement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<usize>,
}

/// A node that stays.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kept {
    /// The Node.
    pub name: String,
    /// Its NodePool; empty if it has none.
    pub node_pool: String,
    /// Why, for each method that could have disrupted it.
    pub reasons: Vec<Reason>,
}

/// Why a method does not disrupt a node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// The method.
    pub method: String,
    /// Why.
    pub reason: String,
}

/// What the budgets of a NodePool allow underutilized nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolBudget {
    /// The NodePool.
    pub node_pool: String,
    /// How many nodes may be disrupted at once; 2147483647 if no budget counts.
    pub allowed: u32,
    /// How many are.
    pub disrupting: u32,
    /// How many nodes it has.
    pub nodes: u32,
}

/// How much, and how long it took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DisruptionStats {
    /// Nodes with a NodeClaim before the first round.
    pub nodes: usize,
    /// What they cost together.
    pub cost: f64,
    /// Nodes with a NodeClaim after the last round.
    pub nodes_after: usize,
    /// What they cost together.
    pub cost_after: f64,
    /// Moves of all rounds.
    pub commands: usize,
    /// Pods that were moved in all rounds; one that is moved twice counts twice.
    pub moved_pods: usize,
    /// Whether nothing is left to do.
    pub settled: bool,
    /// How often it was planned without some nodes.
    pub simulated: usize,
    /// How long all rounds took.
    pub scan_micros: u64,
}
