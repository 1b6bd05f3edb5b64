//! Which broken node is replaced or rebooted next?
//!
//! A node is broken once a condition that a repair policy names has lasted for its toleration. Nobody's wish to be left alone holds a
//! broken node but `karpenter.sh/do-not-repair`; pods that will not leave hold it unless its drain is bounded.

use std::cmp::Ordering;
use std::sync::Arc;

use tenon_model::{NodeState, Plan, RepairAction, RepairDecision, RepairVerdict, Unhealthy, judge_repair};

use super::blocked::Protected;
use super::candidates::{Class, Node};
use super::command::{Command, Method};
use super::kept::Kept;
use super::scan::{Budgets, Scan};
use crate::lifecycle::lifetime_remaining;
use crate::what_ifs::{Change, MovedPods};

const REPAIR: Method = Method::Repair;

/// More broken nodes than this share of a pool have a cause that new nodes would share. At least one may be broken in any pool.
const UNHEALTHY_MOST_PERCENT: u32 = 20;

/// A broken node whose time is over.
struct Due {
    number: usize,
    decision: RepairDecision,
    /// What losing all its pods costs, for what is left of its life.
    cost: f64,
}

impl<'s> Scan<'s> {
    /// One command, or none. The most urgent node goes first; of several the one whose pods lose least.
    pub(super) fn repair(&mut self) -> Vec<Command> {
        if !self.snapshot.disruption.gates.node_repair {
            return Vec::new();
        }
        let budgets = self.budgets(REPAIR.reason());
        let mut row = self.due();
        row.sort_by(order);
        let mut found = Vec::new();
        for due in row {
            let number = due.number;
            match self.repaired(&due, &budgets) {
                Ok(command) => found.extend(self.take(command, &[number])),
                Err(why) => self.keep(REPAIR, number, why),
            }
        }
        found
    }

    /// Broken nodes that may be repaired; why others stay as they are is noted.
    fn due(&mut self) -> Vec<Due> {
        let mut row = Vec::new();
        for number in self.those(|node| !faults(node).is_empty()) {
            match self.is_due(number) {
                Ok(due) => row.extend(due),
                Err(why) => self.keep(REPAIR, number, why),
            }
        }
        row
    }

    fn is_due(&self, number: usize) -> Result<Option<Due>, Kept> {
        let node = &self.nodes[number];
        // A node that was just rebooted has its time from then on, like a new one.
        let began = node.seen.node.as_ref().and_then(|seen| seen.created).max(node.seen.claim.rebooted_at);
        let mut decision = match judge_repair(faults(node), began, self.now) {
            Some(RepairVerdict::Due(decision)) => decision,
            Some(RepairVerdict::Tolerated { unhealthy, until }) => return Err(Kept::Tolerated { unhealthy, until }),
            None => return Ok(None),
        };
        let claim = &node.seen.claim;
        // Nobody can reboot a VM on a host that is off.
        if self.snapshot.disruption.rebooted_often.contains(&claim.name) || self.is_host_offline(&claim.name) {
            decision.action = RepairAction::ReplaceNode;
        }
        if let Some(on) = do_not_repair(node) {
            return Err(Kept::DoNotRepair { on });
        }
        node.eligible(Class::Repair { is_bounded: decision.drain_bound.is_some() }, self.snapshot)?;
        let age_s = claim.created.map_or(0, |created| self.now.seconds().since(created.seconds()));
        let lost: f64 = node.seen.pods.iter().map(|pod| pod.eviction_cost).sum();
        Ok(Some(Due { number, decision, cost: lost * lifetime_remaining(claim.expire_after_s, age_s) }))
    }

    /// The move of a broken node, if its pool is not broken as a whole and its budgets allow it.
    fn repaired(&mut self, due: &Due, budgets: &Budgets) -> Result<Command, Kept> {
        let node = &self.nodes[due.number];
        if !self.is_host_offline(&node.seen.claim.name) {
            self.is_single_fault(node.pool_name())?;
        }
        // A node that never took pods is nothing that budgets count.
        if node.seen.is_initialized() && budgets.left(node.pool_name()) == 0 {
            return Err(self.budget_limit(budgets, node));
        }
        let repair = Some(due.decision.clone());
        if due.decision.action == RepairAction::RebootNode {
            let rebooted = self.command(REPAIR, &[due.number], (&Plan::default(), Vec::new()));
            return Ok(Command { repair, savings: 0.0, ..rebooted });
        }
        let command = if node.is_static() { self.static_repair(due.number) } else { self.replaced(due.number) }?;
        match self.has_failed(&command) {
            true => Err(Kept::ReplacementFailed),
            false => Ok(Command { repair, ..command }),
        }
    }

    /// Whether a node is broken because its host is, and is replaced for that.
    fn is_host_offline(&self, claim: &str) -> bool {
        self.snapshot.disruption.on_offline_hosts.contains(claim)
    }

    /// Whether few enough nodes of a pool are broken, however long each has been. Those of a host that is offline have a cause of their
    /// own.
    fn is_single_fault(&self, pool: &str) -> Result<(), Kept> {
        let of_pool = self.snapshot.nodes.iter().filter(|node| node.pool.as_deref() == Some(pool));
        let (mut total, mut unhealthy) = (0_u32, 0_u32);
        let is_elsewhere = |node: &&Arc<NodeState>| {
            !node.disruption.as_deref().is_some_and(|facts| self.is_host_offline(&facts.claim.name))
        };
        for node in of_pool.filter(is_elsewhere) {
            match node.disruption.as_deref().map(|facts| facts.node.as_ref()) {
                // Of a Node without a NodeClaim nobody says whether it is broken.
                None => total += 1,
                Some(Some(seen)) => {
                    total += 1;
                    unhealthy += u32::from(!seen.unhealthy.is_empty());
                }
                // A NodeClaim that has no Node yet.
                Some(None) => {}
            }
        }
        let most = total.saturating_mul(UNHEALTHY_MOST_PERCENT).div_ceil(100);
        match unhealthy <= most {
            true => Ok(()),
            false => Err(Kept::TooManyUnhealthy { pool: pool.to_owned(), unhealthy, total, most }),
        }
    }

    /// As many nodes as all its pods need, those included that would not leave by themselves: its drain is bounded.
    fn replaced(&mut self, number: usize) -> Result<Command, Kept> {
        self.simulated += 1;
        let change = Change { remove: &[self.nodes[number].name()], pods: MovedPods::All, ..Change::default() };
        let plan = self.what_ifs.plan(&change).ok_or(Kept::NeedsSeveral)?;
        match self.all_placed(&[number], &plan) {
            Ok(()) => Ok(self.command(REPAIR, &[number], (&plan, plan.new_nodes.clone()))),
            Err(why) => self.terminated_first(REPAIR, number, why),
        }
    }

    fn static_repair(&self, number: usize) -> Result<Command, Kept> {
        let mut counts = self.static_counts(self.nodes[number].pool_name());
        self.static_replacement(number, &counts)?;
        let terminate_first = self.within_limit(REPAIR, number, &mut counts)?;
        Ok(self.static_move(REPAIR, number, terminate_first))
    }
}

fn order(one: &Due, other: &Due) -> Ordering {
    let urgency = other.decision.score.cmp(&one.decision.score);
    urgency.then(one.cost.total_cmp(&other.cost)).then(one.number.cmp(&other.number))
}

/// What is wrong with a node.
fn faults<'n>(node: &'n Node<'_>) -> &'n [Unhealthy] {
    node.seen.node.as_ref().map(|seen| seen.unhealthy.as_slice()).unwrap_or_default()
}

/// Who asked that the node not be repaired.
fn do_not_repair(node: &Node<'_>) -> Option<Protected> {
    let on_node = node.seen.node.as_ref().filter(|seen| seen.has_do_not_repair);
    let claim = &node.seen.claim;
    let on_claim = || claim.has_do_not_repair.then(|| Protected::Claim(claim.name.clone()));
    on_node.map(|seen| Protected::Node(seen.name.clone())).or_else(on_claim)
}
