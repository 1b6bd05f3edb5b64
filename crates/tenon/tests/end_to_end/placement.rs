//! Is every VM created on the host that `spec.placementStrategy` of its ProxmoxNodeClass says?
//!
//! Three hosts with 16 cores and 64 GiB, VMs of other people on some of them, and pods that get a node of two cores and
//! 4 GiB each.

use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use tenon_api::{NodePool, ProxmoxNodeClass, names};
use tenon_sim::{Estate, EstateConfig, HostSpec, TemplateSpec, VmSpec};

use crate::bench::quick_guests;
use crate::ground::Kind;
use crate::world::World;

/// A VM of somebody else: its host, cores, GiB of memory, and whether it runs. One that does not run takes just as much of a
/// host, and is no load.
type Other = (&'static str, u32, u32, bool);

/// Half of the cores of pve1, and more than half of the memory of pve3.
const UNEVEN: &[Other] = &[("pve1", 8, 8, false), ("pve3", 2, 40, false)];
/// The less is given away on a host, the more it has to do.
const BUSY: &[Other] = &[("pve1", 8, 32, false), ("pve2", 2, 24, true), ("pve3", 2, 16, true)];

struct Row {
    name: &'static str,
    strategy: Value,
    others: &'static [Other],
    /// The hosts of the VMs, in the order they are planned: one for each pod.
    expected: &'static [&'static str],
}

fn rows() -> Vec<Row> {
    let row = |name, strategy, others, expected| Row { name, strategy, others, expected };
    let hosts = |strategy: &str| json!({ "hosts": strategy });
    vec![
        row("default", json!({}), UNEVEN, &["pve2", "pve2", "pve2", "pve2", "pve1"]),
        row(
            "AvailabilityFirst",
            json!({ "zoneBalance": "AvailabilityFirst" }),
            UNEVEN,
            &["pve2", "pve2", "pve1", "pve2"],
        ),
        row("MaxMemory", hosts("MaxMemory"), UNEVEN, &["pve2", "pve2", "pve1", "pve2"]),
        row("MaxCPU", hosts("MaxCPU"), UNEVEN, &["pve2", "pve2", "pve3"]),
        row("Spread", hosts("Spread"), UNEVEN, &["pve2", "pve1", "pve3", "pve2"]),
        row("BalancedLoad", hosts("BalancedLoad"), BUSY, &["pve1", "pve1", "pve3"]),
        row("RoundRobin", hosts("RoundRobin"), UNEVEN, &["pve1", "pve2", "pve3", "pve1"]),
        row(
            "two equal hosts",
            json!({ "hosts": "RoundRobin", "excludedHosts": ["pve3"] }),
            &[],
            &["pve1", "pve2", "pve1"],
        ),
        row("excludedHosts", json!({ "excludedHosts": ["pve2"] }), UNEVEN, &["pve1", "pve3"]),
        row(
            "minAvailable",
            json!({ "hosts": "MaxMemory", "minAvailable": { "cpu": 12 } }),
            UNEVEN,
            &["pve2", "pve2", "pve3"],
        ),
    ]
}

impl World {
    /// A world with this strategy and a controller, whose pool is ready.
    async fn with_strategy(strategy: &Value, others: &[Other]) -> anyhow::Result<Option<World>> {
        let Some(mut world) = World::new(Kind::Embedded, quick_guests()).await? else { return Ok(None) };
        for (vmid, other) in (100..).zip(others) {
            world.estate.add_vm(&other_vm(vmid, other))?;
        }
        world.add_template("debian-13").await?;
        world.add_class(json!({ "placementStrategy": strategy })).await?;
        world.add_pool(one_size(json!({}))).await?;
        world.start_controller()?;
        world.until_condition::<NodePool>(("default", "Ready"), ("True", "Ready")).await?;
        Ok(Some(world))
    }

    async fn add_pods(&self, replicas: u32) -> anyhow::Result<()> {
        let container = json!({ "resources": { "requests": { "cpu": "1500m", "memory": "1Gi" } } });
        self.deploy_pods(("web", replicas), container, json!({})).await
    }

    /// Where the VMs of nodes are, in the order of their ids, which is that of the plan.
    pub(crate) fn hosts_of_vms(&self) -> Vec<String> {
        let mut vms: Vec<_> = self.estate.vms().into_iter().filter(|vm| vm.vmid >= 20_000).collect();
        vms.sort_by_key(|vm| vm.vmid);
        vms.into_iter().map(|vm| vm.host).collect()
    }
}

fn other_vm(vmid: u32, (host, cores, memory_gib, running): &Other) -> VmSpec {
    // One that is stopped counts because it starts with its host.
    let onboot = ("onboot", "1".to_owned());
    let config = [("cores", cores.to_string()), ("memory", (memory_gib * 1024).to_string()), onboot];
    let config = config.map(|(key, value)| (key.to_owned(), value)).into();
    let base = TemplateSpec { host: (*host).into(), vmid, name: format!("other-{vmid}"), config, ..Default::default() };
    VmSpec { base, running: *running }
}

/// A pool with nodes of two cores.
fn one_size(more: Value) -> Value {
    let mut spec = json!({ "template": { "spec": {
        "requirements": [{ "key": names::LABEL_INSTANCE_TYPE, "operator": "In", "values": ["c1.2VCPU-4GB"] }],
        "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
    } } });
    if let (Some(fields), Value::Object(more)) = (spec.as_object_mut(), more) {
        fields.extend(more);
    }
    spec
}

#[tokio::test(start_paused = true)]
async fn every_vm_is_created_on_the_host_that_the_strategy_of_its_class_prefers() -> anyhow::Result<()> {
    for Row { name, strategy, others, expected } in rows() {
        let Some(world) = World::with_strategy(&strategy, others).await? else { return Ok(()) };
        world.add_pods(u32::try_from(expected.len())?).await?;
        world.until_running("web", expected.len()).await?;
        assert_eq!(world.hosts_of_vms(), expected, "{name}\n{}", world.tail());
        world.end().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn two_equal_hosts_alternate_over_a_restart_and_one_by_one() -> anyhow::Result<()> {
    let strategy = json!({ "hosts": "RoundRobin", "excludedHosts": ["pve3"] });
    let Some(mut world) = World::with_strategy(&strategy, &[]).await? else { return Ok(()) };
    world.add_pods(3).await?;
    world.until_running("web", 3).await?;
    world.kill_controller()?;
    world.start_controller()?;
    for replicas in 4..=6 {
        world.scale("web", replicas).await?;
        world.until_running("web", replicas.try_into()?).await?;
    }
    assert_eq!(world.hosts_of_vms(), ["pve1", "pve2", "pve1", "pve2", "pve1", "pve2"], "{}", world.tail());
    world.end().await
}

#[tokio::test(start_paused = true)]
async fn pools_of_fixed_size_choose_hosts_by_the_same_strategy() -> anyhow::Result<()> {
    for (strategy, expected) in [
        ("RoundRobin", ["pve1", "pve2", "pve3"]),
        ("Spread", ["pve2", "pve1", "pve3"]),
        // Nothing runs, so free memory decides, and each NodeClaim sees that the one before is being created.
        ("BalancedLoad", ["pve2", "pve1", "pve3"]),
    ] {
        let Some(mut world) = World::new(Kind::Embedded, quick_guests()).await? else { return Ok(()) };
        for (vmid, other) in (100..).zip(UNEVEN) {
            world.estate.add_vm(&other_vm(vmid, other))?;
        }
        world.add_template("debian-13").await?;
        world.add_class(json!({ "placementStrategy": { "hosts": strategy } })).await?;
        world.add_pool_named("fixed", one_size(json!({ "replicas": 3 }))).await?;
        world.switch("StaticCapacity=true");
        world.start_controller()?;
        let count = async || Ok((world.nodes().await?.len() == 3).then_some(()));
        world.until("three nodes are there", count).await?;
        assert_eq!(world.hosts_of_vms(), expected, "{strategy}\n{}", world.tail());
        world.end().await?;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_must_wait_for_what_stays_free_hears_it_and_gets_its_node_when_less_must() -> anyhow::Result<()> {
    let strategy = json!({ "minAvailable": { "cpu": "12", "memory": "8Gi" }, "excludedHosts": ["pve3"] });
    let Some(world) = World::with_strategy(&strategy, &[("pve1", 4, 8, false), ("pve2", 3, 8, false)]).await? else {
        return Ok(());
    };
    world.add_pods(1).await?;
    let told = world.until_event("FailedScheduling", "must stay free").await?;
    let expected = "host pve2 has 13 CPU free, the VM needs 2, and 12 must stay free (spec.placementStrategy.minAvailable of \
                    the ProxmoxNodeClass)";
    assert!(told.contains(expected), "{told}");
    assert!(told.contains("host pve3 was skipped: spec.placementStrategy.excludedHosts"), "{told}");
    let less = json!({ "spec": { "placementStrategy": { "minAvailable": { "cpu": "11" } } } });
    let classes: Api<ProxmoxNodeClass> = Api::all(world.admin.clone());
    classes.patch("default", &PatchParams::default(), &Patch::Merge(less)).await?;
    world.until_running("web", 1).await?;
    assert_eq!(world.hosts_of_vms(), ["pve2"]);
    world.end().await
}

#[tokio::test(start_paused = true)]
async fn a_class_without_a_region_uses_all_of_them_and_one_with_a_region_only_that() -> anyhow::Result<()> {
    for (region, expected) in
        [(json!({}), ["lab/pve1", "mars/pve9"]), (json!({ "region": "mars" }), ["mars/pve9", "mars/pve9"])]
    {
        let Some(mut world) = World::new(Kind::Embedded, quick_guests()).await? else { return Ok(()) };
        // Room for one more VM in the first region.
        for (vmid, host) in (100..).zip(["pve1", "pve2", "pve3"]) {
            let cores = if host == "pve1" { 14 } else { 16 };
            world.estate.add_vm(&other_vm(vmid, &(host, cores, 4, false)))?;
        }
        let hosts = vec![HostSpec::new("pve9", 4, 64 << 30)];
        let mars = Estate::new(EstateConfig { hosts, ..EstateConfig::default() });
        mars.add_template(&TemplateSpec {
            host: "pve9".into(),
            vmid: 9009,
            name: "debian-13".into(),
            ..Default::default()
        })?;
        world.embedded()?.second = Some(("mars".to_owned(), mars.clone()));
        world.add_template("debian-13").await?;
        world.add_class(region).await?;
        world.add_pool(one_size(json!({}))).await?;
        world.start_controller()?;
        world.until_condition::<NodePool>(("default", "Ready"), ("True", "Ready")).await?;
        world.add_pods(2).await?;
        let found = world.until("two VMs are there", async || {
            let vms = |name: &str, estate: &Estate| {
                let ours = estate.vms().into_iter().filter(|vm| vm.vmid >= 20_000);
                ours.map(|vm| format!("{name}/{}", vm.host)).collect::<Vec<_>>()
            };
            let found = [vms("lab", &world.estate), vms("mars", &mars)].concat();
            Ok((found.len() == 2).then_some(found))
        });
        assert_eq!(found.await?, expected, "{}", world.tail());
        world.end().await?;
    }
    Ok(())
}
