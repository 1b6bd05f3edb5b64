//! Why is a node not disrupted? Each reason in operator words, with the next step where there is one.

use std::fmt;

use tenon_model::Timestamp;
use tenon_model::labels::{DO_NOT_DISRUPT, NODEPOOL};

/// Why a node is not disrupted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DisruptionBlocked {
    /// There is no Node for the claim.
    NodeMissing,
    /// It is being removed already.
    Deleting,
    /// Another controller created its VM, and we have no proof that would let us destroy it.
    ForeignVm,
    /// It cannot take pods yet.
    NotInitialized,
    /// Pods were nominated to it a moment ago.
    Nominated,
    /// Somebody asked that it be left alone.
    DoNotDisrupt {
        /// Who carries the annotation.
        on: Protected,
    },
    /// No NodePool says when it may be removed.
    NoPool {
        /// The pool it names, which is not there or being deleted; none if it names no pool.
        pool: Option<String>,
    },
    /// Its NodePool has a fixed number of nodes.
    StaticPool {
        /// The pool.
        pool: String,
    },
    /// Its NodePool says that empty nodes stay.
    ConsolidationDisabled {
        /// The pool.
        pool: String,
    },
    /// How long its NodePool wants it to be without pod events cannot be read.
    InvalidConsolidateAfter {
        /// The pool.
        pool: String,
        /// What stands in `consolidateAfter`.
        text: String,
    },
    /// Pods need it.
    NotEmpty {
        /// How many.
        pods: usize,
        /// One of them, as `namespace/name`: the first by name.
        first: String,
    },
    /// A pod was added or removed, or the node was initialized, too short a time ago.
    TooRecent {
        /// When `consolidateAfter` has passed.
        until: Timestamp,
    },
    /// As many nodes of its NodePool are disrupted as may be.
    BudgetExhausted {
        /// The pool.
        pool: String,
        /// How many may be disrupted at once.
        allowed: u32,
        /// How many are being removed or not ready, those that are disrupted now included.
        disrupting: u32,
    },
}

/// What carries the annotation `karpenter.sh/do-not-disrupt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Protected {
    /// The Node of this name.
    Node(String),
    /// The NodeClaim of this name.
    Claim(String),
    /// A pod, as `namespace/name`.
    Pod(String),
}

impl fmt::Display for DisruptionBlocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use DisruptionBlocked as Blocked;
        match self {
            Blocked::NodeMissing => f.write_str("the NodeClaim has no Node yet"),
            Blocked::Deleting => f.write_str("the NodeClaim or its Node is already being deleted"),
            Blocked::ForeignVm => f.write_str(
                "the VM was created by another controller and is not adopted; see condition Adopted of the NodeClaim",
            ),
            Blocked::NotInitialized => f.write_str("the node is not initialized yet"),
            Blocked::Nominated => f.write_str("pending pods are nominated to the node"),
            Blocked::DoNotDisrupt { on } => {
                write!(f, "{on} has {DO_NOT_DISRUPT}; remove the annotation to allow disruption")
            }
            Blocked::NoPool { pool: None } => {
                write!(f, "the node has no label {NODEPOOL}; delete the NodeClaim to remove the node")
            }
            Blocked::NoPool { pool: Some(pool) } => write!(f, "NodePool {pool} does not exist or is being deleted"),
            Blocked::StaticPool { pool } => {
                write!(f, "NodePool {pool} is static; lower spec.replicas to remove nodes")
            }
            Blocked::ConsolidationDisabled { pool } => {
                write!(f, "consolidateAfter: Never on NodePool {pool}; set a duration such as 5m to remove empty nodes")
            }
            Blocked::InvalidConsolidateAfter { pool, text } => write!(
                f,
                "consolidateAfter: \"{text}\" on NodePool {pool} is not a duration; set a duration such as 5m, or Never"
            ),
            Blocked::NotEmpty { pods: 1, first } => write!(f, "pod {first} needs the node"),
            Blocked::NotEmpty { pods, first } => write!(f, "{pods} pods need the node, such as {first}"),
            Blocked::TooRecent { until } => write!(
                f,
                "consolidateAfter has not passed; the node can be removed at {until} if no pod is added or removed before"
            ),
            Blocked::BudgetExhausted { pool, allowed, disrupting } => budget(f, pool, *allowed, *disrupting),
        }
    }
}

fn budget(f: &mut fmt::Formatter<'_>, pool: &str, allowed: u32, disrupting: u32) -> fmt::Result {
    if allowed == 0 {
        return write!(
            f,
            "the budgets of NodePool {pool} allow no disruption now; wait until their schedules allow it, or change \
             spec.disruption.budgets"
        );
    }
    let nodes = if disrupting == 1 { "node is" } else { "nodes are" };
    write!(
        f,
        "NodePool {pool} has no budget left: {disrupting} {nodes} being disrupted or not ready, and spec.disruption.budgets \
         allow {allowed} at once"
    )
}

impl fmt::Display for Protected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Protected::Node(name) => write!(f, "Node {name}"),
            Protected::Claim(name) => write!(f, "NodeClaim {name}"),
            Protected::Pod(key) => write!(f, "pod {key}"),
        }
    }
}
