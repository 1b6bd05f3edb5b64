//! `tenon plan`: which nodes would be made for the pods of some files or of a cluster. Nothing is changed anywhere.

#[cfg(test)]
mod broken_text_tests;
pub mod collect;
mod head;
pub mod live;
pub mod load;
#[cfg(test)]
mod load_tests;
mod parse;
mod pieces;
pub mod place;
mod pod_names;
pub mod report;
#[cfg(test)]
mod report_tests;
pub mod solve;
mod table;
mod yaml;
mod yaml_layout;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use clap::builder::OsStringValueParser;
use tenon_api::instance_types_file::{self, CatalogEntry};
use tenon_api::objects::Objects;
use tenon_api::plan_options::{self, PlanOptions};

use crate::controller::{clients, cloud};
use collect::Collector;
use load::Sources;
use report::{Output, Report};

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
    /// File that names the Proxmox clusters whose own sizes and hosts are planned with.
    #[arg(long, value_name = "FILE")]
    cloud_config: Option<PathBuf>,
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
    /// Sizes, and what is offered of them.
    pub catalog: Vec<CatalogEntry>,
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
    let catalog = catalog(args)?;
    let mut collector = Collector::default();
    options.notes.iter().for_each(|note| collector.note(note));
    if let Some(kubeconfig) = &args.kubeconfig {
        read_cluster(kubeconfig, &mut collector)?;
    }
    let apart = args.instance_types.iter().chain(&args.options).map(PathBuf::as_path).collect();
    load::load(&Sources { paths: &args.filename, apart }, stdin, &mut collector)?;
    let (objects, told) = collector.finish();
    told.iter().try_for_each(|note| writeln!(notes, "note: {note}"))?;
    Ok(Input { objects, catalog, options, loading: begun.elapsed() })
}

fn options(path: Option<&Path>) -> anyhow::Result<PlanOptions> {
    let Some(path) = path else { return Ok(PlanOptions::default()) };
    let text = text(path, "options", "--options")?;
    plan_options::read(&text).with_context(|| format!("cannot use the options {}", path.display()))
}

fn catalog(args: &Plan) -> anyhow::Result<Vec<CatalogEntry>> {
    match (&args.instance_types, &args.cloud_config) {
        (Some(path), _) => {
            let text = text(path, "instance types", "--instance-types")?;
            instance_types_file::read_catalog(&text)
                .with_context(|| format!("cannot use the instance types {}", path.display()))
        }
        (None, Some(path)) => catalog_of_estate(path),
        (None, None) => bail!("no instance types are given: name a file with --instance-types"),
    }
}

/// The sizes the controller itself would choose from, with what each Proxmox host has room for.
fn catalog_of_estate(path: &Path) -> anyhow::Result<Vec<CatalogEntry>> {
    let config = cloud(path)?;
    let regions: Vec<&str> = config.regions.iter().map(|region| region.name.as_str()).collect();
    Err(anyhow!(
        "this build cannot take instance types from Proxmox ({}) yet: write them to a file and give it with --instance-types",
        regions.join(", ")
    ))
}

fn read_cluster(kubeconfig: &OsString, collector: &mut Collector) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(async {
        let cluster = clients::cluster(Some(kubeconfig), "--kubeconfig", "plan").await?;
        live::list_all(&cluster.unfenced()?, collector).await
    })
}

fn text(path: &Path, what: &str, flag: &str) -> anyhow::Result<String> {
    let shown = path.display();
    fs::read_to_string(path)
        .map_err(|error| anyhow!("cannot read the {what} {shown}: {error}; give another file with {flag}"))
}
