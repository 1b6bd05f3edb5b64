//! `tenon template`: where the VM templates of a template object stand.

mod look;
mod table;
#[cfg(test)]
mod template_tests;
mod view;

use std::ffi::OsString;
use std::io::Write;

use anyhow::Context as _;
use clap::{Args, Subcommand, ValueEnum};
use tenon_controllers::Clock;
use tenon_controllers::election::Fence;

use crate::controller::clients;

/// Show the VM templates of a ProxmoxTemplate or ProxmoxUnmanagedTemplate.
#[derive(Debug, Args)]
pub struct Template {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Status(Status),
}

/// Show each VM template: its host, VM ID and version, how far it is, and which NodeClaims were created from it.
///
/// Only the cluster is read, not Proxmox: what is shown is what the controller wrote down last.
#[derive(Debug, Args)]
struct Status {
    /// Name of a ProxmoxTemplate or ProxmoxUnmanagedTemplate. If there is one of each kind, both are shown.
    #[arg(value_name = "NAME")]
    name: String,
    /// Kubeconfig of the cluster; unset: the in-cluster config, or else the user's kubeconfig.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<OsString>,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Output,
}

/// How the templates are printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// Text for people.
    #[default]
    Table,
    /// JSON for programs.
    Json,
}

/// Prints what the arguments ask for.
pub fn run(args: &Template, out: &mut dyn Write) -> anyhow::Result<()> {
    let Verb::Status(args) = &args.verb;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let shown = runtime.context("cannot start the runtime")?.block_on(async {
        // It never opens: nothing is changed.
        let fence = Fence::closed(Clock::Wall);
        let client = clients::cluster(args.kubeconfig.as_deref(), "--kubeconfig", "template").await?.fenced(&fence)?;
        look::look(&client, &args.name).await
    })?;
    let text = match args.output {
        Output::Table => table::table(&shown),
        Output::Json => serde_json::to_string_pretty(&shown).context("cannot encode the templates")? + "\n",
    };
    out.write_all(text.as_bytes()).context("cannot print the templates")
}
