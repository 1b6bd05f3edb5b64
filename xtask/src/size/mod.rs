//! `cargo xtask size`: what a build costs and what the binary weighs, by crate, now and at an earlier revision.
//!
//! Both are built the same way, one after the other, from nothing, by the compiler that runs now: figures of different
//! days or computers say little about each other.

mod build;
mod cpu;
mod dependencies;
mod goal;
mod ground;
mod image;
mod mangling;
mod measure;
mod names;
mod report;
mod table;
mod timeline;
mod unit;
mod weight;
mod wrapper;

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

use self::goal::{Goal, Subject};
use self::ground::{Checkout, Ground};
use self::measure::Sample;
use self::report::Report;
pub(crate) use self::wrapper::run_if_asked as run_compiler_if_asked;
use crate::tree::workspace_root;

/// Smaller functions are not saved: a program has tens of thousands of them.
const SAVED_FUNCTION_BYTES: u64 = 1000;

/// What to measure, and what to compare it with.
#[derive(Debug, Args)]
pub(crate) struct SizeArgs {
    /// Profile to build with [default: release, with --tests dev].
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// Build the binary without its default features.
    #[arg(long, conflicts_with = "tests")]
    no_default_features: bool,
    /// Measure the compilation of all tests instead of the binary. Tests are not run.
    #[arg(long)]
    tests: bool,
    /// Crate to compile again in a second build, as after a change in its src/lib.rs.
    #[arg(long, value_name = "CRATE", default_value = "tenon-engine")]
    rebuild: String,
    /// Skip the second build.
    #[arg(long, conflicts_with = "rebuild")]
    no_rebuild: bool,
    /// Measure this git revision first, and print both next to each other.
    #[arg(long, value_name = "REVISION")]
    against: Option<String>,
    /// Profile for the revision to compare with [default: the same].
    #[arg(long, value_name = "PROFILE", requires = "against")]
    against_profile: Option<String>,
    /// Rows of each table of crates or functions; the others are added up in a last row.
    #[arg(long, value_name = "ROWS", default_value_t = 25)]
    top: usize,
    /// Save all figures as JSON.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Measure this checkout instead of the current one.
    #[arg(long, value_name = "FOLDER")]
    root: Option<PathBuf>,
}

impl SizeArgs {
    fn goal(&self) -> Goal {
        let (subject, usual) = match (self.tests, self.no_default_features) {
            (true, _) => (Subject::Tests, "dev"),
            (false, true) => (Subject::LeanBinary, "release"),
            (false, false) => (Subject::Binary, "release"),
        };
        let profile = self.profile.clone().unwrap_or_else(|| usual.to_owned());
        Goal { subject, profile, rebuild: (!self.no_rebuild).then(|| self.rebuild.clone()) }
    }
}

/// Measures, prints every table, and saves the figures if asked.
pub(crate) fn run(args: &SizeArgs) -> anyhow::Result<()> {
    let root = args.root.clone().unwrap_or_else(workspace_root);
    let root = fs::canonicalize(&root).with_context(|| format!("cannot find {}", root.display()))?;
    let goal = args.goal();
    let earlier_goal = Goal { profile: args.against_profile.clone().unwrap_or(goal.profile.clone()), ..goal.clone() };
    goal.check(&root, "--profile")?;
    let ground = Ground::new()?;
    let checkout =
        args.against.as_deref().map(|name| Checkout::new(&root, ground.place("checkout"), name)).transpose()?;
    let earlier = checkout.as_ref().map(|checkout| Sample { root: checkout.folder(), goal: &earlier_goal });
    if let Some(earlier) = &earlier {
        earlier.goal.check(earlier.root, "--against-profile")?;
    }
    let before = earlier.map(|earlier| earlier.measure(&ground)).transpose()?;
    let after = Sample { root: &root, goal: &goal }.measure(&ground)?;
    let report = Report { before, after };
    io::stdout().write_all(report.text(args.top).as_bytes())?;
    match &args.save {
        Some(file) => {
            let json = serde_json::to_string_pretty(&report.without_small_functions(SAVED_FUNCTION_BYTES))?;
            fs::write(file, json + "\n").with_context(|| format!("cannot write {}", file.display()))
        }
        None => Ok(()),
    }
}
