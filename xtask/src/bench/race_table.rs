//! The table of a race: both sides of each case next to each other, and how time grows with pods.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Context as _;

use crate::diff::outcome::Outcome;

/// The two cases between which growth is told: from a batch that is common to one that is rare.
const GROWTH: [&str; 2] = ["mix-1000", "mix-20000"];

/// What one program did with one case; of several runs the middle one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Side {
    solve_ms: f64,
    build_ms: f64,
    nodes: usize,
    cost: f64,
    peak_mib: f64,
}

impl Side {
    pub(super) fn of(outcomes: &[Outcome], peak_mib: f64) -> anyhow::Result<Side> {
        let millis =
            |of: fn(&Outcome) -> Duration| middle(outcomes.iter().map(|one| of(one).as_secs_f64() * 1e3).collect());
        let first = outcomes.first().context("there is no plan")?;
        Ok(Side {
            solve_ms: millis(Outcome::solving),
            build_ms: millis(Outcome::building),
            nodes: first.nodes(),
            cost: first.cost(),
            peak_mib,
        })
    }
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// What Karpenter did with one number of workers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Theirs {
    Solved(Side),
    TookLonger(Duration),
}

impl Theirs {
    fn side(&self) -> Option<&Side> {
        match self {
            Theirs::Solved(side) => Some(side),
            Theirs::TookLonger(_) => None,
        }
    }

    fn time(&self) -> String {
        match self {
            Theirs::Solved(side) => number(side.solve_ms),
            Theirs::TookLonger(limit) => format!("> {} s", limit.as_secs()),
        }
    }

    /// How long it took at least.
    fn least_ms(&self) -> f64 {
        match self {
            Theirs::Solved(side) => side.solve_ms,
            Theirs::TookLonger(limit) => limit.as_secs_f64() * 1e3,
        }
    }
}

/// One case.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    name: String,
    pods: usize,
    ours: Side,
    /// With one worker, and with five; empty where only Tenon ran.
    pub(super) theirs: Vec<Theirs>,
    pub(super) faults: Vec<String>,
}

const HEAD: [&str; 10] = [
    "Case",
    "Pods",
    "Karpenter, 1 worker (ms)",
    "5 workers (ms)",
    "Tenon (ms)",
    "Ratio",
    "Nodes",
    "Cost",
    "Peak memory (MiB)",
    "Preparing (ms)",
];

impl Row {
    pub(super) fn new(name: &str, pods: usize, ours: Side) -> Row {
        Row { name: name.to_owned(), pods, ours, theirs: Vec::new(), faults: Vec::new() }
    }

    /// The faster of Karpenter's runs.
    fn fastest(&self) -> Option<&Theirs> {
        self.theirs.iter().min_by(|a, b| a.least_ms().total_cmp(&b.least_ms()))
    }

    fn ratio(&self) -> String {
        let Some(fastest) = self.fastest() else { return "-".to_owned() };
        let at_least = if fastest.side().is_none() { "> " } else { "" };
        format!("{at_least}{} x", number(fastest.least_ms() / self.ours.solve_ms.max(1e-3)))
    }

    /// The row in one line, for whoever waits.
    pub(super) fn summary(&self) -> String {
        format!("| {} |", self.cells().join(" | "))
    }

    fn cells(&self) -> [String; 10] {
        let time = |index: usize| self.theirs.get(index).map_or("-".to_owned(), Theirs::time);
        let solved: Vec<&Side> = self.theirs.iter().filter_map(Theirs::side).collect();
        let pair = |of: &dyn Fn(&Side) -> String| {
            let theirs = solved.first().map_or("-".to_owned(), |side| of(side));
            format!("{theirs} / {}", of(&self.ours))
        };
        [
            self.name.clone(),
            self.pods.to_string(),
            time(0),
            time(1),
            number(self.ours.solve_ms),
            self.ratio(),
            pair(&|side| side.nodes.to_string()),
            pair(&|side| format!("{:.2}", side.cost)),
            pair(&|side| format!("{:.0}", side.peak_mib)),
            pair(&|side| number(side.build_ms)),
        ]
    }
}

/// Three digits are enough for a time, and more than it deserves.
fn number(value: f64) -> String {
    match value {
        _ if value < 10.0 => format!("{value:.2}"),
        _ if value < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// The table, and how time grows. Where there are two figures, Karpenter's is the first.
pub(super) fn table(rows: &[Row]) -> String {
    let mut lines = vec![HEAD.map(str::to_owned)];
    lines.extend(rows.iter().map(Row::cells));
    let width = |column: usize| lines.iter().map(|cells| cells[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let mut text = String::new();
    for (index, cells) in lines.iter().enumerate() {
        let padded: Vec<String> = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        let _ = writeln!(text, "| {} |", padded.join(" | "));
        if index == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
            let _ = writeln!(text, "|{}|", rule.join("|"));
        }
    }
    for (program, exponent) in growth(rows) {
        let _ = writeln!(
            text,
            "\nFrom {} to {}, the time of {program} grows with pods^{exponent:.2}.",
            GROWTH[0], GROWTH[1]
        );
    }
    text
}

/// Exponents of growth between two cases, where both were solved.
fn growth(rows: &[Row]) -> Vec<(&'static str, f64)> {
    let find = |name: &str| rows.iter().find(|row| row.name == name);
    let (Some(few), Some(many)) = (find(GROWTH[0]), find(GROWTH[1])) else { return Vec::new() };
    let pods = many.pods as f64 / few.pods as f64;
    let exponent = |few_ms: f64, many_ms: f64| (many_ms / few_ms.max(1e-3)).ln() / pods.ln();
    let solved = |row: &Row| row.fastest().and_then(|theirs| theirs.side().map(|side| side.solve_ms));
    let theirs = solved(few).zip(solved(many)).map(|(few, many)| ("Karpenter", exponent(few, many)));
    let ours = ("Tenon", exponent(few.ours.solve_ms, many.ours.solve_ms));
    theirs.into_iter().chain([ours]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(solve_ms: f64) -> Side {
        Side { solve_ms, build_ms: 1.0, nodes: 2, cost: 3.5, peak_mib: 40.0 }
    }

    fn row(name: &str, pods: usize, ours: f64, theirs: Vec<Theirs>) -> Row {
        Row { theirs, ..Row::new(name, pods, side(ours)) }
    }

    #[test]
    fn the_faster_of_karpenters_runs_counts() {
        let both = vec![Theirs::Solved(side(300.0)), Theirs::Solved(side(200.0))];
        assert_eq!(row("a", 1, 2.0, both).ratio(), "100 x");
        let one_in_time = vec![Theirs::Solved(side(300.0)), Theirs::TookLonger(Duration::from_secs(1))];
        assert_eq!(row("a", 1, 2.0, one_in_time).ratio(), "150 x");
        let none = vec![Theirs::TookLonger(Duration::from_secs(300)), Theirs::TookLonger(Duration::from_secs(300))];
        assert_eq!(row("a", 1, 2.0, none).ratio(), "> 150000 x");
        assert_eq!(row("a", 1, 2.0, Vec::new()).ratio(), "-");
    }

    #[test]
    fn a_row_has_both_sides_and_growth_is_an_exponent() {
        let rows = [
            row("mix-1000", 1_000, 1.0, vec![Theirs::Solved(side(100.0))]),
            row("mix-20000", 20_000, 20.0, vec![Theirs::TookLonger(Duration::from_secs(300))]),
        ];
        let text = table(&rows);
        assert!(text.contains("| 100 x "), "{text}");
        assert!(text.contains("2 / 2"), "{text}");
        assert!(text.contains("- / 3.50"), "{text}");
        assert!(text.contains("Tenon grows with pods^1.00") && !text.contains("Karpenter grows"), "{text}");
    }
}
