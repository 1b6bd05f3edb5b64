//! `cargo xtask bench karpenter`: the real Karpenter and Tenon on the same files, in the same run.
//!
//! Only solving is timed, by both programs themselves. A slow run is not a failure; a plan that needs more nodes or money than
//! Karpenter's is.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};

use super::follow::follow;
use super::inputs::{Case, Topology, cases};
use super::race_table::{Row, Side, Theirs, table};
use crate::artifacts::build_release_tenon;
use crate::diff::judge::judge;
use crate::diff::outcome::{Outcome, Summary};
use crate::diff::programs::{Karpenter, Tenon};
use crate::diff::scenario::Scenario;
use crate::tree::workspace_root;

/// Karpenter judges nodes with one worker for each core it requests. Its default is one; its own benchmark has five.
const WORKERS: [u64; 2] = [1, 5];

/// Karpenter's side reads files through an API in memory, which takes longer than solving. This is no part of the race.
const TO_LOAD: Duration = Duration::from_secs(600);

/// Cases with more pods than this run once on Karpenter's side: they take long enough for one run to say something.
const REPEATED_UP_TO: usize = 1_000;

/// How often the others run, and Tenon always. The middle run counts.
const RUNS: u32 = 5;

/// A fault may name thousands of pods.
const FAULT_CHARACTERS: usize = 300;

#[derive(Debug, Args)]
pub(crate) struct Race {
    /// Run only these cases: `mix-1000`, `small-3`; or all whose names begin so: `mix,small`.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<String>,
    /// How many seconds Karpenter may solve one case. A case that takes longer is printed as `> SECONDS s`.
    #[arg(long, value_name = "SECONDS", default_value = "300")]
    limit: u64,
    /// Give pods the topology terms of Karpenter's own benchmark.
    #[arg(long)]
    topology: bool,
    /// Run only Tenon.
    #[arg(long)]
    tenon_only: bool,
    /// The tenon binary to measure, instead of a release build of this checkout.
    #[arg(long, value_name = "FILE")]
    tenon: Option<PathBuf>,
}

/// The two programs.
struct Racers {
    karpenter: Option<Karpenter>,
    tenon: Tenon,
    limit: Duration,
}

impl Race {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let topology = if self.topology { Topology::With } else { Topology::Without };
        let is_meant = |case: &Case| self.only.is_empty() || self.only.iter().any(|name| case.is(name));
        let chosen: Vec<Case> = cases(topology).into_iter().filter(is_meant).collect();
        if chosen.is_empty() {
            let names: Vec<String> = cases(topology).into_iter().map(|case| case.name).collect();
            bail!("no case has this name; the cases are {}", names.join(", "));
        }
        let karpenter = if self.tenon_only { None } else { Some(Karpenter::obtain()?) };
        let tenon = self.tenon.map_or_else(|| build_release_tenon(&workspace_root()), Ok)?;
        let racers = Racers { karpenter, tenon: Tenon::obtain(Some(tenon))?, limit: Duration::from_secs(self.limit) };
        let mut rows = Vec::new();
        for case in chosen {
            eprintln!("== {}", case.name);
            let row = racers.race(&case).with_context(|| format!("case {}", case.name))?;
            // A later case may take long or fail; what is known is shown at once.
            eprintln!("{}", row.summary());
            row.faults.iter().for_each(|fault| eprintln!("{fault}"));
            rows.push(row);
        }
        let terms = if self.topology { "with" } else { "without" };
        println!("Karpenter's own mixes are {terms} their topology terms.\n\n{}", table(&rows));
        let wrong: Vec<&str> = rows.iter().flat_map(|row| &row.faults).map(String::as_str).collect();
        if !wrong.is_empty() {
            bail!("some plans are worse than those of Karpenter: {}", wrong.join("; "));
        }
        Ok(())
    }
}

impl Racers {
    fn race(&self, case: &Case) -> anyhow::Result<Row> {
        let folder = tempfile::tempdir().context("cannot create a folder for the scenario")?;
        let scenario = (case.scenario)();
        scenario.write(folder.path())?;
        let runs = if case.pods <= REPEATED_UP_TO { RUNS } else { 1 };
        let ours = self.ours(folder.path())?;
        let mut row = Row::new(&case.name, case.pods, Side::of(&ours.outcomes, ours.peak_mib)?);
        if let Some(karpenter) = &self.karpenter {
            let mut outcomes = Vec::new();
            for workers in WORKERS {
                let theirs = self.theirs(karpenter, &with_workers(&scenario, workers), runs)?;
                outcomes.extend(theirs.iter().flat_map(|runs| runs.outcomes.clone()));
                row.theirs.push(match theirs {
                    Some(runs) => Theirs::Solved(Side::of(&runs.outcomes, runs.peak_mib)?),
                    None => Theirs::TookLonger(self.limit),
                });
            }
            row.faults = faults(&case.name, &ours.outcomes, &outcomes)?;
        }
        Ok(row)
    }

    fn ours(&self, folder: &Path) -> anyhow::Result<Runs> {
        let mut all = Runs::default();
        for _ in 0..RUNS {
            let ended = follow(&mut self.tenon.command(folder), TO_LOAD)?;
            let ended = ended.context("`tenon plan` did not end and was killed")?;
            all.outcomes.push(serde_json::from_slice(&ended.output).context("cannot read the output of `tenon plan`")?);
            all.peak_mib = all.peak_mib.max(ended.peak_mib);
        }
        Ok(all)
    }

    /// Karpenter's plans, or nothing if it did not solve the case in time. It reads the files once for all runs.
    fn theirs(&self, karpenter: &Karpenter, scenario: &Scenario, runs: u32) -> anyhow::Result<Option<Runs>> {
        let folder = tempfile::tempdir().context("cannot create a folder for the scenario")?;
        scenario.write(folder.path())?;
        let limit = format!("{}s", self.limit.as_secs());
        let mut command: Command = karpenter.command(folder.path());
        command.args(["--runs", &runs.to_string(), "--solve-for", &limit]);
        // One run that takes all its time is enough to know.
        let Some(ended) = follow(&mut command, TO_LOAD + self.limit)? else { return Ok(None) };
        let outcomes: Vec<Outcome> =
            serde_json::from_slice(&ended.output).context("cannot read the output of Karpenter's program")?;
        let is_cut_short = outcomes.iter().any(|outcome| outcome.solving() >= self.limit);
        Ok((!is_cut_short).then_some(Runs { outcomes, peak_mib: ended.peak_mib }))
    }
}

/// What one program did with one case.
#[derive(Default)]
struct Runs {
    outcomes: Vec<Outcome>,
    peak_mib: f64,
}

/// The same scenario, solved by so many workers.
fn with_workers(scenario: &Scenario, workers: u64) -> Scenario {
    let mut options = scenario.options.clone().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    options["cpuRequests"] = json!((workers * 1_000).to_string());
    Scenario { options: Some(options), ..scenario.clone() }
}

/// What is wrong with our plans, held to all plans of Karpenter.
fn faults(case: &str, ours: &[Outcome], theirs: &[Outcome]) -> anyhow::Result<Vec<String>> {
    let Some(ours) = ours.first().filter(|_| !theirs.is_empty()) else { return Ok(Vec::new()) };
    let shown = |fault: String| format!("{case}: {}", fault.chars().take(FAULT_CHARACTERS).collect::<String>());
    Ok(judge(ours, &Summary::of(theirs)?).into_iter().map(shown).collect())
}

#[cfg(test)]
mod tests {
    use std::slice;

    use super::*;

    fn outcome(pods: &[&str], cost: f64) -> Outcome {
        let claims = json!([{"pods": pods}]);
        serde_json::from_value(json!({"newNodeClaims": claims, "existingNodes": [], "stats": {"cost": cost}})).unwrap()
    }

    #[test]
    fn a_dearer_plan_is_a_fault_and_a_case_without_reference_is_not() {
        let (cheap, dear) = (outcome(&["a"], 1.0), outcome(&["a"], 2.0));
        assert_eq!(faults("x", slice::from_ref(&dear), slice::from_ref(&cheap)).unwrap().len(), 1);
        assert!(faults("x", &[cheap], slice::from_ref(&dear)).unwrap().is_empty());
        assert!(faults("x", &[dear], &[]).unwrap().is_empty());
    }

    #[test]
    fn workers_are_added_to_the_options_of_a_case() {
        let options = Some(json!({"preferencePolicy": "Ignore"}));
        let scenario = Scenario { objects: json!({}), types: json!([]), options };
        let options = with_workers(&scenario, 5).options.unwrap();
        assert_eq!(options, json!({"preferencePolicy": "Ignore", "cpuRequests": "5000"}));
    }
}
