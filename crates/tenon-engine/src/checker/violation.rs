//! What is wrong with a plan, and which part of the plan that concerns.

use std::fmt;
use std::sync::Arc;

use tenon_model::{Place, PodKey, Shortage};

/// A rule the plan breaks, and what of the plan has to be dropped for that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    rule: String,
    concerns: Vec<Subject>,
}

/// A part of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// One pod, wherever the plan puts it.
    Pod(Arc<PodKey>),
    /// A new node, by its index in the plan.
    NewNode(usize),
    /// Everything the plan puts on this node that is there already.
    ExistingNode(String),
    /// Every new node of this NodePool.
    NodePool(String),
    /// Every new node on this host.
    Host(Place),
}

impl Violation {
    /// A rule that is broken by these parts of the plan.
    pub(super) fn new(concerns: Vec<Subject>, rule: String) -> Violation {
        Violation { rule, concerns }
    }

    /// What has to be dropped from the plan.
    pub fn concerns(&self) -> &[Subject] {
        &self.concerns
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rule)
    }
}

/// What is missing, in words.
pub(super) fn missing(short: &Shortage) -> String {
    format!("{} {} needed, {} available", short.resource, short.wanted, short.available)
}
