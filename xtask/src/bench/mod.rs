//! `cargo xtask bench`: how long things take, next to each other in one run. Times of different runs say little.

mod controller;
mod criterion;
mod disruption;
mod follow;
mod inputs;
mod karpenter;
mod race_table;
mod week;

use clap::Subcommand;

use self::controller::ControllerArgs;
use self::disruption::Scans;
use self::karpenter::Race;
use self::week::WeekArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum BenchVerb {
    /// Measure planning and reading the cluster state inside the crates. The default.
    Crates,
    /// Plan the same files with the real Karpenter and with Tenon, and compare time, nodes, cost and memory.
    Karpenter(Race),
    /// Look for nodes that could go in a large cluster where none can, with Tenon and with the real Karpenter.
    Disruption(Scans),
    /// Measure how much memory the controller holds in a large cluster, and how soon after its start it is ready.
    Controller(ControllerArgs),
    /// Play days of changing load, drift, expiry and dead hosts in virtual time, and print moves, evictions and cost of each.
    Week(WeekArgs),
}

pub(crate) fn run(verb: BenchVerb) -> anyhow::Result<()> {
    match verb {
        BenchVerb::Crates => criterion::show(),
        BenchVerb::Karpenter(race) => race.run(),
        BenchVerb::Disruption(scans) => scans.run(),
        BenchVerb::Controller(args) => controller::show(&args),
        BenchVerb::Week(args) => week::show(&args),
    }
}
