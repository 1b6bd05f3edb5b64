//! Is a run repeated exactly by the same seed, and how fast does time pass when nothing happens?

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tenon_api::{NodeClaim, NodePool, ProxmoxNodeClass, ProxmoxUnmanagedTemplate};
use tenon_sim::GuestConfig;

use crate::ground::Kind;
use crate::world::World;

/// How often a run is repeated.
const RUNS: usize = 20;

/// What a run comes to.
#[derive(Debug, PartialEq)]
struct Run {
    /// For each VM, what was asked about it, in order.
    asked: BTreeMap<String, Vec<String>>,
    /// All objects, at the moment when everything runs.
    running: Vec<Value>,
    /// All objects, when everything is gone.
    gone: Vec<Value>,
}

#[test]
fn the_same_seed_gives_the_same_run_twenty_times() -> anyhow::Result<()> {
    let first = run()?;
    assert!(!first.running.is_empty() && first.asked.len() == 3, "{:?}", first.asked.keys());
    for number in 1..RUNS {
        let next = run()?;
        assert_eq!(next.asked, first.asked, "run {number} asked something else");
        for (mine, other) in first.running.iter().zip(&next.running) {
            assert_eq!(mine, other, "run {number} made another object");
        }
        assert_eq!(next, first, "run {number}");
    }
    Ok(())
}

#[test]
fn an_idle_hour_is_over_soon() -> anyhow::Result<()> {
    on_a_stopped_clock(async {
        // Kubelets that renew their leases as often as real ones.
        let Some(mut world) = World::new(Kind::Embedded, GuestConfig::default()).await? else { return Ok(()) };
        world.add_rules().await?;
        world.start_controller()?;
        world.deploy("web", 3).await?;
        world.until_running("web", 3).await?;
        let begun = Instant::now();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        println!("an hour in which nothing happens on three nodes took {:.2} s", begun.elapsed().as_secs_f64());
        assert_eq!((world.claims().await?.len(), world.vms().len()), (3, 3), "nothing happened");
        world.end().await
    })
}

fn on_a_stopped_clock<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?;
    runtime.block_on(work)
}

/// Three pods come, run, and go.
fn run() -> anyhow::Result<Run> {
    on_a_stopped_clock(async {
        let world = World::running(Kind::Embedded).await?;
        let world = world.ok_or_else(|| anyhow::anyhow!("an embedded world is always there"))?;
        world.deploy("web", 3).await?;
        world.until_running("web", 3).await?;
        let running = objects(&world.admin).await?;
        world.scale("web", 0).await?;
        world.until_nothing_is_left().await?;
        let (gone, asked) = (objects(&world.admin).await?, asked(&world));
        world.end().await?;
        Ok(Run { asked, running, gone })
    })
}

/// What was asked about each VM: looks at the whole estate are nobody's.
fn asked(world: &World) -> BTreeMap<String, Vec<String>> {
    let mut asked: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in world.estate.ledger() {
        let vmid = entry.path.split(['/', ':', '-', '.']).chain(entry.params.values().map(String::as_str));
        let vmid = vmid.filter(|part| part.len() == 5 && part.starts_with("20")).map(str::to_owned).next();
        if let Some(vmid) = vmid {
            let params: Vec<String> = entry.params.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let line = format!("{:?} {} {} {}", entry.at, entry.method, entry.path, params.join("&"));
            asked.entry(vmid).or_default().push(line);
        }
    }
    asked
}

async fn objects(client: &Client) -> anyhow::Result<Vec<Value>> {
    let mut all = Vec::new();
    all.extend(listed::<NodePool>(client).await?);
    all.extend(listed::<ProxmoxNodeClass>(client).await?);
    all.extend(listed::<ProxmoxUnmanagedTemplate>(client).await?);
    all.extend(listed::<NodeClaim>(client).await?);
    all.extend(listed::<Node>(client).await?);
    all.extend(listed::<Pod>(client).await?);
    all.extend(listed::<Secret>(client).await?);
    all.extend(listed::<CertificateSigningRequest>(client).await?);
    all.extend(listed::<Event>(client).await?);
    Ok(all)
}

async fn listed<K>(client: &Client) -> anyhow::Result<Vec<Value>>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Serialize + Debug,
{
    let list = Api::<K>::all(client.clone()).list(&ListParams::default()).await?.items;
    let mut values: Vec<Value> = list.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
    values.iter_mut().for_each(forget);
    // Names that hold a key put them into another order.
    values.sort_by_key(ToString::to_string);
    Ok(values)
}

/// Leaves out versions, which count every write, and everything a key is in or was made with: those come from the system.
fn forget(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
        // Requests for certificates are named after their key.
        if metadata.get("name").and_then(Value::as_str).is_some_and(|name| name.starts_with("node-csr-")) {
            metadata.insert("name".to_owned(), Value::Null);
        }
    }
    for pointer in ["/data/token-secret", "/spec/request", "/status/certificate"] {
        if let Some(key) = object.pointer_mut(pointer) {
            *key = Value::Null;
        }
    }
}
