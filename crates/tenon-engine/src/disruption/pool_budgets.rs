//! What do the budgets of each NodePool allow for one reason, what of it is used up, and which budget is the tightest?

use std::collections::BTreeMap;

use tenon_model::{DisruptionBudget, DisruptionPool, DisruptionReason, Timestamp};

use super::budget::{AllowedDisruptions, InvalidBudget, allowed_disruptions};

/// What a NodePool's budgets allow for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolDisruption {
    /// The pool.
    pub pool: String,
    /// How many nodes may be disrupted at once.
    pub allowed: u32,
    /// How many are being removed or not ready.
    pub disrupting: u32,
    /// How many there are.
    pub total: u32,
    /// Budgets that cannot be read; with any of them, nothing is allowed.
    pub invalid: Vec<InvalidBudget>,
}

impl PoolDisruption {
    /// How many more nodes may be disrupted.
    pub fn left(&self) -> u32 {
        self.allowed.saturating_sub(self.disrupting)
    }
}

/// A node as budgets count it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted<'a> {
    pub(super) pool: &'a str,
    pub(super) is_disrupting: bool,
}

/// By pool, in the order of their names. Only nodes that took pods at some time are counted.
pub(super) fn pool_disruptions<'a>(
    nodes: impl Iterator<Item = Counted<'a>>,
    pools: impl Iterator<Item = &'a DisruptionPool>,
    (reason, now): (DisruptionReason, Timestamp),
) -> Vec<PoolDisruption> {
    let mut counts: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for node in nodes {
        let (total, disrupting) = counts.entry(node.pool).or_default();
        *total += 1;
        *disrupting += u32::from(node.is_disrupting);
    }
    let pools: BTreeMap<&str, &DisruptionPool> = pools.map(|pool| (pool.name.as_str(), pool)).collect();
    let disruption = |pool: &DisruptionPool| {
        let (total, disrupting) = counts.get(pool.name.as_str()).copied().unwrap_or_default();
        let nodes = usize::try_from(total).unwrap_or(usize::MAX);
        let AllowedDisruptions { count, invalid } = allowed_disruptions(&pool.budgets, reason, nodes, now);
        PoolDisruption { pool: pool.name.clone(), allowed: count, disrupting, total, invalid }
    };
    pools.into_values().map(disruption).collect()
}

/// The budget that allows the fewest nodes now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TightestBudget {
    /// Its place in the list, from 0.
    pub index: usize,
    /// How many nodes it allows, as it is written.
    pub nodes: String,
}

/// The budget of a pool that allows the fewest nodes now for a reason, the first of several; none if no budget counts.
pub(super) fn tightest(
    pool: &DisruptionPool,
    (reason, now): (DisruptionReason, Timestamp),
    total: u32,
) -> Option<TightestBudget> {
    let nodes = usize::try_from(total).unwrap_or(usize::MAX);
    let read = pool.budgets.iter().enumerate().filter_map(|(index, budget)| Some((index, budget.as_ref().ok()?)));
    let counting = read.filter(|(_, budget)| budget.applies_to(reason) && budget.is_active(now));
    let (index, budget) = counting.min_by_key(|(index, budget)| (budget.nodes.of(nodes), *index))?;
    Some(TightestBudget { index, nodes: budget.nodes.to_string() })
}

/// Windows that are looked through: some overlap, or follow one another.
const WINDOWS_MOST: usize = 32;

/// When time alone will allow one node more than are disrupted; none if it will not, or not within the next windows.
pub(super) fn opens_at(
    pool: &DisruptionPool,
    (reason, now): (DisruptionReason, Timestamp),
    counted: &PoolDisruption,
) -> Option<Timestamp> {
    let (nodes, disrupting) = (usize::try_from(counted.total).unwrap_or(usize::MAX), counted.disrupting);
    let mut then = now;
    for _ in 0..WINDOWS_MOST {
        if allowed_disruptions(&pool.budgets, reason, nodes, then).count > disrupting {
            return (then > now).then_some(then);
        }
        let read = pool.budgets.iter().filter_map(|budget| budget.as_ref().ok());
        let in_the_way = read.filter(|budget| budget.applies_to(reason) && budget.is_active(then));
        let in_the_way = in_the_way.filter(|budget| budget.nodes.of(nodes) <= disrupting);
        // All of them have to close, the last one too; one without a window never does.
        let closing: Option<Vec<Timestamp>> = in_the_way.map(|budget| closes_at(budget, then)).collect();
        then = closing?.into_iter().max()?;
    }
    None
}

fn closes_at(budget: &DisruptionBudget, now: Timestamp) -> Option<Timestamp> {
    let window = budget.window.as_ref()?;
    Some(Timestamp::from(window.schedule.last_hit(now.seconds())).after(window.duration.as_duration()))
}
