//! `tenon plan`: which nodes would be made for the pods of some files or of a cluster. Nothing is changed anywhere.

#[cfg(test)]
mod broken_text_tests;
pub mod collect;
#[cfg(test)]
mod fault_tests;
mod head;
pub mod live;
pub mod load;
#[cfg(test)]
mod load_tests;
mod locate;
mod parse;
mod pieces;
pub mod place;
mod pod_names;
pub mod report;
#[cfg(test)]
mod report_tests;
pub mod solve;
pub mod supply;
#[cfg(test)]
mod supply_tests;
mod table;
mod table_text;
mod twice;
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

use collect::Collector;
use load::Sources;
use report::{Output, Report};
use supply::{Sizes, Supply};

/// Show which nodes would be made for the pods of files or of a cluster, and change nothing.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("objects").args(["filename", "kubeconfig"]).required(true).multiple(true))]
pub struct Plan {
    /// File or folder with objects as YAML or JSON, or - for standard input; a folder's subfolders are not read. May be
    /// given several times.
    #[arg(short, long, value_name = "FILE|DIR|-")]
    filename: Vec<PathBuf>,
    /// Also read the objects of the cluster this kubeconfig names.
    #[arg(long, value_name = "FILE", value_parser = OsStringValueParser::new())]
    kubeconfig: Option<OsString>,
    /// Sizes of VMs with what is offered of them, as JSON.
    #[arg(long, value_name = "FILE", conflicts_with = "cloud_config")]
    instance_types: Option<PathBuf>,
    /// File that names the Proxmox clusters whose hosts are planned with, as the controller does; needs --kubeconfig.
    #[arg(long, value_name = "FILE")]
    cloud_config: Option<PathBuf>,
    /// With --cloud-config: the controller's file with the sizes of VMs, as JSON; unset: the built-in sizes.
    #[arg(long, value_name = "FILE", requires = "cloud_config")]
    instance_types_file: Option<PathBuf>,
    /// Settings of the controller that change a plan, as YAML or JSON; unset: its defaults.
    #[arg(long, value_name = "FILE")]
    options: Option<PathBuf>,
    /// How to print the plan.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Output,
}

/// Everything a plan is made from.
#[derive(Debug)]
pub struct Input {
    /// The objects, sorted.
    pub objects: Objects,
    /// What nodes are made of.
    pub supply: Supply,
    /// Settings.
    pub options: PlanOptions,
    /// How long reading took.
    pub loading: Duration,
}

/// Reads what the arguments name, lets `solve` make the plan, and prints it to `out`; what was left out is told to `notes`.
pub fn run(
    args: &Plan,
    out: &mut dyn Write,
    notes: &mut dyn Write,
    solve: impl FnOnce(&Input) -> anyhow::Result<Report>,
) -> anyhow::Result<()> {
    let input = gather(args, &mut io::stdin(), notes)?;
    let mut report = solve(&input)?;
    report.stats.load_micros = u64::try_from(input.loading.as_micros()).unwrap_or(u64::MAX);
    Ok(report.print(args.output, out)?)
}

/// Reads what the arguments name.
pub fn gather(args: &Plan, stdin: &mut dyn io::Read, notes: &mut dyn Write) -> anyhow::Result<Input> {
    let begun = Instant::now();
    // The small files first: a slip in one of them should not cost the reading of a large one.
    let options = options(args.options.as_deref())?;
    let sizes = Sizes::read(args)?;
    let mut collector = Collector::default();
    options.notes.iter().for_each(|note| collector.note(note));
    let supply = match &args.kubeconfig {
        Some(kubeconfig) => live::read(kubeconfig, sizes, &mut collector)?,
        None => sizes.without_cluster()?,
    };
    let apart = args
        .instance_types
        .iter()
        .chain(&args.instance_types_file)
        .chain(&args.cloud_config)
        .chain(&args.options)
        .map(PathBuf::as_path)
        .collect();
    let sources = Sources { paths: &args.filename, apart, has_cluster: args.kubeconfig.is_some() };
    load::load(&sources, stdin, &mut collector)?;
    let (objects, told) = collector.finish();
    told.iter().try_for_each(|note| writeln!(notes, "note: {}", table_text::plain(note)))?;
    Ok(Input { objects, supply, options, loading: begun.elapsed() })
}

fn options(path: Option<&Path>) -> anyhow::Result<PlanOptions> {
    let Some(path) = path else { return Ok(PlanOptions::default()) };
    let text = text(path, "options", "--options")?;
    plan_options::read(&text).with_context(|| format!("cannot use the options {}", path.display()))
}

fn text(path: &Path, what: &str, flag: &str) -> anyhow::Result<String> {
    let shown = path.display();
    let bytes = fs::read(path)
        .map_err(|error| anyhow!("cannot read the {what} {shown}: {error}; give another file with {flag}"))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        anyhow!("cannot use the {what} {shown}: line {}: this is not text in UTF-8", load::not_text_line(&error))
    })?;
    // Some programs begin a file with a mark of its byte order.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
