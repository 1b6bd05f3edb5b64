//! `cargo xtask bench week`: days of running in virtual time, with the real controllers over simulators. It prints a row for each day,
//! and fails if a bound breaks.

use clap::Args;

use crate::run::{cargo, run};
use crate::tree;

/// The test that plays it; some hours on few nodes are played by every test run.
const TEST: &str = "week::hours_of_changing_load_with_drift_expiry_and_a_dead_host_keep_within_all_bounds";

#[derive(Debug, Args)]
pub(crate) struct WeekArgs {
    /// Days, of 24 hours each.
    #[arg(long, default_value_t = 7)]
    days: u64,
    /// Nodes that the workloads need at their peak, more or less.
    #[arg(long, default_value_t = 60)]
    nodes: u64,
    /// Seed of workloads, of what goes wrong, and of Proxmox.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Use the build of the tests, which takes less time to make and more to run.
    #[arg(long)]
    debug: bool,
}

/// Plays it.
pub(crate) fn show(args: &WeekArgs) -> anyhow::Result<()> {
    let mut command = cargo(&tree::workspace_root());
    command.args(["test", "--package", "tenon", "--test", "end_to_end"]);
    command.args((!args.debug).then_some("--release"));
    command.args(["--", "--exact", TEST, "--nocapture"]);
    let course = [("HOURS", args.days * 24), ("NODES", args.nodes), ("SEED", args.seed)];
    command.envs(course.map(|(name, value)| (format!("TENON_WEEK_{name}"), value.to_string())));
    run(&mut command, "see the rows and messages above")
}
