//! `tenon demo`: the whole system in one process, with nothing behind it that could break: a cluster, three hypervisors, and
//! the real controllers between them.

mod kept;
mod plot;
mod scene;
mod site;
mod summary;
mod view;
mod workload;

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use clap::{Args, ValueEnum};

use self::kept::Kept;
use self::plot::Plot;
use self::scene::Scene;
use self::site::Site;
use self::summary::Summary;
use self::view::View;

/// More than a screen shows and a demo needs.
const HOSTS_MAX: u32 = 16;
const PODS_MAX: u32 = 500;

/// A demo that is not over by then, on its own clock, is broken.
const OVER_AFTER: Duration = Duration::from_secs(600);

/// How often the scene is looked at, on the demo's clock.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Run the whole system on a simulated cluster, in one process and in seconds.
#[derive(Debug, Args)]
pub struct Demo {
    /// Seed of all random values; the same seed shows the same demo.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Number of hosts, each with 16 CPU cores and 64 GiB of memory.
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    hosts: u32,
    /// Number of pods.
    #[arg(long, value_name = "COUNT", default_value_t = 18)]
    pods: u32,
    /// How much faster than real time the simulated clock runs; 0: as fast as possible.
    #[arg(long, value_name = "FACTOR", default_value_t = 8)]
    speed: u32,
    /// Print plain lines, as when the output is not a terminal.
    #[arg(long)]
    headless: bool,
    /// Keep everything running at the end, and print how to connect with kubectl and curl.
    #[arg(long)]
    keep: bool,
    /// With --keep: address of the Kubernetes API; port 0 selects a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    kubernetes_listen: SocketAddr,
    /// With --keep: address of the Proxmox API; port 0 selects a free port.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    proxmox_listen: SocketAddr,
    /// Output format of the summary.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Format,
}

/// Output format of the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Lines of text.
    Text,
    /// One JSON object, and nothing else.
    Json,
}

/// Runs the demo.
pub fn run(args: &Demo, out: &mut dyn Write) -> anyhow::Result<()> {
    ensure!(
        (1..=HOSTS_MAX).contains(&args.hosts),
        "cannot simulate {} hosts; give --hosts a number from 1 to {HOSTS_MAX}",
        args.hosts
    );
    ensure!(
        (1..=PODS_MAX).contains(&args.pods),
        "cannot create {} pods; give --pods a number from 1 to {PODS_MAX}",
        args.pods
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // The demo's clock stands still while there is something to do, and jumps while there is not.
        .start_paused(true)
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(play(args, out))
}

async fn play(args: &Demo, out: &mut dyn Write) -> anyhow::Result<()> {
    let begun = Instant::now();
    let kept = match args.keep {
        true => Some(Kept::prepare(args.kubernetes_listen, args.proxmox_listen).await?),
        false => None,
    };
    let site = Site::start(args.seed, args.hosts).await?;
    let is_live = !args.headless && args.output == Format::Text && std::io::stdout().is_terminal();
    let mut view = View::new(is_live, args.output == Format::Text);
    view.open(args.pods, args.hosts, out)?;
    let pace = tokio::spawn(pace(args.speed));
    let mut plot = Plot::new(args.pods);
    let mut summary = Summary::default();
    loop {
        let scene = Scene::look(&site).await?;
        summary.note(&scene);
        view.show(&scene, out)?;
        if plot.go_on(&site, &scene).await? {
            break;
        }
        if scene.at > OVER_AFTER {
            bail!(
                "the demo did not finish within {} s of simulated time: {}; please report it with --seed {}",
                OVER_AFTER.as_secs(),
                site.trouble().unwrap_or_else(|| "the cause is unknown".to_owned()),
                args.seed
            );
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    pace.abort();
    summary.close(&site, begun.elapsed())?;
    summary.print(args.output, out)?;
    ensure!(
        summary.leftovers() == 0,
        "the demo left {} VMs or volumes behind; this is a bug in Tenon, please report it with --seed {}",
        summary.leftovers(),
        args.seed
    );
    if let Some(kept) = kept {
        kept.serve(&site, out).await?;
    }
    site.end().await
}

/// Holds the demo's clock back, so that people can follow it: it would be over in a second otherwise.
async fn pace(speed: u32) {
    if speed == 0 {
        return;
    }
    let step = Duration::from_millis(100);
    loop {
        tokio::time::sleep(step).await;
        // Blocking is the point: nothing else may move meanwhile.
        std::thread::sleep(step / speed);
    }
}
