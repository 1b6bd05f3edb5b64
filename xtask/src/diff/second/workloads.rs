//! What people run: groups of like pods, some of them running already, the others waiting.

use serde_json::{Value, json};

use super::super::dice::Dice;
use super::estate::Machine;
use super::storage::{self, Holder, Volume};
use super::{HASH, HOST, Place, rules, uid};

const APPS: [&str; 14] = [
    "api",
    "worker",
    "postgres",
    "redis",
    "grafana",
    "jellyfin",
    "nextcloud",
    "shop",
    "mail",
    "queue",
    "search",
    "wiki",
    "builder",
    "proxy",
];
/// Namespaces, each with the team that owns it.
pub(super) const NAMESPACES: [(&str, &str); 4] =
    [("default", "platform"), ("shop", "web"), ("media", "home"), ("data", "home")];
/// The stacks that apps are part of.
pub(super) const STACKS: [&str; 3] = ["front", "back", "tools"];

/// A group of like pods.
pub(super) struct App {
    pub(super) name: String,
    pub(super) namespace: &'static str,
    pub(super) stack: &'static str,
    hash: String,
    /// The hash of the version that was rolled out before.
    old_hash: String,
    /// How many pods wait.
    pub(super) waiting: u64,
    /// Millicores and MiB.
    pub(super) cpu: u64,
    pub(super) memory: u64,
    pub(super) gpu: bool,
    pub(super) volume: Volume,
    /// Whether no two of its pods share a machine.
    pub(super) apart: bool,
}

/// The apps of a place; three to sixty of their pods wait.
pub(super) fn generate(dice: &mut Dice) -> Vec<App> {
    let mut left = match dice.below(10) {
        0..4 => dice.between(3, 15),
        4..8 => dice.between(10, 35),
        _ => dice.between(30, 60),
    };
    let namespaces = dice.some(&NAMESPACES, 1);
    let mut apps = Vec::new();
    while left > 0 {
        let waiting = dice.between(1, left.min(12));
        left -= waiting;
        let known = APPS.len();
        let name = APPS[apps.len() % known];
        let name = if apps.len() < known { name.to_owned() } else { format!("{name}-{}", apps.len() / known + 1) };
        let namespace = dice.pick(&namespaces).0;
        apps.push(app(dice, name, namespace, waiting));
    }
    apps
}

fn app(dice: &mut Dice, name: String, namespace: &'static str, waiting: u64) -> App {
    let (cpu, memory) = match dice.below(10) {
        0..5 => (dice.between(1, 20) * 50, dice.between(1, 16) * 64),
        5..8 => (dice.between(2, 15) * 100, dice.between(2, 16) * 256),
        8 => (dice.between(10, 40) * 100, dice.between(4, 32) * 256),
        _ => (dice.between(1, 10) * 10, dice.between(8, 40) * 256),
    };
    let stack = *dice.pick(&STACKS);
    App {
        name,
        namespace,
        stack,
        hash: format!("{:09x}", dice.below(1 << 36)),
        old_hash: format!("{:09x}", dice.below(1 << 36)),
        waiting,
        cpu,
        memory,
        gpu: dice.chance(3),
        volume: if dice.chance(14) { Volume::roll(dice) } else { Volume::None },
        apart: dice.chance(12),
    }
}

impl App {
    /// Whether it is like a StatefulSet: its pods have numbers and disks.
    pub(super) fn stateful(&self) -> bool {
        matches!(self.volume, Volume::Late(_) | Volume::Zonal)
    }

    fn pod(&self, dice: &mut Dice, hash: &str, number: u64) -> Value {
        let mut labels = json!({"app": self.name, "stack": self.stack});
        let (kind, owner, name) = if self.stateful() {
            ("StatefulSet", self.name.clone(), format!("{}-{number}", self.name))
        } else {
            labels[HASH] = json!(hash);
            let owner = format!("{}-{hash}", self.name);
            ("ReplicaSet", owner.clone(), format!("{owner}-{number:03}"))
        };
        let owner = json!({
            "apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": format!("{}-{owner}", self.namespace),
            "controller": true, "blockOwnerDeletion": true,
        });
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name, "namespace": self.namespace, "uid": uid(dice), "labels": labels,
                "ownerReferences": [owner],
            },
        })
    }

    /// Lets a pod use its claim.
    fn mount(&self, pod: &mut Value) {
        if self.volume != Volume::None {
            let claim = storage::claim_name(self, pod["metadata"]["name"].as_str().unwrap_or_default());
            pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
        }
    }
}

/// The pods of the app that wait, with their claims.
pub(super) fn waiting(dice: &mut Dice, place: &Place, app: &App) -> Vec<Value> {
    let spec = rules::spec(dice, place, app);
    let minute = dice.below(60);
    let mut objects = storage::shared(dice, app);
    for number in 0..app.waiting {
        let mut pod = app.pod(dice, &app.hash, number);
        pod["metadata"]["creationTimestamp"] = json!(format!("2026-01-01T10:{minute:02}:{:02}Z", number % 3));
        pod["spec"] = spec.clone();
        app.mount(&mut pod);
        let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
        pod["status"] = json!({"phase": "Pending", "conditions": [condition]});
        let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        objects.extend(storage::claim(dice, place, app, &Holder { pod: &name, zone: None }));
        objects.push(pod);
    }
    objects
}

/// Pods that run on the machines, as far as they have room.
pub(super) fn running(dice: &mut Dice, place: &Place, machines: &mut [Machine]) -> Vec<Value> {
    let mut objects = Vec::new();
    let mut number = 100;
    for machine in machines.iter_mut().filter(|machine| machine.open) {
        for _ in 0..dice.below(7) {
            let app = dice.pick(&place.apps);
            number += 1;
            objects.extend(bound(dice, place, app, Seat { machine: &mut *machine, number }));
        }
    }
    objects
}

/// A machine, and the number of the pod that may run there.
struct Seat<'a> {
    machine: &'a mut Machine,
    number: u64,
}

/// One pod of the app on a machine, if it fits.
fn bound(dice: &mut Dice, place: &Place, app: &App, seat: Seat<'_>) -> Vec<Value> {
    let Seat { machine, number } = seat;
    let neighbours = machine.apps.contains(&app.name);
    let full = machine.pods == 0 || machine.cpu < app.cpu || machine.memory < app.memory;
    if full || app.gpu || (app.apart && neighbours) {
        return Vec::new();
    }
    machine.pods -= 1;
    machine.cpu -= app.cpu;
    machine.memory -= app.memory;
    machine.apps.push(app.name.clone());
    let hash = if dice.chance(30) { &app.old_hash } else { &app.hash };
    let mut pod = app.pod(dice, hash, number);
    pod["spec"] = json!({"containers": [app.container()], "nodeName": machine.name});
    if app.apart {
        let term = json!({"labelSelector": {"matchLabels": {"app": app.name}}, "topologyKey": HOST});
        pod["spec"]["affinity"] = json!({"podAntiAffinity": {rules::REQUIRED: [term]}});
    }
    pod["status"] = json!({"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]});
    let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut objects = match &machine.zone {
        Some(zone) if app.volume != Volume::None => {
            app.mount(&mut pod);
            storage::claim(dice, place, app, &Holder { pod: &name, zone: Some(zone) })
        }
        _ => Vec::new(),
    };
    objects.push(pod);
    objects
}
