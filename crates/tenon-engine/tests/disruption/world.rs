//! Small clusters whose nodes may be disrupted, in few words: those of `packing/cluster.rs` with these besides.
//!
//! ```text
//! gate  spot-to-spot
//! gate  terminate-first-drift
//! gate  node-repair
//! gate  terminate-first-repair
//! pool  web policy=Balanced after=30s budget=10% budget=0@Drifted budget=1@@0_8_*_*_*;10h
//! node  n1 is=small zone=a kind=spot pool=web drifted=60 quiet=10 nominated keep keep-claim deleting not-ready
//!       bounded-drain foreign uninitialized in-progress sick=960 sick-false=960 created=100 no-repair no-repair-claim unregistered rebooted=60
//!       reboots bound=30 rebooted-often host-offline
//!       expires=3600
//! bound p1 on=n1 cpu=1 keep=true started=60 pdb=now owner=daemon cost=134217728 priority=5 job=3600
//! ```

use std::sync::Arc;
use std::time::Duration;

use tenon_engine::disruption::{Command, Destination, Disruption, Replacement, decide};
use tenon_model::{
    BoundPod, BudgetText, CandidateClaim, CandidateKubeNode, ConsolidationPolicy, DisruptionBudget, DisruptionFacts,
    DisruptionPool, DisruptionReason, HoldKind, NodeStage, NodeState, Overrides, Owner, PodHold, PodWorth, Pool,
    Protection, Quantity, RepairAction, RepairPolicies, RepairPolicy, Resources, SaidCondition, Seconds, Snapshot,
    Unhealthy,
};

use super::nodes::{ago, now};
use crate::packing::cluster::{cluster, label};

type Words<'a> = Vec<(&'a str, &'a str)>;

fn words(line: &str) -> Words<'_> {
    line.split_whitespace().skip(2).map(|word| word.split_once('=').unwrap_or((word, ""))).collect()
}

fn get<'a>(words: &Words<'a>, key: &str) -> Option<&'a str> {
    words.iter().find(|(found, _)| *found == key).map(|(_, value)| *value)
}

/// A cluster from its lines, ten minutes after every node of it was initialized.
pub(crate) fn world(text: &str) -> Snapshot {
    let mut snapshot =
        cluster(&text.lines().filter(|line| !line.trim().starts_with("gate")).collect::<Vec<_>>().join("\n"));
    snapshot.now = Seconds(now().as_nanos().div_euclid(1_000_000_000).try_into().unwrap());
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    for pool in &mut snapshot.pools {
        let pool = Arc::make_mut(pool);
        pool.disruption = Some(Arc::new(disruption_pool(pool, &Vec::new())));
    }
    for line in lines {
        let name = line.split_whitespace().nth(1).unwrap_or_default();
        let words = words(line);
        match line.split_whitespace().next().unwrap_or_default() {
            "gate" => match name {
                "spot-to-spot" => snapshot.disruption.gates.spot_to_spot = true,
                "terminate-first-drift" => snapshot.disruption.gates.terminate_first_drift = true,
                "node-repair" => snapshot.disruption.gates.node_repair = true,
                "terminate-first-repair" => snapshot.disruption.gates.terminate_first_repair = true,
                other => panic!("{other} is no gate"),
            },
            "pool" => {
                let pool = snapshot.pools.iter_mut().find(|pool| pool.name == name).unwrap();
                let pool = Arc::make_mut(pool);
                pool.disruption = Some(Arc::new(disruption_pool(pool, &words)));
            }
            "node" => node(&mut snapshot, name, &words),
            "bound" => bound(&mut snapshot, name, &words),
            _ => {}
        }
    }
    sum_up(&mut snapshot);
    snapshot
}

fn disruption_pool(pool: &Pool, words: &Words<'_>) -> DisruptionPool {
    let budgets: Vec<_> = words.iter().filter(|(key, _)| *key == "budget").map(|(_, text)| budget(text)).collect();
    DisruptionPool {
        name: pool.name.clone(),
        is_deleting: false,
        is_static: pool.replicas.is_some(),
        policy: match get(words, "policy") {
            Some("WhenEmpty") => ConsolidationPolicy::WhenEmpty,
            Some("Balanced") => ConsolidationPolicy::Balanced,
            _ => ConsolidationPolicy::WhenEmptyOrUnderutilized,
        },
        consolidate_after: get(words, "after").unwrap_or("0s").parse(),
        budgets: if budgets.is_empty() { vec![budget("100%")] } else { budgets },
    }
}

/// `10%`, `5@Drifted`, `0@@0_8_*_*_*;10h`.
fn budget(text: &str) -> Result<DisruptionBudget, tenon_model::BudgetFault> {
    let mut parts = text.split('@');
    let (nodes, reason, window) = (parts.next().unwrap(), parts.next().unwrap_or_default(), parts.next());
    let cron = window.map(|window| window.split_once(';').unwrap());
    let line = cron.map(|(line, _)| line.replace('_', " "));
    let text = BudgetText { nodes, schedule: line.as_deref(), duration: cron.map(|(_, duration)| duration) };
    let reason = match reason {
        "Drifted" => Some(DisruptionReason::Drifted),
        "Empty" => Some(DisruptionReason::Empty),
        "Underutilized" => Some(DisruptionReason::Underutilized),
        "Unhealthy" => Some(DisruptionReason::Unhealthy),
        _ => None,
    };
    DisruptionBudget::read(text, reason.map(|reason| vec![reason]))
}

fn node(snapshot: &mut Snapshot, name: &str, words: &Words<'_>) {
    let has = |key: &str| get(words, key).is_some();
    if has("nominated") {
        snapshot.disruption.nominated.insert(name.to_owned());
    }
    if has("host-offline") {
        snapshot.disruption.on_offline_hosts.insert(format!("claim-{name}"));
    }
    if has("rebooted-often") {
        snapshot.disruption.rebooted_often.insert(format!("claim-{name}"));
    }
    if has("in-progress") {
        snapshot.disruption.in_progress.insert(name.to_owned());
    }
    let catalog = snapshot.pools.first().map(|pool| pool.catalog.clone()).unwrap();
    let state = snapshot.nodes.iter_mut().find(|node| node.name == name).unwrap();
    let state = Arc::make_mut(state);
    let mut labels: Vec<(String, String)> =
        state.labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    for (word, key) in [("is", "instance-type"), ("zone", "zone"), ("kind", "capacity-type"), ("pool", "nodepool")] {
        let default = if word == "kind" { Some("on-demand") } else { None };
        labels.extend(get(words, word).or(default).map(|value| (label(key), value.to_owned())));
    }
    labels.push((label("hostname"), name.to_owned()));
    state.labels = labels.into_iter().collect();
    if let Some(size) = get(words, "is").and_then(|size| catalog.find(size)) {
        state.capacity = size.capacity.clone();
        state.allocatable = size.allocatable(&Overrides::default());
    }
    let is_up = state.stage == NodeStage::Initialized && !has("uninitialized");
    state.is_leaving |= has("deleting");
    if state.is_managed {
        state.disruption = Some(Arc::new(facts(name, is_up, words)));
    }
}

/// The policies of the provider; with `reboots` or `bound` a node that is silent is rebooted, or has so many seconds to drain.
fn policies(words: &Words<'_>) -> RepairPolicies {
    let (reboots, bound) = (get(words, "reboots").is_some(), get(words, "bound"));
    let mut policies: Vec<RepairPolicy> = RepairPolicies::default().iter().cloned().collect();
    let silent = RepairPolicy {
        reason_regex: ".*".to_owned(),
        action: if reboots { RepairAction::RebootNode } else { RepairAction::ReplaceNode },
        grace_period: bound.map(|seconds| Duration::from_secs(seconds.parse().unwrap())),
        ..policies[1].clone()
    };
    policies.push(silent);
    RepairPolicies::new(policies).unwrap()
}

fn facts(name: &str, is_up: bool, words: &Words<'_>) -> DisruptionFacts {
    let has = |key: &str| get(words, key).is_some();
    let seconds = |key: &str| get(words, key).map(|seconds| ago(seconds.parse().unwrap()));
    let sick = [("sick", "Unknown"), ("sick-false", "False")];
    let policies = policies(words);
    let sick = sick.into_iter().filter_map(|(word, status)| {
        let said = SaidCondition { condition: "Ready", status, reason: "", since: seconds(word)? };
        Some(policies.matches(&said))
    });
    let unhealthy: Vec<Unhealthy> = sick.flatten().collect();
    DisruptionFacts {
        claim: CandidateClaim {
            name: format!("claim-{name}"),
            created: Some(ago(4200)),
            is_deleting: has("deleting"),
            has_foreign_vm: has("foreign"),
            has_do_not_disrupt: has("keep-claim"),
            initialized_at: is_up.then(|| ago(600)),
            last_pod_event: seconds("quiet"),
            drifted_since: seconds("drifted"),
            has_bounded_drain: has("bounded-drain"),
            has_do_not_repair: has("no-repair-claim"),
            rebooted_at: seconds("rebooted"),
            expire_after_s: get(words, "expires").map(|expires| expires.parse().unwrap()),
            ..CandidateClaim::default()
        },
        node: Some(CandidateKubeNode {
            name: name.to_owned(),
            is_deleting: false,
            is_initialized: is_up,
            is_ready: !has("not-ready") && unhealthy.is_empty(),
            has_do_not_disrupt: has("keep"),
            created: seconds("created").or(Some(ago(4200))),
            is_registered: !has("unregistered"),
            unhealthy,
            has_do_not_repair: has("no-repair"),
        }),
    }
}

fn bound(snapshot: &mut Snapshot, name: &str, words: &Words<'_>) {
    let number = |key: &str| get(words, key).map(|number| number.parse().unwrap()).unwrap_or_default();
    let started = get(words, "started").map(|seconds| snapshot.now.0 - seconds.parse::<i64>().unwrap());
    let state = snapshot.nodes.iter_mut().find(|node| Some(node.name.as_str()) == get(words, "on")).unwrap();
    let state = Arc::make_mut(state);
    let place = state.pods.iter().position(|pod| &*pod.key.name == name).unwrap();
    let mut pod = BoundPod::clone(&state.pods[place]);
    let shape = Arc::make_mut(&mut pod.shape);
    shape.owner = match get(words, "owner") {
        Some("daemon") => Owner::DaemonSet,
        Some("mirror") => Owner::Node,
        Some("set") => Owner::StatefulSet,
        Some("nobody") => Owner::Nobody,
        _ => Owner::Other,
    };
    shape.protection = get(words, "keep").map(Protection::of).unwrap_or_default();
    pod.started = started.map(Seconds);
    let job_length_s = get(words, "job").map(|length| length.parse().unwrap());
    pod.worth = PodWorth { deletion_cost: number("cost"), priority: number("priority"), job_length_s };
    if pod.is_daemon() {
        state.bound_daemons.add(&pod.shape.requests);
    }
    if let Some(kind) = get(words, "pdb") {
        let kind = match kind {
            "now" => HoldKind::Now,
            "always" => HoldKind::Always,
            _ => HoldKind::Several,
        };
        let hold = PodHold { budgets: vec!["default/web".to_owned()], kind };
        snapshot.disruption.held.insert(pod.key.clone(), hold);
    }
    state.pods[place] = Arc::new(pod);
}

/// What the nodes of each pool have together.
pub(crate) fn sum_up(snapshot: &mut Snapshot) {
    let used = |name: &str, nodes: &[Arc<NodeState>]| {
        let mut used = Resources::default();
        for node in nodes.iter().filter(|node| node.pool.as_deref() == Some(name) && !node.is_leaving) {
            used.add(&node.capacity);
            used.add(&Resources::default().with("nodes", Quantity::whole(1)));
        }
        used
    };
    for pool in &mut snapshot.pools {
        let sum = used(&pool.name, &snapshot.nodes);
        Arc::make_mut(pool).used = sum;
    }
}

/// A move in words: `method: nodes that go => new nodes | pod>where …`.
pub(crate) fn told(command: &Command) -> String {
    let new = command.replacements.iter().map(|replacement| match replacement {
        Replacement::Planned(new) => {
            let kind = new.chosen.labels.get(&label("capacity-type")).map(String::as_str).unwrap_or_default();
            format!("{}/{}/{kind}", new.pool, new.chosen.instance_type)
        }
        Replacement::Template { pool } => format!("{pool}/template"),
    });
    let moves = command.moves.iter().map(|place| {
        let to = match &place.to {
            Destination::Node(node) => node.clone(),
            Destination::Replacement(index) => format!("#{index}"),
        };
        format!("{}>{to}", place.pod.name)
    });
    let part = |sign: &str, words: Vec<String>| {
        if words.is_empty() { String::new() } else { format!(" {sign} {}", words.join(" ")) }
    };
    format!(
        "{}: {}{}{}",
        command.method,
        command.names().join(" "),
        part("=>", new.collect()),
        part("|", moves.collect())
    )
}

pub(crate) fn decided(text: &str) -> Disruption {
    decide(&world(text))
}

/// What is done in a cluster.
#[track_caller]
pub(crate) fn expect(text: &str, expected: &[&str]) {
    let decided = decided(text);
    let told: Vec<String> = decided.commands.iter().map(told).collect();
    assert_eq!(told, expected, "\n{text}\n{}", reasons(&decided).join("\n"));
}

/// Why every node stays that does.
pub(crate) fn reasons(decided: &Disruption) -> Vec<String> {
    let all = decided
        .kept
        .iter()
        .flat_map(|kept| kept.reasons.iter().map(move |(method, why)| format!("{} {method}: {why}", kept.node)));
    all.collect()
}

/// Nothing is done, and this is why the only node of a name stays.
#[track_caller]
pub(crate) fn kept(node: &str, text: &str) -> String {
    let decided = decided(text);
    assert!(decided.commands.is_empty(), "{:?}", decided.commands.iter().map(told).collect::<Vec<_>>());
    let found = decided.kept.iter().find(|kept| kept.node == node).unwrap();
    found.reasons.iter().map(|(_, why)| why.to_string()).collect::<Vec<_>>().join("; ")
}
