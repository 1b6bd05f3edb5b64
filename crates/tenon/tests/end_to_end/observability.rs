//! What do Prometheus and its tools say of what the controller serves, and of what the chart asks?

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, ensure};
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tenon_api::NodePool;
use tenon_controllers::{Metric, MetricOrigin, Metrics};
use testbed::{PROMETHEUS, PROMTOOL, Runner, proof};

use crate::bench::quick_guests;
use crate::fleet::Member;
use crate::ground::{Kind, scenarios};
use crate::world::World;

/// What promtool says of names that Karpenter chose, in the end of its sentence. Dashboards ask for these names.
const COMPLAINTS_OF_REFERENCE_NAMES: [(&str, &str); 9] = [
    ("karpenter_scheduler_ignored_pods_count", "should not have \"_count\" suffix"),
    ("karpenter_scheduler_unschedulable_pods_count", "should not have \"_count\" suffix"),
    ("karpenter_scheduler_pending_pods_by_effective_zone_count", "should not have \"_count\" suffix"),
    ("karpenter_cluster_state_node_count", "should not have \"_count\" suffix"),
    ("operator_node_status_condition_count", "should not have \"_count\" suffix"),
    ("operator_nodeclaim_status_condition_count", "should not have \"_count\" suffix"),
    ("operator_nodepool_status_condition_count", "should not have \"_count\" suffix"),
    ("operator_status_condition_count", "should not have \"_count\" suffix"),
    ("karpenter_nodepools_cost_total", "should not have \"_total\" suffix"),
];

/// Prometheus looks this often.
const SCRAPED_EVERY: Duration = Duration::from_secs(1);

scenarios! {
    what_is_served_during_a_run_is_all_in_the_catalogue_and_promtool_finds_nothing_but_names_of_the_reference,
}

async fn what_is_served_during_a_run_is_all_in_the_catalogue_and_promtool_finds_nothing_but_names_of_the_reference(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(world) = World::running(kind).await? else { return Ok(()) };
    world.deploy("web", 2).await?;
    world.until_running("web", 2).await?;
    let (during, names) = (world.served("metrics", "/metrics")?, world.claims().await?);
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    let is_left = |page: &str| names.iter().any(|claim| page.contains(&format!("\"{}\"", claim.name_any())));
    assert!(is_left(&during), "{during}");
    let after = world
        .until("nothing is served of nodes that are gone", async || {
            Ok(Some(world.served("metrics", "/metrics")?).filter(|page| !is_left(page)))
        })
        .await?;
    for page in [&during, &after] {
        let (_, page) = page.split_once("# HELP").context("nothing is served")?;
        let page = format!("# HELP{page}");
        all_in_the_catalogue(&page)?;
        check_metrics(&page)?;
    }
    world.end().await
}

/// Every sample is of a metric of the catalogue, with its kind and its labels.
fn all_in_the_catalogue(page: &str) -> anyhow::Result<()> {
    let catalogue = Metrics::catalogue();
    for line in page.lines().filter(|line| !line.is_empty() && !line.starts_with("# HELP")) {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').context("no kind")?;
            let metric = catalogue.iter().find(|metric| metric.name == name);
            ensure!(metric.is_some_and(|metric| metric.kind.as_str() == kind), "{line}");
            continue;
        }
        let (name, rest) = line.split_once(['{', ' ']).context("no value")?;
        let of = |metric: &&&Metric| metric.has_sample(name);
        let metric = catalogue.iter().find(of).with_context(|| format!("{name} is not in the catalogue"))?;
        let labels = if line.contains('{') { label_names(rest) } else { Vec::new() };
        let own: Vec<&str> = labels.into_iter().filter(|label| !["le", "quantile"].contains(label)).collect();
        let expected: Vec<&str> = metric.labels.iter().map(|label| label.name).collect();
        ensure!(own == expected, "{line}: {expected:?}");
    }
    Ok(())
}

/// The names before each `="`, which no value of ours contains.
fn label_names(labels: &str) -> Vec<&str> {
    let parts: Vec<&str> = labels.split("=\"").collect();
    let names = parts.iter().take(parts.len().saturating_sub(1));
    names.map(|part| part.rsplit([',', '"']).next().unwrap_or_default()).collect()
}

fn check_metrics(page: &str) -> anyhow::Result<()> {
    let Some(promtool) = proof::with_tool(&PROMTOOL)? else { return Ok(()) };
    let mut child = promtool
        .command()
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().context("no input")?.write_all(page.as_bytes())?;
    let output = child.wait_with_output()?;
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    for line in said.lines().filter(|line| !line.is_empty()) {
        let is_listed = |(name, end): &(&str, &str)| line.starts_with(&format!("{name} ")) && line.ends_with(end);
        ensure!(COMPLAINTS_OF_REFERENCE_NAMES.iter().any(is_listed), "promtool says: {line}");
        let ours = Metrics::catalogue().into_iter().filter(|metric| metric.origin == MetricOrigin::Tenon);
        ensure!(ours.into_iter().all(|metric| !line.starts_with(metric.name)), "promtool says: {line}");
    }
    Ok(())
}

/// Something that the chart asks Prometheus.
struct Asked {
    whose: String,
    query: String,
}

/// Prometheus, as long as somebody holds it.
struct Collector {
    child: Child,
    address: SocketAddr,
    begun: SystemTime,
}

impl Drop for Collector {
    fn drop(&mut self) {
        // It has nothing to say any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Collector {
    /// Collects what is served at an address, by the rules of the chart.
    fn start(prometheus: &Runner, folder: &Path, target: SocketAddr) -> anyhow::Result<Collector> {
        let every = format!("{}s", SCRAPED_EVERY.as_secs());
        let config = json!({
            "global": { "scrape_interval": every, "evaluation_interval": every },
            "rule_files": [beside("../../charts/tenon/files/alerts.yaml")],
            "scrape_configs": [{ "job_name": "tenon", "static_configs": [{ "targets": [target.to_string()] }] }],
        });
        let path = folder.join("prometheus.json");
        std::fs::write(&path, config.to_string())?;
        // Prometheus does not say which port it has, so it is told one that was free a moment ago.
        let address = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        let log = std::fs::File::create(folder.join("prometheus.log"))?;
        let child = prometheus
            .command()
            .arg(format!("--config.file={}", path.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("prometheus").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("cannot start Prometheus")?;
        Ok(Collector { child, address, begun: SystemTime::now() })
    }

    fn get(&self, path: &str) -> anyhow::Result<String> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        // Of version 1.0, so that the answer comes in one piece.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("no body")?;
        ensure!(head.lines().next().is_some_and(|line| line.contains(" 200")), "{path}: {answer}");
        Ok(body.to_owned())
    }

    /// How many series a query has found since the start, and the last value of the first.
    fn ask(&self, query: &str) -> anyhow::Result<(usize, String)> {
        let seconds = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).map(|since| since.as_secs_f64());
        let (start, end) = (seconds(self.begun)?, seconds(SystemTime::now())?);
        let path = format!("/api/v1/query_range?query={}&start={start}&end={end}&step=1", encoded(query));
        let answer: Value = serde_json::from_str(&self.get(&path)?)?;
        let series = answer["data"]["result"].as_array().context("no result")?;
        let last = series.first().and_then(|series| series["values"].as_array()?.last()?.get(1)?.as_str());
        Ok((series.len(), last.unwrap_or_default().to_owned()))
    }
}

fn encoded(query: &str) -> String {
    query
        .bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn beside(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path).to_string_lossy().into_owned()
}

/// Every query of the dashboard, and of every alert what it compares.
fn asked() -> anyhow::Result<Vec<Asked>> {
    let dashboard: Value =
        serde_json::from_str(&std::fs::read_to_string(beside("../../charts/tenon/files/dashboard.json"))?)?;
    let mut asked = Vec::new();
    for panel in dashboard["panels"].as_array().context("no panels")? {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let (whose, query) = (panel["title"].as_str(), target["expr"].as_str());
            let (whose, query) = (whose.context("no title")?.to_owned(), query.context("no query")?.to_owned());
            asked.push(Asked { whose, query });
        }
    }
    let alerts: Value =
        serde_saphyr::from_str(&std::fs::read_to_string(beside("../../charts/tenon/files/alerts.yaml"))?)?;
    for rule in alerts["groups"][0]["rules"].as_array().context("no rules")? {
        let (whose, query) = (rule["alert"].as_str().context("no name")?, rule["expr"].as_str().context("no query")?);
        let compared = query.rsplit_once(" > ").or_else(|| query.rsplit_once(" == ")).context("nothing is compared")?;
        asked.push(Asked { whose: whose.to_owned(), query: compared.0.to_owned() });
    }
    Ok(asked)
}

#[test]
fn promtool_takes_the_alert_rules_of_the_chart() -> anyhow::Result<()> {
    let Some(promtool) = proof::with_tool(&PROMTOOL)? else { return Ok(()) };
    let rules = beside("../../charts/tenon/files/alerts.yaml");
    let output = promtool.command().args(["check", "rules", "--lint=all", "--lint-fatal", &rules]).output()?;
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success() && said.contains("rules found"), "{said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_query_of_the_dashboard_and_of_the_alerts_finds_data_in_a_run() -> anyhow::Result<()> {
    let Some(prometheus) = proof::with_tool(&PROMETHEUS)? else { return Ok(()) };
    let Some(world) = World::new(Kind::Real, quick_guests()).await? else { return Ok(()) };
    world.add_rules().await?;
    let member = Member::start(&world, "observed", &[]).await?;
    let target = world
        .until("the controller serves metrics", async || {
            Ok(member.metrics().filter(|_| member.log().contains("caches synced")))
        })
        .await?;
    let folder = tempfile::tempdir()?;
    let collector = Collector::start(&prometheus, folder.path(), target)?;
    world.until("Prometheus is ready", async || Ok(collector.get("/-/ready").ok())).await?;
    a_life_with_everything(&world).await?;

    let asked = asked()?;
    let mut empty = BTreeSet::new();
    let mut found = BTreeMap::new();
    let begun = Instant::now();
    // What was counted last is collected within a few seconds.
    while begun.elapsed() < SCRAPED_EVERY * 20 {
        empty.clear();
        for Asked { whose, query } in &asked {
            let (series, value) = collector.ask(query)?;
            if series == 0 {
                empty.insert(format!("{whose}: {query}"));
            }
            found.insert((whose, query), (series, value));
        }
        if empty.is_empty() {
            break;
        }
        tokio::time::sleep(SCRAPED_EVERY).await;
    }
    println!("{:<46} {:>6}  {:<24} query", "panel or alert", "series", "last value of the first");
    for ((whose, query), (series, value)) in &found {
        println!("{whose:<46} {series:>6}  {value:<24} {query}");
    }
    ensure!(empty.is_empty(), "no data: {empty:#?}");
    drop(collector);
    drop(member);
    world.end().await
}

/// Nodes come, drift, are drained and go.
async fn a_life_with_everything(world: &World) -> anyhow::Result<()> {
    world.deploy("web", 2).await?;
    world.until_running("web", 2).await?;
    let pools: Api<NodePool> = Api::all(world.admin.clone());
    let drift = json!({ "spec": { "template": { "metadata": { "labels": { "example.com/new": "yes" } } } } });
    pools.patch("default", &PatchParams::default(), &Patch::Merge(drift)).await?;
    let name = world.claims().await?.first().context("no claim")?.name_any();
    world
        .until("the nodes have drifted", async || {
            Ok(world.drift_of(&name).await?.filter(|told| told.starts_with("True")).map(drop))
        })
        .await?;
    // For longer than Prometheus takes to look again.
    world.let_pass(SCRAPED_EVERY * 12).await?;
    world.delete_claim(&name).await?;
    world
        .until("its pod has left", async || {
            Ok(world.claims().await?.iter().all(|claim| claim.name_any() != name).then_some(()))
        })
        .await?;
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await
}
