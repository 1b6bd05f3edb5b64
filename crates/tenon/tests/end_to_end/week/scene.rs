//! What is a week played on? Hosts with VMs of other people, two NodePools with the default budgets, workloads, and what goes wrong
//! when.

use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use tenon_sim::{Estate, EstateConfig, GuestConfig, HostSpec, StorageSpec, TemplateSpec, VmSpec};

use super::load::{App, Dice};
use crate::bench::from_json;
use crate::ground::Kind;
use crate::world::{NAMESPACE, World};

const GIB: u64 = 1 << 30;
const HOUR_S: u64 = 3600;
pub(crate) const DAY_S: u64 = 24 * HOUR_S;

/// Cores of the largest nodes.
pub(crate) const NODE_CORES: u64 = 4;

/// Nodes for which a host has room.
const NODES_ON_A_HOST: u64 = 8;

/// What is asked of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Course {
    pub(crate) seed: u64,
    pub(crate) hours: u64,
    /// How many nodes the workloads need at their peak, more or less.
    pub(crate) nodes: u64,
}

impl Course {
    /// As the environment says, and otherwise as given.
    pub(crate) fn or(self) -> Course {
        let read = |name: &str| std::env::var(format!("TENON_WEEK_{name}")).ok().and_then(|text| text.parse().ok());
        Course {
            seed: read("SEED").unwrap_or(self.seed),
            hours: read("HOURS").unwrap_or(self.hours),
            nodes: read("NODES").unwrap_or(self.nodes),
        }
    }

    pub(crate) fn hosts(&self) -> Vec<String> {
        let count = self.nodes.div_ceil(NODES_ON_A_HOST - 2).max(3);
        (1..=count).map(|number| format!("pve{number}")).collect()
    }

    /// How long a node of pool `short` lives.
    fn expires_h(&self) -> u64 {
        (self.hours * 2 / 5).clamp(2, 50)
    }
}

/// What happens at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    HostDies(String),
    HostReturns(String),
    /// The template of pool `default` gets another label.
    TemplateChanges(String),
}

/// What happens when, in order: the template changes, twice if there are days for it, and hosts die for minutes or hours.
pub(crate) fn troubles(course: &Course) -> Vec<(Duration, Trouble)> {
    let mut dice = Dice::new(course.seed ^ 0x7EA5);
    let (hosts, minutes, days) = (course.hosts(), course.hours * 60, course.hours.div_ceil(24));
    let at = |minute: u64| Duration::from_secs(minute * 60);
    let mut all = vec![(at(minutes / 4), Trouble::TemplateChanges("first".to_owned()))];
    if days > 1 {
        all.push((at(minutes * 3 / 4), Trouble::TemplateChanges("second".to_owned())));
    }
    for day in 0..days {
        // Longer than broken nodes are tolerated, shorter, some hours, and most of a day.
        let lasts = [60, 10, 180, 600][usize::try_from(day % 4).unwrap_or_default()];
        let from = minutes * day / days + minutes / days / 2 + dice.roll(minutes / days / 4);
        let host = dice.pick(&hosts).clone();
        all.push((at(from), Trouble::HostDies(host.clone())));
        all.push((at(from + lasts), Trouble::HostReturns(host)));
    }
    all.sort_by_key(|(at, _)| *at);
    all
}

/// Hosts with a template each, and a VM of somebody else on every second one.
pub(crate) fn estate(course: &Course) -> anyhow::Result<Estate> {
    let cores = u32::try_from(NODE_CORES * NODES_ON_A_HOST)?;
    let hosts = course.hosts();
    let mut config = EstateConfig { seed: course.seed, ..EstateConfig::default() };
    config.hosts = hosts.iter().map(|name| HostSpec::new(name, cores + 2, 320 * GIB)).collect();
    config.storages[0] = StorageSpec::new("shared", &["images", "iso"], 64 * 1024 * GIB).shared();
    let estate = Estate::new(config);
    for (number, host) in (0..).zip(&hosts) {
        let vm = |vmid, name: &str| TemplateSpec { host: host.clone(), vmid, name: name.into(), ..Default::default() };
        estate.add_template(&vm(9001 + number, "debian-13"))?;
        if number % 2 == 0 {
            estate.add_vm(&VmSpec { base: vm(101 + number, "somebody-elses"), running: true })?;
        }
    }
    Ok(estate)
}

/// The world with its controllers, before the first pod.
pub(crate) async fn world(course: &Course, estate: Estate) -> anyhow::Result<World> {
    let guests = GuestConfig { boot_delay: Duration::from_secs(40), ..GuestConfig::default() };
    let world = World::over(Kind::Embedded, estate, Some(guests)).await?;
    let mut world = world.ok_or_else(|| anyhow::anyhow!("an embedded world is always there"))?;
    world.switch("NodeRepair=true");
    world.add_template("debian-13").await?;
    world.add_class(json!({})).await?;
    let template = |more: Value| {
        let mut spec = json!({
            "requirements": [{ "key": "node.kubernetes.io/instance-type", "operator": "In", "values": TYPES }],
            "nodeClassRef": { "group": "karpenter.proxmox.sinextra.dev", "kind": "ProxmoxNodeClass", "name": "default" },
        });
        if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
            spec.extend(more);
        }
        // The budgets are the default ones: a tenth of the nodes, for every reason.
        json!({ "template": { "spec": spec }, "disruption": { "consolidateAfter": "1m" } })
    };
    world.add_pool(template(json!({}))).await?;
    let expires = format!("{}h", course.expires_h());
    world.add_pool_named("short", template(json!({ "expireAfter": expires }))).await?;
    Ok(world)
}

/// The sizes that the pools allow: with up to four cores.
const TYPES: [&str; 8] = [
    "c1.2VCPU-4GB",
    "t1.2VCPU-6GB",
    "s1.2VCPU-8GB",
    "m1.2VCPU-16GB",
    "c1.4VCPU-8GB",
    "t1.4VCPU-12GB",
    "s1.4VCPU-16GB",
    "m1.4VCPU-32GB",
];

/// A daemon on every node.
pub(crate) fn daemon() -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "agent", "namespace": NAMESPACE },
        "spec": {
            "selector": { "matchLabels": { "daemon": "agent" } },
            "template": {
                "metadata": { "labels": { "daemon": "agent" } },
                "spec": { "containers": [
                    { "name": "c", "image": "i", "resources": { "requests": { "cpu": "100m", "memory": "64Mi" } } },
                ] },
            },
        },
    })
}

impl World {
    /// Every workload with the pods it has at first, and a budget for those that have one.
    pub(crate) async fn deploy_apps(&self, apps: &[App]) -> anyhow::Result<()> {
        let daemons: Api<DaemonSet> = Api::namespaced(self.admin.clone(), NAMESPACE);
        daemons.create(&PostParams::default(), &from_json(daemon())?).await?;
        let budgets: Api<PodDisruptionBudget> = Api::namespaced(self.admin.clone(), NAMESPACE);
        for app in apps {
            let replicas = u32::try_from(app.replicas(Duration::ZERO))?;
            self.deploy_pods((&app.name, replicas), app.container(), app.pod()).await?;
            if let Some(most) = app.max_unavailable {
                let budget = from_json(json!({
                    "metadata": { "name": app.name },
                    "spec": { "maxUnavailable": most, "selector": { "matchLabels": { "app": app.name } } },
                }))?;
                budgets.create(&PostParams::default(), &budget).await?;
            }
        }
        Ok(())
    }
}
