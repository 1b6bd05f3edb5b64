//! Many VMs at once: over hosts of different sizes in two Proxmox clusters, on a storage that makes one disk after the other,
//! and beside another Kubernetes cluster that uses the same Proxmox cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tenon_sim::{
    ApiAccess, Cluster, Connect, ConnectError, Estate, EstateConfig, FaultEffect, FaultMatch, FaultRule, GuestConfig,
    Guests, HostSpec, LedgerEntry, Repeat, StorageSpec, TemplateSpec, TokenSpec, VmView,
};

use crate::bench::quick_guests;
use crate::ground::Kind;
use crate::world::{TOKEN, World};

const GIB: u64 = 1 << 30;

/// Memory that a host keeps for itself.
const RESERVE_MIB: u64 = 1024;

fn estate(hosts: &[(&str, u32, u64)], change: impl FnOnce(&mut EstateConfig)) -> anyhow::Result<Estate> {
    let host = |(name, cores, gib): &(&str, u32, u64)| HostSpec::new(name, *cores, gib * GIB);
    let mut config = EstateConfig { hosts: hosts.iter().map(host).collect(), ..EstateConfig::default() };
    change(&mut config);
    let estate = Estate::new(config);
    for (number, (host, ..)) in (9001..).zip(hosts) {
        let template =
            TemplateSpec { host: (*host).into(), vmid: number, name: "debian-13".into(), ..TemplateSpec::default() };
        estate.add_template(&template)?;
    }
    Ok(estate)
}

fn ours(estate: &Estate) -> Vec<VmView> {
    estate.vms().into_iter().filter(|vm| vm.vmid >= 20_000).collect()
}

/// Pods of a deployment that never share a node.
fn apart(app: &str) -> Value {
    json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
        { "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "app": app } } },
    ] } } })
}

fn container(cpu: &str, memory: &str) -> Value {
    json!({ "resources": { "requests": { "cpu": cpu, "memory": memory } } })
}

/// No host had more cores or memory given to VMs of ours than it has, from each clone to the end of the VM.
fn assert_never_over_capacity(ledger: &[LedgerEntry], hosts: &[(&str, u32, u64)]) {
    let mut sizes: BTreeMap<u32, (String, u64, u64)> = BTreeMap::new();
    for entry in ledger.iter().filter(|entry| entry.status == 200) {
        let words: Vec<&str> = entry.path.trim_matches('/').split('/').collect();
        let (host, id) = match words.as_slice() {
            ["nodes", host, "qemu", id, ..] => ((*host).to_owned(), id.parse::<u32>().unwrap_or_default()),
            _ => continue,
        };
        let number = |key: &str| entry.params.get(key).and_then(|text| text.parse::<u64>().ok());
        if entry.method == "DELETE" && words.len() == 4 {
            sizes.remove(&id);
        }
        if let (Some(cores), Some(memory)) = (number("cores"), number("memory")) {
            sizes.insert(id, (host, cores, memory));
        }
        for (name, cores, gib) in hosts {
            let on_host = sizes.values().filter(|(host, ..)| host == name);
            let (used, mib) = on_host.fold((0, 0), |(sum, all), (_, cores, memory)| (sum + cores, all + memory));
            assert!(used <= u64::from(*cores), "{name} has {cores} cores, and VMs have {used} at {:?}", entry.at);
            assert!(mib + RESERVE_MIB <= gib * 1024, "{name} has {gib} GiB, and VMs have {mib} MiB at {:?}", entry.at);
        }
    }
}

/// Requests about one VM from its clone to its last start, without looks at tasks and without its one upload.
fn launch_requests(ledger: &[LedgerEntry], vmid: u32) -> usize {
    let about = format!("/qemu/{vmid}/");
    let is_its = |entry: &&LedgerEntry| {
        let names_it = |key: &str| entry.params.get(key).is_some_and(|id| *id == vmid.to_string());
        format!("{}/", entry.path).contains(&about)
            || names_it("newid")
            || (entry.path == "/cluster/nextid" && names_it("vmid"))
    };
    let its: Vec<&LedgerEntry> = ledger.iter().filter(is_its).collect();
    let start = its.iter().rposition(|entry| entry.path.ends_with("/status/start"));
    start.map_or(0, |start| start + 1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_pods_of_mixed_shapes_fill_four_hosts_of_two_proxmox_clusters_and_leave_nothing() -> anyhow::Result<()> {
    let (lab, attic) = ([("pve1", 16, 64), ("pve2", 8, 32)], [("big", 24, 96), ("small", 6, 16)]);
    let (first, second) = (estate(&lab, |_| {})?, estate(&attic, |_| {})?);
    let Some(mut world) = World::over(Kind::Real, first.clone(), Some(quick_guests())).await? else { return Ok(()) };
    world.real()?.serve_beside(&second).await?;
    let guests = Guests::start(&second, quick_guests());
    world.add_rules().await?;
    world.start_controller()?;
    let shapes =
        [("a", "250m", "256Mi"), ("b", "500m", "1Gi"), ("c", "1", "2Gi"), ("d", "900m", "512Mi"), ("e", "500m", "3Gi")];
    for (app, cpu, memory) in shapes {
        // At most four of a kind on a node: several nodes are needed.
        let spread = json!({ "topologySpreadConstraints": [{
            "maxSkew": 4, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": app } },
        }] });
        world.deploy_pods((app, 10), container(cpu, memory), spread).await?;
    }
    for (app, ..) in shapes {
        world.until_running(app, 10).await?;
    }
    let (vms, others) = (ours(&first), ours(&second));
    let mut hosts: Vec<&str> = vms.iter().chain(&others).map(|vm| vm.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    println!("{} VMs on {hosts:?}", vms.len() + others.len());
    ensure!(!vms.is_empty() && !others.is_empty(), "both Proxmox clusters have VMs: {hosts:?}");
    for (estate, vms) in [(&first, &vms), (&second, &others)] {
        let ledger = estate.ledger();
        for vm in vms {
            let count = launch_requests(&ledger, vm.vmid) + 1;
            ensure!(count <= 10, "VM {}: {count} requests", vm.vmid);
        }
    }
    for (app, ..) in shapes {
        world.scale(app, 0).await?;
    }
    world.until("the second Proxmox cluster is empty", async || Ok(ours(&second).is_empty().then_some(()))).await?;
    world.until_nothing_is_left().await?;
    assert_never_over_capacity(&first.ledger(), &lab);
    assert_never_over_capacity(&second.ledger(), &attic);
    ensure!(second.volumes().iter().all(|volume| !format!("{volume:?}").contains("user-data")), "seeds are left");
    guests.shutdown().await;
    world.end().await
}

#[tokio::test(start_paused = true)]
async fn a_hundred_claims_at_once_on_a_storage_that_makes_one_disk_after_the_other_all_launch() -> anyhow::Result<()> {
    let hosts = [("pve1", 64, 256), ("pve2", 64, 256), ("pve3", 64, 256)];
    let serial = |config: &mut EstateConfig| {
        let storage =
            StorageSpec { serial: true, ..StorageSpec::new("shared", &["images", "iso"], 4096 * GIB).shared() };
        config.storages[0] = storage;
        // A hundred of them take far longer than the minute for which Proxmox waits for the lock of a storage.
        config.pace.clone_linked = std::time::Duration::from_secs(2);
    };
    let estate = estate(&hosts, serial)?;
    let Some(mut world) = World::over(Kind::Embedded, estate.clone(), Some(quick_guests())).await? else {
        return Ok(());
    };
    world.add_rules().await?;
    world.start_controller()?;
    world.deploy_pods(("web", 100), container("500m", "64Mi"), apart("web")).await?;
    world
        .until_within(std::time::Duration::from_secs(1800), "a hundred VMs run", async || {
            let running = ours(&estate).iter().filter(|vm| vm.status == "running").count();
            Ok((running == 100).then_some(()))
        })
        .await?;
    let ledger = estate.ledger();
    let clones: Vec<&LedgerEntry> = ledger.iter().filter(|entry| entry.path.ends_with("/clone")).collect();
    let refused = clones.iter().filter(|entry| entry.status != 200).count();
    assert_eq!((clones.len(), refused), (100, 0), "no clone was refused or sent twice");
    ensure!(!world.log().contains("got timeout"), "a lock was waited for in vain");
    world.end().await
}

/// Leads each guest to the cluster whose address its first-boot data has.
#[derive(Debug)]
struct Router(BTreeMap<String, Cluster>);

impl Connect for Router {
    fn connect(&self, access: &ApiAccess) -> Result<kube::Client, ConnectError> {
        let cluster = self.0.get(access.server.trim_end_matches('/'));
        let unknown = || ConnectError::Other(format!("no cluster at {}", access.server));
        cluster.ok_or_else(unknown)?.connect(access)
    }
}

/// Who began a task, from its UPID.
fn token_of(entry: &LedgerEntry) -> Option<&str> {
    entry.upid.as_deref()?.split(':').nth(7)
}

/// Everything that was made was destroyed by who made it, and by nobody else.
fn assert_own_vms_only(ledger: &[LedgerEntry]) -> usize {
    let mut makers: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    let mut made = 0;
    for entry in ledger.iter().filter(|entry| entry.status == 200) {
        let Some(token) = token_of(entry) else { continue };
        if let Some(id) = entry.params.get("newid").and_then(|id| id.parse().ok()) {
            makers.entry(id).or_default().push(token.to_owned());
            made += 1;
        }
        let words: Vec<&str> = entry.path.trim_matches('/').split('/').collect();
        if let (["nodes", _, "qemu", id], "DELETE") = (words.as_slice(), entry.method.as_str()) {
            let makers = makers.get(&id.parse().unwrap_or_default()).cloned().unwrap_or_default();
            assert!(
                makers.iter().any(|maker| maker == token),
                "VM {id} was made by {makers:?} and destroyed by {token}"
            );
        }
    }
    made
}

/// Replies are lost, and storages are found full, now and then.
fn add_faults(estate: &Estate) {
    for (path, effect, every) in [
        ("/nodes/*/qemu/*/clone", FaultEffect::DropReply, 9),
        ("/nodes/*/qemu/*/config", FaultEffect::DropReply, 23),
        ("/nodes/*/qemu/*/status/start", FaultEffect::DropReply, 11),
        ("/nodes/*/storage/*/upload", FaultEffect::DropReply, 13),
        ("/nodes/*/qemu/*/clone", FaultEffect::FullStorage, 17),
    ] {
        let method = if path.ends_with("config") { "PUT" } else { "POST" };
        let repeat = Repeat { every: Some(every), ..Repeat::default() };
        estate.add_fault(FaultRule::new(FaultMatch { repeat, ..FaultMatch::call(method, path) }, effect));
    }
}

#[tokio::test(start_paused = true)]
async fn two_clusters_share_a_proxmox_cluster_through_200_launches_with_faults_and_touch_only_their_own()
-> anyhow::Result<()> {
    const OTHER: (&str, &str) = ("other@pve!b", "99999999-2222-3333-4444-555555555555");
    let hosts = [("pve1", 64, 256), ("pve2", 64, 256), ("pve3", 64, 256)];
    let estate = estate(&hosts, |config| {
        config.tokens = vec![TokenSpec::new(TOKEN.0, TOKEN.1), TokenSpec::new(OTHER.0, OTHER.1)];
    })?;
    let (Some(mut a), Some(mut b)) = (
        World::over(Kind::Embedded, estate.clone(), Some(quick_guests())).await?,
        World::over(Kind::Embedded, estate.clone(), None).await?,
    ) else {
        return Ok(());
    };
    // One system for the VMs of both, which finds the cluster that its VM belongs to.
    a.replace_guests(None).await;
    b.configure_token(OTHER)?;
    let mut clusters = BTreeMap::new();
    for (world, name) in [(&mut a, "a"), (&mut b, "b")] {
        world.add_rules().await?;
        let embedded = world.embedded()?;
        embedded.server = format!("https://{name}.example:6443");
        embedded.cluster_id = Some(format!("cluster-{name}"));
        clusters.insert(embedded.server.clone(), embedded.cluster.clone());
    }
    let epoch_s = Some(tenon_sim::ClusterConfig::default().epoch_s);
    let guests = Guests::start(&estate, GuestConfig { connect: Arc::new(Router(clusters)), epoch_s, ..quick_guests() });
    let before = estate.volumes().len();
    add_faults(&estate);
    a.start_controller()?;
    b.start_controller()?;
    for round in 0..10 {
        for world in [&a, &b] {
            if round == 0 {
                world.deploy_pods(("web", 10), container("500m", "64Mi"), apart("web")).await?;
            } else {
                world.scale("web", 10).await?;
            }
        }
        for world in [&a, &b] {
            // What a test says of itself when it fails is said by the last world.
            let tail = || {
                format!(
                    "round {round}\n{}\n{:#?}",
                    b.tail(),
                    ours(&estate).iter().map(|vm| guests.guest_log(vm.vmid)).collect::<Vec<_>>()
                )
            };
            world.until_running("web", 10).await.with_context(tail)?;
        }
        for world in [&a, &b] {
            world.scale("web", 0).await?;
        }
        for world in [&a, &b] {
            world.until("all claims are gone", async || Ok(world.claims().await?.is_empty().then_some(()))).await?;
        }
    }
    a.until("no VM is left", async || Ok(ours(&estate).is_empty().then_some(()))).await?;
    let made = assert_own_vms_only(&estate.ledger());
    println!("{made} clones were begun");
    ensure!(made >= 200, "{made} clones");
    assert_eq!(estate.volumes().len(), before, "{:#?}", estate.volumes());
    guests.shutdown().await;
    a.end().await?;
    b.end().await
}
