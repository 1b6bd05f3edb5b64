//! `cargo xtask diff`: our plans against those of the real Karpenter, on the same files.
//!
//! Read in this order: `scenario` (what a seed stands for), `programs` (who plans), `outcome`, `judge` and `kinds` (what is
//! compared), `sound` (what a plan may not make up), `void` (what is not compared), `recorded` (what Karpenter said once, for a machine without Go).
//! `disruption` compares which nodes would go. `golden` compares our plans with our own plans of before.

mod affinity;
mod catalogue;
pub(crate) mod cluster;
mod collapse;
mod daemons;
pub(crate) mod dice;
mod disruption;
mod golden;
mod handmade;
pub(crate) mod judge;
mod kinds;
mod nodes;
pub(crate) mod outcome;
mod pods;
mod pools;
pub(crate) mod programs;
mod recorded;
pub(crate) mod scenario;
mod second;
mod seeds;
mod sound;
mod topology;
mod topology_void;
pub(crate) mod vocabulary;
mod void;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use testbed::Program;

pub(crate) use self::disruption::Disruption;
pub(crate) use self::golden::Golden;
use self::judge::{Totals, Verdict, judge};
use self::outcome::{Outcome, Summary};
use self::programs::{Karpenter, Tenon};
use self::recorded::Recording;
use self::scenario::Scenario;
use self::seeds::Seeds;
use crate::run::cargo;
use crate::tools;
use crate::tree::workspace_root;

/// Karpenter breaks ties at random; this many runs show what it may do.
const RUNS: &str = "15";

/// Some ties are broken one way only once in fifty runs. Where our plan is not like one of the first runs, there are so many more.
const RARE: u32 = 150;

#[derive(Debug, Subcommand)]
pub(crate) enum DiffVerb {
    /// Generate scenarios, plan each with Karpenter and with Tenon, and compare the plans. The default.
    Live(Live),
    /// Compare Tenon's plans with recorded plans of Karpenter for forty fixed seeds. Needs no Go.
    Recorded {
        /// The tenon binary to test, instead of one built from this checkout.
        #[arg(long, value_name = "FILE")]
        tenon: Option<PathBuf>,
    },
    /// Check that Tenon's plans of the 300 seeds and of clusters made by hand are those that were recorded. Needs no Go.
    Golden(Golden),
    /// Write the scenarios of some seeds to a folder, each into a folder of its own.
    Generate {
        /// The seeds: `7`, `1-300`, `1-40,77`.
        #[arg(long, default_value = "1-300")]
        seeds: Seeds,
        /// The folder to write to.
        to: PathBuf,
    },
    /// Plan the scenarios in a folder with Karpenter, and write its plans.
    Reference {
        /// How often Karpenter plans each scenario.
        #[arg(long, default_value = RUNS)]
        runs: u32,
        /// A folder of scenario folders.
        scenarios: PathBuf,
        /// The folder to write to: one `NAME.json` for each scenario.
        to: PathBuf,
    },
    /// Compare plans that were written before: each `NAME.json` of Tenon with Karpenter's `NAME.json`.
    Judge {
        /// A folder of scenario folders.
        scenarios: PathBuf,
        /// The folder `cargo xtask diff reference` wrote.
        reference: PathBuf,
        /// A folder with the output of `tenon plan -o json`, one `NAME.json` for each scenario.
        ours: PathBuf,
    },
    /// Generate clusters, play which nodes Karpenter and Tenon would disrupt, and compare. The same as `cargo xtask diff --disruption`.
    Disruption(Disruption),
    /// Bind what Tenon plans for some seeds with the real kube-scheduler: every pod that a plan places must be bound.
    Scheduler {
        /// The seeds: `7`, `1-300`, `1-40,77`.
        #[arg(long, default_value = "1000001-1000060")]
        seeds: Seeds,
    },
    /// Record the plans of Karpenter for the fixed seeds. Run this after the generator or the version of Karpenter changed.
    Record,
}

/// A comparison of fresh plans.
#[derive(Debug, Args)]
pub(crate) struct Live {
    /// The seeds: `7`, `1-300`, `1-40,77`.
    #[arg(long, default_value = "1-300")]
    seeds: Seeds,
    /// How often Karpenter plans each scenario.
    #[arg(long, default_value = RUNS)]
    runs: u32,
    /// The tenon binary to test, instead of one built from this checkout.
    #[arg(long, value_name = "FILE")]
    tenon: Option<PathBuf>,
    /// Keep the scenarios and Karpenter's plans in this folder.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

pub(crate) fn run(verb: DiffVerb) -> anyhow::Result<()> {
    match verb {
        DiffVerb::Live(live) => live.run(),
        DiffVerb::Recorded { tenon } => compare_recorded(tenon),
        DiffVerb::Golden(golden) => golden.run(),
        DiffVerb::Generate { seeds, to } => generate(&seeds.0, &to),
        DiffVerb::Reference { runs, scenarios, to } => Karpenter::obtain()?.plan_all(&scenarios, runs, &to),
        DiffVerb::Judge { scenarios, reference, ours } => judge_folders(&scenarios, &reference, &ours),
        DiffVerb::Disruption(disruption) => disruption.run(),
        DiffVerb::Scheduler { seeds } => bind(&seeds.0),
        DiffVerb::Record => record(),
    }
}

impl Default for Live {
    fn default() -> Live {
        Live { seeds: Seeds((1..=300).collect()), runs: 15, tenon: None, keep: None }
    }
}

impl Live {
    fn run(self) -> anyhow::Result<()> {
        let karpenter = Karpenter::obtain()?;
        let tenon = Tenon::obtain(self.tenon)?;
        let scratch = tempfile::tempdir().context("cannot create a folder for scenarios")?;
        let folder = self.keep.unwrap_or_else(|| scratch.path().to_owned());
        let (scenarios, reference) = (folder.join("scenarios"), folder.join("reference"));
        generate(&self.seeds.0, &scenarios)?;
        karpenter.plan_all(&scenarios, self.runs, &reference)?;
        let names = self.seeds.0.iter().map(ToString::to_string);
        let cases = names.map(|name| {
            let theirs = Summary::read(&reference.join(format!("{name}.json")))?;
            Ok((scenarios.join(&name), name, theirs))
        });
        let again = |scenario: &Scenario| more_runs(&karpenter, scenario).map(Some);
        compare(cases, |scenario, _| tenon.plan(scenario), again)
    }
}

fn generate(seeds: &[u64], to: &Path) -> anyhow::Result<()> {
    seeds.iter().try_for_each(|seed| Scenario::generate(*seed).write(&to.join(seed.to_string())))
}

/// Runs the test that binds plans, with the scenarios of these seeds.
fn bind(seeds: &[u64]) -> anyhow::Result<()> {
    tools::obtain_programs(&Program::CONTROL_PLANE, &mut std::io::stderr())?;
    let scratch = tempfile::tempdir().context("cannot create a folder for scenarios")?;
    generate(seeds, scratch.path())?;
    let mut command = cargo(&workspace_root());
    command.args(["test", "--package", "tenon", "--test", "conformance", "agreement", "--", "--nocapture"]);
    command.env("TENON_SCENARIOS", scratch.path()).env("TENON_REQUIRE", "all");
    crate::run::run(&mut command, "see the pods above")
}

fn compare_recorded(tenon: Option<PathBuf>) -> anyhow::Result<()> {
    let tenon = Tenon::obtain(tenon)?;
    let scratch = tempfile::tempdir().context("cannot create a folder for scenarios")?;
    let recordings = recorded::read(&workspace_root())?;
    let cases = recordings.into_iter().map(|recording| {
        let folder = scratch.path().join(recording.seed.to_string());
        recording.scenario()?.write(&folder)?;
        Ok((folder, recording.seed.to_string(), recording.summary))
    });
    compare(cases, |scenario, _| tenon.plan(scenario), |_| Ok(None))
}

fn judge_folders(scenarios: &Path, reference: &Path, ours: &Path) -> anyhow::Result<()> {
    let entries = fs::read_dir(scenarios).with_context(|| format!("cannot read {}", scenarios.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    // Numbers as people count them, and names after them.
    names.sort_by_key(|name| (name.parse().unwrap_or(u64::MAX), name.clone()));
    let cases = names.into_iter().map(|name| {
        let theirs = Summary::read(&reference.join(format!("{name}.json")))?;
        Ok((scenarios.join(&name), name, theirs))
    });
    let plan = |_: &Path, name: &str| {
        let path = ours.join(format!("{name}.json"));
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is not a plan", path.display()))
    };
    compare(cases, plan, |_| Ok(None))
}

/// A scenario's folder, its name, and what Karpenter made of it.
type Case = (PathBuf, String, Summary);

/// Many more runs of Karpenter on one scenario.
fn more_runs(karpenter: &Karpenter, scenario: &Scenario) -> anyhow::Result<Summary> {
    let scratch = tempfile::tempdir().context("cannot create a folder for a scenario")?;
    let (scenarios, reference) = (scratch.path().join("scenarios"), scratch.path().join("reference"));
    scenario.write(&scenarios.join("one"))?;
    karpenter.plan_all(&scenarios, RARE, &reference)?;
    Summary::read(&reference.join("one.json"))
}

/// Plans each scenario, says what is wrong with it, and fails if anything is. Where ties decide, Karpenter may be asked again.
fn compare(
    cases: impl Iterator<Item = anyhow::Result<Case>>,
    plan: impl Fn(&Path, &str) -> anyhow::Result<Outcome>,
    again: impl Fn(&Scenario) -> anyhow::Result<Option<Summary>>,
) -> anyhow::Result<()> {
    let mut totals = Totals::default();
    for case in cases {
        let (folder, name, theirs) = case?;
        let scenario = Scenario::read(&folder)?;
        let (verdict, theirs) = match void::reason(&scenario) {
            Some(reason) => (Verdict::Void(reason), theirs),
            None => match plan(&folder, &name) {
                Ok(ours) => {
                    let (verdict, held_to) = judge_one(&ours, theirs, &scenario);
                    match &verdict {
                        Verdict::Judged { faults, .. } if !faults.is_empty() && kinds::are_needed(&scenario) => {
                            match again(&scenario)? {
                                Some(theirs) => judge_one(&ours, theirs, &scenario),
                                None => (verdict, held_to),
                            }
                        }
                        _ => (verdict, held_to),
                    }
                }
                Err(error) => (Verdict::Failed(format!("{error:#}")), theirs),
            },
        };
        match &verdict {
            Verdict::Void(reason) => println!("{name}: void: Karpenter has a known bug here: {reason}"),
            Verdict::More(said) => println!("{name}: more pods are placed: {said}"),
            Verdict::Failed(error) => println!("{name}: tenon made no plan: {error}"),
            Verdict::Judged { faults, .. } => faults.iter().for_each(|fault| println!("{name}: {fault}")),
        }
        totals.add(&verdict, &theirs);
    }
    println!("{totals}");
    if !totals.is_right() {
        bail!(
            "some plans are worse than those of Karpenter; write the files of a seed with `cargo xtask diff generate --seeds SEED FOLDER`"
        );
    }
    Ok(())
}

/// Our plan of one scenario, and the runs of Karpenter that it is held to.
fn judge_one(ours: &Outcome, theirs: Summary, scenario: &Scenario) -> (Verdict, Summary) {
    let unsound = sound::faults(ours, scenario);
    if unsound.is_empty() && !theirs.each.is_empty() && kinds::are_needed(scenario) {
        return kinds::judge(ours, &theirs, scenario);
    }
    let faults = [unsound, judge(ours, &theirs)].concat();
    (Verdict::Judged { nodes: ours.nodes(), cost: ours.cost(), faults }, theirs)
}

fn record() -> anyhow::Result<()> {
    let karpenter = Karpenter::obtain()?;
    let scratch = tempfile::tempdir().context("cannot create a folder for scenarios")?;
    let (scenarios, reference) = (scratch.path().join("scenarios"), scratch.path().join("reference"));
    let seeds: Vec<u64> = recorded::SEEDS.collect();
    generate(&seeds, &scenarios)?;
    karpenter.plan_all(&scenarios, Live::default().runs, &reference)?;
    let recordings = seeds.into_iter().map(|seed| {
        let summary = Summary::read(&reference.join(format!("{seed}.json")))?;
        Ok(Recording::new(seed, &Scenario::generate(seed), summary))
    });
    recorded::write(&workspace_root(), &recordings.collect::<anyhow::Result<Vec<_>>>()?)
}
