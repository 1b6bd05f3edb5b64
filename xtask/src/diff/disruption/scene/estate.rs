//! Which nodes are there, how full are they, and what stands in the way of removing them?

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::super::super::dice::Dice;
use super::apps::{App, daemon_on};
use super::rules::{Pool, class, taint};
use super::sizes::{Offering, Size};
use super::{CAPACITY, HOST, LONG_AGO, POOL, Place, TYPE, ZONE};

/// Nodes, NodeClaims and running pods, and how many nodes each NodePool has.
pub(super) struct Estate {
    pub(super) objects: Vec<Value>,
    pub(super) of_pool: BTreeMap<usize, u64>,
}

/// What is special about a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Plain,
    /// Since so many minutes before the scenario's time.
    Drifted(u64),
    /// A pod came or went so many seconds before.
    Touched(u64),
    Protected,
    NotReady,
    Young,
    Leaving,
}

struct Machine<'a> {
    name: String,
    size: &'a Size,
    pool: &'a Pool,
    at: &'a Offering,
    state: State,
    is_bounded: bool,
}

pub(super) fn generate(dice: &mut Dice, place: &Place) -> Estate {
    let mut estate = Estate { objects: Vec::new(), of_pool: (0..place.pools.len()).map(|pool| (pool, 0)).collect() };
    let count = match dice.below(10) {
        0..=4 => dice.between(3, 7),
        5..=7 => dice.between(8, 14),
        _ => dice.between(15, 25),
    };
    // Most clusters have nodes that were sized for more than what runs on them.
    let fullness = *dice.pick(&[15, 30, 30, 50, 70]);
    for index in 0..count {
        let of_pool = usize::try_from(dice.below(place.pools.len() as u64)).unwrap_or(0);
        let Some(machine) = machine(dice, place, (index, of_pool)) else { continue };
        *estate.of_pool.entry(of_pool).or_default() += 1;
        estate.objects.extend([machine.claim(), machine.node()]);
        estate.objects.extend(place.has_daemon.then(|| daemon_on(&machine.name)));
        let wanted = if dice.chance(15) { 0 } else { dice.between(fullness / 3, (fullness * 3 / 2).min(95)) };
        estate.objects.extend(machine.pods(dice, place, wanted));
    }
    estate
}

fn machine<'a>(dice: &mut Dice, place: &'a Place, (index, of_pool): (u64, usize)) -> Option<Machine<'a>> {
    let pool = &place.pools[of_pool];
    let can_be = |size: &&Size| size.offerings.iter().any(|at| pool.capacities.contains(&at.capacity));
    let sizes: Vec<&Size> = place.sizes.iter().filter(can_be).collect();
    if sizes.is_empty() {
        // A pool of spot nodes where nothing is offered as spot: its node is of another time.
        let size = place.sizes.first()?;
        return Some(Machine {
            name: format!("node-{index}"),
            size,
            pool,
            at: size.offerings.first()?,
            state: State::Plain,
            is_bounded: false,
        });
    }
    let size = *dice.pick(&sizes);
    let ways: Vec<&Offering> = size.offerings.iter().filter(|at| pool.capacities.contains(&at.capacity)).collect();
    let at = *dice.pick(&ways);
    let state = match dice.below(100) {
        0..=11 => State::Drifted(10 + index),
        12..=21 => State::Touched(*dice.pick(&[5, 20, 40, 250, 1200])),
        22..=25 => State::Protected,
        26..=28 => State::NotReady,
        29..=30 => State::Young,
        31..=32 => State::Leaving,
        _ => State::Plain,
    };
    Some(Machine { name: format!("node-{index}"), size, pool, at, state, is_bounded: dice.chance(10) })
}

impl Machine<'_> {
    fn labels(&self) -> Map<String, Value> {
        let mut labels = Map::new();
        let facts = [
            (ZONE, self.at.zone),
            (CAPACITY, self.at.capacity),
            (TYPE, &self.size.name),
            (POOL, &self.pool.name),
            (HOST, &self.name),
            ("kubernetes.io/arch", "amd64"),
            ("kubernetes.io/os", "linux"),
            ("karpenter.proxmox.sh/proxmoxnodeclass", "default"),
            ("karpenter.sh/registered", "true"),
        ];
        labels.extend(facts.map(|(key, value)| (key.to_owned(), json!(value))));
        if self.state != State::Young {
            labels.insert("karpenter.sh/initialized".to_owned(), json!("true"));
        }
        labels
    }

    fn claim(&self) -> Value {
        let mut metadata =
            json!({"name": format!("claim-{}", self.name), "labels": self.labels(), "creationTimestamp": LONG_AGO});
        if self.state == State::Leaving {
            metadata["deletionTimestamp"] = json!("2026-03-01T11:59:00Z");
            metadata["finalizers"] = json!(["karpenter.sh/termination"]);
        }
        let is = |kind: &str, at: &str| json!({"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": at});
        let mut conditions = vec![is("Launched", LONG_AGO), is("Registered", LONG_AGO)];
        if self.state != State::Young {
            conditions.push(is("Initialized", LONG_AGO));
        }
        if let State::Drifted(minutes) = self.state {
            conditions.push(is("Drifted", &format!("2026-03-01T11:{:02}:00Z", 59 - minutes)));
        }
        let (capacity, allocatable) = self.size.resources();
        let mut status = json!({"providerID": self.provider_id(), "nodeName": self.name, "capacity": capacity,
            "allocatable": allocatable, "conditions": conditions, "lastPodEventTime": LONG_AGO});
        if let State::Touched(seconds) = self.state {
            let before = 12 * 3600 - seconds;
            let (hour, minute, second) = (before / 3600, before / 60 % 60, before % 60);
            status["lastPodEventTime"] = json!(format!("2026-03-01T{hour:02}:{minute:02}:{second:02}Z"));
        }
        let mut spec = json!({"nodeClassRef": class(), "requirements": [], "expireAfter": "Never"});
        if self.is_bounded {
            spec["terminationGracePeriod"] = json!("1h");
        }
        json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": metadata, "spec": spec, "status": status})
    }

    fn node(&self) -> Value {
        let (capacity, allocatable) = self.size.resources();
        let mut metadata = json!({"name": self.name, "labels": self.labels(), "creationTimestamp": LONG_AGO});
        if self.state == State::Protected {
            metadata["annotations"] = json!({"karpenter.sh/do-not-disrupt": "true"});
        }
        let mut taints = Vec::new();
        if self.pool.is_tainted {
            taints.push(taint());
        }
        let is_ready = !matches!(self.state, State::NotReady | State::Young);
        if !is_ready {
            taints.push(json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}));
        }
        let ready = if is_ready { "True" } else { "False" };
        json!({"apiVersion": "v1", "kind": "Node", "metadata": metadata,
            "spec": {"providerID": self.provider_id(), "taints": taints},
            "status": {"capacity": capacity, "allocatable": allocatable, "conditions": [{"type": "Ready", "status": ready}]}})
    }

    fn provider_id(&self) -> String {
        format!("proxmox://one/{}", self.name)
    }

    /// Pods until so much of it is used.
    fn pods(&self, dice: &mut Dice, place: &Place, percent: u64) -> Vec<Value> {
        let may_run = |app: &&App| {
            (app.tolerates || !self.pool.is_tainted)
                && app.zone.is_none_or(|zone| zone == self.at.zone)
                && app.capacity.is_none_or(|capacity| capacity == self.at.capacity)
        };
        let apps: Vec<&App> = place.apps.iter().filter(may_run).collect();
        if apps.is_empty() {
            return Vec::new();
        }
        let (mut cpu, mut memory) =
            ((self.size.cpu * 1000 - 200) * percent / 100, (self.size.memory * 1024 - 700) * percent / 100);
        let (mut pods, mut alone): (Vec<Value>, Vec<&str>) = (Vec::new(), Vec::new());
        for _ in 0..20 {
            let app = *dice.pick(&apps);
            let is_second = app.keeps_apart && alone.contains(&app.name.as_str());
            if app.cpu > cpu || app.memory > memory || is_second {
                continue;
            }
            (cpu, memory) = (cpu - app.cpu, memory - app.memory);
            alone.push(&app.name);
            pods.push(app.pod(&format!("{}-{}-{}", app.name, self.name, pods.len()), Some(&self.name)));
        }
        pods
    }
}
