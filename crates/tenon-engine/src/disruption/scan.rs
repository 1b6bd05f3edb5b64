//! What is disrupted now, and why does every other node stay? One look at a snapshot, method by method.

use std::collections::{BTreeMap, BTreeSet};

use tenon_model::{DisruptionReason, NodeStage, PodHold, PodKey, Snapshot, Timestamp};

use super::balanced::PoolTotals;
use super::candidates::{Node, nodes};
use super::command::{Command, Method};
use super::consolidation::rising;
use super::further::Spill;
use super::kept::{BudgetLimit, Kept};
use super::pool_budgets::{Counted, PoolDisruption, opens_at, pool_disruptions, tightest};
use crate::solver::Effort;
use crate::what_ifs::WhatIfs;

/// The order methods are tried in; the first that finds something to do ends the pass.
const METHODS: [Method; 7] = [
    Method::Repair,
    Method::Emptiness,
    Method::StaticDrift,
    Method::Drift,
    Method::MultiNode,
    Method::SingleNode,
    Method::HostGoal,
];

/// What is disrupted now, and why all else is not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Disruption {
    /// What is done. All of one method: the first that finds something.
    pub commands: Vec<Command>,
    /// Every node with a NodeClaim that stays, by name, with a reason for each method that could have disrupted it.
    pub kept: Vec<KeptNode>,
    /// What the budgets of each pool allow, by name, before anything of `commands` is done.
    pub pools: Vec<PoolDisruption>,
    /// How often it was asked what would be if nodes were gone.
    pub simulated: usize,
    /// How much was done for that.
    pub effort: Effort,
}

/// A node that stays.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptNode {
    /// Its name.
    pub node: String,
    /// Its pool.
    pub pool: Option<String>,
    /// Why, for each method that could have disrupted it.
    pub reasons: Vec<(Method, Kept)>,
}

/// A look at a snapshot.
pub(super) struct Scan<'s> {
    pub(super) snapshot: &'s Snapshot,
    pub(super) now: Timestamp,
    pub(super) nodes: Vec<Node<'s>>,
    pub(super) what_ifs: WhatIfs<'s>,
    /// Nodes that take no pods yet.
    pub(super) rising: BTreeSet<&'s str>,
    pub(super) totals: BTreeMap<&'s str, PoolTotals>,
    pub(super) simulated: usize,
    kept: BTreeMap<usize, Vec<(Method, Kept)>>,
    /// Nodes of commands that were found, and the first of them with its method.
    chosen: BTreeSet<usize>,
    first: Option<(Method, String)>,
    /// What of the pods of each node needs a new one, as far as that was asked.
    pub(super) spills: BTreeMap<usize, Spill>,
}

impl<'s> Scan<'s> {
    pub(super) fn new(snapshot: &'s Snapshot, what_ifs: WhatIfs<'s>) -> Scan<'s> {
        let nodes = nodes(snapshot);
        let held = &snapshot.disruption.held;
        let guarded = nodes.iter().flat_map(|node| node.seen.pods.iter()).filter(|pod| pod.has_do_not_disrupt);
        let guarded: BTreeSet<_> = guarded.map(|pod| pod.key.clone()).collect();
        let is_kept = |pod: &PodKey| guarded.contains(pod) || held.get(pod).is_some_and(PodHold::is_lasting);
        let mut scan = Scan {
            now: Timestamp::from(snapshot.now),
            totals: PoolTotals::of(&nodes),
            rising: rising(&snapshot.nodes),
            nodes,
            what_ifs,
            snapshot,
            simulated: 0,
            kept: BTreeMap::new(),
            chosen: BTreeSet::new(),
            first: None,
            spills: BTreeMap::new(),
        };
        let unsettled = scan.unsettled();
        scan.what_ifs = scan.what_ifs.knowing(is_kept, &unsettled);
        scan
    }

    /// Nodes that had pod events less than `consolidateAfter` ago: nothing is moved there, because more pods may come.
    fn unsettled(&self) -> Vec<&'s str> {
        let is_recent =
            |node: &&Node<'s>| node.seen.claim.initialized_at.is_some() && matches!(self.waited(node), Ok(Err(_)));
        self.nodes.iter().filter(is_recent).map(Node::name).collect()
    }

    /// Goes through all methods, and says when each is done. Any two nodes are tried where one node at a time finds nothing: a node does not move to another host that goes anyway.
    pub(super) fn run(mut self, done: &mut dyn FnMut(Method)) -> Disruption {
        let mut commands = Vec::new();
        for method in METHODS {
            let found = match method {
                Method::Repair => self.repair(),
                Method::Emptiness => self.empty_nodes(),
                Method::StaticDrift => self.static_drift(),
                Method::Drift => self.drift(),
                Method::MultiNode => self.multi_node(),
                Method::SingleNode => self.single_node(),
                Method::HostGoal if commands.is_empty() => self.host_goals(),
                Method::HostGoal => Vec::new(),
            };
            if commands.is_empty() {
                commands = found;
            }
            if commands.is_empty() && method == Method::SingleNode {
                commands = self.pairs();
            }
            done(method);
        }
        let pools = self.pool_budgets(DisruptionReason::Underutilized);
        let Scan { nodes, mut kept, chosen, simulated, what_ifs, .. } = self;
        let staying = nodes.iter().enumerate().filter(|(number, _)| !chosen.contains(number));
        let kept = staying.map(|(number, node)| KeptNode {
            node: node.name().to_owned(),
            pool: node.state.pool.clone(),
            reasons: kept.remove(&number).unwrap_or_default(),
        });
        Disruption { kept: kept.collect(), commands, pools, simulated, effort: what_ifs.effort() }
    }

    /// Notes why a node stays.
    pub(super) fn keep(&mut self, method: Method, node: usize, why: Kept) {
        self.kept.entry(node).or_default().push((method, why));
    }

    /// Takes a move if nothing goes first; otherwise its nodes stay for now.
    pub(super) fn take(&mut self, command: Command, nodes: &[usize]) -> Option<Command> {
        let method = command.method;
        match &self.first {
            Some((first, name)) if *first != method || method != Method::StaticDrift => {
                let (first, name) = (*first, name.clone());
                for node in nodes {
                    self.keep(method, *node, Kept::Later { method: first, node: name.clone() });
                }
                None
            }
            _ => {
                self.chosen.extend(nodes);
                self.first = Some((method, command.removed.first()?.node.clone()));
                Some(command)
            }
        }
    }

    /// Numbers of the nodes that no command takes yet and that a method looks at.
    pub(super) fn those(&self, is_one: impl Fn(&Node<'s>) -> bool) -> Vec<usize> {
        let free = |(number, _): &(usize, &Node<'s>)| !self.chosen.contains(number);
        let nodes = self.nodes.iter().enumerate().filter(free).filter(|(_, node)| is_one(node));
        nodes.map(|(number, _)| number).collect()
    }

    /// Whether a move that is found now is only noted, because another goes first.
    pub(super) fn has_found_one(&self) -> bool {
        self.first.is_some()
    }

    /// What budgets leave for a reason, by pool.
    pub(super) fn budgets(&self, reason: DisruptionReason) -> Budgets {
        let pools = self.pool_budgets(reason).into_iter();
        Budgets { reason, pools: pools.map(|pool| (pool.pool.clone(), pool)).collect() }
    }

    fn pool_budgets(&self, reason: DisruptionReason) -> Vec<PoolDisruption> {
        budgets_of(&self.nodes, self.snapshot, reason)
    }

    /// Why the budgets of the pool of a node are in the way.
    pub(super) fn budget_limit(&self, budgets: &Budgets, node: &Node<'s>) -> Kept {
        let name = node.pool_name();
        let Some(pool) = budgets.pools.get(name) else { return Kept::InProgress };
        let when = (budgets.reason, self.now);
        let tightest = node.rules().and_then(|rules| tightest(rules, when, pool.total));
        let opens_at = node.rules().and_then(|rules| opens_at(rules, when, pool));
        Kept::Budget(Box::new(BudgetLimit {
            pool: name.to_owned(),
            reason: budgets.reason,
            allowed: pool.allowed,
            disrupting: pool.disrupting,
            total: pool.total,
            tightest,
            opens_at,
            invalid: pool.invalid.first().map(ToString::to_string),
        }))
    }
}

/// What the budgets of each pool allow for a reason, by name.
pub(super) fn budgets_of(nodes: &[Node<'_>], snapshot: &Snapshot, reason: DisruptionReason) -> Vec<PoolDisruption> {
    let is_rebooting = |node: &Node<'_>| node.state.stage == NodeStage::Rebooting;
    let is_counted = |node: &&Node<'_>| {
        (node.seen.is_initialized() || is_rebooting(node)) && !node.seen.claim.is_instance_terminating
    };
    // To be repaired, a node that is not ready is the reason and no disruption by itself.
    let is_unready = |node: &Node<'_>| reason != DisruptionReason::Unhealthy && !node.seen.is_ready();
    let in_progress = &snapshot.disruption.in_progress;
    let counted = nodes.iter().filter(is_counted).filter_map(|node| {
        let is_disrupting = node.is_going() || is_rebooting(node) || in_progress.contains(node.name());
        Some(Counted { pool: node.state.pool.as_deref()?, is_disrupting: is_disrupting || is_unready(node) })
    });
    let pools = snapshot.pools.iter().filter_map(|pool| pool.disruption.as_deref());
    pool_disruptions(counted, pools, (reason, Timestamp::from(snapshot.now)))
}

/// What budgets leave for a reason while nodes are chosen.
#[derive(Debug, Clone)]
pub(super) struct Budgets {
    reason: DisruptionReason,
    pools: BTreeMap<String, PoolDisruption>,
}

impl Budgets {
    /// How many more nodes of a pool may be disrupted.
    pub(super) fn left(&self, pool: &str) -> u32 {
        self.pools.get(pool).map_or(0, PoolDisruption::left)
    }

    /// Whether a node of each of these pools may be disrupted, or two of the same.
    pub(super) fn have_left(&self, [one, other]: [&str; 2]) -> bool {
        if one == other { self.left(one) > 1 } else { self.left(one) > 0 && self.left(other) > 0 }
    }

    /// Takes one node of a pool, if one is left.
    pub(super) fn spend(&mut self, pool: &str) -> bool {
        let Some(pool) = self.pools.get_mut(pool).filter(|pool| pool.left() > 0) else { return false };
        pool.disrupting += 1;
        true
    }
}
