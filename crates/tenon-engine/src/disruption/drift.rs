//! Which node that is not what its NodePool says any more goes next, and what comes for it?

use std::collections::BTreeMap;

use tenon_model::Plan;

use super::candidates::{Class, Node};
use super::command::{Command, Method, Replacement, TerminateFirst};
use super::kept::Kept;
use super::scan::Scan;
use crate::lifecycle::StaticCounts;
use crate::what_ifs::Destinations;

impl<'s> Scan<'s> {
    /// One command, or none. Nodes without pods that need them go first, then those that drifted first.
    pub(super) fn drift(&mut self) -> Vec<Command> {
        let budgets = self.budgets(Method::Drift.reason());
        let mut row = self.drifted(Method::Drift, |node| !node.is_static());
        let has_pods = |node: &Node<'s>| node.seen.pods.iter().any(|pod| pod.is_reschedulable);
        row.sort_by_key(|number| {
            let node = &self.nodes[*number];
            (has_pods(node), node.seen.claim.drifted_since, *number)
        });
        let mut found = Vec::new();
        for number in row {
            let judged = match budgets.left(self.nodes[number].pool_name()) {
                0 => Err(self.budget_limit(&budgets, &self.nodes[number])),
                _ => self.replaced_with_any(number).or_else(|why| self.terminated_first(Method::Drift, number, why)),
            };
            match judged {
                Ok(command) => found.extend(self.take(command, &[number])),
                Err(why) => self.keep(Method::Drift, number, why),
            }
        }
        found
    }

    /// Replaces a node by as many as its pods need. What they cost does not matter.
    fn replaced_with_any(&mut self, number: usize) -> Result<Command, Kept> {
        let plan = self.what_if(&[number], None, Destinations::Any).ok_or(Kept::NeedsSeveral)?;
        self.all_placed(&[number], &plan)?;
        let planned = plan.new_nodes.clone();
        let command = self.command(Method::Drift, &[number], (&plan, planned));
        if self.has_failed(&command) { Err(Kept::ReplacementFailed) } else { Ok(command) }
    }

    /// One command for each node of a static pool that its budgets and its limit allow.
    pub(super) fn static_drift(&mut self) -> Vec<Command> {
        let mut budgets = self.budgets(Method::StaticDrift.reason());
        let mut row = self.drifted(Method::StaticDrift, Node::is_static);
        row.sort_by_key(|number| (self.nodes[*number].seen.claim.drifted_since, *number));
        let mut found = Vec::new();
        let mut counts = BTreeMap::new();
        for number in row {
            let pool = self.nodes[number].pool_name();
            let counts = counts.entry(pool).or_insert_with(|| self.static_counts(pool));
            let judged = self.static_replacement(number, counts);
            let judged = judged.and_then(|()| match budgets.spend(pool) {
                true => Ok(()),
                false => Err(self.budget_limit(&budgets, &self.nodes[number])),
            });
            // The limit is asked last: what it grants is set aside.
            let judged = judged.and_then(|()| self.within_limit(Method::StaticDrift, number, counts));
            match judged {
                Ok(terminate_first) => {
                    let command = self.static_move(Method::StaticDrift, number, terminate_first);
                    found.extend(self.take(command, &[number]));
                }
                Err(why) => self.keep(Method::StaticDrift, number, why),
            }
        }
        found
    }

    /// A node of a static pool goes, and its pool makes another: before it, or after it.
    pub(super) fn static_move(
        &self,
        method: Method,
        number: usize,
        terminate_first: Option<TerminateFirst>,
    ) -> Command {
        let pool = self.nodes[number].pool_name().to_owned();
        let new = terminate_first.is_none().then_some(Replacement::Template { pool });
        let command = self.command(method, &[number], (&Plan::default(), Vec::new()));
        Command { replacements: new.into_iter().collect(), savings: 0.0, terminate_first, ..command }
    }

    /// Whether the pool of a static node has no more nodes than it should.
    pub(super) fn static_replacement(&self, number: usize, counts: &StaticCounts) -> Result<(), Kept> {
        let node = &self.nodes[number];
        let replicas = node.pool.and_then(|pool| pool.replicas).unwrap_or_default();
        let there = counts.active.saturating_add(counts.pending_disruption);
        if there > replicas {
            return Err(Kept::StaticExcess { pool: node.pool_name().to_owned() });
        }
        Ok(())
    }

    /// Whether the limit of the pool leaves room for one node more, or the node may go first.
    pub(super) fn within_limit(
        &self,
        method: Method,
        number: usize,
        counts: &mut StaticCounts,
    ) -> Result<Option<TerminateFirst>, Kept> {
        let pool = self.nodes[number].pool_name();
        match counts.reserve(self.node_limit(pool), 1) {
            0 if self.may_go_at_limit(method, number) => Ok(Some(TerminateFirst::StaticAtLimit)),
            0 => Err(Kept::StaticLimit { pool: pool.to_owned() }),
            _ => Ok(None),
        }
    }

    pub(super) fn static_counts(&self, pool: &str) -> StaticCounts {
        let mut counts = StaticCounts::default();
        for node in self.nodes.iter().filter(|node| node.pool_name() == pool) {
            let in_progress = self.snapshot.disruption.in_progress.contains(node.name());
            match (node.is_going(), in_progress) {
                (true, _) => counts.deleting += 1,
                (false, true) => counts.pending_disruption += 1,
                (false, false) => counts.active += 1,
            }
        }
        counts
    }

    /// How many nodes a pool may have, if that is limited.
    fn node_limit(&self, pool: &str) -> Option<u32> {
        let found = self.snapshot.pools.iter().find(|found| found.name == pool)?;
        let limit = found.limits.names("nodes").then(|| found.limits.get("nodes").value())?;
        Some(u32::try_from(limit.max(0)).unwrap_or(u32::MAX))
    }

    /// Drifted nodes of a kind that may be disrupted; why others stay is noted.
    fn drifted(&mut self, method: Method, is_one: impl Fn(&Node<'s>) -> bool) -> Vec<usize> {
        let mut row = Vec::new();
        for number in self.those(|node| node.seen.claim.drifted_since.is_some() && is_one(node)) {
            let pool = self.nodes[number].pool_name();
            if self.snapshot.disruption.halted.contains(pool) {
                self.keep(method, number, Kept::RolloutHalted { pool: pool.to_owned() });
                continue;
            }
            match self.nodes[number].eligible(Class::Eventual, self.snapshot) {
                Ok(_) => row.push(number),
                Err(why) => self.keep(method, number, why),
            }
        }
        row
    }
}
