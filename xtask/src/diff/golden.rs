//! Whether plans are still what they were: a hash of each plan of fixed scenarios, recorded once.
//!
//! A change that should not change plans (a faster engine, new names inside) is held to this file, byte for byte.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{fs, thread};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::handmade;
use super::programs::Tenon;
use super::scenario::{Scenario, sorted};
use crate::tree::workspace_root;

/// The seeds that are planned: those that `cargo xtask diff` compares with Karpenter.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=300;

/// And some with pods that care where others are. Not more, so that the check takes seconds.
const TOPOLOGY_SEEDS: std::ops::RangeInclusive<u64> = 1_000_001..=1_000_050;

/// This many changed plans are named before the rest is only counted.
const NAMED: usize = 10;

/// Fields of a plan's statistics that differ from run to run.
const TIMES: [&str; 3] = ["solveMicros", "buildMicros", "loadMicros"];

#[derive(Debug, Args)]
pub(crate) struct Golden {
    /// Record the plans of today. Do this only in a change that is meant to change plans.
    #[arg(long)]
    update: bool,
    /// The tenon binary to test, instead of one built from this checkout.
    #[arg(long, value_name = "FILE")]
    tenon: Option<PathBuf>,
    /// Keep each scenario and its plan in this folder.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

/// What is recorded of one scenario, both as hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    input: String,
    plan: String,
}

/// The lines of the file, by the name of the scenario.
type Lines = BTreeMap<String, Line>;

impl Golden {
    /// A check of one binary.
    pub(crate) fn check(tenon: Option<PathBuf>) -> Golden {
        Golden { update: false, tenon, keep: None }
    }

    pub(super) fn run(self) -> anyhow::Result<()> {
        let tenon = Tenon::obtain(self.tenon)?;
        let scratch = tempfile::tempdir().context("cannot create a folder for scenarios")?;
        let folder = self.keep.unwrap_or_else(|| scratch.path().to_owned());
        let plans = plan_all(&tenon, cases(), &folder)?;
        let file = workspace_root().join("bench/karpenter/recorded/golden.txt");
        if self.update {
            fs::write(&file, written(&plans)).with_context(|| format!("cannot write {}", file.display()))?;
            println!("recorded {} plans", plans.len());
            return Ok(());
        }
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let recorded = read(&text).with_context(|| format!("cannot read {}", file.display()))?;
        let differences = differences(&recorded, &plans);
        if differences.is_empty() {
            println!("{} plans are as recorded", plans.len());
            return Ok(());
        }
        differences.iter().take(NAMED).for_each(|difference| println!("{difference}"));
        bail!(
            "{} of {} plans differ from bench/karpenter/recorded/golden.txt. To see how, write the plans of both revisions \
             and compare them: `cargo xtask diff golden --keep NEW` here, the same with `--keep OLD` in a checkout of the \
             last commit, then `diff -r OLD NEW`. If plans are meant to change, run `cargo xtask diff golden --update` and \
             say in the commit why they change",
            differences.len(),
            plans.len()
        );
    }
}

fn cases() -> Vec<(String, Scenario)> {
    let made = handmade::all().into_iter().map(|(name, scenario)| (name.to_owned(), scenario));
    let seeds = SEEDS.chain(TOPOLOGY_SEEDS);
    seeds.map(|seed| (format!("seed-{seed:03}"), Scenario::generate(seed))).chain(made).collect()
}

/// Plans every scenario, on all cores, and leaves files and plans in the folder.
fn plan_all(tenon: &Tenon, cases: Vec<(String, Scenario)>, folder: &Path) -> anyhow::Result<Lines> {
    let (queue, lines) = (Mutex::new(cases.into_iter()), Mutex::new(Lines::new()));
    let work = || -> anyhow::Result<()> {
        loop {
            let next = queue.lock().map_err(|_poison| anyhow::anyhow!("another thread failed"))?.next();
            let Some((name, scenario)) = next else { return Ok(()) };
            let plan = plan(tenon, &scenario, &folder.join(&name)).with_context(|| format!("scenario {name}"))?;
            let line = Line { input: scenario.fingerprint(), plan: fingerprint(&plan) };
            lines.lock().map_err(|_poison| anyhow::anyhow!("another thread failed"))?.insert(name, line);
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> =
            (0..thread::available_parallelism().map_or(1, usize::from)).map(|_| scope.spawn(work)).collect();
        let ends = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| bail!("a thread panicked")));
        ends.collect::<anyhow::Result<()>>()
    })?;
    lines.into_inner().map_err(|_poison| anyhow::anyhow!("a thread failed"))
}

/// The plan of one scenario without its times.
fn plan(tenon: &Tenon, scenario: &Scenario, folder: &Path) -> anyhow::Result<Value> {
    scenario.write(folder)?;
    let output = tenon.output(folder)?;
    let plan: Value = serde_json::from_slice(&output).context("cannot read the output of `tenon plan` as a plan")?;
    let plan = without_times(plan);
    let path = folder.join("plan.json");
    let text = serde_json::to_string_pretty(&plan)?;
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(plan)
}

fn without_times(mut plan: Value) -> Value {
    if let Some(stats) = plan["stats"].as_object_mut() {
        stats.retain(|name, _| !TIMES.contains(&name.as_str()));
    }
    sorted(&plan)
}

fn fingerprint(plan: &Value) -> String {
    Sha256::digest(plan.to_string()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn written(lines: &Lines) -> String {
    let mut text = String::from("# Scenario, hash of its files, hash of its plan: see `cargo xtask diff golden`.\n");
    for (name, Line { input, plan }) in lines {
        let _ = writeln!(text, "{name} {input} {plan}");
    }
    text
}

fn read(text: &str) -> anyhow::Result<Lines> {
    let mut lines = Lines::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[name, input, plan] = words.as_slice() else { bail!("line {} does not have three words", number + 1) };
        let line = Line { input: input.to_owned(), plan: plan.to_owned() };
        ensure!(lines.insert(name.to_owned(), line).is_none(), "line {} names {name} again", number + 1);
    }
    Ok(lines)
}

/// What is not as recorded, one line each.
fn differences(recorded: &Lines, now: &Lines) -> Vec<String> {
    let mut all = Vec::new();
    for (name, line) in now {
        match recorded.get(name) {
            None => all.push(format!("{name}: is not recorded")),
            Some(before) if before.input != line.input => {
                all.push(format!("{name}: the scenario changed: its generator makes other files than those recorded"));
            }
            Some(before) if before.plan != line.plan => all.push(format!("{name}: the plan changed")),
            Some(_) => {}
        }
    }
    let gone = recorded.keys().filter(|name| !now.contains_key(*name));
    all.extend(gone.map(|name| format!("{name}: is recorded, but no longer generated")));
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(of: &[(&str, &str, &str)]) -> Lines {
        let line = |(name, input, plan): &(&str, &str, &str)| {
            ((*name).to_owned(), Line { input: (*input).to_owned(), plan: (*plan).to_owned() })
        };
        of.iter().map(line).collect()
    }

    #[test]
    fn times_do_not_count_and_everything_else_does() {
        let plan = |micros: u64, pods: &[&str]| {
            let stats = json!({"pods": 1, "solveMicros": micros, "buildMicros": micros, "loadMicros": micros});
            fingerprint(&without_times(json!({"newNodeClaims": [{"pods": pods}], "stats": stats})))
        };
        assert_eq!(plan(1, &["a"]), plan(2, &["a"]));
        assert_ne!(plan(1, &["a"]), plan(1, &["b"]));
    }

    #[test]
    fn the_file_says_what_was_written_to_it() {
        let lines = lines(&[("seed-001", "aa", "bb"), ("limits", "cc", "dd")]);
        assert_eq!(read(&written(&lines)).unwrap(), lines);
        assert!(read("one two").is_err());
        assert!(read("a b c\na b c").is_err());
    }

    #[test]
    fn a_difference_says_whether_the_plan_or_its_input_changed() {
        let recorded = lines(&[("a", "1", "1"), ("b", "1", "1"), ("c", "1", "1"), ("d", "1", "1")]);
        let now = lines(&[("a", "1", "1"), ("b", "1", "2"), ("c", "2", "2"), ("e", "1", "1")]);
        let found = differences(&recorded, &now);
        assert_eq!(
            found,
            [
                "b: the plan changed",
                "c: the scenario changed: its generator makes other files than those recorded",
                "e: is not recorded",
                "d: is recorded, but no longer generated",
            ]
        );
    }

    #[test]
    fn every_recorded_scenario_is_still_generated_as_it_was() {
        let path = workspace_root().join("bench/karpenter/recorded/golden.txt");
        let recorded = read(&fs::read_to_string(path).unwrap()).unwrap();
        let inputs: BTreeMap<_, _> = recorded.into_iter().map(|(name, line)| (name, line.input)).collect();
        let now: BTreeMap<_, _> = cases().into_iter().map(|(name, scenario)| (name, scenario.fingerprint())).collect();
        assert_eq!(inputs, now);
    }
}
