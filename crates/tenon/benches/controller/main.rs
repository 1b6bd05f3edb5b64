//! How much memory does the controller hold in a large cluster, and how soon is it ready? Run by `cargo xtask bench controller`.
//!
//! The control plane is a real one without scheduler and controller manager: nothing but the controller itself acts on the
//! objects, which are made once and read by every start.

mod cluster;
mod estate;
mod machines;
mod process;
mod workloads;

use std::env;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use testbed::{Program, Testbed};

use crate::cluster::Cluster;
use crate::estate::Lab;
use crate::process::{Measured, measure};

/// How many objects there are, unless a variable says otherwise.
struct Sizes {
    nodes: usize,
    pods: usize,
    pending: usize,
}

fn main() -> anyhow::Result<()> {
    // Only `cargo bench` says this. Whoever builds all targets to check them does not want to wait for minutes.
    if !env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(bench())
}

async fn bench() -> anyhow::Result<()> {
    let sizes = Sizes {
        nodes: number("TENON_BENCH_NODES", 1_000)?,
        pods: number("TENON_BENCH_PODS", 30_000)?,
        pending: number("TENON_BENCH_PENDING", 200)?,
    };
    let begun = Instant::now();
    let testbed = Testbed::start()?;
    // They would take the pods for what they are: bound to nodes on which nobody runs them.
    testbed.kill(Program::KubeScheduler)?;
    testbed.kill(Program::KubeControllerManager)?;
    let lab = Lab::serve().await?;
    let cluster = Cluster::new(testbed.admin().await?);
    cluster.install().await?;
    cluster.add_machines(sizes.nodes, &lab).await?;
    let bytes = cluster.add_workloads(&sizes).await?;
    println!(
        "{} nodes, {} bound pods of {:.1} KB as JSON, {} pending pods of {} workloads, made in {:.0} s",
        sizes.nodes,
        sizes.pods,
        bytes as f64 / 1e3,
        sizes.pending,
        workloads::COUNT + workloads::DAEMONS,
        begun.elapsed().as_secs_f64()
    );
    println!("{:10} {:>12} {:>12} {:>12} {:>12}", "", "ready", "at ready", "settled", "peak");
    for name in ["start", "restart"] {
        let Measured { ready, at_ready, settled, peak } = measure(&testbed, &lab, Duration::from_secs(30)).await?;
        let (ready, [at_ready, settled, peak]) = (ready.as_secs_f64(), [at_ready, settled, peak].map(megabytes));
        println!("{name:10} {ready:>10.2} s {at_ready:>9.0} MB {settled:>9.0} MB {peak:>9.0} MB");
    }
    if env::var_os("TENON_BENCH_HOLD").is_some() {
        println!("kubeconfig {}; cloud config {}", testbed.kubeconfig().display(), lab.cloud_config());
        println!("all of it is there until this process ends");
        std::future::pending::<()>().await;
    }
    Ok(())
}

fn megabytes(kilobytes: u64) -> f64 {
    kilobytes as f64 * 1024.0 / 1e6
}

fn number(variable: &str, otherwise: usize) -> anyhow::Result<usize> {
    let Ok(text) = env::var(variable) else { return Ok(otherwise) };
    text.parse().with_context(|| format!("{variable} is `{text}`; set it to a number"))
}
