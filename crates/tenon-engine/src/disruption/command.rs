//! What is done to nodes: which go, what comes for them, and where each of their pods goes.

use std::fmt;
use std::sync::Arc;

use tenon_model::{DisruptionReason, NewNode, PodKey, Price, RepairAction, RepairDecision};

/// How nodes are disrupted. The order is the one they are tried in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// A broken node is replaced.
    Repair,
    /// Empty nodes are deleted.
    Emptiness,
    /// Nodes of static pools that are not what their pool says are replaced one by one.
    StaticDrift,
    /// Nodes that are not what their pool says are replaced.
    Drift,
    /// Several nodes are deleted, or replaced by one.
    MultiNode,
    /// One node is deleted, or replaced by a cheaper one.
    SingleNode,
    /// Nodes are replaced by others on other hosts, as their ProxmoxNodeClass wants it.
    HostGoal,
}

impl Method {
    /// What budgets know it by.
    pub fn reason(self) -> DisruptionReason {
        match self {
            Method::Repair => DisruptionReason::Unhealthy,
            Method::Emptiness => DisruptionReason::Empty,
            Method::StaticDrift | Method::Drift => DisruptionReason::Drifted,
            Method::MultiNode | Method::SingleNode | Method::HostGoal => DisruptionReason::Underutilized,
        }
    }

    /// Whether a move is decided a second time before something is done. A node that drifted does not drift back, and one that is
    /// broken was given its time.
    pub fn is_confirmed(self) -> bool {
        !matches!(self, Method::Repair | Method::StaticDrift | Method::Drift)
    }

    /// Its name, as in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Repair => "repair",
            Method::Emptiness => "emptiness",
            Method::StaticDrift => "static-drift",
            Method::Drift => "drift",
            Method::MultiNode => "multi-node",
            Method::SingleNode => "single-node",
            Method::HostGoal => "host-goal",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One move: nodes go once what comes for them is ready.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// How they were found.
    pub method: Method,
    /// The nodes that go, or the one that is rebooted.
    pub removed: Vec<RemovedNode>,
    /// What comes for them.
    pub replacements: Vec<Replacement>,
    /// What is wrong with the node and what is done about it, if it is repaired.
    pub repair: Option<RepairDecision>,
    /// Why nothing comes for them first, where something should.
    pub terminate_first: Option<TerminateFirst>,
    /// Where their pods go.
    pub moves: Vec<Move>,
    /// How much less is paid afterwards.
    pub savings: f64,
    /// How each pool with policy `Balanced` compares savings and moved pods, by name.
    pub scores: Vec<PoolScore>,
    /// The same for the same move: the same nodes and pods, and the same replacements.
    pub fingerprint: u64,
}

impl Command {
    /// The nodes that go, by name.
    pub fn names(&self) -> Vec<&str> {
        self.removed.iter().map(|removed| removed.node.as_str()).collect()
    }

    /// Whether its node is only rebooted, and nothing comes for it.
    pub fn is_reboot(&self) -> bool {
        self.repair.as_ref().is_some_and(|repair| repair.action == RepairAction::RebootNode)
    }

    /// The least of all scores, if a pool asks for one.
    pub fn score(&self) -> Option<f64> {
        self.scores.iter().map(|of_pool| of_pool.score).min_by(f64::total_cmp)
    }
}

/// How a pool with policy `Balanced` compares what a move saves with what it moves.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolScore {
    /// The pool.
    pub pool: String,
    /// Which part of the pool's cost is saved.
    pub saved: f64,
    /// Which part of the pool's disruption cost is caused.
    pub disrupted: f64,
    /// One for the other.
    pub score: f64,
}

/// Why a node goes before what comes for it is there. Planning for pending pods, or the static pool, makes up for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminateFirst {
    /// Its pods fit nowhere but on capacity that was set aside and that the node itself uses.
    NoReservedCapacity,
    /// Its static pool may have no node more.
    StaticAtLimit,
}

impl TerminateFirst {
    /// Its name, as in Karpenter's metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            TerminateFirst::NoReservedCapacity => "no-reserved-capacity",
            TerminateFirst::StaticAtLimit => "static-at-limit",
        }
    }
}

/// A node that goes.
#[derive(Debug, Clone, PartialEq)]
pub struct RemovedNode {
    /// Its name.
    pub node: String,
    /// Its claim.
    pub claim: String,
    /// Its pool.
    pub pool: String,
    /// Its instance type.
    pub instance_type: String,
    /// What it costs, if that is known.
    pub price: Option<Price>,
    /// What it costs to move its pods.
    pub disruption_cost: f64,
}

/// What comes for nodes that go.
#[derive(Debug, Clone, PartialEq)]
pub enum Replacement {
    /// A node that was planned for the pods.
    Planned(Box<NewNode>),
    /// A node as the template of a static pool says.
    Template {
        /// The pool.
        pool: String,
    },
}

/// Where a pod goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The pod.
    pub pod: Arc<PodKey>,
    /// Where it goes.
    pub to: Destination,
}

/// Where a pod goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// To a node that is there.
    Node(String),
    /// To a replacement, by its place in the list.
    Replacement(usize),
}
