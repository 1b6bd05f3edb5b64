//! Which nodes are empty, have been quiet for long enough, and may go within the budgets of their pools?
//!
//! The rules and their order are the reference's. Which policy a pool has does not matter: every policy lets empty
//! nodes go.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use tenon_api::{DisruptionReason, NodePool, names};

use super::budget::{Allowed, allowed};
use super::duration::parse_duration_or_never;
use super::keep::{Keep, Protected};
use super::node::NodeFacts;
use super::pods::{forbids_disruption, key, needs_node};

/// Everything the verdict rests on.
#[derive(Debug, Clone)]
pub struct EmptinessInput<'a> {
    /// The time.
    pub now: Timestamp,
    /// All pools.
    pub pools: Vec<&'a NodePool>,
    /// All nodes that are ours, with those that are not there yet and those that are going.
    pub nodes: Vec<NodeFacts<'a>>,
}

/// What is to be done with the nodes. No part depends on the order of the input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EmptinessVerdict {
    /// What the condition `Consolidatable` of each claim should be, by name. A claim not listed keeps what it has.
    pub consolidatable: Vec<(String, Consolidatable)>,
    /// The claims to delete, oldest first.
    pub remove: Vec<String>,
    /// Why each other claim stays, by name.
    pub keep: Vec<(String, Keep)>,
    /// What each pool allows, by name; before anything of `remove` is gone.
    pub pools: Vec<PoolBudget>,
}

/// Whether a node has been quiet for as long as its pool wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consolidatable {
    /// The condition holds.
    Holds,
    /// The condition has to be taken away.
    Lacking {
        /// When to look again, if time alone will change it.
        until: Option<Timestamp>,
    },
}

/// What a pool's budgets allow empty nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolBudget {
    /// The pool.
    pub pool: String,
    /// How many nodes may be gone at once.
    pub allowed: u32,
    /// How many are going or not ready.
    pub disrupting: u32,
    /// How many there are.
    pub total: u32,
    /// What is wrong with the budgets; with any of them, nothing is allowed.
    pub faults: Vec<String>,
}

/// How far a quiet node's wait is.
enum Wait {
    Over,
    Until(Timestamp),
    Never,
    Unreadable,
}

type Pools<'a> = BTreeMap<&'a str, &'a NodePool>;
/// Of each pool: how many may be gone at once, and how many are.
type Spent<'a> = BTreeMap<&'a str, (u32, u32)>;

/// Which nodes go, which stay, and why.
pub fn judge(input: &EmptinessInput<'_>) -> EmptinessVerdict {
    let is_there = |pool: &&NodePool| pool.metadata.deletion_timestamp.is_none();
    let living: Pools<'_> = input.pools.iter().copied().filter(is_there).map(|pool| (name_of(pool), pool)).collect();
    let mut nodes: Vec<&NodeFacts<'_>> = input.nodes.iter().collect();
    // The order they go in: oldest first.
    nodes.sort_by_key(|facts| (facts.claim.metadata.creation_timestamp.as_ref().map(|time| time.0), facts.name()));
    let pools = pool_budgets(input);
    let mut spent: Spent<'_> =
        pools.iter().map(|budget| (budget.pool.as_str(), (budget.allowed, budget.disrupting))).collect();
    let mut verdict = EmptinessVerdict::default();
    for facts in nodes {
        let name = facts.name().to_owned();
        if let Some(state) = consolidatable(facts, &living, input.now) {
            verdict.consolidatable.push((name.clone(), state));
        }
        match candidate(facts, &living, input.now).and_then(|pool| spend(name_of(pool), &mut spent)) {
            Ok(()) => verdict.remove.push(name),
            Err(keep) => verdict.keep.push((name, keep)),
        }
    }
    verdict.consolidatable.sort_by(|(a, _), (b, _)| a.cmp(b));
    verdict.keep.sort_by(|(a, _), (b, _)| a.cmp(b));
    verdict.pools = pools;
    verdict
}

/// Takes one node from a pool's budget, if there is one left.
fn spend<'a>(pool: &'a str, spent: &mut Spent<'a>) -> Result<(), Keep> {
    let (allowed, gone) = spent.entry(pool).or_default();
    if *gone >= *allowed {
        return Err(Keep::Budget { pool: pool.to_owned(), allowed: *allowed, disrupting: *gone });
    }
    *gone += 1;
    Ok(())
}

/// The pool of a node that is empty and has been for long enough, or why it stays; the first reason decides.
fn candidate<'a>(facts: &NodeFacts<'_>, pools: &Pools<'a>, now: Timestamp) -> Result<&'a NodePool, Keep> {
    stands_free(facts)?;
    let named = facts.pool().ok_or(Keep::NoPool { pool: None })?;
    let pool = *pools.get(named).ok_or_else(|| Keep::NoPool { pool: Some(named.to_owned()) })?;
    let protected = facts.pods.iter().filter(|pod| forbids_disruption(pod, now)).map(|pod| key(pod)).min();
    if let Some(pod) = protected {
        return Err(Keep::DoNotDisrupt { on: Protected::Pod(pod) });
    }
    if pool.spec.replicas.is_some() {
        return Err(Keep::StaticPool { pool: named.to_owned() });
    }
    let wait = wait(facts, pool, now);
    match wait {
        Wait::Never => return Err(Keep::ConsolidationOff { pool: named.to_owned() }),
        Wait::Unreadable => {
            let text = pool.spec.disruption.consolidate_after.clone();
            return Err(Keep::PatienceUnreadable { pool: named.to_owned(), text });
        }
        Wait::Over | Wait::Until(_) => {}
    }
    let needed: Vec<String> = facts.pods.iter().filter(|pod| needs_node(pod)).map(|pod| key(pod)).collect();
    if let Some(first) = needed.iter().min() {
        return Err(Keep::Busy { pods: needed.len(), first: first.clone() });
    }
    if let Wait::Until(until) = wait { Err(Keep::TooRecent { until }) } else { Ok(pool) }
}

/// What is asked of the node itself, before its pool and its pods.
fn stands_free(facts: &NodeFacts<'_>) -> Result<(), Keep> {
    let node = facts.node.ok_or(Keep::NodeMissing)?;
    let forbids = |annotations: &BTreeMap<String, String>| {
        annotations.get(names::ANNOTATION_DO_NOT_DISRUPT).is_some_and(|value| value == "true")
    };
    let reason = if facts.is_going() {
        Keep::Deleting
    } else if facts.is_foreign() {
        Keep::Foreign
    } else if !facts.is_initialized() {
        Keep::NotInitialized
    } else if facts.nominated {
        Keep::Nominated
    } else if forbids(node.annotations()) {
        Keep::DoNotDisrupt { on: Protected::Node(node.name_any()) }
    } else if forbids(facts.claim.annotations()) {
        Keep::DoNotDisrupt { on: Protected::Claim(facts.name().to_owned()) }
    } else {
        return Ok(());
    };
    Err(reason)
}

/// What the condition should be; nothing where nobody evaluates it.
fn consolidatable(facts: &NodeFacts<'_>, pools: &Pools<'_>, now: Timestamp) -> Option<Consolidatable> {
    let pool = pools.get(facts.pool()?)?;
    if facts.claim.metadata.deletion_timestamp.is_some() || pool.spec.replicas.is_some() {
        return None;
    }
    if facts.initialized().is_none() {
        return Some(Consolidatable::Lacking { until: None });
    }
    Some(match wait(facts, pool, now) {
        Wait::Over => Consolidatable::Holds,
        Wait::Until(until) => Consolidatable::Lacking { until: Some(until) },
        Wait::Never | Wait::Unreadable => Consolidatable::Lacking { until: None },
    })
}

/// How far the wait is that began with the last pod that came or left, or with the node itself.
fn wait(facts: &NodeFacts<'_>, pool: &NodePool, now: Timestamp) -> Wait {
    let patience: SignedDuration = match parse_duration_or_never(&pool.spec.disruption.consolidate_after) {
        Ok(Some(patience)) => patience,
        Ok(None) => return Wait::Never,
        Err(_) => return Wait::Unreadable,
    };
    let last_event = facts.claim.status.as_ref().and_then(|status| status.last_pod_event_time.as_ref());
    let began = last_event.or_else(|| facts.initialized().map(|condition| &condition.last_transition_time));
    let until = began.map_or(now, |began| began.0.checked_add(patience).unwrap_or(Timestamp::MAX));
    if now < until { Wait::Until(until) } else { Wait::Over }
}

/// What each pool's budgets allow, and what of it is used up. Nodes that never took pods count nowhere.
fn pool_budgets(input: &EmptinessInput<'_>) -> Vec<PoolBudget> {
    let mut counts: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for facts in input.nodes.iter().filter(|facts| facts.is_initialized() && !facts.is_instance_terminating()) {
        let Some(pool) = facts.pool() else { continue };
        let (total, disrupting) = counts.entry(pool).or_default();
        *total += 1;
        *disrupting += u32::from(facts.is_going() || !facts.is_ready());
    }
    let pools: Pools<'_> = input.pools.iter().map(|pool| (name_of(pool), *pool)).collect();
    let budget = |(name, pool): (&str, &NodePool)| {
        let (total, disrupting) = counts.get(name).copied().unwrap_or_default();
        let nodes = usize::try_from(total).unwrap_or(usize::MAX);
        let Allowed { count, faults } =
            allowed(&pool.spec.disruption.budgets, DisruptionReason::Empty, nodes, input.now);
        PoolBudget { pool: name.to_owned(), allowed: count, disrupting, total, faults }
    };
    pools.into_iter().map(budget).collect()
}

fn name_of(pool: &NodePool) -> &str {
    pool.metadata.name.as_deref().unwrap_or_default()
}
