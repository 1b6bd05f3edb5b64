//! Which nodes are empty, had no pod events for long enough, and may be deleted within the budgets of their NodePools?
//!
//! The rules and their order are Karpenter's. Which policy a pool has does not matter: every policy removes empty nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use tenon_model::{
    CandidateNode, CandidatePod, DisruptionPool, DisruptionReason, DurationError, TimespanOrNever, Timestamp,
};

use super::blocked::{DisruptionBlocked, Protected};
use super::pool_budgets::{self, Counted, PoolDisruption};

/// Everything the verdict rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct EmptinessInput {
    /// The time.
    pub now: Timestamp,
    /// All NodePools.
    pub pools: Vec<DisruptionPool>,
    /// All nodes that are ours, with those that have no Node yet and those that are being removed.
    pub nodes: Vec<CandidateNode>,
}

/// What is to be done with the nodes. No part depends on the order of the input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EmptinessVerdict {
    /// What the condition `Consolidatable` of each claim should be, by name. A claim not listed keeps what it has.
    pub consolidatable: Vec<(String, Consolidatable)>,
    /// The claims to delete, oldest first.
    pub delete: Vec<String>,
    /// Why each other claim is not deleted, by name.
    pub blocked: Vec<(String, DisruptionBlocked)>,
    /// What each pool allows, by name; before anything of `delete` is deleted.
    pub pools: Vec<PoolDisruption>,
}

/// Whether a node had no pod events for as long as its NodePool wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consolidatable {
    /// The condition is true.
    True,
    /// The condition has to be removed.
    Absent {
        /// When to ask again, if time alone will change it.
        until: Option<Timestamp>,
    },
}

/// A node that came for others that stayed goes after this long where `consolidateAfter` is `Never`: time enough for the next move to
/// use it after all.
const SURPLUS_AFTER: Duration = Duration::from_mins(5);

/// How much of `consolidateAfter` has passed.
pub(super) enum Wait<'a> {
    Over,
    Until(Timestamp),
    Never,
    Invalid(&'a DurationError),
}

type Pools<'a> = BTreeMap<&'a str, &'a DisruptionPool>;

/// What is left of a pool's budget while nodes are chosen.
#[derive(Default)]
struct Budget {
    allowed: u32,
    disrupting: u32,
}

type Budgets<'a> = BTreeMap<&'a str, Budget>;

/// Which nodes are deleted, which are not, and why.
pub fn judge_emptiness(input: &EmptinessInput) -> EmptinessVerdict {
    let is_there = |pool: &&DisruptionPool| !pool.is_deleting;
    let living: Pools<'_> = input.pools.iter().filter(is_there).map(|pool| (pool.name.as_str(), pool)).collect();
    let mut nodes: Vec<&CandidateNode> = input.nodes.iter().collect();
    // The order they are deleted in: oldest first.
    nodes.sort_by_key(|node| (node.claim.created, node.claim.name.as_str()));
    let pools = pool_disruptions(input);
    let budget = |pool: &PoolDisruption| Budget { allowed: pool.allowed, disrupting: pool.disrupting };
    let mut budgets: Budgets<'_> = pools.iter().map(|pool| (pool.pool.as_str(), budget(pool))).collect();
    let mut verdict = EmptinessVerdict::default();
    for node in nodes {
        let name = node.claim.name.clone();
        if let Some(state) = consolidatable(node, &living, input.now) {
            verdict.consolidatable.push((name.clone(), state));
        }
        match candidate(node, &living, input.now).and_then(|pool| spend(&pool.name, &mut budgets)) {
            Ok(()) => verdict.delete.push(name),
            Err(blocked) => verdict.blocked.push((name, blocked)),
        }
    }
    verdict.consolidatable.sort_by(|(a, _), (b, _)| a.cmp(b));
    verdict.blocked.sort_by(|(a, _), (b, _)| a.cmp(b));
    verdict.pools = pools;
    verdict
}

/// Why one node is not empty any more, asked again just before its claim is deleted. Budgets were spent when it was
/// chosen, and are not asked again.
pub fn validate_emptiness(
    node: &CandidateNode,
    pools: &[DisruptionPool],
    now: Timestamp,
) -> Result<(), DisruptionBlocked> {
    let living = pools.iter().filter(|pool| !pool.is_deleting).map(|pool| (pool.name.as_str(), pool)).collect();
    candidate(node, &living, now).map(drop)
}

/// Takes one node from a pool's budget, if there is one left.
fn spend<'a>(pool: &'a str, budgets: &mut Budgets<'a>) -> Result<(), DisruptionBlocked> {
    let Budget { allowed, disrupting } = budgets.entry(pool).or_default();
    if *disrupting >= *allowed {
        let (allowed, disrupting) = (*allowed, *disrupting);
        return Err(DisruptionBlocked::BudgetExhausted { pool: pool.to_owned(), allowed, disrupting });
    }
    *disrupting += 1;
    Ok(())
}

/// The pool of a node that is empty and has been for long enough, or why it is not disrupted; the first reason decides.
fn candidate<'a>(
    node: &CandidateNode,
    pools: &Pools<'a>,
    now: Timestamp,
) -> Result<&'a DisruptionPool, DisruptionBlocked> {
    is_disruptable(node)?;
    let named = node.pool.as_deref().ok_or(DisruptionBlocked::NoPool { pool: None })?;
    let pool = *pools.get(named).ok_or_else(|| DisruptionBlocked::NoPool { pool: Some(named.to_owned()) })?;
    let protected = node.pods.iter().filter(|pod| pod.has_do_not_disrupt).map(|pod| pod.key.to_string()).min();
    if let Some(pod) = protected {
        return Err(DisruptionBlocked::DoNotDisrupt { on: Protected::Pod(pod) });
    }
    if pool.is_static {
        return Err(DisruptionBlocked::StaticPool { pool: named.to_owned() });
    }
    let wait = wait(node, pool, now);
    match wait {
        Wait::Never => return Err(DisruptionBlocked::ConsolidationDisabled { pool: named.to_owned() }),
        Wait::Invalid(fault) => {
            let text = fault.text.clone();
            return Err(DisruptionBlocked::InvalidConsolidateAfter { pool: named.to_owned(), text });
        }
        Wait::Over | Wait::Until(_) => {}
    }
    let needed: Vec<String> = node.pods.iter().filter(|pod| needs_node(pod)).map(|pod| pod.key.to_string()).collect();
    if let Some(first) = needed.iter().min() {
        return Err(DisruptionBlocked::NotEmpty { pods: needed.len(), first: first.clone() });
    }
    if let Wait::Until(until) = wait { Err(DisruptionBlocked::TooRecent { until }) } else { Ok(pool) }
}

/// Whether a pod needs its node: it has to run somewhere, and moving it costs something.
pub(super) fn needs_node(pod: &CandidatePod) -> bool {
    pod.is_reschedulable && pod.eviction_cost > 0.0
}

/// What is asked of the node itself, before its pool and its pods.
pub(super) fn is_disruptable(candidate: &CandidateNode) -> Result<(), DisruptionBlocked> {
    let node = candidate.node.as_ref().ok_or(DisruptionBlocked::NodeMissing)?;
    let claim = &candidate.claim;
    let blocked = if candidate.is_deleting() {
        DisruptionBlocked::Deleting
    } else if claim.has_foreign_vm {
        DisruptionBlocked::ForeignVm
    } else if !candidate.is_initialized() {
        DisruptionBlocked::NotInitialized
    } else if candidate.is_nominated {
        DisruptionBlocked::Nominated
    } else if node.has_do_not_disrupt {
        DisruptionBlocked::DoNotDisrupt { on: Protected::Node(node.name.clone()) }
    } else if claim.has_do_not_disrupt {
        DisruptionBlocked::DoNotDisrupt { on: Protected::Claim(claim.name.clone()) }
    } else {
        return Ok(());
    };
    Err(blocked)
}

/// What the condition should be; nothing where nobody evaluates it.
fn consolidatable(node: &CandidateNode, pools: &Pools<'_>, now: Timestamp) -> Option<Consolidatable> {
    let pool = pools.get(node.pool.as_deref()?)?;
    if node.claim.is_deleting || pool.is_static {
        return None;
    }
    if node.claim.initialized_at.is_none() {
        return Some(Consolidatable::Absent { until: None });
    }
    Some(match wait(node, pool, now) {
        Wait::Over => Consolidatable::True,
        Wait::Until(until) => Consolidatable::Absent { until: Some(until) },
        Wait::Never | Wait::Invalid(_) => Consolidatable::Absent { until: None },
    })
}

/// Whether a node came for others that stayed after all, and never had a pod to run. Whoever wants that no node goes for being
/// empty does not mean one that nobody ever needed.
fn is_unused_surplus(node: &CandidateNode) -> bool {
    node.claim.is_surplus && node.claim.last_pod_event.is_none() && !node.pods.iter().any(needs_node)
}

/// How much of the time has passed that began with the last pod event, or with the node itself.
pub(super) fn wait<'a>(node: &CandidateNode, pool: &'a DisruptionPool, now: Timestamp) -> Wait<'a> {
    let consolidate_after = match &pool.consolidate_after {
        Ok(TimespanOrNever::After(span)) => span.as_duration(),
        Ok(TimespanOrNever::Never) if is_unused_surplus(node) => SURPLUS_AFTER,
        Ok(TimespanOrNever::Never) => return Wait::Never,
        Err(fault) => return Wait::Invalid(fault),
    };
    let began = node.claim.last_pod_event.or(node.claim.initialized_at);
    let until = began.map_or(now, |began| began.after(consolidate_after));
    if now < until { Wait::Until(until) } else { Wait::Over }
}

/// What each pool's budgets allow, and what of it is used up. Nodes that never took pods count nowhere.
fn pool_disruptions(input: &EmptinessInput) -> Vec<PoolDisruption> {
    let is_counted = |node: &&CandidateNode| node.is_initialized() && !node.claim.is_instance_terminating;
    let counted = input.nodes.iter().filter(is_counted).filter_map(|node| {
        let is_disrupting = node.is_deleting() || !node.is_ready();
        Some(Counted { pool: node.pool.as_deref()?, is_disrupting })
    });
    pool_budgets::pool_disruptions(counted, input.pools.iter(), (DisruptionReason::Empty, input.now))
}
