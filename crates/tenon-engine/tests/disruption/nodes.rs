//! Small clusters whose nodes may be disrupted, in few words.

use std::sync::Arc;
use std::time::Duration;

use tenon_engine::disruption::{DisruptionBlocked, EmptinessInput, EmptinessVerdict, judge_emptiness};
use tenon_model::{
    BudgetText, CandidateClaim, CandidateKubeNode, CandidateNode, CandidatePod, DisruptionBudget, DisruptionPool,
    PodKey, Seconds, Timestamp,
};

/// 2026-03-11T10:10:00Z, ten minutes after every node of these clusters was initialized.
pub(crate) fn now() -> Timestamp {
    Timestamp::from(Seconds(1_773_223_800))
}

/// So many seconds before now.
pub(crate) fn ago(seconds: u64) -> Timestamp {
    now().before(Duration::from_secs(seconds))
}

/// So many seconds after now.
pub(crate) fn later(seconds: u64) -> Timestamp {
    now().after(Duration::from_secs(seconds))
}

/// A NodePool that consolidates at once and allows all its nodes to be disrupted.
pub(crate) fn pool(name: &str) -> DisruptionPool {
    let pool = DisruptionPool {
        name: name.to_owned(),
        is_deleting: false,
        is_static: false,
        policy: tenon_model::ConsolidationPolicy::default(),
        consolidate_after: "0s".parse(),
        budgets: Vec::new(),
    };
    with_budget(pool, "100%")
}

/// The same pool with one budget, always.
pub(crate) fn with_budget(pool: DisruptionPool, nodes: &str) -> DisruptionPool {
    let text = BudgetText { nodes, schedule: None, duration: None };
    DisruptionPool { budgets: vec![DisruptionBudget::read(text, None)], ..pool }
}

/// A pool `default` with this budget.
pub(crate) fn budgeted(nodes: &str) -> DisruptionPool {
    with_budget(pool("default"), nodes)
}

/// A pool `default` with this `consolidateAfter`.
pub(crate) fn patient(after: &str) -> DisruptionPool {
    DisruptionPool { consolidate_after: after.parse(), ..pool("default") }
}

/// A node of pool `default` that is initialized, ready and empty.
pub(crate) fn empty_node(name: &str) -> CandidateNode {
    CandidateNode {
        claim: CandidateClaim {
            name: name.to_owned(),
            created: Some(ago(4200)),
            initialized_at: Some(ago(600)),
            ..CandidateClaim::default()
        },
        node: Some(CandidateKubeNode {
            name: format!("node-{name}"),
            is_initialized: true,
            is_ready: true,
            ..CandidateKubeNode::default()
        }),
        pool: Some("default".to_owned()),
        ..CandidateNode::default()
    }
}

/// A pod `shop/<name>` that has to run somewhere.
pub(crate) fn pod(name: &str) -> CandidatePod {
    let key = Arc::new(PodKey { namespace: "shop".into(), name: name.into(), uid: name.into() });
    CandidatePod { key, is_reschedulable: true, eviction_cost: 1.0, has_do_not_disrupt: false }
}

/// Changes a node in words that read like its fields.
pub(crate) trait With: Sized {
    fn with(self, change: impl FnOnce(&mut CandidateClaim)) -> Self;
    fn with_node(self, change: impl FnOnce(&mut CandidateKubeNode)) -> Self;
    fn with_pod(self, pod: CandidatePod) -> Self;
    fn in_pool(self, pool: Option<&str>) -> Self;
}

impl With for CandidateNode {
    fn with(mut self, change: impl FnOnce(&mut CandidateClaim)) -> CandidateNode {
        change(&mut self.claim);
        self
    }

    fn with_node(mut self, change: impl FnOnce(&mut CandidateKubeNode)) -> CandidateNode {
        change(self.node.as_mut().unwrap());
        self
    }

    fn with_pod(mut self, pod: CandidatePod) -> CandidateNode {
        self.pods.push(pod);
        self
    }

    fn in_pool(mut self, pool: Option<&str>) -> CandidateNode {
        self.pool = pool.map(str::to_owned);
        self
    }
}

pub(crate) fn verdict(pools: &[DisruptionPool], nodes: &[CandidateNode]) -> EmptinessVerdict {
    judge_emptiness(&EmptinessInput { now: now(), pools: pools.to_vec(), nodes: nodes.to_vec() })
}

/// Why the only node of the default pool is not disrupted; nothing if it is.
pub(crate) fn blocked(node: &CandidateNode) -> Option<DisruptionBlocked> {
    blocked_in(&pool("default"), node)
}

/// The same, of one pool.
pub(crate) fn blocked_in(pool: &DisruptionPool, node: &CandidateNode) -> Option<DisruptionBlocked> {
    let verdict = verdict(std::slice::from_ref(pool), std::slice::from_ref(node));
    assert_eq!(verdict.delete.len() + verdict.blocked.len(), 1, "every node is deleted or not");
    verdict.blocked.into_iter().next().map(|(_, blocked)| blocked)
}
