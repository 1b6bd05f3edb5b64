//! How many nodes of a pool may be gone at once, now and for one reason?
//!
//! What cannot be read lets nobody go: a typing error must not open the door it was meant to close.

use jiff::Timestamp;
use tenon_api::{Budget, DisruptionReason};
use tenon_model::{DurationError, NodeShare, NodeShareError, Schedule, ScheduleError, Seconds, Timespan};

/// As many as there are; the reference's number, which its metrics show.
pub const UNBOUNDED: u32 = NodeShare::UNBOUNDED;

/// What the budgets of a pool allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// So many nodes may be gone at once; [`UNBOUNDED`] where no budget counts.
    pub count: u32,
    /// What is wrong with the budgets, each as a sentence that names one. With any of them, nothing is allowed.
    pub faults: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("nodes cannot be read: {0}")]
    Nodes(NodeShareError),
    #[error("schedule and duration go together; give both or neither")]
    Half,
    #[error("schedule {line:?} cannot be read: {source}")]
    Schedule { line: String, source: ScheduleError },
    #[error("duration cannot be read: {0}")]
    Duration(DurationError),
}

/// How many of a pool's nodes may be gone at once for a reason.
pub fn allowed(budgets: &[Budget], reason: DisruptionReason, nodes: usize, now: Timestamp) -> Allowed {
    let mut count = UNBOUNDED;
    let mut faults = Vec::new();
    for (index, budget) in budgets.iter().enumerate() {
        match limit(budget, nodes, now) {
            Ok(limit) if applies(budget, reason) => count = count.min(limit),
            Ok(_) => {}
            Err(fault) => faults.push(format!("spec.disruption.budgets[{index}]: {fault}")),
        }
    }
    if !faults.is_empty() {
        count = 0;
    }
    Allowed { count, faults }
}

fn applies(budget: &Budget, reason: DisruptionReason) -> bool {
    budget.reasons.as_ref().is_none_or(|reasons| reasons.contains(&reason))
}

/// What one budget allows, whatever its reasons are. Its number is read even while it does not count, so that a fault
/// shows at once and not in the night its window opens.
fn limit(budget: &Budget, nodes: usize, now: Timestamp) -> Result<u32, Fault> {
    let share: NodeShare = budget.nodes.parse().map_err(Fault::Nodes)?;
    Ok(if is_active(budget, now)? { share.of(nodes) } else { UNBOUNDED })
}

/// Whether a budget counts: it came up less than its duration ago.
fn is_active(budget: &Budget, now: Timestamp) -> Result<bool, Fault> {
    let (line, duration) = match (&budget.schedule, &budget.duration) {
        (None, None) => return Ok(true),
        (Some(line), Some(duration)) => (line, duration),
        _ => return Err(Fault::Half),
    };
    let duration: Timespan = duration.parse().map_err(Fault::Duration)?;
    let schedule: Schedule = line.parse().map_err(|source| Fault::Schedule { line: line.clone(), source })?;
    // Lines come up at whole minutes and durations are whole seconds, so what is left of a second changes nothing.
    let now = now.as_nanosecond().div_euclid(1_000_000_000);
    Ok(schedule.is_active(Seconds(i64::try_from(now).unwrap_or(i64::MAX)), duration.as_seconds()))
}
