//! What a scenario's cluster has already: nodes, the claims behind them, claims on their way, bound pods.

use serde_json::{Map, Value, json};

use super::catalogue::InstanceType;
use super::daemons::Daemon;
use super::dice::Dice;
use super::pods::{port, resources};
use super::pools::{Pool, class};
use super::vocabulary::{ARCH, CAPACITY_TYPE, CPU, FAMILY, INSTANCE_TYPE, OS, POOL, Vocabulary, ZONE};

/// What the cluster is made of.
pub(super) struct Ground<'a> {
    pub(super) types: &'a [InstanceType],
    pub(super) words: &'a Vocabulary,
    pub(super) pools: &'a [Pool],
    pub(super) daemons: &'a [Daemon],
}

/// The objects, and how many nodes of each pool stay.
pub(super) struct Cluster {
    pub(super) objects: Vec<Value>,
    pub(super) staying: Vec<usize>,
}

/// How far a machine has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// A claim with a machine that has not joined.
    Launched,
    /// Its node is there, and not all of it works.
    Registered,
    Initialized,
    /// Its claim is being deleted.
    Leaving,
    /// A node that nobody claims.
    Unmanaged,
}

struct Machine<'a> {
    name: String,
    size: &'a InstanceType,
    pool: &'a Pool,
    stage: Stage,
    labels: Map<String, Value>,
}

pub(super) fn generate(dice: &mut Dice, ground: &Ground<'_>) -> Cluster {
    let mut cluster = Cluster { objects: Vec::new(), staying: vec![0; ground.pools.len()] };
    let count = if dice.chance(65) { dice.between(1, 6) } else { 0 };
    for index in 0..count {
        let of_pool = usize::try_from(dice.below(ground.pools.len() as u64)).unwrap_or(0);
        let stage = match dice.below(20) {
            0..=8 => Stage::Initialized,
            9..=11 => Stage::Registered,
            12..=14 => Stage::Launched,
            15..=16 => Stage::Leaving,
            _ => Stage::Unmanaged,
        };
        if !matches!(stage, Stage::Leaving | Stage::Unmanaged) {
            cluster.staying[of_pool] += 1;
        }
        let machine = machine(dice, ground, (index, of_pool, stage));
        cluster.objects.extend(machine.objects(dice, ground));
    }
    cluster
}

fn machine<'a>(dice: &mut Dice, ground: &Ground<'a>, (index, of_pool, stage): (u64, usize, Stage)) -> Machine<'a> {
    let (size, pool) = (dice.pick(ground.types), &ground.pools[of_pool]);
    let name = format!("node-{index}");
    let (zone, capacity_type) = size.some_place(dice);
    let mut labels = Map::new();
    let facts = [
        (ZONE, zone.to_owned()),
        (CAPACITY_TYPE, capacity_type.to_owned()),
        (INSTANCE_TYPE, size.name.clone()),
        (ARCH, size.arch.to_owned()),
        (OS, "linux".to_owned()),
        (FAMILY, size.family.to_owned()),
        (CPU, size.cpu.to_string()),
        ("kubernetes.io/hostname", name.clone()),
    ];
    labels.extend(facts.map(|(key, value)| (key.to_owned(), json!(value))));
    if stage != Stage::Unmanaged {
        labels.insert(POOL.to_owned(), json!(pool.name));
        labels.insert("karpenter.proxmox.sh/proxmoxnodeclass".to_owned(), json!("default"));
        labels.extend(pool.labels.clone());
    }
    for key in &ground.words.custom {
        if (key.is_negated || dice.chance(30)) && !labels.contains_key(&key.name) {
            labels.insert(key.name.clone(), json!(dice.pick(&key.values)));
        }
    }
    Machine { name, size, pool, stage, labels }
}

impl Machine<'_> {
    fn objects(&self, dice: &mut Dice, ground: &Ground<'_>) -> Vec<Value> {
        let mut all = Vec::new();
        if self.stage != Stage::Unmanaged {
            all.push(self.claim());
        }
        if self.stage == Stage::Launched {
            return all;
        }
        all.push(self.node(dice));
        for daemon in ground.daemons {
            if dice.chance(50) {
                all.push(daemon.pod_on(&self.name));
            }
        }
        let bound = dice.below(4);
        all.extend((0..bound).map(|index| self.bound_pod(dice, index)));
        all
    }

    fn claim(&self) -> Value {
        let mut metadata = json!({"name": format!("claim-{}", self.name), "labels": self.labels});
        if self.stage == Stage::Leaving {
            metadata["deletionTimestamp"] = json!("2026-01-01T01:00:00Z");
            metadata["finalizers"] = json!(["karpenter.sh/termination"]);
        }
        json!({
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": metadata,
            "spec": {
                "nodeClassRef": class(),
                "requirements": [],
                "taints": self.pool.taints,
                "startupTaints": self.pool.startup_taints,
            },
            "status": {
                "providerID": self.provider_id(),
                "capacity": self.size.capacity(),
                "allocatable": self.size.allocatable(),
            },
        })
    }

    fn node(&self, dice: &mut Dice) -> Value {
        let mut labels = self.labels.clone();
        let mut taints = if self.stage == Stage::Unmanaged { Vec::new() } else { self.pool.taints.clone() };
        let (mut capacity, mut allocatable) = (self.size.capacity(), self.size.allocatable());
        match self.stage {
            Stage::Initialized | Stage::Leaving => {
                labels.insert("karpenter.sh/registered".to_owned(), json!("true"));
                labels.insert("karpenter.sh/initialized".to_owned(), json!("true"));
            }
            Stage::Registered => {
                labels.insert("karpenter.sh/registered".to_owned(), json!("true"));
                taints.extend(self.pool.startup_taints.clone());
                taints.push(json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}));
                // The kubelet says 0 until the device plugin has spoken.
                if self.size.gpus > 0 {
                    capacity["example.com/gpu"] = json!("0");
                    allocatable["example.com/gpu"] = json!("0");
                }
            }
            _ => {}
        }
        if dice.chance(8) {
            taints.push(json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}));
        }
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": labels},
            "spec": {"providerID": self.provider_id(), "taints": taints},
            "status": {"capacity": capacity, "allocatable": allocatable},
        })
    }

    fn bound_pod(&self, dice: &mut Dice, index: u64) -> Value {
        let amounts = resources(dice, &["100m", "400m", "900m"], &["100Mi", "500Mi", "1Gi"]);
        let mut container = json!({"name": "main", "resources": amounts});
        if dice.chance(10) {
            container["ports"] = json!([port(dice)]);
        }
        let phase = if dice.chance(10) { "Succeeded" } else { "Running" };
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": format!("bound-{}-{index}", self.name), "namespace": "default"},
            "spec": {"nodeName": self.name, "containers": [container]},
            "status": {"phase": phase},
        })
    }

    fn provider_id(&self) -> String {
        format!("proxmox://one/{}", self.name)
    }
}
