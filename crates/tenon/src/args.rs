//! The command line: every verb and flag, with the words `--help` and the reference page show.

use clap::{Parser, Subcommand};
use tenon_cli::completions::Shell;
use tenon_cli::controller::Controller;
use tenon_cli::demo::Demo;
use tenon_cli::plan::Plan;
use tenon_cli::pve_sim::PveSim;
use tenon_cli::version::Format;

/// A Kubernetes node autoscaler for Proxmox VE.
#[derive(Debug, Parser)]
#[command(name = "tenon", version, disable_help_subcommand = true, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Make nodes for pods that wait, and take nodes away that nobody needs, until told to end.
    Controller(Box<Controller>),
    /// Print which build this is.
    Version {
        /// How to print it.
        #[arg(short, long, value_name = "FORMAT", default_value = "text")]
        output: Format,
    },
    /// Print a script that completes tenon's commands in your shell.
    Completions {
        /// The shell to complete in.
        #[arg(value_name = "SHELL")]
        shell: Shell,
    },
    /// Show the whole system at work on a simulated cluster, in this process and in seconds.
    Demo(Demo),
    Plan(Box<Plan>),
    /// Print the custom resource definitions a cluster needs, for `kubectl apply --server-side -f -`.
    Crds,
    /// Serve a simulated Proxmox VE cluster over HTTPS until interrupted.
    PveSim(PveSim),
    /// Print a page of the documentation: this command line, or what is named.
    #[command(hide = true)]
    Reference {
        /// A kind in small letters, or `chart/` and the file of a definition.
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
}
