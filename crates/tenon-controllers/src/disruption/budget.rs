//! How many nodes of a pool may be gone at once, now and for one reason?
//!
//! What cannot be read lets nobody go: a typing error must not open the door it was meant to close.

use jiff::Timestamp;
use tenon_api::{Budget, DisruptionReason};

use super::duration::{BadDuration, parse_duration};
use super::schedule::{BadSchedule, last_hit};

/// As many as there are; the reference's number, which its metrics show.
pub const UNBOUNDED: u32 = 2_147_483_647;

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
    #[error("nodes is {0:?}; write a number such as 5 or a share such as 10%")]
    Nodes(String),
    #[error("schedule and duration go together; give both or neither")]
    Half,
    #[error("schedule {line:?} cannot be read: {source}")]
    Schedule { line: String, source: BadSchedule },
    #[error("duration cannot be read: {0}")]
    Duration(BadDuration),
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
    let limit = scaled(&budget.nodes, nodes).ok_or_else(|| Fault::Nodes(budget.nodes.clone()))?;
    Ok(if is_active(budget, now)? { limit } else { UNBOUNDED })
}

/// Whether a budget counts: it came up less than its duration ago.
fn is_active(budget: &Budget, now: Timestamp) -> Result<bool, Fault> {
    let (line, duration) = match (&budget.schedule, &budget.duration) {
        (None, None) => return Ok(true),
        (Some(line), Some(duration)) => (line, duration),
        _ => return Err(Fault::Half),
    };
    let duration = parse_duration(duration).map_err(Fault::Duration)?;
    let hit = last_hit(line, now).map_err(|source| Fault::Schedule { line: line.clone(), source })?;
    Ok(now.duration_since(hit) < duration)
}

/// `5`, or `10%` of the nodes, rounded up.
fn scaled(text: &str, nodes: usize) -> Option<u32> {
    let digits = text.strip_suffix('%').unwrap_or(text);
    let number: u32 = digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    if digits.len() == text.len() {
        return Some(number).filter(|number| *number <= UNBOUNDED);
    }
    let nodes = u64::try_from(nodes).unwrap_or(u64::MAX);
    let share = u64::from(number).saturating_mul(nodes).div_ceil(100);
    (number <= 100).then(|| u32::try_from(share).unwrap_or(UNBOUNDED).min(UNBOUNDED))
}
