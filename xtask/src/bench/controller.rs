//! `cargo xtask bench controller`: what the controller costs in a large cluster. It prints numbers and fails on none.

use std::io;

use clap::Args;
use testbed::Program;

use crate::run::{cargo, run};
use crate::{tools, tree};

#[derive(Debug, Args)]
pub(crate) struct ControllerArgs {
    /// Nodes, each with its NodeClaim and its VM.
    #[arg(long, default_value_t = 1_000)]
    nodes: usize,
    /// Pods that are bound to them.
    #[arg(long, default_value_t = 30_000)]
    pods: usize,
    /// Pods that wait for a node.
    #[arg(long, default_value_t = 200)]
    pending: usize,
    /// Leave the cluster up until this is interrupted, for trying other builds of the controller on it.
    #[arg(long)]
    hold: bool,
}

/// Obtains the programs of the control plane where they are missing, then measures.
pub(crate) fn show(args: &ControllerArgs) -> anyhow::Result<()> {
    tools::obtain_programs(&Program::CONTROL_PLANE, &mut io::stderr())?;
    let mut command = cargo(&tree::workspace_root());
    command.args(["bench", "--package", "tenon", "--bench", "controller"]);
    let sizes = [("NODES", args.nodes), ("PODS", args.pods), ("PENDING", args.pending)];
    command.envs(sizes.map(|(name, size)| (format!("TENON_BENCH_{name}"), size.to_string())));
    if args.hold {
        command.env("TENON_BENCH_HOLD", "true");
    }
    run(&mut command, "see the messages above")
}
