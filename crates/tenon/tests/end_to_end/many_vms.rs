//! Many VMs at once: over hosts of different sizes in two Proxmox clusters, and on a storage that makes one disk after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::ensure;
use serde_json::{Value, json};
use tenon_sim::{Estate, EstateConfig, Guests, HostSpec, LedgerEntry, StorageSpec, TaskSpan, TemplateSpec, VmView};

use crate::bench::quick_guests;
use crate::ground::Kind;
use crate::world::World;

const GIB: u64 = 1 << 30;

/// Memory that a host keeps for itself.
const RESERVE_MIB: u64 = 1024;

pub(crate) fn estate(hosts: &[(&str, u32, u64)], change: impl FnOnce(&mut EstateConfig)) -> anyhow::Result<Estate> {
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

pub(crate) fn ours(estate: &Estate) -> Vec<VmView> {
    estate.vms().into_iter().filter(|vm| vm.vmid >= 20_000).collect()
}

/// Pods of a deployment that never share a node.
pub(crate) fn apart(app: &str) -> Value {
    json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
        { "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "app": app } } },
    ] } } })
}

pub(crate) fn container(cpu: &str, memory: &str) -> Value {
    json!({ "resources": { "requests": { "cpu": cpu, "memory": memory } } })
}

/// What VMs had of their hosts at every moment, from each configuration to the end of the VM.
#[derive(Debug, Default)]
struct Sizes {
    /// VMs that are there, with host, cores and MiB.
    now: BTreeMap<u32, (String, u64, u64)>,
    /// VMs that were created.
    created: BTreeSet<u32>,
    /// VMs whose size was read.
    sized: BTreeSet<u32>,
    /// Hosts that ever had a VM.
    hosts: BTreeSet<String>,
}

impl Sizes {
    fn read(&mut self, entry: &LedgerEntry) {
        let words: Vec<&str> = entry.path.trim_matches('/').split('/').collect();
        let ["nodes", host, "qemu", id, rest @ ..] = words.as_slice() else { return };
        let (id, number) = (id.parse().unwrap_or_default(), |key: &str| entry.params.get(key)?.parse::<u64>().ok());
        match (entry.method.as_str(), rest) {
            ("POST", ["clone"]) => drop(number("newid").map(|id| self.created.insert(u32::try_from(id).unwrap_or(0)))),
            ("DELETE", []) => drop(self.now.remove(&id)),
            ("PUT" | "POST", ["config"]) => {
                if let (Some(cores), Some(memory)) = (number("cores"), number("memory")) {
                    self.now.insert(id, ((*host).to_owned(), cores, memory));
                    self.sized.insert(id);
                    self.hosts.insert((*host).to_owned());
                }
            }
            _ => {}
        }
    }

    fn assert_within(&self, hosts: &[(&str, u32, u64)], at: Duration) {
        for (name, cores, gib) in hosts {
            let on_host = self.now.values().filter(|(host, ..)| host == name);
            let (used, mib) = on_host.fold((0, 0), |(sum, all), (_, cores, memory)| (sum + cores, all + memory));
            assert!(used <= u64::from(*cores), "{name} has {cores} cores, and VMs have {used} at {at:?}");
            assert!(mib + RESERVE_MIB <= gib * 1024, "{name} has {gib} GiB, and VMs have {mib} MiB at {at:?}");
        }
    }
}

/// No host had more cores or memory given to VMs of ours than it has, the size of every VM is known, and every host had one.
fn assert_never_over_capacity(ledger: &[LedgerEntry], hosts: &[(&str, u32, u64)]) {
    let mut sizes = Sizes::default();
    for entry in ledger.iter().filter(|entry| entry.status == 200) {
        sizes.read(entry);
        sizes.assert_within(hosts, entry.at);
    }
    assert!(!sizes.created.is_empty(), "no VM was created");
    assert_eq!(sizes.created, sizes.sized, "the size of every VM was seen");
    assert_eq!(sizes.hosts, hosts.iter().map(|(name, ..)| (*name).to_owned()).collect(), "every host had VMs");
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
    // All but the small host have room for four pods of each kind, as many as a zone may be ahead of an empty one: in
    // whatever order pods are seen, there is a place for the next.
    let (lab, attic) = ([("pve1", 20, 64), ("pve2", 20, 48)], [("big", 24, 96), ("small", 6, 16)]);
    let (first, second) = (estate(&lab, |_| {})?, estate(&attic, |_| {})?);
    let Some(mut world) = World::over(Kind::Real, first.clone(), Some(quick_guests())).await? else { return Ok(()) };
    world.real()?.serve_beside(&second).await?;
    let guests = Guests::start(&second, quick_guests());
    world.add_rules().await?;
    world.start_controller()?;
    // One pod in each zone, which is a host: all four hosts are needed.
    let one_each = json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [
        { "topologyKey": "topology.kubernetes.io/zone", "labelSelector": { "matchLabels": { "app": "f" } } },
    ] } } });
    world.deploy_pods(("f", 4), container("250m", "512Mi"), one_each).await?;
    world.until_running("f", 4).await?;
    let shapes = [
        ("a", 10, "250m", "256Mi"),
        ("b", 10, "500m", "1Gi"),
        ("c", 10, "1", "2Gi"),
        ("d", 10, "900m", "512Mi"),
        ("e", 6, "500m", "3Gi"),
    ];
    for (app, count, cpu, memory) in shapes {
        // At most four of a kind on a node: several nodes are needed.
        let spread = json!({ "topologySpreadConstraints": [{
            "maxSkew": 4, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": app } },
        }] });
        world.deploy_pods((app, u32::try_from(count)?), container(cpu, memory), spread).await?;
    }
    let apps = || shapes.iter().map(|(app, count, ..)| (*app, *count)).chain([("f", 4)]);
    for (app, count) in apps() {
        world.until_running(app, count).await?;
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
    for (app, _) in apps() {
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

/// An estate whose one storage for disks makes one after the other.
fn serial_estate(clone: Duration) -> anyhow::Result<Estate> {
    let hosts = [("pve1", 64, 256), ("pve2", 64, 256), ("pve3", 64, 256)];
    estate(&hosts, |config| {
        let storage =
            StorageSpec { serial: true, ..StorageSpec::new("shared", &["images", "iso"], 4096 * GIB).shared() };
        config.storages[0] = storage;
        config.pace.clone_linked = clone;
    })
}

/// Waits until a hundred VMs run, each of which was cloned once, and no more at a time than a host and the storage may have.
async fn until_a_hundred_run(world: &World, (per_host, per_storage): (usize, usize)) -> anyhow::Result<()> {
    let estate = &world.estate;
    world
        .until_within(Duration::from_secs(1800), "a hundred VMs run", async || {
            let running = ours(estate).iter().filter(|vm| vm.status == "running").count();
            Ok((running == 100).then_some(()))
        })
        .await?;
    let ledger = estate.ledger();
    let clones: Vec<&LedgerEntry> = ledger.iter().filter(|entry| entry.path.ends_with("/clone")).collect();
    let refused = clones.iter().filter(|entry| entry.status != 200).count();
    assert_eq!((clones.len(), refused), (100, 0), "no clone was refused or sent twice");
    ensure!(!world.log().contains("got timeout"), "a lock was waited for in vain");
    let tasks = estate.task_spans("qmclone");
    ensure!(tasks.len() == 100 && tasks.iter().all(|task| task.ended.is_some()), "every clone is a task that ended");
    let onto_storage = most_at_once(tasks.iter());
    assert!((2..=per_storage).contains(&onto_storage), "{onto_storage} clones at once, {per_storage} may");
    for host in ["pve1", "pve2", "pve3"] {
        let most = most_at_once(tasks.iter().filter(|task| task.host == host));
        println!("{host}: {most} clones at once, {onto_storage} onto the storage");
        assert!((1..=per_host).contains(&most), "{host}: {most} clones at once, {per_host} may");
    }
    Ok(())
}

/// How many of these tasks ran at the same moment.
fn most_at_once<'t>(tasks: impl Iterator<Item = &'t TaskSpan>) -> usize {
    let mut edges: Vec<(Duration, isize)> = Vec::new();
    for task in tasks {
        edges.push((task.began, 1));
        edges.extend(task.ended.map(|end| (end, -1)));
    }
    // One that ends when another begins is not beside it.
    edges.sort_unstable();
    let mut running = 0;
    let counts = edges.iter().map(|(_, change)| {
        running += change;
        running
    });
    counts.max().and_then(|most| usize::try_from(most).ok()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_hundred_claims_at_once_on_a_storage_that_makes_one_disk_after_the_other_all_launch() -> anyhow::Result<()> {
    // A hundred of them take far longer than the minute for which Proxmox waits for the lock of a storage.
    let estate = serial_estate(Duration::from_secs(2))?;
    let Some(mut world) = World::over(Kind::Embedded, estate, Some(quick_guests())).await? else { return Ok(()) };
    world.add_rules().await?;
    world.start_controller()?;
    world.deploy_pods(("web", 100), container("500m", "64Mi"), apart("web")).await?;
    until_a_hundred_run(&world, (4, 4)).await?;
    world.end().await
}

/// The same over HTTPS on a real control plane, by a process. Its guests never join: what they do is shown elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_claims_of_a_static_pool_launch_on_a_real_control_plane_without_a_lock_failure() -> anyhow::Result<()>
{
    let estate = serial_estate(Duration::from_millis(200))?;
    let Some(mut world) = World::over(Kind::Real, estate, None).await? else { return Ok(()) };
    world.add_template("debian-13").await?;
    world.add_class(json!({})).await?;
    world.add_pool_named("fixed", json!({ "replicas": 100 })).await?;
    world.switch("StaticCapacity=true");
    // Three hosts with two clones each are more than the storage may have.
    world.real()?.more_args = vec!["--max-clones-per-host=2".to_owned()];
    world.start_controller()?;
    until_a_hundred_run(&world, (2, 4)).await?;
    assert_eq!(world.claims().await?.len(), 100);
    world.end().await
}
