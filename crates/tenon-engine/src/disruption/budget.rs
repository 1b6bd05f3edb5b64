//! How many nodes of a NodePool may be disrupted at once, now and for one reason?
//!
//! A budget that cannot be read allows nothing: a typing error must not open the door it was meant to close.

use std::fmt;

use tenon_model::{BudgetFault, DisruptionBudget, DisruptionReason, NodeShare, Timestamp};

/// As many as there are; the number Karpenter's metrics show.
pub const UNBOUNDED: u32 = NodeShare::UNBOUNDED;

/// What the budgets of a NodePool allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedDisruptions {
    /// So many nodes may be disrupted at once; [`UNBOUNDED`] where no budget counts.
    pub count: u32,
    /// The budgets that cannot be read. With any of them, nothing is allowed.
    pub invalid: Vec<InvalidBudget>,
}

/// A budget that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidBudget {
    /// Its place in the list, from 0.
    pub index: usize,
    /// What is wrong with it.
    pub fault: BudgetFault,
}

impl fmt::Display for InvalidBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spec.disruption.budgets[{}]: {}", self.index, self.fault)
    }
}

/// How many of so many nodes may be disrupted at once for a reason.
pub fn allowed_disruptions(
    budgets: &[Result<DisruptionBudget, BudgetFault>],
    reason: DisruptionReason,
    nodes: usize,
    now: Timestamp,
) -> AllowedDisruptions {
    let mut count = UNBOUNDED;
    let mut invalid = Vec::new();
    for (index, budget) in budgets.iter().enumerate() {
        match budget {
            Ok(budget) if budget.applies_to(reason) && budget.is_active(now) => {
                count = count.min(budget.nodes.of(nodes));
            }
            Ok(_) => {}
            Err(fault) => invalid.push(InvalidBudget { index, fault: fault.clone() }),
        }
    }
    if !invalid.is_empty() {
        count = 0;
    }
    AllowedDisruptions { count, invalid }
}
