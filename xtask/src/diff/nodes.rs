//! What a scenario's cluster has already: nodes, the claims behind them, claims on their way, bound pods.

use serde_json::{Map, Value, json};

use super::catalogue::InstanceType;
use super::daemons::Daemon;
use super::dice::Dice;
use super::pods::{self, port, resources};
use super::pools::{Pool, class};
use super::vocabulary::{ARCH, CAPACITY_TYPE, CPU, FAMILY, INSTANCE_TYPE, OLD_NAMES, OS, POOL, Vocabulary, ZONE};

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
    /// Its node is there, and nobody has looked at it yet.
    Joined,
    /// Its node is known, and not all of it works.
    Registered,
    Initialized,
    /// A node that nobody claims.
    Unmanaged,
}

/// Why a machine goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    /// Its claim is being deleted.
    Deleted,
    /// Somebody else takes the machine away.
    Terminated,
}

struct Machine<'a> {
    name: String,
    size: &'a InstanceType,
    pool: &'a Pool,
    stage: Stage,
    leaving: Option<Leaving>,
    labels: Map<String, Value>,
}

pub(super) fn generate(dice: &mut Dice, ground: &Ground<'_>) -> Cluster {
    let mut cluster = Cluster { objects: Vec::new(), staying: vec![0; ground.pools.len()] };
    let count = if dice.chance(65) { dice.between(1, 6) } else { 0 };
    for index in 0..count {
        let of_pool = usize::try_from(dice.below(ground.pools.len() as u64)).unwrap_or(0);
        let machine = machine(dice, ground, index, of_pool);
        if machine.leaving.is_none() && machine.stage != Stage::Unmanaged {
            cluster.staying[of_pool] += 1;
        }
        cluster.objects.extend(machine.objects(dice, ground));
    }
    cluster
}

fn stage(dice: &mut Dice) -> (Stage, Option<Leaving>) {
    let stage = match dice.below(18) {
        0..=8 => Stage::Initialized,
        9..=11 => Stage::Registered,
        12..=13 => Stage::Launched,
        14..=15 => Stage::Joined,
        _ => return (Stage::Unmanaged, None),
    };
    let leaving = dice.chance(14).then(|| *dice.pick(&[Leaving::Deleted, Leaving::Deleted, Leaving::Terminated]));
    (stage, leaving)
}

fn machine<'a>(dice: &mut Dice, ground: &Ground<'a>, index: u64, of_pool: usize) -> Machine<'a> {
    let (stage, leaving) = stage(dice);
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
    for (old, new) in OLD_NAMES {
        if dice.chance(20) {
            labels.insert(old.to_owned(), labels[new].clone());
        }
    }
    Machine { name, size, pool, stage, leaving, labels }
}

impl Machine<'_> {
    fn objects(&self, dice: &mut Dice, ground: &Ground<'_>) -> Vec<Value> {
        let mut all = Vec::new();
        if self.stage != Stage::Unmanaged {
            all.push(self.claim(dice));
        }
        if self.stage == Stage::Launched {
            return all;
        }
        all.push(self.node(dice));
        for daemon in ground.daemons {
            if dice.chance(50) {
                all.push(daemon.pod_on(dice, ground.words, &self.name));
            }
        }
        let bound = dice.below(4);
        all.extend((0..bound).map(|index| self.bound_pod(dice, ground, index)));
        all
    }

    fn claim(&self, dice: &mut Dice) -> Value {
        let mut metadata = json!({"name": format!("claim-{}", self.name), "labels": self.labels});
        if self.leaving == Some(Leaving::Deleted) {
            metadata["deletionTimestamp"] = json!("2026-01-01T01:00:00Z");
            metadata["finalizers"] = json!(["karpenter.sh/termination"]);
        }
        let mut status = json!({
            "providerID": self.provider_id(),
            "capacity": self.size.capacity(),
            "allocatable": self.size.allocatable(),
        });
        let is_terminated = self.leaving == Some(Leaving::Terminated);
        if is_terminated || dice.chance(4) {
            let said = if is_terminated { "True" } else { "False" };
            status["conditions"] = json!([{"type": "InstanceTerminating", "status": said, "reason": "Said",
                "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
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
            "status": status,
        })
    }

    fn node(&self, dice: &mut Dice) -> Value {
        let mut labels = self.labels.clone();
        let mut taints = if self.stage == Stage::Unmanaged { Vec::new() } else { self.pool.taints.clone() };
        let (mut capacity, mut allocatable) = (self.size.capacity(), self.size.allocatable());
        let mut spec = json!({"providerID": self.provider_id()});
        match self.stage {
            Stage::Initialized => {
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
            Stage::Joined => {
                taints = vec![json!({"key": "karpenter.sh/unregistered", "effect": "NoExecute"})];
                // Until it says what it is, neither the node nor what runs on it counts.
                match dice.below(5) {
                    0 => drop(labels.remove(INSTANCE_TYPE)),
                    1 => spec = json!({}),
                    _ => {}
                }
            }
            // Its claim is gone, or nobody knows which machine it is.
            Stage::Unmanaged if dice.chance(20) => {
                labels.insert(POOL.to_owned(), json!(self.pool.name));
                spec = if dice.chance(50) { json!({}) } else { spec };
            }
            Stage::Launched | Stage::Unmanaged => {}
        }
        if dice.chance(8) {
            taints.push(json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}));
        }
        spec["taints"] = json!(taints);
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": labels},
            "spec": spec,
            "status": {"capacity": capacity, "allocatable": allocatable},
        })
    }

    fn bound_pod(&self, dice: &mut Dice, ground: &Ground<'_>, index: u64) -> Value {
        let amounts = resources(dice, &["100m", "400m", "900m"], &["100Mi", "500Mi", "1Gi"]);
        let mut container = json!({"name": "main", "resources": amounts});
        if dice.chance(10) {
            container["ports"] = json!([port(dice)]);
        }
        // The node may have fewer, or never have reported any.
        if dice.chance(8) {
            container["resources"]["limits"]["example.com/gpu"] = json!("1");
        }
        let mut spec = json!({"containers": [container]});
        // What it asks for matters again when its node goes.
        if self.leaving.is_some() && dice.chance(40) {
            spec = pods::spec(dice, ground.words, ground.pools);
        }
        spec["nodeName"] = json!(self.name);
        let phase = if dice.chance(10) { "Succeeded" } else { "Running" };
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": format!("bound-{}-{index}", self.name), "namespace": "default"},
            "spec": spec,
            "status": {"phase": phase},
        })
    }

    fn provider_id(&self) -> String {
        format!("proxmox://one/{}", self.name)
    }
}
