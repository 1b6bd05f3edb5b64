//! VMs that are bound to CPUs and memory of their hosts (`--node-policy static`).

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use serde_json::{Value, json};
use tenon_api::names;
use tenon_model::CpuSet;
use tenon_sim::{Estate, EstateConfig, HostSpec, TemplateSpec, VmSpec, VmView};

use crate::bench::quick_guests;
use crate::ground::{Kind, scenarios};
use crate::world::World;

/// Four CPUs and 8 GiB.
const SIZE: &str = "c1.4VCPU-8GB";
/// Somebody's VM, bound to the first core of pve1 and to 4 GiB of its NUMA node 0.
const FOREIGN: u32 = 500;
/// 33 GiB: one is kept back, half of it on each NUMA node.
const MEMORY: u64 = 33 << 30;

scenarios! {
    vms_have_cpus_and_memory_of_their_own_also_after_a_restart,
}

/// Two hosts of two sockets, each with four cores of two threads.
fn estate() -> anyhow::Result<Estate> {
    let host = |name: &str| HostSpec::new(name, 16, MEMORY).cpu_model("Intel(R) Xeon(R) Gold 6338").sockets(2, 2);
    let estate = Estate::new(EstateConfig { hosts: vec![host("pve1"), host("pve2")], ..EstateConfig::default() });
    let config = [
        ("cores", "2"),
        ("memory", "4096"),
        ("affinity", "0,8"),
        ("numa", "1"),
        ("numa0", "cpus=0-1,hostnodes=0,memory=4096,policy=bind"),
    ];
    let config = config.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let base = TemplateSpec { vmid: FOREIGN, name: "database".to_owned(), config, ..TemplateSpec::default() };
    estate.add_vm(&VmSpec { base, running: true })?;
    Ok(estate)
}

async fn world(kind: Kind) -> anyhow::Result<Option<World>> {
    let Some(mut world) = World::on(estate()?, kind, quick_guests()).await? else { return Ok(None) };
    world.add_template("debian-13").await?;
    world.add_class(json!({})).await?;
    let sizes = json!([{ "key": names::LABEL_INSTANCE_TYPE, "operator": "In", "values": [SIZE] }]);
    let class = json!({ "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" });
    world.add_pool(json!({ "template": { "spec": { "requirements": sizes, "nodeClassRef": class } } })).await?;
    world.bind_cpus();
    Ok(Some(world))
}

fn container() -> Value {
    json!({ "resources": { "requests": { "cpu": "3", "memory": "5Gi" } } })
}

/// The VMs of nodes.
fn node_vms(world: &World) -> Vec<VmView> {
    world.estate.vms().into_iter().filter(|vm| vm.vmid >= 20_000).collect()
}

/// What the description of a VM says of its CPUs.
fn cpus_of(vm: &VmView) -> anyhow::Result<CpuSet> {
    let description = vm.config.get("description").context("no description")?;
    let line = description.lines().next().unwrap_or_default();
    let head = "Karpenter managed instance, class=default, capacity-type=on-demand, affinity=";
    let list = line.strip_prefix(head).with_context(|| format!("another description: {line}"))?;
    Ok(list.parse()?)
}

/// Every VM is bound to four CPUs and 8 GiB of one NUMA node, to which no other VM is bound.
fn assert_bound(world: &World) -> anyhow::Result<()> {
    let mut taken: BTreeMap<(String, u32), u32> = [0, 8].map(|cpu| (("pve1".to_owned(), cpu), FOREIGN)).into();
    let mut memory: BTreeMap<(String, String), u64> = [(("pve1".to_owned(), "0".to_owned()), 4096)].into();
    for vm in node_vms(world) {
        let cpus = cpus_of(&vm)?;
        assert_eq!(cpus.count(), 4, "{vm:?}");
        for cpu in cpus.iter() {
            let other = taken.insert((vm.host.clone(), cpu), vm.vmid);
            assert_eq!(other, None, "CPU {cpu} of {} is bound twice", vm.host);
        }
        let node = if cpus.iter().all(|cpu| cpu % 8 < 4) { "0" } else { "1" };
        assert!(cpus.iter().all(|cpu| (cpu % 8 < 4) == (node == "0")), "{cpus} is on two NUMA nodes");
        let numa = format!("cpus=0-3,hostnodes={node},memory=8192,policy=bind");
        let get = |key: &str| vm.config.get(key).map(String::as_str);
        assert_eq!((get("numa"), get("numa0"), get("numa1")), (Some("1"), Some(numa.as_str()), None));
        assert_eq!((get("cores"), get("sockets"), get("memory")), (Some("4"), Some("1"), Some("8192")));
        *memory.entry((vm.host.clone(), node.to_owned())).or_default() += 8192;
    }
    assert!(memory.values().all(|mib| *mib <= 16 << 10), "{memory:?}");
    Ok(())
}

async fn vms_have_cpus_and_memory_of_their_own_also_after_a_restart(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = world(kind).await? else { return Ok(()) };
    world.start_controller()?;
    world.deploy_pods(("web", 4), container(), json!({})).await?;
    world.until_running("web", 4).await?;
    assert_bound(&world)?;
    // What a controller remembers is not needed.
    world.kill_controller()?;
    world.start_controller()?;
    world.scale("web", 8).await?;
    // Seven fit: node 0 of pve1 has memory for one more VM beside somebody's.
    world.until_running("web", 7).await?;
    assert_bound(&world)?;
    world.until_event("FailedScheduling", "no host has").await?;
    assert_eq!(node_vms(&world).len(), 7);
    let hosts: BTreeSet<String> = node_vms(&world).into_iter().map(|vm| vm.host).collect();
    assert_eq!(hosts.len(), 2);
    assert!(node_vms(&world).iter().all(|vm| !vm.config.contains_key("affinity")), "a token cannot set it");
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

#[tokio::test(start_paused = true)]
async fn root_with_a_password_sets_the_option_that_binds_cpus() -> anyhow::Result<()> {
    let Some(mut world) = world(Kind::Embedded).await? else { return Ok(()) };
    world.embedded()?.configure(("root@pam", "simulated"));
    world.start_controller()?;
    world.deploy_pods(("web", 2), container(), json!({})).await?;
    world.until_running("web", 2).await?;
    assert_bound(&world)?;
    for vm in node_vms(&world) {
        let affinity: CpuSet = vm.config.get("affinity").context("no affinity")?.parse()?;
        assert_eq!(affinity, cpus_of(&vm)?);
    }
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}
