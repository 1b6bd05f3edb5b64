//! One disruption budget of a NodePool: how many nodes may be disrupted at once, when, and for which reasons.

use crate::duration::{DurationError, Timespan};
use crate::node_share::{NodeShare, NodeShareError};
use crate::schedule::{Schedule, ScheduleError};
use crate::timestamp::Timestamp;

/// Why a node is disrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DisruptionReason {
    /// Its pods fit elsewhere.
    Underutilized,
    /// It has no pods of its own.
    Empty,
    /// It is not what its NodePool says any more.
    Drifted,
    /// It is broken.
    Unhealthy,
}

/// A disruption budget that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisruptionBudget {
    /// How many nodes may be disrupted at once.
    pub nodes: NodeShare,
    /// When it counts; always if there is no window.
    pub window: Option<BudgetWindow>,
    /// The reasons it counts for; all if there is no list, none if the list is empty.
    pub reasons: Option<Vec<DisruptionReason>>,
}

/// When a budget counts: for so long after each time its schedule hits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetWindow {
    /// When it begins.
    pub schedule: Schedule,
    /// How long it lasts.
    pub duration: Timespan,
}

/// The texts of a budget, as its NodePool has them.
#[derive(Debug, Clone, Copy)]
pub struct BudgetText<'a> {
    /// `5` or `10%`.
    pub nodes: &'a str,
    /// A cron line.
    pub schedule: Option<&'a str>,
    /// Hours and minutes.
    pub duration: Option<&'a str>,
}

/// Why a budget cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BudgetFault {
    /// Its number.
    #[error("nodes: {0}")]
    Nodes(NodeShareError),
    /// One of the two alone.
    #[error("schedule and duration must be set together; set both or neither")]
    HalfWindow,
    /// Its cron line.
    #[error("schedule \"{line}\": {fault}")]
    Schedule {
        /// The line.
        line: String,
        /// What is wrong with it.
        fault: ScheduleError,
    },
    /// Its length.
    #[error("duration: {0}")]
    Duration(DurationError),
}

impl DisruptionBudget {
    /// Reads the texts of a budget. Its number is read even where its window is closed, so that a fault shows at once and
    /// not in the night its window opens.
    pub fn read(text: BudgetText<'_>, reasons: Option<Vec<DisruptionReason>>) -> Result<DisruptionBudget, BudgetFault> {
        let nodes = text.nodes.parse().map_err(BudgetFault::Nodes)?;
        let window = match (text.schedule, text.duration) {
            (None, None) => None,
            (Some(line), Some(duration)) => Some(BudgetWindow {
                duration: duration.parse().map_err(BudgetFault::Duration)?,
                schedule: line.parse().map_err(|fault| BudgetFault::Schedule { line: line.to_owned(), fault })?,
            }),
            _ => return Err(BudgetFault::HalfWindow),
        };
        Ok(DisruptionBudget { nodes, window, reasons })
    }

    /// Whether it counts for a reason.
    pub fn applies_to(&self, reason: DisruptionReason) -> bool {
        self.reasons.as_ref().is_none_or(|reasons| reasons.contains(&reason))
    }

    /// Whether it counts now. Schedules hit at whole minutes and durations are whole seconds, so what is left of a second
    /// changes nothing.
    pub fn is_active(&self, now: Timestamp) -> bool {
        let is_open = |window: &BudgetWindow| window.schedule.is_active(now.seconds(), window.duration.as_seconds());
        self.window.as_ref().is_none_or(is_open)
    }
}
