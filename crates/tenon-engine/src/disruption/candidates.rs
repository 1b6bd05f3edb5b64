//! Which nodes may be disrupted at all, what does each cost, and what would moving its pods cost?
//!
//! The rules and their order are Karpenter's; the first that is against it decides.

use std::collections::BTreeMap;

use tenon_model::labels::{CAPACITY_TYPE, INSTANCE_TYPE, ZONE};
use tenon_model::{
    BoundPod, CandidateNode, CandidatePod, CatalogType, DisruptionPool, NodeStage, NodeState, Offering, Pool, Price,
    Snapshot, Timestamp,
};

use super::blocked::{DisruptionBlocked, Protected};
use super::command::RemovedNode;
use super::emptiness::{is_disruptable, needs_node};
use super::kept::Kept;

/// What moving the pods of a node costs at least, so that a node without pods can be compared with others.
const LEAST_COST: f64 = 1.0;

/// How patient a method is with pods that do not want to move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// It waits until they may.
    Graceful,
    /// It goes on where the drain is bounded.
    Eventual,
    /// The same, and nobody but `karpenter.sh/do-not-repair` protects the node; it need not have taken pods yet.
    Repair {
        /// Whether the policy bounds the drain, whatever the NodeClaim says.
        is_bounded: bool,
    },
}

impl Class {
    fn is_repair(self) -> bool {
        matches!(self, Class::Repair { .. })
    }
}

/// A node with a NodeClaim.
#[derive(Debug)]
pub(super) struct Node<'s> {
    pub(super) state: &'s NodeState,
    /// The same for the rules that hold for empty nodes, too.
    pub(super) seen: CandidateNode,
    pub(super) pool: Option<&'s Pool>,
    /// What it costs; none if its labels do not say.
    pub(super) price: Option<Price>,
    /// What moving its pods costs.
    pub(super) cost: f64,
}

/// All nodes with a NodeClaim, by name.
pub(super) fn nodes(snapshot: &Snapshot) -> Vec<Node<'_>> {
    let now = Timestamp::from(snapshot.now);
    let pools: BTreeMap<&str, &Pool> = snapshot.pools.iter().map(|pool| (pool.name.as_str(), &**pool)).collect();
    let managed = snapshot.nodes.iter().filter(|state| state.disruption.is_some());
    let mut nodes: Vec<Node<'_>> = managed
        .map(|state| {
            let pool = state.pool.as_deref().and_then(|pool| pools.get(pool)).copied();
            let seen = seen(state, snapshot, now);
            let positive = seen.pods.iter().filter(|pod| needs_node(pod)).map(|pod| pod.eviction_cost);
            let cost = positive.fold(LEAST_COST, |sum, cost| sum + cost);
            Node { state, pool, price: pool.and_then(|pool| price(state, pool)), cost, seen }
        })
        .collect();
    nodes.sort_by(|a, b| a.state.name.cmp(&b.state.name));
    nodes
}

fn seen(state: &NodeState, snapshot: &Snapshot, now: Timestamp) -> CandidateNode {
    let facts = state.disruption.as_deref().cloned().unwrap_or_default();
    CandidateNode {
        claim: facts.claim,
        node: facts.node,
        pool: state.pool.clone(),
        pods: state.pods.iter().map(|pod| candidate_pod(pod, now)).collect(),
        is_nominated: snapshot.disruption.nominated.contains(&state.name),
    }
}

fn candidate_pod(pod: &BoundPod, now: Timestamp) -> CandidatePod {
    let since_start = pod.started.map(|started| now.nanos_since(Timestamp::from(started)));
    CandidatePod {
        key: pod.key.clone(),
        has_do_not_disrupt: !pod.is_terminating && pod.shape.protection.holds(since_start),
        is_reschedulable: pod.needs_another_node(),
        eviction_cost: pod.worth.eviction_cost_after(since_start),
    }
}

/// The instance type of a node, if its pool still has it.
pub(super) fn instance_type<'p>(state: &NodeState, pool: &'p Pool) -> Option<&'p CatalogType> {
    pool.catalog.find(state.labels.get(INSTANCE_TYPE)?)
}

/// What a node costs by its labels, whether or not another could be had now. An offering that names no zone needs no label.
fn price(state: &NodeState, pool: &Pool) -> Option<Price> {
    let is_its = |way: &Offering, label: &str| {
        let own = state.labels.get(label);
        way.requirements.get(label).is_none_or(|demand| own.is_some_and(|value| demand.has(value)))
    };
    let ways = &instance_type(state, pool)?.offerings;
    let way = ways.iter().find(|way| [ZONE, CAPACITY_TYPE].into_iter().all(|label| is_its(way, label)))?;
    (!way.price.value().is_nan()).then_some(way.price)
}

impl<'s> Node<'s> {
    pub(super) fn name(&self) -> &'s str {
        &self.state.name
    }

    pub(super) fn pool_name(&self) -> &'s str {
        self.state.pool.as_deref().unwrap_or_default()
    }

    /// How its pool may be disrupted.
    pub(super) fn rules(&self) -> Option<&'s DisruptionPool> {
        self.pool.and_then(|pool| pool.disruption.as_deref())
    }

    /// Whether no pod needs it. Pods that cost nothing to move do not count.
    pub(super) fn is_empty(&self) -> bool {
        self.cost <= LEAST_COST
    }

    pub(super) fn is_static(&self) -> bool {
        self.rules().is_some_and(|rules| rules.is_static)
    }

    /// Whether it counts as disrupted, whoever began it.
    pub(super) fn is_going(&self) -> bool {
        self.state.is_leaving || self.seen.is_deleting()
    }

    /// What a removal saves for what it costs the pods.
    pub(super) fn savings_ratio(&self) -> f64 {
        self.price.map_or(0.0, Price::value) / self.cost
    }

    pub(super) fn is_of_capacity_type(&self, capacity_type: &str) -> bool {
        self.state.labels.get(CAPACITY_TYPE) == Some(capacity_type)
    }

    /// What a command says of it.
    pub(super) fn removed(&self) -> RemovedNode {
        RemovedNode {
            node: self.name().to_owned(),
            claim: self.seen.claim.name.clone(),
            pool: self.pool_name().to_owned(),
            instance_type: self.state.labels.get(INSTANCE_TYPE).unwrap_or_default().to_owned(),
            price: self.price,
            disruption_cost: self.cost,
        }
    }

    /// Whether anything is against any disruption of it.
    pub(super) fn eligible(&self, class: Class, snapshot: &Snapshot) -> Result<&'s DisruptionPool, Kept> {
        if snapshot.disruption.in_progress.contains(&self.state.name) {
            return Err(Kept::InProgress);
        }
        if self.state.stage == NodeStage::Rebooting {
            return Err(Kept::Rebooting);
        }
        if self.state.is_leaving {
            return Err(Kept::Blocked(DisruptionBlocked::Deleting));
        }
        match is_disruptable(&self.seen) {
            Err(why) if !class.is_repair() || !self.is_repaired_in_spite_of(&why) => {
                return Err(Kept::Blocked(why));
            }
            _ => {}
        }
        let named = self.state.pool.clone();
        let (Some(rules), Some(pool)) = (self.rules(), self.pool) else {
            return Err(Kept::Blocked(DisruptionBlocked::NoPool { pool: named }));
        };
        if pool.catalog.types().is_empty() {
            return Err(Kept::NoInstanceTypes { pool: pool.name.clone() });
        }
        if class == (Class::Repair { is_bounded: true })
            || (class != Class::Graceful && self.seen.claim.has_bounded_drain)
        {
            return Ok(rules);
        }
        self.pods_may_move(snapshot).map(|()| rules)
    }

    /// Whether a broken node is replaced although this is against other disruptions.
    fn is_repaired_in_spite_of(&self, why: &DisruptionBlocked) -> bool {
        match why {
            DisruptionBlocked::DoNotDisrupt { .. } => true,
            DisruptionBlocked::NotInitialized => self.seen.node.as_ref().is_some_and(|node| node.is_registered),
            _ => false,
        }
    }

    /// Pods in the order of their keys: the first that may not move is named.
    fn pods_may_move(&self, snapshot: &Snapshot) -> Result<(), Kept> {
        if let Some(pod) = self.seen.pods.iter().find(|pod| pod.has_do_not_disrupt) {
            let on = Protected::Pod(pod.key.to_string());
            return Err(Kept::Blocked(DisruptionBlocked::DoNotDisrupt { on }));
        }
        let held = &snapshot.disruption.held;
        let first = self.seen.pods.iter().find_map(|pod| Some((&pod.key, held.get(&pod.key)?)));
        match first {
            Some((pod, hold)) => Err(Kept::PodHeld { pod: (**pod).clone(), hold: hold.clone() }),
            None => Ok(()),
        }
    }
}

/// What every node with a NodeClaim costs, as far as that is known.
pub fn prices(snapshot: &Snapshot) -> Vec<Option<Price>> {
    nodes(snapshot).iter().map(|node| node.price).collect()
}
