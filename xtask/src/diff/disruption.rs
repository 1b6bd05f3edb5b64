//! `cargo xtask diff disruption`: which nodes we would disrupt, against Karpenter's own methods on the same files.
//!
//! Read in this order: `scene` (what a seed stands for), `report` (what rounds come to), `judge` (what is right), `rules` (which of
//! our own rules makes a difference), `recorded` (what Karpenter did once, for a machine without Go).

mod judge;
mod recorded;
mod report;
mod rules;
pub(crate) mod scene;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail};
use clap::Args;

use self::judge::{Judged, Totals, judge};
use self::recorded::Recording;
use self::report::{Checked, Report, Run};
use self::rules::Players;
use super::programs::{Karpenter, Tenon};
use super::seeds::Seeds;
use crate::run::run;
use crate::tree::workspace_root;

/// Rounds that are played at most. No cluster of the generator needs a quarter of it.
const ROUNDS: &str = "80";

/// A comparison of rounds.
#[derive(Debug, Args)]
pub(crate) struct Disruption {
    /// The seeds: `7`, `1-300`, `1-40,77`.
    #[arg(long, default_value = "1-300")]
    seeds: Seeds,
    /// How often Karpenter plays each scenario: it breaks ties at random.
    #[arg(long, default_value_t = 5)]
    runs: u32,
    /// The tenon binary to test, instead of one built from this checkout.
    #[arg(long, value_name = "FILE")]
    tenon: Option<PathBuf>,
    /// Keep the scenarios and what both programs did in this folder.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Compare with recorded runs of Karpenter for forty fixed seeds. Needs no Go.
    #[arg(long, conflicts_with_all = ["seeds", "runs", "keep"])]
    recorded: bool,
    /// Record Karpenter's runs for the fixed seeds.
    #[arg(long, conflicts_with_all = ["seeds", "recorded"])]
    record: bool,
}

impl Default for Disruption {
    fn default() -> Disruption {
        let seeds = Seeds((1..=300).collect());
        Disruption { seeds, runs: 5, tenon: None, keep: None, recorded: false, record: false }
    }
}

impl Disruption {
    /// The comparison that needs no Go.
    pub(crate) fn recorded(tenon: Option<PathBuf>) -> Disruption {
        Disruption { tenon, recorded: true, ..Disruption::default() }
    }

    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.recorded {
            return compare_recorded(self.tenon);
        }
        let seeds = if self.record { recorded::SEEDS.collect() } else { self.seeds.0 };
        let karpenter = Karpenter::obtain()?;
        let tenon = Tenon::obtain(self.tenon)?;
        let scratch = tempfile::tempdir().context("cannot create a folder for scenarios")?;
        let folders = Folders::new(&self.keep.unwrap_or_else(|| scratch.path().to_owned()))?;
        for seed in &seeds {
            scene::generate(*seed).write(&folders.scenarios.join(seed.to_string()))?;
        }
        karpenter.play_all(&folders, self.runs)?;
        let mut failed = Vec::new();
        for seed in &seeds {
            if let Err(error) = tenon.play(&folders.scenarios.join(seed.to_string()), &folders.ours_of(*seed)) {
                failed.push(format!("{seed}: tenon made no plan: {error:#}"));
            }
        }
        failed.iter().for_each(|line| println!("{line}"));
        if !failed.is_empty() {
            bail!("{} scenarios have no plan of ours", failed.len());
        }
        karpenter.check_all(&folders)?;
        if self.record { record(&folders, &seeds) } else { compare((&tenon, &karpenter), &folders, &seeds) }
    }
}

/// Where the files of a comparison are.
pub(super) struct Folders {
    pub(super) scenarios: PathBuf,
    pub(super) reference: PathBuf,
    pub(super) ours: PathBuf,
    pub(super) checked: PathBuf,
}

impl Folders {
    fn new(root: &Path) -> anyhow::Result<Folders> {
        let of = |name: &str| root.join(name);
        let folders = Folders {
            scenarios: of("scenarios"),
            reference: of("reference"),
            ours: of("ours"),
            checked: of("checked"),
        };
        for folder in [&folders.scenarios, &folders.reference, &folders.ours, &folders.checked] {
            fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        Ok(folders)
    }

    fn ours_of(&self, seed: u64) -> PathBuf {
        self.ours.join(format!("{seed}.json"))
    }

    fn our_run(&self, seed: u64) -> anyhow::Result<Run> {
        Ok(report::read::<Report>(&self.ours_of(seed))?.run())
    }

    fn checked_of(&self, seed: u64) -> anyhow::Result<Vec<Checked>> {
        report::read(&self.checked.join(format!("{seed}.json")))
    }

    fn runs_of(&self, seed: u64) -> anyhow::Result<Vec<Run>> {
        let reports: Vec<Report> = report::read(&self.reference.join(format!("{seed}.json")))?;
        Ok(reports.iter().map(Report::run).collect())
    }
}

impl Karpenter {
    /// Plays every scenario so many times.
    fn play_all(&self, folders: &Folders, runs: u32) -> anyhow::Result<()> {
        let mut command = self.program();
        command.args(["--disruption", "--now", scene::NOW, "--rounds", ROUNDS, "--runs", &runs.to_string()]);
        command.arg("--scenarios").arg(&folders.scenarios).arg("--out").arg(&folders.reference);
        run(&mut command, "read what Karpenter says above")
    }

    /// Tries our commands with Karpenter's methods.
    fn check_all(&self, folders: &Folders) -> anyhow::Result<()> {
        let mut command = self.program();
        command.arg("--check").arg(&folders.ours);
        command.arg("--scenarios").arg(&folders.scenarios).arg("--out").arg(&folders.checked);
        run(&mut command, "read what Karpenter says above")
    }
}

impl Tenon {
    /// Plays one scenario and writes what came out.
    fn play(&self, scenario: &Path, to: &Path) -> anyhow::Result<()> {
        let mut command = self.command(scenario);
        command.args(["--disruption", "--now", scene::NOW, "--rounds", ROUNDS]);
        let output = command.stdin(Stdio::null()).output().context("cannot run tenon")?;
        if !output.status.success() {
            bail!("`tenon plan` ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim_end());
        }
        fs::write(to, output.stdout).with_context(|| format!("cannot write {}", to.display()))
    }
}

fn compare((tenon, karpenter): (&Tenon, &Karpenter), folders: &Folders, seeds: &[u64]) -> anyhow::Result<()> {
    let mut totals = Totals::default();
    let scratch = tempfile::tempdir().context("cannot create a folder for scenarios")?;
    for seed in seeds {
        let (ours, theirs, checked) = (folders.our_run(*seed)?, folders.runs_of(*seed)?, folders.checked_of(*seed)?);
        let mut judged = judge(&ours, &theirs, checked.first());
        if judged.is_excusable {
            judged.rule = Players { tenon, karpenter, scratch: scratch.path() }.rule(*seed, &theirs)?;
        }
        say(*seed, &judged);
        totals.add(&judged, &ours, &theirs);
    }
    finish(&totals)
}

fn say(seed: u64, judged: &Judged) {
    judged.own.iter().for_each(|command| println!("{seed}: only ours: {command}"));
    let by = judged.rule.map(|rule| format!("by the rule \"{rule}\", ")).unwrap_or_default();
    judged.faults.iter().for_each(|fault| println!("{seed}: {by}{fault}"));
}

fn finish(totals: &Totals) -> anyhow::Result<()> {
    println!("{totals}");
    if !totals.is_right() {
        bail!("some rounds are worse than those of Karpenter; keep the files with `--keep FOLDER`");
    }
    Ok(())
}

fn record(folders: &Folders, seeds: &[u64]) -> anyhow::Result<()> {
    let recordings = seeds.iter().map(|seed| {
        let ours = folders.our_run(*seed)?;
        let runs = folders.runs_of(*seed)?;
        let faults = judge(&ours, &runs, None).faults;
        Ok(Recording::new(*seed, runs, faults.into_iter().next()))
    });
    recorded::write(&workspace_root(), &recordings.collect::<anyhow::Result<Vec<_>>>()?)
}

/// Our rounds against the recorded ones. A recorded exception has to stay exactly what it is, or to go.
fn compare_recorded(tenon: Option<PathBuf>) -> anyhow::Result<()> {
    let tenon = Tenon::obtain(tenon)?;
    let scratch = tempfile::tempdir().context("cannot create a folder for scenarios")?;
    let mut totals = Totals::default();
    for recording in recorded::read(&workspace_root())? {
        let (folder, to) = (scratch.path().join(recording.seed.to_string()), scratch.path().join("ours.json"));
        recording.scenario()?.write(&folder)?;
        tenon.play(&folder, &to)?;
        let ours = report::read::<Report>(&to)?.run();
        let mut judged = judge(&ours, &recording.runs, None);
        judged.faults.retain(|fault| recording.exception.as_ref() != Some(fault));
        say(recording.seed, &judged);
        // Of an exception the sums say nothing.
        if recording.exception.is_some() && judged.faults.is_empty() {
            continue;
        }
        totals.add(&judged, &ours, &recording.runs);
    }
    finish(&totals)
}
