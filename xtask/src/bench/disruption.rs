//! `cargo xtask bench disruption`: which nodes of a large, full cluster could go? Our scan of all methods beside Karpenter's pass over
//! single nodes, in the same run.
//!
//! A scan is also measured inside the engine: the first one, and one after a pod changed.
//!
//! No node can go, so both look at every node. Karpenter gives up after three minutes by itself; here it gets a limit of ours
//! instead. Reading the files is no part of either time.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::criterion::{Measured, measure};
use super::follow::follow;
use super::inputs::sizes_on_hosts;
use crate::artifacts::build_release_tenon;
use crate::diff::cluster::{Asks, Cluster, bound, claim, merged, node, pool};
use crate::diff::programs::{Karpenter, Tenon};
use crate::diff::vocabulary::{CAPACITY_TYPE, INSTANCE_TYPE, POOL, ZONE};
use crate::tree::workspace_root;

/// How long either program may take besides what is measured: mostly to read files.
const TO_LOAD: Duration = Duration::from_secs(900);
/// The time of the plan, and a time long before it.
const NOW: &str = "2026-03-01T12:00:00Z";
const LONG_AGO: &str = "2026-02-20T08:00:00Z";
/// Thirty of these fill a node so that no other pod fits.
const ASKS: Asks<'static> = Asks("260m", "900Mi");
const SIZE: &str = "c8-m32";
/// How the benchmarks of the engine are named, after the cluster.
const FIRST: &str = "/first";
const AGAIN: &str = "/one pod changed";
/// A full scan below this needs no shorter one after a small change: its verdicts are not kept.
const SHORT_ENOUGH_MS: f64 = 100.0;
/// Otherwise a scan after one pod changed takes at most this part of a full one.
const PART: f64 = 50.0;
/// How often we run; the middle one counts.
const RUNS: usize = 5;

#[derive(Debug, Args)]
pub(crate) struct Scans {
    /// How many nodes.
    #[arg(long, default_value_t = 1_000)]
    nodes: usize,
    /// How many pods on each.
    #[arg(long, default_value_t = 30)]
    pods: usize,
    /// How many seconds Karpenter may look at nodes, instead of its own three minutes.
    #[arg(long, value_name = "SECONDS", default_value_t = 360)]
    limit: u64,
    /// Run only Tenon.
    #[arg(long)]
    tenon_only: bool,
    /// Do not measure scans inside the engine, which takes a release build of its benchmarks.
    #[arg(long)]
    no_engine: bool,
    /// The tenon binary to measure, instead of a release build of this checkout.
    #[arg(long, value_name = "FILE")]
    tenon: Option<std::path::PathBuf>,
}

#[derive(Deserialize)]
struct Planned {
    disruption: Scanned,
}

#[derive(Deserialize)]
struct Scanned {
    rounds: Vec<Value>,
    stats: ScanStats,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScanStats {
    simulated: usize,
    scan_micros: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pass {
    build_micros: u64,
    pass_micros: u64,
    own_micros: u64,
    done: bool,
    found: bool,
}

impl Scans {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let folder = tempfile::tempdir().context("cannot create a folder for the scenario")?;
        full_cluster(self.nodes, self.pods).into_scenario().write(folder.path())?;
        let karpenter = if self.tenon_only { None } else { Some(Karpenter::obtain()?) };
        let tenon = self.tenon.clone().map_or_else(|| build_release_tenon(&workspace_root()), Ok)?;
        let tenon = Tenon::obtain(Some(tenon))?;
        println!("{} nodes, {} pods, none of which can go", self.nodes, self.nodes * self.pods);
        println!("{}", ours(&tenon, folder.path())?);
        if let Some(karpenter) = karpenter {
            println!("{}", self.theirs(&karpenter, folder.path())?);
        }
        if !self.no_engine {
            print!("{}", in_the_engine(&measure(&["tenon-engine"], Some("scan"))?));
        }
        Ok(())
    }

    fn theirs(&self, karpenter: &Karpenter, folder: &std::path::Path) -> anyhow::Result<String> {
        let mut command = karpenter.command(folder);
        command.args(["--disruption", "--now", NOW, "--time-single-node", &format!("{}s", self.limit)]);
        let Some(ended) = follow(&mut command, TO_LOAD + Duration::from_secs(self.limit))? else {
            return Ok("Karpenter: did not end and was killed".to_owned());
        };
        let pass: Pass =
            serde_json::from_slice(&ended.output).context("cannot read the output of Karpenter's program")?;
        if pass.found {
            bail!("Karpenter found a node that can go; the pass is not a full one");
        }
        let end = if pass.done { "" } else { ", given up" };
        let own = if pass.pass_micros > pass.own_micros {
            format!("; with its own limit it gives up after {:.0} s", seconds(pass.own_micros))
        } else {
            String::new()
        };
        Ok(format!(
            "Karpenter: {:.1} s for the pass over single nodes{end}{own}; {:.0} s to prepare, {:.0} MiB at most",
            seconds(pass.pass_micros),
            seconds(pass.build_micros),
            ended.peak_mib
        ))
    }
}

fn ours(tenon: &Tenon, folder: &std::path::Path) -> anyhow::Result<String> {
    let (mut times, mut peak, mut simulated) = (Vec::new(), 0.0_f64, 0);
    for _ in 0..RUNS {
        let mut command = tenon.command(folder);
        command.args(["--disruption", "--now", NOW]);
        let ended = follow(&mut command, TO_LOAD)?.context("`tenon plan` did not end and was killed")?;
        let planned: Planned =
            serde_json::from_slice(&ended.output).context("cannot read the output of `tenon plan`")?;
        if !planned.disruption.rounds.is_empty() {
            bail!("Tenon found a node that can go; the scan is not a full one");
        }
        times.push(planned.disruption.stats.scan_micros);
        simulated = planned.disruption.stats.simulated;
        peak = peak.max(ended.peak_mib);
    }
    times.sort_unstable();
    let middle = times.get(RUNS / 2).copied().unwrap_or_default();
    Ok(format!(
        "Tenon: {:.3} s for the scan with all methods, {simulated} simulations; {peak:.0} MiB at most",
        seconds(middle)
    ))
}

/// One line for each cluster: its first scan, and one after a pod changed.
fn in_the_engine(measured: &[Measured]) -> String {
    let mut lines = String::new();
    for first in measured {
        let Some(cluster) = first.name.strip_suffix(FIRST) else { continue };
        let Some(again) = measured.iter().find(|one| one.name.strip_suffix(AGAIN) == Some(cluster)) else { continue };
        let (full, part) = (first.nanos / 1e6, first.nanos / again.nanos);
        let verdict = match (full < SHORT_ENOUGH_MS, part >= PART) {
            (true, _) => "the first is short enough",
            (false, true) => "short enough",
            (false, false) => "every scan is a full one",
        };
        let _ = writeln!(
            lines,
            "{}: {full:.1} ms for the first scan, {:.1} ms after one pod changed, 1/{part:.1} of it: {verdict}",
            cluster.replace('/', ", "),
            again.nanos / 1e6
        );
    }
    lines
}

#[expect(clippy::cast_precision_loss, reason = "times of minutes")]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// Every node is as full as it can be, and no smaller instance type would do.
fn full_cluster(nodes: usize, pods: usize) -> Cluster {
    let rules = json!({"disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "30s",
        "budgets": [{"nodes": "100%"}]}});
    let mut cluster = Cluster::new(sizes_on_hosts()).with(pool("default", &rules));
    for number in 0..nodes {
        let name = format!("node-{number}");
        let zone = format!("pve{}", number % 3 + 1);
        let labels = json!({"metadata": {"creationTimestamp": LONG_AGO, "labels": {POOL: "default", INSTANCE_TYPE: SIZE, ZONE: zone,
            CAPACITY_TYPE: "on-demand", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}}});
        let amounts = json!({"cpu": "7900m", "memory": "32468Mi", "pods": "110"});
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}], "allocatable": amounts, "capacity": amounts}});
        cluster = cluster.with(merged(merged(claim(&name, "default", SIZE), &labels), &initialized(&name, &amounts)));
        cluster = cluster.with(merged(merged(node(&name, &zone, Asks("8", "32Gi")), &labels), &ready));
        let owner = json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r",
            "controller": true}]}});
        let on_node = |pod: usize| merged(bound(&format!("pod-{number}-{pod}"), &name, ASKS), &owner);
        cluster = cluster.with_all((0..pods).map(on_node));
    }
    cluster
}

fn initialized(name: &str, amounts: &Value) -> Value {
    let is = |kind: &str| json!({"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": LONG_AGO});
    let conditions = ["Launched", "Registered", "Initialized"].map(is);
    json!({"spec": {"expireAfter": "Never"}, "status": {"nodeName": name, "capacity": amounts, "allocatable": amounts,
        "lastPodEventTime": LONG_AGO, "conditions": conditions}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_after_a_change_is_told_beside_the_first_one() {
        let one = |name: &str, nanos| Measured::of("scan", name, nanos);
        let text = in_the_engine(&[
            one("10 nodes, 20 pods/full/first", 60e6),
            one("10 nodes, 20 pods/full/one pod changed", 50e6),
            one("90 nodes, 20 pods/full/first", 200e6),
            one("90 nodes, 20 pods/full/one pod changed", 4e6),
            one("95 nodes, 20 pods/full/first", 200e6),
            one("95 nodes, 20 pods/full/one pod changed", 5e6),
        ]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "10 nodes, 20 pods, full: 60.0 ms for the first scan, 50.0 ms after one pod changed, 1/1.2 of it: the first is short enough",
                "90 nodes, 20 pods, full: 200.0 ms for the first scan, 4.0 ms after one pod changed, 1/50.0 of it: short enough",
                "95 nodes, 20 pods, full: 200.0 ms for the first scan, 5.0 ms after one pod changed, 1/40.0 of it: every scan is a full one",
            ]
        );
    }
}
