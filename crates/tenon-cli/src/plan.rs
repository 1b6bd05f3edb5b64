//! `tenon plan`: which nodes would be created for the pods of some files or of a cluster. Nothing is changed anywhere.

#[cfg(test)]
mod broken_text_tests;
pub mod collect;
mod companions;
#[cfg(test)]
mod default_spread_tests;
pub mod disruption;
pub mod disruption_report;
mod disruption_table;
#[cfg(test)]
mod disruption_tests;
#[cfg(test)]
mod fault_tests;
mod head;
pub mod live;
pub mod load;
#[cfg(test)]
mod load_tests;
mod locate;
pub mod location;
pub(crate) mod manifest;
#[cfg(test)]
mod overlay_tests;
mod overlays;
mod parse;
mod pieces;
mod pod_names;
mod replicas;
pub mod report;
#[cfg(test)]
mod report_tests;
pub mod solve;
pub mod supply;
#[cfg(test)]
mod supply_tests;
mod table;
pub(crate) mod table_text;
mod unique_keys;
#[cfg(test)]
mod workload_tests;
mod workloads;
mod yaml;
mod yaml_layout;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use clap::Args;
use clap::builder::OsStringValueParser;
use tenon_api::objects::Objects;
use tenon_api::plan_options::{self, PlanOptions};

use collect::{Collected, Collector};
use load::Sources;
use report::{Output, Report};
use supply::{Supply, TypeSource};

/// Show which nodes would be created for the pods and workloads of files or of a cluster, without changing anything.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("objects").args(["filename", "kubeconfig"]).required(true).multiple(true))]
pub struct Plan {
    /// File or directory with Kubernetes objects as YAML or JSON, or - for standard input. Subdirectories are not read. May be
    /// given several times.
    #[arg(short, long, value_name = "FILE|DIR|-")]
    filename: Vec<PathBuf>,
    /// Also read the objects of the cluster in this kubeconfig.
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new())]
    kubeconfig: Option<OsString>,
    /// JSON file with instance types and their offerings; unset: the built-in instance types.
    #[arg(long, value_name = "FILE", conflicts_with = "cloud_config")]
    instance_types: Option<PathBuf>,
    /// Cloud config of the controller: plan on the hosts of these Proxmox clusters. Needs --kubeconfig.
    #[arg(long, value_name = "FILE")]
    cloud_config: Option<PathBuf>,
    /// With --cloud-config: the controller's JSON file with instance types; unset: the built-in instance types.
    #[arg(long, value_name = "FILE", requires = "cloud_config")]
    instance_types_file: Option<PathBuf>,
    /// YAML or JSON file with the controller settings that affect a plan; unset: the defaults.
    #[arg(long, value_name = "FILE")]
    options: Option<PathBuf>,
    /// Output format of the plan.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Output,
    /// Show which nodes would be deleted or replaced, what that saves, where their pods would go, and why the other nodes stay.
    #[arg(long)]
    disruption: bool,
    /// With --disruption: the time to plan for, such as 2026-03-01T12:00:00Z; unset: the current time.
    #[arg(long, value_name = "TIME", requires = "disruption", conflicts_with = "kubeconfig")]
    now: Option<jiff::Timestamp>,
    /// With --disruption: carry out what is planned and plan again until there is nothing to do, at most this many times.
    #[arg(long, value_name = "N", requires = "disruption", value_parser = clap::value_parser!(u32).range(1..=ROUNDS_MAX))]
    rounds: Option<u32>,
}

/// More rounds than this are a loop of ours and not a plan.
const ROUNDS_MAX: i64 = 100_000;

/// Everything a plan is made from.
#[derive(Debug)]
pub struct Input {
    /// The objects, sorted, with the pods of workloads that were never applied.
    pub objects: Objects,
    /// How each workload is planned, or why it is not.
    pub workloads: Vec<String>,
    /// What new nodes are created from.
    pub supply: Supply,
    /// Settings.
    pub options: PlanOptions,
    /// Whether nodes are disrupted, too, and how often.
    pub disruption: Option<disruption::Rounds>,
    /// How long reading took.
    pub loading: Duration,
}

/// Reads what the arguments name, lets `solve` make the plan, and prints it to `out`; what was left out goes to `notes`.
pub fn run(
    args: &Plan,
    out: &mut dyn Write,
    notes: &mut dyn Write,
    solve: impl FnOnce(&Input) -> Report,
) -> anyhow::Result<()> {
    let input = gather(args, &mut io::stdin(), notes)?;
    let mut report = solve(&input);
    report.stats.load_micros = u64::try_from(input.loading.as_micros()).unwrap_or(u64::MAX);
    report.warnings.iter().try_for_each(|warning| writeln!(notes, "warning: {}", table_text::plain(warning)))?;
    if args.output == Output::Table {
        report.workloads.clone_from(&input.workloads);
    } else {
        print_notes(&input.workloads, notes)?;
    }
    Ok(report.print(args.output, out)?)
}

/// Reads what the arguments name.
pub fn gather(args: &Plan, stdin: &mut dyn io::Read, notes: &mut dyn Write) -> anyhow::Result<Input> {
    let begun = Instant::now();
    // The small files first: a slip in one of them should not cost the reading of a large one.
    let options = options(args.options.as_deref())?;
    let types = TypeSource::read(args, &options.prices)?;
    let mut collector = Collector::default();
    options.notes.iter().for_each(|note| collector.note(note));
    let supply = match &args.kubeconfig {
        Some(kubeconfig) => live::read(kubeconfig, types, &mut collector)?,
        None => types.without_cluster(&mut collector)?,
    };
    let excluded = args
        .instance_types
        .iter()
        .chain(&args.instance_types_file)
        .chain(&args.cloud_config)
        .chain(&args.options)
        .map(PathBuf::as_path)
        .collect();
    let sources = Sources { paths: &args.filename, excluded, has_cluster: args.kubeconfig.is_some() };
    load::load(&sources, stdin, &mut collector)?;
    let Collected { objects, workloads, notes: found } = collector.finish()?;
    print_notes(&found, notes)?;
    if objects.node_pools.is_empty() {
        writeln!(notes, "note: the input has no NodePool, so no new nodes can be planned; add a NodePool with -f")?;
    }
    let disruption = args.disruption.then_some(disruption::Rounds { now: args.now, most: args.rounds });
    Ok(Input { objects, workloads, supply, options, disruption, loading: begun.elapsed() })
}

fn print_notes(found: &[String], notes: &mut dyn Write) -> io::Result<()> {
    found.iter().try_for_each(|note| writeln!(notes, "note: {}", table_text::plain(note)))
}

fn options(path: Option<&Path>) -> anyhow::Result<PlanOptions> {
    let Some(path) = path else { return Ok(PlanOptions::default()) };
    let text = text(path, "options file", "--options")?;
    plan_options::read(&text).with_context(|| format!("cannot use options file {}", path.display()))
}

/// The text of a small file.
pub(crate) fn text(path: &Path, what: &str, flag: &str) -> anyhow::Result<String> {
    let shown = path.display();
    let bytes = fs::read(path)
        .map_err(|error| anyhow!("cannot read {what} {shown}: {error}; check the path given with {flag}"))?;
    let text = String::from_utf8(bytes)
        .map_err(|error| anyhow!("cannot use {what} {shown}: line {}: not UTF-8 text", load::not_text_line(&error)))?;
    // Some programs begin a file with a mark of its byte order.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
