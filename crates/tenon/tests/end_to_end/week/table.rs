//! A day as a row: nodes, moves, evictions and cost.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::optimum::Optimum;
use super::requests::Asked;
use super::scene::DAY_S;
use super::watch::Counts;

pub(super) const HEADER: &str = "day  nodes avg/max  best  launched  moved (by method)  deleted  back  moves/node/day  evicted/refused  \
                                 cost  plan  bound  cost/plan  wait p99/max s  at once  warnings  real s";

const TICK_H: f64 = 1.0 / 60.0;

/// What came of a day.
#[derive(Debug, Default)]
pub(super) struct Day {
    pub(super) counts: Counts,
    pub(super) asked: Asked,
    pub(super) took: Duration,
    ticks: usize,
    node_ticks: usize,
    nodes_most: usize,
    cost: f64,
    planned: f64,
    bound: f64,
    best_node_ticks: usize,
    /// Warnings and errors of the log, by what they say.
    warnings: BTreeMap<String, usize>,
}

#[expect(clippy::cast_precision_loss, reason = "counts of a report")]
fn ratio(of: usize, by: usize) -> f64 {
    of as f64 / by.max(1) as f64
}

impl Day {
    pub(super) fn look(&mut self, nodes: usize, price: f64) {
        self.ticks += 1;
        self.node_ticks += nodes;
        self.nodes_most = self.nodes_most.max(nodes);
        self.cost += price * TICK_H;
    }

    /// What the pods cost at best for so many ticks.
    #[expect(clippy::cast_precision_loss, reason = "ticks of a report")]
    pub(super) fn compare(&mut self, best: &Optimum, ticks: u64) {
        let hours = ticks as f64 * TICK_H;
        self.planned += best.planned * hours;
        self.bound += best.bound * hours;
        self.best_node_ticks += best.nodes * usize::try_from(ticks).unwrap_or_default();
    }

    pub(super) fn read_log(&mut self, log: &str) {
        let lines = log.lines().filter(|line| line.contains("\"WARN\"") || line.contains("\"ERROR\""));
        for line in lines.filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let error = line["error"].as_str().unwrap_or_default();
            // Names and numbers would make every line another one.
            let words = error.split(' ').filter(|word| !word.contains(|letter: char| letter.is_ascii_digit()));
            let told: Vec<&str> = words.take(14).collect();
            let message = line["message"].as_str().unwrap_or_default();
            *self.warnings.entry(format!("{message} | {}", told.join(" "))).or_default() += 1;
        }
    }

    fn moved(&self) -> usize {
        self.counts.moved.values().sum()
    }

    /// How many nodes were moved by commands for each node there was, a day.
    pub(super) fn moves_per_node(&self) -> f64 {
        let days = ratio(self.ticks * 60, usize::try_from(DAY_S).unwrap_or(1));
        ratio(self.moved(), 1) / ratio(self.node_ticks, self.ticks).max(1.0) / days.max(1.0)
    }

    pub(super) fn row(&self, name: &str) -> String {
        let by_method: Vec<String> =
            self.counts.moved.iter().map(|(method, count)| format!("{method} {count}")).collect();
        let mut waits: Vec<u64> = self.counts.waits.iter().map(Duration::as_secs).collect();
        waits.sort_unstable();
        let p99 = waits.get(waits.len() * 99 / 100).copied().unwrap_or_default();
        let warnings: usize = self.warnings.values().sum();
        format!(
            "{name:>3}  {:>5.1}/{:<3}  {:>5.1}  {:>4}  {} ({})  {}  {}  {:.2}  {}/{}  {:.2}  {:.2}  {:.2}  {:.3}  {p99}/{}  {}/{}  {warnings}  {:.1}",
            ratio(self.node_ticks, self.ticks),
            self.nodes_most,
            ratio(self.best_node_ticks, self.ticks),
            self.counts.launched,
            self.moved(),
            by_method.join(", "),
            self.counts.deleted,
            self.counts.taken_back,
            self.moves_per_node(),
            self.asked.evicted,
            self.asked.refused,
            self.cost,
            self.planned,
            self.bound,
            self.cost / self.planned,
            waits.last().copied().unwrap_or_default(),
            self.counts.most_at_once.0,
            self.counts.most_at_once.1,
            self.took.as_secs_f64(),
        )
    }

    /// What went wrong, by what was said of it.
    pub(super) fn notes(&self) -> String {
        let lines = |counts: &BTreeMap<String, usize>| -> String {
            counts.iter().map(|(what, count)| format!("  {count:>5} {what}\n")).collect()
        };
        let directly = self.asked.pods.iter().filter(|(_, is_evicted)| !is_evicted).count();
        format!(
            "requests of Kubernetes: {}; pods deleted directly: {directly}\nrefused:\n{}warnings:\n{}",
            self.asked.requests,
            lines(&self.asked.failures),
            lines(&self.warnings)
        )
    }
}

/// All days as one.
pub(super) fn sum(days: &[Day]) -> Day {
    let mut all = Day::default();
    for day in days {
        all.ticks += day.ticks;
        all.node_ticks += day.node_ticks;
        all.nodes_most = all.nodes_most.max(day.nodes_most);
        all.cost += day.cost;
        all.planned += day.planned;
        all.bound += day.bound;
        all.best_node_ticks += day.best_node_ticks;
        all.took += day.took;
        add(&mut all.warnings, &day.warnings);
        add(&mut all.asked.failures, &day.asked.failures);
        add(&mut all.counts.moved, &day.counts.moved);
        all.asked.evicted += day.asked.evicted;
        all.asked.refused += day.asked.refused;
        all.asked.requests += day.asked.requests;
        all.asked.pods.extend(day.asked.pods.iter().cloned());
        all.counts.launched += day.counts.launched;
        all.counts.ended += day.counts.ended;
        all.counts.deleted += day.counts.deleted;
        all.counts.taken_back += day.counts.taken_back;
        all.counts.most_at_once = all.counts.most_at_once.max(day.counts.most_at_once);
        all.counts.waits.extend(&day.counts.waits);
    }
    all
}

fn add(all: &mut BTreeMap<String, usize>, more: &BTreeMap<String, usize>) {
    for (what, count) in more {
        *all.entry(what.clone()).or_default() += count;
    }
}
