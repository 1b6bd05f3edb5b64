//! What the rounds of a program come to, ours or Karpenter's.

use std::path::Path;

use anyhow::Context as _;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The part of a report that is compared.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Report {
    pub(super) disruption: Played,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Played {
    stats: Stats,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stats {
    cost: f64,
    cost_after: f64,
    moved_pods: usize,
    commands: usize,
    settled: bool,
    #[serde(default)]
    stuck: bool,
}

/// What one run comes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Run {
    /// What all nodes cost before the first round.
    pub(super) before: f64,
    /// What they cost after the last.
    pub(super) cost: f64,
    /// How many pods were moved.
    pub(super) moves: usize,
    /// How many commands there were.
    pub(super) commands: usize,
    /// Whether nothing was left to do.
    pub(super) is_settled: bool,
    /// Whether it decided to create a node that cannot be launched, and so on for ever.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_stuck: bool,
}

impl Report {
    pub(super) fn run(&self) -> Run {
        let stats = &self.disruption.stats;
        Run {
            before: stats.cost,
            cost: stats.cost_after,
            moves: stats.moved_pods,
            commands: stats.commands,
            is_settled: stats.settled,
            is_stuck: stats.stuck,
        }
    }
}

/// What Karpenter says of our commands.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Checked {
    /// What is against them.
    pub(super) faults: Vec<String>,
    /// Those that it would not come to, and that are cheaper, at a moment when it would do nothing.
    #[serde(default)]
    pub(super) own: Vec<String>,
    /// The same at a moment when it would still do something.
    #[serde(default)]
    pub(super) early: Vec<String>,
    /// What it would still do when we are done.
    pub(super) left: Vec<String>,
    /// What our nodes cost by its own count when we are done.
    pub(super) cost: f64,
}

/// Reads the array that a program wrote.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("cannot read {}", path.display()))
}
