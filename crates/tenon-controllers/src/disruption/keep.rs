//! Why does a node stay? Each reason with a sentence for its owner, and the next move where there is one.

use std::fmt;

use jiff::Timestamp;
use tenon_api::names::{ANNOTATION_DO_NOT_DISRUPT, LABEL_NODEPOOL};

/// Why a node stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keep {
    /// There is no Node for the claim.
    NodeMissing,
    /// It is going already.
    Deleting,
    /// Another controller made its VM, and we have no proof that would let us take it away.
    Foreign,
    /// It cannot take pods yet.
    NotInitialized,
    /// Pods were promised to it a moment ago.
    Nominated,
    /// Somebody asked that it be left alone.
    DoNotDisrupt {
        /// Who carries the annotation.
        on: Protected,
    },
    /// No pool says when it may go.
    NoPool {
        /// The pool it names, which is not there or going; none if it names no pool.
        pool: Option<String>,
    },
    /// Its pool has a fixed number of nodes.
    StaticPool {
        /// The pool.
        pool: String,
    },
    /// Its pool says that empty nodes stay.
    ConsolidationOff {
        /// The pool.
        pool: String,
    },
    /// How long its pool wants it to be quiet cannot be read.
    PatienceUnreadable {
        /// The pool.
        pool: String,
        /// What stands in `consolidateAfter`.
        text: String,
    },
    /// Pods need it.
    Busy {
        /// How many.
        pods: usize,
        /// One of them, as `namespace/name`: the first by name.
        first: String,
    },
    /// The last pod came or left, or the node itself came, too short a time ago.
    TooRecent {
        /// When it has been quiet for long enough.
        until: Timestamp,
    },
    /// As many nodes of its pool are gone as may be.
    Budget {
        /// The pool.
        pool: String,
        /// How many may be gone at once.
        allowed: u32,
        /// How many are going or not ready, those that go now included.
        disrupting: u32,
    },
}

/// What carries the wish to be left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Protected {
    /// The Node of this name.
    Node(String),
    /// The NodeClaim of this name.
    Claim(String),
    /// A pod, as `namespace/name`.
    Pod(String),
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Keep::NodeMissing => {
                f.write_str("Its Node is not there; it is looked at again when the VM has joined the cluster.")
            }
            Keep::Deleting => f.write_str("It is being deleted already."),
            Keep::Foreign => f.write_str(
                "Its VM was made by another controller and is left alone; delete its NodeClaim if it is not wanted.",
            ),
            Keep::NotInitialized => f.write_str(
                "It is not initialized; it is looked at again when its Node is ready and free of startup taints.",
            ),
            Keep::Nominated => {
                f.write_str("Pods were just promised to it; it is looked at again when they have had time to arrive.")
            }
            Keep::DoNotDisrupt { on } => {
                write!(f, "{on} has the annotation {ANNOTATION_DO_NOT_DISRUPT}; remove it to let the node go.")
            }
            Keep::NoPool { pool: None } => {
                write!(f, "It has no label {LABEL_NODEPOOL}; delete its NodeClaim if it is not wanted.")
            }
            Keep::NoPool { pool: Some(pool) } => write!(f, "NodePool {pool} does not exist or is being deleted."),
            Keep::StaticPool { pool } => {
                write!(f, "NodePool {pool} has a fixed number of nodes; lower its spec.replicas to have fewer.")
            }
            Keep::ConsolidationOff { pool } => {
                write!(f, "NodePool {pool} has consolidateAfter Never; set a duration to let quiet nodes go.")
            }
            Keep::PatienceUnreadable { pool, text } => {
                write!(f, "NodePool {pool} has consolidateAfter {text:?}; write a duration such as 5m, or Never.")
            }
            Keep::Busy { pods: 1, first } => write!(f, "Pod {first} needs it."),
            Keep::Busy { pods, first } => write!(f, "{pods} pods need it; the first is {first}."),
            Keep::TooRecent { until } => {
                write!(
                    f,
                    "It has not been quiet for long enough; it may go at {until} if no pod comes or leaves before."
                )
            }
            Keep::Budget { pool, allowed, disrupting } => budget(f, pool, *allowed, *disrupting),
        }
    }
}

fn budget(f: &mut fmt::Formatter<'_>, pool: &str, allowed: u32, disrupting: u32) -> fmt::Result {
    match allowed {
        0 => write!(
            f,
            "The budgets of NodePool {pool} let no node go now; wait for their hours or change spec.disruption.budgets."
        ),
        _ => write!(
            f,
            "The budgets of NodePool {pool} let at most {allowed} of its nodes be gone at once, and the number going or \
             not ready is {disrupting}; it may go when one of them is gone or ready again."
        ),
    }
}

impl fmt::Display for Protected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Protected::Node(name) => write!(f, "Node {name}"),
            Protected::Claim(name) => write!(f, "NodeClaim {name}"),
            Protected::Pod(key) => write!(f, "Pod {key}"),
        }
    }
}
