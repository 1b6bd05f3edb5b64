//! Which nodes of a pool with too many of them go first?

use std::cmp::Ordering;

use tenon_model::Seconds;

use super::static_pool::Standing;

/// A node of a pool with a fixed number of them, as far as it matters for who goes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StaticNode {
    /// The name of its claim.
    pub name: String,
    /// What its place in the pool is.
    pub standing: Standing,
    /// How far it is.
    pub stage: StaticStage,
    /// Whether it may be given away at all.
    pub sparing: Sparing,
    /// When its claim was made.
    pub created: Seconds,
    /// What is left of its life, from 1 down to 0.
    pub lifetime_remaining: f64,
    /// Its pods that are not over.
    pub pods: Vec<StaticPod>,
}

/// How far a node is, from what is lost least when it goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum StaticStage {
    /// Nobody chose a size and a host for it.
    Unplanned,
    /// Its VM is being made.
    Launching,
    /// Its VM was made.
    #[default]
    Launched,
}

/// Whether a node may be given away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sparing {
    /// It may.
    #[default]
    Free,
    /// Another controller made its VM, and nothing proves that we may take it away.
    NotOurs,
}

/// A pod on such a node.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StaticPod {
    /// Whether a DaemonSet owns it.
    pub is_daemon: bool,
    /// Whether it asks now that its node be left alone.
    pub forbids_disruption: bool,
    /// What it costs to move it.
    pub eviction_cost: f64,
}

impl StaticNode {
    /// Whether nobody chose a size and a host for it yet.
    pub fn is_unplanned(&self) -> bool {
        self.stage == StaticStage::Unplanned
    }

    /// Whether nobody would miss it: it has no pods, or only those of daemons, and none of them asks for it.
    fn is_empty(&self) -> bool {
        self.pods.iter().all(|pod| pod.is_daemon) && !self.is_asked_for()
    }

    fn is_asked_for(&self) -> bool {
        self.pods.iter().any(|pod| pod.forbids_disruption)
    }

    /// What it costs to move all its pods; less, the sooner the node goes anyway.
    fn cost(&self) -> f64 {
        self.pods.iter().map(|pod| pod.eviction_cost).sum::<f64>() * self.lifetime_remaining
    }

    fn class(&self) -> Class {
        match self.stage {
            StaticStage::Unplanned | StaticStage::Launching => Class::Unborn(self.stage),
            StaticStage::Launched if self.is_empty() => Class::Empty,
            StaticStage::Launched if self.is_asked_for() => Class::AskedFor,
            StaticStage::Launched => Class::Busy,
        }
    }
}

/// Classes of nodes in the order they go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Unborn(StaticStage),
    Empty,
    Busy,
    AskedFor,
}

/// The names of as many nodes as should go, in the order they go. Where nothing else decides, the oldest goes first.
pub(crate) fn victims<'a>(nodes: impl Iterator<Item = &'a StaticNode>, count: usize) -> Vec<String> {
    let mut nodes: Vec<&StaticNode> = nodes.collect();
    nodes.sort_by(|a, b| order(a, b));
    nodes.into_iter().take(count).map(|node| node.name.clone()).collect()
}

fn order(a: &StaticNode, b: &StaticNode) -> Ordering {
    let by_cost = match a.class() {
        Class::Busy | Class::AskedFor => a.cost().total_cmp(&b.cost()),
        Class::Unborn(_) | Class::Empty => Ordering::Equal,
    };
    let by_age = || a.created.cmp(&b.created).then_with(|| a.name.cmp(&b.name));
    a.class().cmp(&b.class()).then(by_cost).then_with(by_age)
}

/// What is left of a node's life, from 1 down to 0; all of it if it never ends.
#[expect(clippy::cast_precision_loss, reason = "a share of years in seconds is exact enough")]
pub fn lifetime_remaining(expire_after_s: Option<i64>, age_s: i64) -> f64 {
    match expire_after_s {
        None => 1.0,
        // Who expires at once has nothing left, and nothing to divide by.
        Some(whole) if whole <= 0 => 0.0,
        Some(whole) => (whole.saturating_sub(age_s) as f64 / whole as f64).clamp(0.0, 1.0),
    }
}
