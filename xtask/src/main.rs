//! `cargo xtask`: the one door to build, check and test this project.

mod bench;
mod checks;
mod diff;
mod generate;
mod leftovers;
mod line;
mod progress;
mod run;
mod testbed_commands;
mod tests_run;
mod tidy;
mod tools;
mod tree;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::diff::{DiffVerb, Live};
use crate::generate::Which;
use crate::testbed_commands::TestbedVerb;

/// Build, check and test Tenon.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run every check and every test: fmt, tidy, clippy, typos, deny, then all tests.
    Test,
    /// Check the house rules: crate edges, names, module tree, sizes, generated files, places that must not be named.
    Tidy {
        /// The tree to check instead of this one.
        #[arg(long, value_name = "FOLDER")]
        root: Option<PathBuf>,
    },
    /// Write the generated files anew.
    Generate,
    /// Write what is generated from the custom resource definitions anew: the chart tenon-crds and the reference pages.
    Crds,
    /// Install or locate every outside tool that checks and tests use, and say where each is.
    Tools,
    /// Show the whole line once: pods wait, VMs are made and join, the pods run, and everything goes away again.
    Line,
    /// Hold our plans to those of the real Karpenter on the same files.
    Diff {
        #[command(subcommand)]
        verb: Option<DiffVerb>,
    },
    /// Measure how long plans and looks at the cluster take, next to each other.
    Bench,
    /// A real Kubernetes control plane on loopback.
    #[command(subcommand)]
    Testbed(TestbedVerb),
}

fn main() -> ExitCode {
    match run(Args::parse().verb) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has seen enough.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_one = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
    error.chain().filter_map(|cause| cause.downcast_ref()).any(is_one)
}

fn run(verb: Verb) -> anyhow::Result<()> {
    match verb {
        Verb::Test => checks::run_all(),
        Verb::Tidy { root } => tidy::run(&root.unwrap_or_else(tree::workspace_root)),
        Verb::Generate => generate::write(&tree::workspace_root(), Which::All),
        Verb::Crds => generate::write(&tree::workspace_root(), Which::Definitions),
        Verb::Tools => tools::install_all(),
        Verb::Line => line::show(),
        Verb::Diff { verb } => diff::run(verb.unwrap_or_else(|| DiffVerb::Live(Live::default()))),
        Verb::Bench => bench::show(),
        Verb::Testbed(verb) => testbed_commands::run(verb),
    }
}
