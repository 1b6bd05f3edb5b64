//! Does a move still hold? Decided a second time on a fresh snapshot, a while after the first time and just before something is
//! done.
//!
//! Drift is not confirmed: a node that drifted does not drift back.

use std::collections::BTreeMap;

use tenon_model::Plan;

use super::command::{Command, Method, Replacement};
use super::kept::Kept;
use super::scan::Scan;
use crate::what_ifs::Destinations;

/// Why a move does not hold any more.
#[derive(Debug, Clone, PartialEq)]
pub enum Rejection {
    /// A node may not be disrupted any more.
    Churn {
        /// The node.
        node: String,
        /// Why; none if it is gone, or if it was to be empty and is not.
        why: Option<Kept>,
    },
    /// The budgets do not allow it any more.
    Budget {
        /// The first node that there is no budget for.
        node: String,
        /// Why.
        why: Kept,
    },
    /// The pods would not go where they were to go.
    Scheduling {
        /// Why; none if other nodes would be created for them.
        why: Option<Kept>,
    },
}

impl Rejection {
    /// The reason as Karpenter's metrics have it.
    pub fn reason(&self) -> &'static str {
        match self {
            Rejection::Churn { .. } => "churn",
            Rejection::Budget { .. } => "budget",
            Rejection::Scheduling { .. } => "scheduling",
        }
    }
}

/// The move, or what is left of it, if it still holds in a fresh look.
pub(super) fn confirmed(command: &Command, mut scan: Scan<'_>) -> Result<Command, Rejection> {
    match command.method {
        Method::Emptiness => scan.still_empty(command),
        Method::HostGoal => {
            let going = scan.still_movable(command)?;
            scan.still_meant(command, &going)
        }
        _ => scan.still_worth_it(command).map(|()| command.clone()),
    }
}

impl Scan<'_> {
    fn still_empty(&self, command: &Command) -> Result<Command, Rejection> {
        let numbers = self.numbers();
        let mut budgets = self.budgets(command.method.reason());
        let (mut left, mut rejected) = (Vec::new(), None);
        for name in command.names() {
            let node = name.to_owned();
            let found = numbers.get(name).copied().filter(|number| self.nodes[*number].is_empty());
            let Some(number) = found else {
                rejected.get_or_insert(Rejection::Churn { node, why: None });
                continue;
            };
            let removable = self.removable_when_empty(&self.nodes[number]);
            if let Err(why) = removable {
                rejected.get_or_insert(Rejection::Churn { node, why: Some(why) });
            } else if budgets.spend(self.nodes[number].pool_name()) {
                left.push(number);
            } else {
                let why = self.budget_limit(&budgets, &self.nodes[number]);
                rejected.get_or_insert(Rejection::Budget { node, why });
            }
        }
        match rejected.filter(|_| left.is_empty()) {
            Some(rejection) => Err(rejection),
            None => Ok(self.command(command.method, &left, (&Plan::default(), Vec::new()))),
        }
    }

    /// The nodes of a move, if each may still be disrupted and there is budget for all.
    fn still_movable(&self, command: &Command) -> Result<Vec<usize>, Rejection> {
        let numbers = self.numbers();
        let mut budgets = self.budgets(command.method.reason());
        let mut going = Vec::new();
        for name in command.names() {
            let node = name.to_owned();
            let found = numbers.get(name).copied().filter(|number| !self.nodes[*number].is_empty());
            let Some(number) = found else { return Err(Rejection::Churn { node, why: None }) };
            if let Err(why) = self.consolidatable(&self.nodes[number]) {
                return Err(Rejection::Churn { node, why: Some(why) });
            }
            if !budgets.spend(self.nodes[number].pool_name()) {
                let why = self.budget_limit(&budgets, &self.nodes[number]);
                return Err(Rejection::Budget { node, why });
            }
            going.push(number);
        }
        Ok(going)
    }

    fn still_worth_it(&mut self, command: &Command) -> Result<(), Rejection> {
        let going = self.still_movable(command)?;
        let plan = self.what_if(&going, Some(1), Destinations::Settled);
        let plan = plan.ok_or(Rejection::Scheduling { why: Some(Kept::NeedsSeveral) })?;
        self.all_placed(&going, &plan).map_err(|why| Rejection::Scheduling { why: Some(why) })?;
        match is_among(command, &plan) {
            true => Ok(()),
            false => Err(Rejection::Scheduling { why: None }),
        }
    }

    fn numbers(&self) -> BTreeMap<&str, usize> {
        self.nodes.iter().enumerate().map(|(number, node)| (node.name(), number)).collect()
    }
}

/// Whether a plan has as many new nodes as the move, of which each may be what the move says.
fn is_among(command: &Command, plan: &Plan) -> bool {
    let planned = command.replacements.iter().map(|replacement| match replacement {
        Replacement::Planned(new) => &new.instance_types[..],
        Replacement::Template { .. } => &[],
    });
    command.replacements.len() == plan.new_nodes.len()
        && planned.zip(&plan.new_nodes).all(|(types, new)| types.iter().all(|name| new.instance_types.contains(name)))
}
