//! What comes of days of running? A load that changes by the hour, templates that change, nodes that expire and hosts that die, with
//! the real controllers, in virtual time. Every day is a row; a bound that breaks is a failed test.
//!
//! `cargo xtask bench week` plays a week on 60 nodes. `TENON_WEEK_HOURS`, `TENON_WEEK_NODES` and `TENON_WEEK_SEED` change what the test
//! plays.

pub(crate) mod load;
mod optimum;
mod requests;
mod scene;
mod table;
mod watch;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::ensure;
use tenon_sim::{Estate, VmView};
use tokio::time::Instant;

use self::load::App;
use self::optimum::Market;
use self::requests::Requests;
use self::scene::{Course, DAY_S, NODE_CORES, Trouble};
use self::table::Day;
use self::watch::Watch;
use crate::world::World;

/// How often is looked.
const TICK: Duration = Duration::from_secs(60);

/// How often the best nodes for the pods of a moment are computed.
const OPTIMUM_EVERY_TICKS: u64 = 30;

/// No more nodes move in a day than this for each node there is.
const MOVES_MOST: f64 = 2.0;

/// No pod waits for longer: a launch takes about a minute, and a host that dies takes its nodes with it.
const WAIT_MOST: Duration = Duration::from_secs(15 * 60);

/// Nothing moves for so long once the load stays the same.
const QUIET: Duration = Duration::from_secs(30 * 60);

/// How long may pass until nothing moves, and until nothing is left.
const SETTLES_WITHIN: Duration = Duration::from_secs(4 * 3600);

/// A run.
struct Run {
    course: Course,
    world: World,
    watch: Watch,
    requests: Requests,
    market: Market,
    prices: BTreeMap<String, f64>,
    apps: Vec<App>,
    /// How many pods each workload has been given.
    replicas: BTreeMap<String, u64>,
    foreign: Vec<VmView>,
    began: Instant,
    /// How much of the log was read.
    log_read: usize,
}

#[test]
fn hours_of_changing_load_with_drift_expiry_and_a_dead_host_keep_within_all_bounds() -> anyhow::Result<()> {
    let course = Course { seed: 1, hours: 4, nodes: 4 }.or();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    runtime.block_on(async {
        let mut run = Run::begin(course).await?;
        println!("seed {}, {} hours, about {} nodes at the peak", course.seed, course.hours, course.nodes);
        println!("{}", table::HEADER);
        let mut all = Vec::new();
        for number in 0..course.hours.div_ceil(24) {
            let day = run.day(number).await?;
            println!("{}", day.row(&number.to_string()));
            all.push(day);
        }
        let whole = table::sum(&all);
        println!("{}", whole.row("all"));
        println!("{}", whole.notes());
        run.settle().await?;
        let broken = std::mem::take(&mut run.watch.seen().broken);
        run.end().await?;
        ensure!(broken.is_empty(), "seed {}: bounds were broken:\n{}", course.seed, broken.join("\n"));
        for (number, day) in all.iter().enumerate() {
            let moves = day.moves_per_node();
            ensure!(moves <= MOVES_MOST, "seed {}: {moves:.2} moves per node on day {number}", course.seed);
        }
        Ok(())
    })
}

/// VMs that are nobody's business here. Whether they run is that of their hosts.
fn foreign(estate: &Estate) -> Vec<VmView> {
    let others = estate.vms().into_iter().filter(|vm| vm.vmid < 20_000);
    others.map(|vm| VmView { status: "", ..vm }).collect()
}

impl Run {
    async fn begin(course: Course) -> anyhow::Result<Run> {
        let apps = load::apps(course.seed, course.nodes * NODE_CORES * 4 / 5);
        let mut world = scene::world(&course, scene::estate(&course)?).await?;
        let limits = apps.iter().filter_map(|app| Some((app.name.clone(), app.max_unavailable?)));
        let watch = Watch::start(&world.admin, limits.collect());
        let requests = Requests::judged_by(&watch);
        world.connect(requests.through(world.admin.clone()))?;
        let foreign = foreign(&world.estate);
        world.start_controller()?;
        world.deploy_apps(&apps).await?;
        let market = Market::of(&world.admin, &course.hosts(), scene::daemon()).await?;
        let replicas = apps.iter().map(|app| (app.name.clone(), app.replicas(Duration::ZERO))).collect();
        let prices = Market::prices();
        let began = Instant::now();
        Ok(Run { course, world, watch, requests, market, prices, apps, replicas, foreign, began, log_read: 0 })
    }

    /// One day.
    async fn day(&mut self, number: u64) -> anyhow::Result<Day> {
        let (real, mut day) = (std::time::Instant::now(), Day::default());
        let ticks = DAY_S / TICK.as_secs();
        let troubles = scene::troubles(&self.course);
        for tick in number * ticks..((number + 1) * ticks).min(self.course.hours * 60) {
            let at = Duration::from_secs(tick * TICK.as_secs());
            for (_, trouble) in troubles.iter().filter(|(when, _)| *when == at) {
                self.bring(trouble).await?;
            }
            self.scale(at).await?;
            if tick % OPTIMUM_EVERY_TICKS == 0 {
                self.compare(&mut day)?;
            }
            tokio::time::sleep_until(self.began + at + TICK).await;
            self.look(&mut day);
            if tick % 60 == 59 && std::env::var_os("TENON_WEEK_HOURLY").is_some() {
                println!("hour {}: {}", tick / 60 + 1, self.watch.seen().told());
            }
        }
        self.close(&mut day);
        day.took = real.elapsed();
        Ok(day)
    }

    async fn bring(&self, trouble: &Trouble) -> anyhow::Result<()> {
        match trouble {
            Trouble::HostDies(host) => self.world.estate.set_host_online(host, false)?,
            Trouble::HostReturns(host) => self.world.estate.set_host_online(host, true)?,
            Trouble::TemplateChanges(value) => self.world.relabel(value).await?,
        }
        Ok(())
    }

    /// Gives every workload as many pods as it wants now.
    async fn scale(&mut self, at: Duration) -> anyhow::Result<()> {
        for app in &self.apps {
            let wanted = app.replicas(at);
            if self.replicas.insert(app.name.clone(), wanted) != Some(wanted) {
                self.world.scale(&app.name, u32::try_from(wanted)?).await?;
            }
        }
        Ok(())
    }

    /// What the pods of now would cost at best.
    fn compare(&self, day: &mut Day) -> anyhow::Result<()> {
        let wanted: Vec<(&App, u64)> = self.apps.iter().map(|app| (app, self.replicas[&app.name])).collect();
        let best = self.market.optimum(&wanted)?;
        day.compare(&best, OPTIMUM_EVERY_TICKS);
        Ok(())
    }

    fn look(&self, day: &mut Day) {
        let mut seen = self.watch.seen();
        let price: f64 = seen.paid().filter_map(|claim| self.prices.get(&claim.instance_type)).sum();
        day.look(seen.paid().count(), price);
        let now = self.watch.elapsed();
        if let Some((wait, app)) = seen.longest_wait(now).filter(|(wait, _)| *wait > WAIT_MOST) {
            // Told once a quarter of an hour, not every minute.
            if wait.as_secs() / 60 % 15 == 0 {
                seen.broken.push(format!("{now:?}: a pod of {app} has waited for {wait:?}"));
            }
        }
    }

    /// What was counted on a day.
    fn close(&mut self, day: &mut Day) {
        day.counts = std::mem::take(&mut self.watch.seen().counts);
        day.asked = std::mem::take(&mut *self.requests.asked());
        let log = self.world.log();
        day.read_log(&log[self.log_read..]);
        self.log_read = log.len();
        let since = self.world.estate.elapsed().saturating_sub(Duration::from_secs(DAY_S));
        let about_foreign = |path: &str| self.foreign.iter().any(|vm| path.ends_with(&format!("/qemu/{}", vm.vmid)));
        let ledger = self.world.estate.ledger();
        let written = ledger.iter().filter(|entry| entry.at >= since && entry.method != "GET");
        let touched = written.filter(|entry| about_foreign(entry.path.split("/status/").next().unwrap_or_default()));
        let told: Vec<String> = touched.map(|entry| format!("{} {}", entry.method, entry.path)).collect();
        self.watch.seen().broken.extend(told.into_iter().map(|told| format!("another's VM was touched: {told}")));
    }

    /// Once the load stays the same and all hosts are there, nothing moves for half an hour.
    async fn settle(&mut self) -> anyhow::Result<()> {
        for host in self.course.hosts() {
            self.world.estate.set_host_online(&host, true)?;
        }
        let begun = Instant::now();
        loop {
            tokio::time::sleep(TICK).await;
            let (now, last_move) = (self.watch.elapsed(), self.watch.seen().last_move);
            if now.saturating_sub(last_move) >= QUIET {
                break;
            }
            ensure!(
                begun.elapsed() < SETTLES_WITHIN,
                "nodes still move after {SETTLES_WITHIN:?}\n{}",
                self.world.tail()
            );
        }
        println!("nothing moves any more after {} min", begun.elapsed().saturating_sub(QUIET).as_secs() / 60);
        let seen = self.watch.seen();
        let longest = seen.longest_taint.clone();
        println!("longest time that a node was tainted: {} min ({})", longest.0.as_secs() / 60, longest.1);
        ensure!(seen.tainted.is_empty(), "nodes stay tainted: {:?}", seen.tainted);
        let wait = seen.longest_wait(self.watch.elapsed());
        ensure!(wait.is_none(), "a pod waits though nothing moves: {wait:?}");
        Ok(())
    }

    /// All pods go; then nothing may be left, and the VMs of others are as they were.
    async fn end(self) -> anyhow::Result<()> {
        for app in &self.apps {
            self.world.scale(&app.name, 0).await?;
        }
        let begun = Instant::now();
        while !(self.world.claims().await?.is_empty() && self.world.vms().is_empty()) {
            ensure!(begun.elapsed() < SETTLES_WITHIN, "NodeClaims or VMs are left\n{}", self.world.tail());
            tokio::time::sleep(TICK).await;
        }
        self.world.until_nothing_is_left().await?;
        assert_eq!(foreign(&self.world.estate), self.foreign, "VMs of others are as they were");
        self.world.end().await
    }
}
