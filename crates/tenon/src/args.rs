//! The command line: every verb and flag, with the words `--help` and the reference page show.

use clap::{Parser, Subcommand};
use tenon_cli::adopt::Adopt;
use tenon_cli::completions::Shell;
use tenon_cli::controller::Controller;
use tenon_cli::instance_types::InstanceTypes;
use tenon_cli::plan::Plan;
use tenon_cli::regions::RegionsArgs;
use tenon_cli::render::Render;
use tenon_cli::sim::demo::Demo;
use tenon_cli::sim::pve_sim::PveSim;
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
    /// Run the controllers: create nodes for pending pods and remove nodes that are no longer needed.
    Controller(Box<Controller>),
    /// Print version and build information.
    Version {
        /// Output format.
        #[arg(short, long, value_name = "FORMAT", default_value = "text")]
        output: Format,
    },
    /// Print a shell completion script.
    Completions {
        /// Shell that the script is for.
        #[arg(value_name = "SHELL")]
        shell: Shell,
    },
    Demo(Demo),
    Plan(Box<Plan>),
    InstanceTypes(InstanceTypes),
    Render(Box<Render>),
    Regions(RegionsArgs),
    Adopt(Adopt),
    /// Print the custom resource definitions, for `kubectl apply --server-side -f -`.
    Crds,
    PveSim(PveSim),
    /// Print a generated page of the documentation: this command line, or the page with this name.
    #[command(hide = true)]
    Reference {
        /// A kind in lower case, or `chart/` and the file name of a definition.
        #[arg(value_name = "NAME")]
        name: Option<String>,
    },
}
