//! What does a cluster cost in which nothing happens? Requests to Proxmox and Kubernetes, and passes that look at everything.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use tenon_sim::GuestConfig;

use crate::ground::Kind;
use crate::many_vms::{apart, container, estate};
use crate::world::World;

/// VMs in which nothing happens, unless `TENON_IDLE_VMS` says otherwise. What is measured does not grow with them.
const VMS: u32 = 20;

/// How long requests are counted.
const MINUTES: u32 = 10;

/// Hosts, each with a VM template.
const HOSTS: [(&str, u32, u64); 4] =
    [("pve1", 256, 1024), ("pve2", 256, 1024), ("pve3", 256, 1024), ("pve4", 256, 1024)];

/// How often something was asked, by what it was.
type Counts = BTreeMap<String, u32>;

/// A client whose requests are counted, and the counts. Beginning a watch again is left out: it goes by the clock.
fn counting(client: Client) -> (Client, Arc<Mutex<Counts>>) {
    let counts: Arc<Mutex<Counts>> = Arc::default();
    let counted = counts.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, what) = (client.clone(), what(request.method(), request.uri()));
        if let Some(what) = what {
            *counted.lock().unwrap_or_else(PoisonError::into_inner).entry(what).or_default() += 1;
        }
        async move { client.send(request).await }
    });
    (Client::new(service, "default"), counts)
}

fn what(method: &Method, uri: &http::Uri) -> Option<String> {
    let is_watch = uri.query().is_some_and(|query| query.contains("watch=true"));
    // Each NodeClaim under the same name.
    let path = uri.path().split("/nodeclaims/").next().unwrap_or_default();
    let each = if path == uri.path() { "" } else { "/nodeclaims/{name}" };
    (!is_watch).then(|| format!("{method} {path}{each}"))
}

/// What the estate was asked since then, each host and VM under the same name.
fn asked_since(world: &World, since: Duration) -> Counts {
    let mut counts = Counts::new();
    for entry in world.estate.ledger().iter().filter(|entry| entry.at >= since) {
        let words = entry.path.split('/');
        let words: Vec<&str> = words.map(|word| if word.parse::<u32>().is_ok() { "{vmid}" } else { word }).collect();
        *counts.entry(format!("{} {}", entry.method, words.join("/"))).or_default() += 1;
    }
    counts
}

fn shown(counts: &Counts) -> String {
    let lines = counts.iter().map(|(what, count)| format!("{:>8.1} {what}", f64::from(*count) / f64::from(MINUTES)));
    lines.collect::<Vec<_>>().join("\n")
}

/// How often a minute these paths were asked for.
fn rate(counts: &Counts, is_it: impl Fn(&str) -> bool) -> f64 {
    let asked: u32 = counts.iter().filter(|(what, _)| is_it(what)).map(|(_, count)| count).sum();
    f64::from(asked) / f64::from(MINUTES)
}

fn idle_vms() -> u32 {
    std::env::var("TENON_IDLE_VMS").ok().and_then(|count| count.parse().ok()).unwrap_or(VMS)
}

#[test]
fn idle_vms_cost_a_poll_for_all_and_nothing_for_each() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    runtime.block_on(async {
        let (guests, vms) = (Some(GuestConfig::default()), idle_vms());
        let world = World::over(Kind::Embedded, estate(&HOSTS, |_| {})?, guests).await?;
        let mut world = world.context("an embedded world is always there")?;
        let (client, kubernetes) = counting(world.admin.clone());
        world.connect(client)?;
        world.add_rules().await?;
        world.start_controller()?;
        world.deploy_pods(("web", vms), container("500m", "512Mi"), apart("web")).await?;
        world.until_running("web", usize::try_from(vms)?).await?;
        // Until what came with them is settled.
        tokio::time::sleep(Duration::from_secs(300)).await;
        let since = world.estate.elapsed();
        kubernetes.lock().unwrap_or_else(PoisonError::into_inner).clear();
        tokio::time::sleep(Duration::from_secs(60) * MINUTES).await;
        let asked = asked_since(&world, since);
        let kubernetes = kubernetes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let told = format!("a minute, of Proxmox:\n{}\nof Kubernetes:\n{}", shown(&asked), shown(&kubernetes));
        let metrics = world.served("metrics", "/metrics")?;
        let passes = metrics.lines().filter(|line| line.contains("tenon_passes_total{"));
        println!("{told}\n{}", passes.collect::<Vec<_>>().join("\n"));
        assert_eq!(world.vms().len(), usize::try_from(vms)?, "nothing happened");

        let listings = rate(&asked, |what| what == "GET /cluster/resources");
        let templates = rate(&asked, |what| what.ends_with("/config")) / f64::from(u8::try_from(HOSTS.len())?);
        assert!(listings <= 7.0, "{listings} listings a minute\n{told}");
        assert!(templates <= 2.0, "each template is read {templates} times a minute\n{told}");
        let of_templates = 2.0 * f64::from(u8::try_from(HOSTS.len())?);
        assert!(rate(&asked, |_| true) <= listings + of_templates + 3.0, "{told}");
        let lists = rate(&kubernetes, |what| what.ends_with("/nodeclaims"));
        assert!(lists <= 2.0, "all NodeClaims are listed {lists} times a minute\n{told}");
        world.end().await
    })
}
