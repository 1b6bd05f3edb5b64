//! Why does a node stay? A reason for each method that could have disrupted it, with the next step where there is one.
//!
//! What is against any disruption of a node is in `blocked.rs`.

use std::fmt;

use tenon_model::labels::DO_NOT_REPAIR;
use tenon_model::{DisruptionReason, HoldKind, PodHold, PodKey, Price, Reason, Timestamp, Unhealthy};

use super::blocked::{DisruptionBlocked, Protected};
use super::command::Method;
use super::host_stay::HostStay;
use super::pool_budgets::TightestBudget;

/// Why a node stays.
#[derive(Debug, Clone, PartialEq)]
pub enum Kept {
    /// Something is against any disruption.
    Blocked(DisruptionBlocked),
    /// It is being disrupted already.
    InProgress,
    /// It is being started again.
    Rebooting,
    /// Its NodePool can make no node of any instance type.
    NoInstanceTypes {
        /// The pool.
        pool: String,
    },
    /// A pod cannot be evicted.
    PodHeld {
        /// The pod.
        pod: PodKey,
        /// By what.
        hold: PodHold,
    },
    /// A label that says what the node costs is missing, or its instance type is not offered any more.
    UnknownPrice {
        /// What is missing.
        what: String,
    },
    /// Its NodePool only removes empty nodes.
    OnlyWhenEmpty {
        /// The pool.
        pool: String,
    },
    /// The budgets of its NodePool allow no more disruptions.
    Budget(Box<BudgetLimit>),
    /// A pod of it would not be scheduled.
    Unschedulable {
        /// The pod.
        pod: PodKey,
        /// Why.
        reason: Box<Reason>,
    },
    /// A pod of it would be put on a node that takes no pods yet.
    Uninitialized {
        /// The pod.
        pod: PodKey,
        /// That node.
        node: String,
    },
    /// Its pods would need more than one new node.
    NeedsSeveral,
    /// The new node would not cost less.
    NotCheaper {
        /// The cheapest instance type that would do.
        instance_type: String,
        /// What it costs.
        price: Price,
        /// What the nodes cost that it would replace.
        current: Price,
    },
    /// Only as it is planned the new node would cost less, and not by much.
    SavesTooLittle {
        /// What would be created.
        instance_type: String,
        /// What it costs.
        price: Price,
        /// What the nodes cost that it would replace.
        current: Price,
    },
    /// The new node would have fewer values of a label than its NodePool asks for.
    MinValues,
    /// Spot nodes are not replaced by spot nodes.
    SpotToSpotOff,
    /// Too few instance types are cheaper.
    FewSpotTypes {
        /// How many there are.
        found: usize,
    },
    /// It saves too little for the pods that would be moved.
    BelowThreshold {
        /// The pool whose policy is `Balanced`.
        pool: String,
        /// How much of what the pool costs it saves, from 0 to 1.
        saved: f64,
        /// How much of what moving all pods of the pool would cost it causes, from 0 to 1.
        disrupted: f64,
        /// The score, of which 0.5 is needed.
        score: f64,
    },
    /// Its static NodePool has more nodes than `spec.replicas`.
    StaticExcess {
        /// The pool.
        pool: String,
    },
    /// Its static NodePool may have no node more.
    StaticLimit {
        /// The pool.
        pool: String,
    },
    /// The same move was tried, and its new node did not become ready.
    ReplacementFailed,
    /// A replacement of its NodePool never took pods, so no more of its nodes are replaced.
    RolloutHalted {
        /// The pool.
        pool: String,
    },
    /// It is broken, and not for long enough.
    Tolerated {
        /// What is wrong with it.
        unhealthy: Unhealthy,
        /// When it is repaired if it still is.
        until: Timestamp,
    },
    /// It is broken, and somebody asked that it not be repaired.
    DoNotRepair {
        /// Who carries the annotation.
        on: Protected,
    },
    /// It is broken, and so many others of its pool are that the fault is probably not theirs.
    TooManyUnhealthy {
        /// The pool.
        pool: String,
        /// How many nodes of it are broken.
        unhealthy: u32,
        /// How many it has.
        total: u32,
        /// How many may be broken.
        most: u32,
    },
    /// Its ProxmoxNodeClass has a goal for hosts, and it is not moved to another host.
    Host(HostStay),
    /// It could go, and another goes first.
    Later {
        /// The method that the other goes by.
        method: Method,
        /// The other.
        node: String,
    },
}

/// What the budgets of a NodePool leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetLimit {
    /// The pool.
    pub pool: String,
    /// What the nodes would be disrupted for.
    pub reason: DisruptionReason,
    /// How many may be disrupted at once.
    pub allowed: u32,
    /// How many are, those that are chosen now included.
    pub disrupting: u32,
    /// How many there are.
    pub total: u32,
    /// The budget that allows the fewest.
    pub tightest: Option<TightestBudget>,
    /// When time alone will allow one more, if it will.
    pub opens_at: Option<Timestamp>,
    /// What is wrong with a budget that cannot be read.
    pub invalid: Option<String>,
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kept::Blocked(blocked) => blocked.fmt(f),
            Kept::InProgress => f.write_str("the node is already being disrupted"),
            Kept::Rebooting => f.write_str("the node is rebooting"),
            Kept::NoInstanceTypes { pool } => write!(f, "NodePool {pool} has no instance types; see its conditions"),
            Kept::PodHeld { pod, hold } => held(f, pod, hold),
            Kept::UnknownPrice { what } => write!(f, "the price of the node is unknown: {what}"),
            Kept::OnlyWhenEmpty { pool } => write!(
                f,
                "NodePool {pool} has consolidationPolicy WhenEmpty and the node runs pods; set WhenEmptyOrUnderutilized to \
                 consolidate nodes in use"
            ),
            Kept::Budget(limit) => limit.fmt(f),
            Kept::Unschedulable { pod, reason } => write!(f, "pod {pod} would be unschedulable: {reason}"),
            Kept::Uninitialized { pod, node } => {
                write!(f, "pod {pod} would be scheduled on node {node}, which is not initialized yet")
            }
            Kept::NeedsSeveral => f.write_str("the pods of the node would need more than one new node"),
            Kept::NotCheaper { instance_type, price, current } => write!(
                f,
                "the cheapest replacement, {instance_type}, costs {price}, which is not less than the current {current}"
            ),
            Kept::SavesTooLittle { instance_type, price, current } => write!(
                f,
                "the replacement, {instance_type}, costs {price} instead of {current}, and in another zone not less; pods are not \
                 moved for less than 5 %"
            ),
            Kept::MinValues => f.write_str("the replacement would not meet the minValues of its NodePool"),
            Kept::SpotToSpotOff => f.write_str(
                "spot nodes are not replaced by spot nodes; switch on the feature gate SpotToSpotConsolidation to allow it",
            ),
            Kept::FewSpotTypes { found } => write!(
                f,
                "only {found} cheaper spot instance types would do, and replacing one spot node by another needs 15"
            ),
            Kept::BelowThreshold { pool, saved, disrupted, score } => {
                below_threshold(f, pool, [*saved, *disrupted, *score])
            }
            Kept::StaticExcess { pool } => {
                write!(f, "NodePool {pool} has more nodes than spec.replicas; wait until the extra nodes are removed")
            }
            Kept::StaticLimit { pool } => write!(
                f,
                "NodePool {pool} is at its limit, so no replacement can be created first; raise spec.limits.nodes by 1"
            ),
            Kept::ReplacementFailed => f.write_str(
                "the replacement failed before and nothing has changed since; see the events of NodeClaims that were deleted",
            ),
            Kept::RolloutHalted { pool } => write!(
                f,
                "the roll-out of NodePool {pool} is halted, because a replacement never joined; see condition \
                 DriftRolloutHalted of the NodePool"
            ),
            Kept::Tolerated { unhealthy, until } => {
                write!(f, "the node has {unhealthy}; it is repaired from {until} on unless it recovers before")
            }
            Kept::DoNotRepair { on } => {
                write!(f, "{on} has {DO_NOT_REPAIR}; remove the annotation to have the node replaced")
            }
            Kept::TooManyUnhealthy { pool, unhealthy, total, most } => {
                too_many_unhealthy(f, pool, [*unhealthy, *total, *most])
            }
            Kept::Host(stay) => stay.fmt(f),
            Kept::Later { method, node } => write!(f, "the node can be disrupted after node {node} ({method})"),
        }
    }
}

fn below_threshold(f: &mut fmt::Formatter<'_>, pool: &str, [saved, disrupted, score]: [f64; 3]) -> fmt::Result {
    write!(
        f,
        "would save {} of the cost of NodePool {pool} for {} of its disruption cost: score {score:.2}, and \
         consolidationPolicy Balanced needs 0.50",
        Percent(saved),
        Percent(disrupted)
    )
}

fn too_many_unhealthy(f: &mut fmt::Formatter<'_>, pool: &str, [unhealthy, total, most]: [u32; 3]) -> fmt::Result {
    write!(
        f,
        "{unhealthy} of {total} nodes of NodePool {pool} are unhealthy, and nodes are repaired only up to {most} (20%); look for a \
         common cause such as the network or a Proxmox host"
    )
}

fn held(f: &mut fmt::Formatter<'_>, pod: &PodKey, hold: &PodHold) -> fmt::Result {
    let budgets = hold.budgets.join(" and ");
    match hold.kind {
        HoldKind::Now => write!(
            f,
            "PodDisruptionBudget {budgets} does not allow to evict pod {pod} now; wait until more pods are ready, or change the \
             budget"
        ),
        HoldKind::Always => {
            write!(f, "PodDisruptionBudget {budgets} never allows to evict pod {pod}; change the budget")
        }
        HoldKind::Several => write!(
            f,
            "PodDisruptionBudgets {budgets} choose pod {pod}, and Kubernetes evicts no pod that several choose; leave one"
        ),
    }
}

impl fmt::Display for BudgetLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BudgetLimit { pool, allowed, disrupting, total, .. } = self;
        if let Some(fault) = &self.invalid {
            return write!(f, "NodePool {pool} allows no disruption: {fault}; correct the budget");
        }
        match &self.tightest {
            Some(budget) => write!(
                f,
                "spec.disruption.budgets[{}] of NodePool {pool} ({}) allows {allowed} of {total} nodes",
                budget.index, budget.nodes
            )?,
            None => write!(f, "the budgets of NodePool {pool} allow {allowed} of {total} nodes")?,
        }
        let are = if *disrupting == 1 { "is" } else { "are" };
        write!(f, " to be disrupted at once for {:?}, and {disrupting} {are} disrupted or not ready", self.reason)?;
        match self.opens_at {
            Some(time) => write!(f, "; the next window opens at {time}"),
            None => Ok(()),
        }
    }
}

/// A share, such as `0.4 %`.
struct Percent(f64);

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        // What is not nothing is not written as nothing.
        let places = if percent == 0.0 || percent >= 10.0 { 0 } else { 1 };
        if percent > 0.0 && percent < 0.05 { f.write_str("less than 0.1 %") } else { write!(f, "{percent:.places$} %") }
    }
}
