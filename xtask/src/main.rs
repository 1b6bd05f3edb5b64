//! `cargo xtask`: the one door to build, check and test this project.

mod artifacts;
mod bench;
mod checks;
mod debian_packages;
mod diff;
mod fuzz;
mod generate;
mod lean;
mod leftovers;
mod line;
mod package;
mod progress;
mod run;
mod size;
mod suite_run;
mod testbed_commands;
mod tests_run;
mod tidy;
mod tools;
mod tree;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::bench::BenchVerb;
use crate::diff::{DiffVerb, Disruption, Live};
use crate::fuzz::FuzzArgs;
use crate::generate::Which;
use crate::package::PackageArgs;
use crate::size::SizeArgs;
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
    /// Run every check (fmt, typos, deny, clippy, tidy, the build without simulator, plans recorded from Karpenter, recorded hashes of our plans), then every test.
    Test,
    /// Check the rules a program can check: crate dependencies, file names, sizes, generated files, forbidden paths.
    Tidy {
        /// Check this checkout instead of the current one.
        #[arg(long, value_name = "FOLDER")]
        root: Option<PathBuf>,
        /// The tenon binary to compare generated files with, instead of one built from this checkout.
        #[arg(long, value_name = "FILE")]
        tenon: Option<PathBuf>,
    },
    /// Write every generated file: reference pages and the chart tenon-crds.
    Generate,
    /// Write the files generated from the custom resource definitions: the chart tenon-crds and a page for each kind.
    Crds,
    /// Install or locate every outside tool that checks and tests use, and print where each one is.
    Tools,
    /// Show one scale-up and scale-down: pods are pending, VMs are created and join, pods run, VMs are deleted.
    Line,
    /// Compare Tenon's plans with plans of the real Karpenter for the same files.
    #[command(args_conflicts_with_subcommands = true)]
    Diff {
        /// Compare which nodes would be disrupted: `cargo xtask diff disruption` with its defaults.
        #[arg(long)]
        disruption: bool,
        #[command(subcommand)]
        verb: Option<DiffVerb>,
    },
    /// Build Tenon without the simulator, and check what is in that build and what it says.
    Lean,
    /// Run the fuzz tests with more mutations than a test run does.
    Fuzz(FuzzArgs),
    /// Measure how long planning and reading the cluster state take, alone or against the real Karpenter.
    Bench {
        #[command(subcommand)]
        verb: Option<BenchVerb>,
    },
    Package(PackageArgs),
    /// Measure build time, CPU time and binary size by crate, and compare them with another revision.
    Size(SizeArgs),
    /// Run a real Kubernetes control plane on this computer, for trying things.
    #[command(subcommand)]
    Testbed(TestbedVerb),
}

fn main() -> ExitCode {
    // Cargo starts this program in the place of the compiler while `size` measures; the arguments are rustc's then.
    if let Some(code) = size::run_compiler_if_asked() {
        return code;
    }
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
        Verb::Tidy { root, tenon } => tidy::run(&root.unwrap_or_else(tree::workspace_root), tenon),
        Verb::Generate => generate::write(&tree::workspace_root(), Which::All),
        Verb::Crds => generate::write(&tree::workspace_root(), Which::Definitions),
        Verb::Tools => tools::install_all(),
        Verb::Line => line::show(),
        Verb::Diff { disruption: true, .. } => Disruption::default().run(),
        Verb::Diff { verb, .. } => diff::run(verb.unwrap_or_else(|| DiffVerb::Live(Live::default()))),
        Verb::Lean => lean::check().map(drop),
        Verb::Fuzz(args) => fuzz::run(&args),
        Verb::Bench { verb } => bench::run(verb.unwrap_or(BenchVerb::Crates)),
        Verb::Package(args) => package::run(&args),
        Verb::Size(args) => size::run(&args),
        Verb::Testbed(verb) => testbed_commands::run(verb),
    }
}
