//! Which pods should a ReplicaSet delete first when it is scaled down?
//!
//! Those on nodes that go anyway, then those on nodes that would be disrupted next, so that scaling down empties nodes instead of
//! thinning all of them out. The number written on a pod is the place of its node in that order.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_model::{DisruptionReason, NodeReplicas, PodKey, Snapshot, Timestamp};

use super::candidates::{Class, Node, instance_type, nodes};
use super::emptiness::{Wait, wait};
use super::pool_budgets::PoolDisruption;
use super::scan::budgets_of;
use crate::index::fixed_hash;

/// Pods on a node that goes: before all others.
const FIRST: i32 = i32::MIN;

/// In one pass so many nodes are written at most, those that go not counted: each has a hundred pods or more, and all of them are one
/// request each.
const NODES_MOST: usize = 50;

/// Why pods of a node go earlier than others, or do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CostGroup {
    /// The node goes: it is being deleted or has the disruption taint.
    Leaving,
    /// It drifted, and would be replaced next.
    Drifted,
    /// It may be consolidated.
    Consolidatable,
    /// It stays for now: nothing is written on its pods.
    Kept,
}

/// What the pods of a node cost to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeDeletionCost {
    /// The node.
    pub node: String,
    /// Its pool.
    pub pool: Option<String>,
    /// Why.
    pub group: CostGroup,
    /// The number for its pods; none if they should have none.
    pub cost: Option<i32>,
}

/// A pod on which something is written or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostWrite {
    /// The pod.
    pub pod: Arc<PodKey>,
    /// The number; none if it is removed.
    pub cost: Option<i32>,
}

/// What is written in one pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CostWrites {
    /// In the order they are written.
    pub writes: Vec<CostWrite>,
    /// How many nodes have pods on which something has to be written, by pool, those included that have to wait.
    pub pending: BTreeMap<String, u64>,
    /// Whether nodes were left for the next pass.
    pub is_cut: bool,
}

/// What the pods of each node with a NodeClaim cost to delete. Nodes whose pods go first come first.
pub fn deletion_costs(snapshot: &Snapshot, replicas: &BTreeMap<String, NodeReplicas>) -> Vec<NodeDeletionCost> {
    let now = Timestamp::from(snapshot.now);
    let mut nodes = nodes(snapshot);
    nodes.sort_by(by_savings);
    let mut left = Left::of(&nodes, snapshot);
    let mut groups: BTreeMap<CostGroup, Vec<&Node<'_>>> = BTreeMap::new();
    for node in &nodes {
        let is_pinned = replicas.get(node.name()).is_some_and(|pods| pods.is_pinned);
        let group = match is_pinned && !is_leaving(node, snapshot) {
            true => CostGroup::Kept,
            false => left.cut(node, group(node, snapshot, now)),
        };
        groups.entry(group).or_default().push(node);
    }
    let count = |group| groups.get(&group).map_or(0, Vec::len);
    let ranked = i32::try_from(count(CostGroup::Drifted) + count(CostGroup::Consolidatable)).unwrap_or(i32::MAX);
    let mut ranks = (1..=ranked).rev().map(|place| -place);
    let costs = groups.iter().flat_map(|(group, nodes)| nodes.iter().map(move |node| (*group, node)));
    costs
        .map(|(group, node)| NodeDeletionCost {
            node: node.name().to_owned(),
            pool: node.state.pool.clone(),
            group,
            cost: match group {
                CostGroup::Leaving => Some(FIRST),
                CostGroup::Drifted | CostGroup::Consolidatable => ranks.next(),
                CostGroup::Kept => None,
            },
        })
        .collect()
}

/// What has to be written so that pods bear these costs. Nodes that go are always written; of all others only so many in one pass,
/// and those that stay last.
pub fn cost_writes(costs: &[NodeDeletionCost], replicas: &BTreeMap<String, NodeReplicas>) -> CostWrites {
    let mut found = CostWrites::default();
    let mut room = NODES_MOST;
    for node in costs {
        let pods = replicas.get(&node.node).into_iter().flat_map(|pods| &pods.replicas);
        let wrong = pods.filter(|replica| !replica.written.is(node.cost));
        let wrong: Vec<CostWrite> =
            wrong.map(|replica| CostWrite { pod: replica.pod.clone(), cost: node.cost }).collect();
        if wrong.is_empty() {
            continue;
        }
        *found.pending.entry(node.pool.clone().unwrap_or_default()).or_default() += 1;
        let is_capped = node.group != CostGroup::Leaving;
        if is_capped && room == 0 {
            found.is_cut = true;
            continue;
        }
        room -= usize::from(is_capped);
        found.writes.extend(wrong);
    }
    found
}

/// The same as long as nothing changed that the order depends on, besides the passing of time.
pub fn deletion_cost_state(snapshot: &Snapshot) -> u64 {
    let nodes = snapshot.nodes.iter().map(|node| {
        let facts = node.disruption.as_deref().map(|facts| (facts.claim.drifted_since, facts.node.is_some()));
        let pods: Vec<&str> = node.pods.iter().map(|pod| &*pod.key.uid).collect();
        let is_tainted = snapshot.disruption.in_progress.contains(&node.name);
        (&node.name, fixed_hash(&(format!("{facts:?}{:?}", node.stage), node.is_leaving, is_tainted, pods)))
    });
    let mut nodes: Vec<_> = nodes.collect();
    let mut pools: Vec<_> = snapshot.pools.iter().map(|pool| (&pool.name, &pool.revision)).collect();
    nodes.sort();
    pools.sort();
    fixed_hash(&(nodes, pools))
}

/// What would be disrupted next comes first.
fn by_savings(one: &Node<'_>, other: &Node<'_>) -> Ordering {
    other.savings_ratio().total_cmp(&one.savings_ratio()).then_with(|| one.name().cmp(other.name()))
}

fn is_leaving(node: &Node<'_>, snapshot: &Snapshot) -> bool {
    node.is_going() || snapshot.disruption.in_progress.contains(node.name())
}

/// Where a node belongs, without regard to budgets.
fn group(node: &Node<'_>, snapshot: &Snapshot, now: Timestamp) -> CostGroup {
    if is_leaving(node, snapshot) {
        return CostGroup::Leaving;
    }
    let Ok(rules) = node.eligible(Class::Graceful, snapshot) else { return CostGroup::Kept };
    if node.pool.is_none_or(|pool| instance_type(node.state, pool).is_none()) {
        return CostGroup::Kept;
    }
    let has_drifted = node.seen.claim.drifted_since.is_some();
    match wait(&node.seen, rules, now) {
        Wait::Never | Wait::Invalid(_) if !has_drifted => CostGroup::Kept,
        _ if has_drifted && !node.is_static() => CostGroup::Drifted,
        _ => CostGroup::Consolidatable,
    }
}

/// How many more nodes the budgets of each pool allow, by pool.
struct Left {
    drifted: BTreeMap<String, u32>,
    consolidatable: BTreeMap<String, u32>,
}

impl Left {
    fn of(nodes: &[Node<'_>], snapshot: &Snapshot) -> Left {
        let left = |reason| {
            let pools = budgets_of(nodes, snapshot, reason).into_iter();
            pools.map(|pool: PoolDisruption| (pool.pool.clone(), pool.left())).collect()
        };
        Left { drifted: left(DisruptionReason::Drifted), consolidatable: left(DisruptionReason::Underutilized) }
    }

    /// A node that no budget has room for stays for now.
    fn cut(&mut self, node: &Node<'_>, group: CostGroup) -> CostGroup {
        let left = match group {
            CostGroup::Drifted => &mut self.drifted,
            CostGroup::Consolidatable => &mut self.consolidatable,
            CostGroup::Leaving | CostGroup::Kept => return group,
        };
        match left.get_mut(node.pool_name()).filter(|left| **left > 0) {
            Some(left) => {
                *left -= 1;
                group
            }
            None => CostGroup::Kept,
        }
    }
}
