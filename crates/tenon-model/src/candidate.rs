//! What the engine must know of a NodeClaim, its Node and its pods to say whether the node may be disrupted.

use std::sync::Arc;

use crate::disruption_budget::{BudgetFault, DisruptionBudget};
use crate::duration::{DurationError, TimespanOrNever};
use crate::pod::PodKey;
use crate::repair_decision::Unhealthy;
use crate::timestamp::Timestamp;

/// A NodeClaim of ours with its Node and its pods.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CandidateNode {
    /// The claim.
    pub claim: CandidateClaim,
    /// The Node, once there is one.
    pub node: Option<CandidateKubeNode>,
    /// The NodePool, by the label of the Node once it registered, and of the claim until then.
    pub pool: Option<String>,
    /// All pods bound to the Node.
    pub pods: Vec<CandidatePod>,
    /// Whether pods were nominated to it a moment ago and have not arrived.
    pub is_nominated: bool,
}

/// The NodeClaim of a candidate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CandidateClaim {
    /// Its name.
    pub name: String,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether its VM is being destroyed, whoever asked for it.
    pub is_instance_terminating: bool,
    /// Whether another controller created its VM: there is one, and no launch record of ours.
    pub has_foreign_vm: bool,
    /// Whether it is annotated with `karpenter.sh/do-not-disrupt`.
    pub has_do_not_disrupt: bool,
    /// Since when its condition Initialized is true.
    pub initialized_at: Option<Timestamp>,
    /// When a pod was last added to or removed from its node.
    pub last_pod_event: Option<Timestamp>,
    /// Since when its condition Consolidatable is true.
    pub consolidatable_since: Option<Timestamp>,
    /// Since when its condition Drifted is true.
    pub drifted_since: Option<Timestamp>,
    /// Whether it came for nodes that stayed after all.
    pub is_surplus: bool,
    /// Whether it is annotated with `karpenter.sh/do-not-repair`.
    pub has_do_not_repair: bool,
    /// When its VM was rebooted last, if that is over.
    pub rebooted_at: Option<Timestamp>,
    /// How many seconds after it was created it expires; none if never.
    pub expire_after_s: Option<i64>,
    /// Whether its `terminationGracePeriod` bounds how long its pods may take to leave.
    pub has_bounded_drain: bool,
}

/// What decides whether a node may be disrupted, besides its pods. Part of a snapshot's nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DisruptionFacts {
    /// The claim.
    pub claim: CandidateClaim,
    /// The Node, once there is one.
    pub node: Option<CandidateKubeNode>,
}

/// Which nodes are consolidated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ConsolidationPolicy {
    /// Only nodes that run no pods except those of DaemonSets.
    WhenEmpty,
    /// Also nodes whose pods fit on other or cheaper nodes.
    #[default]
    WhenEmptyOrUnderutilized,
    /// The same, weighed against the disruption of the pods.
    Balanced,
}

/// The Node of a candidate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CandidateKubeNode {
    /// Its name.
    pub name: String,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether its label says that it can take pods.
    pub is_initialized: bool,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Whether its label says that it joined the cluster as the node of its NodeClaim.
    pub is_registered: bool,
    /// Whether the kubelet says that it works.
    pub is_ready: bool,
    /// Its conditions that mean that it is broken.
    pub unhealthy: Vec<Unhealthy>,
    /// Whether it is annotated with `karpenter.sh/do-not-repair`.
    pub has_do_not_repair: bool,
    /// Whether it is annotated with `karpenter.sh/do-not-disrupt`.
    pub has_do_not_disrupt: bool,
}

/// A pod on a candidate.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CandidatePod {
    /// Which.
    pub key: Arc<PodKey>,
    /// Whether it asks now that its node be left alone.
    pub has_do_not_disrupt: bool,
    /// Whether it has to run somewhere when its node is removed.
    pub is_reschedulable: bool,
    /// What it costs to move it.
    pub eviction_cost: f64,
}

/// A NodePool, as far as it decides about disruption.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisruptionPool {
    /// Its name.
    pub name: String,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether it has a fixed number of nodes.
    pub is_static: bool,
    /// Which of its nodes are consolidated.
    pub policy: ConsolidationPolicy,
    /// How long a node must have no pod events before it is consolidated.
    pub consolidate_after: Result<TimespanOrNever, DurationError>,
    /// Its budgets, in their order.
    pub budgets: Vec<Result<DisruptionBudget, BudgetFault>>,
}

impl CandidateNode {
    /// Whether it is being removed already, whoever began it.
    pub fn is_deleting(&self) -> bool {
        let is_node_deleting = self.node.as_ref().is_some_and(|node| node.is_deleting);
        self.claim.is_deleting || is_node_deleting || self.claim.is_instance_terminating
    }

    /// Whether it could take pods, once: the Node and the claim say so both.
    pub fn is_initialized(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.is_initialized) && self.claim.initialized_at.is_some()
    }

    /// Whether the kubelet says that it works.
    pub fn is_ready(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.is_ready)
    }
}
