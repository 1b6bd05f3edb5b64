//! Whether plans on hosts with limited room are still what they were, byte for byte.
//!
//! Files cannot describe hosts, so `cargo xtask diff golden`, which asks the program, has no such clusters. If plans are
//! meant to change, put the lines that the failed test prints into `golden_hosts.txt`, and say in the commit why they change.
//! Each line has a cluster, its plan with balanced hosts, and its plan where the host with the most free memory is taken.

use std::fmt::Write;

use tenon_model::{Plan, Resources};

use crate::packing::cluster::{cluster, sound_plan};

const RECORDED: &str = include_str!("golden_hosts.txt");

/// How many clusters there are.
const CLUSTERS: u64 = 60;

/// Numbers that a seed decides.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        let index = self.below(of.len() as u64);
        of[usize::try_from(index).unwrap()]
    }
}

/// A cluster on a few hosts, of which some are small, closed, or closed for one pool.
fn text(seed: u64) -> String {
    let mut dice = Dice(seed);
    let mut text = String::new();
    let hosts = 1 + dice.below(6);
    for host in 1..=hosts {
        let (cpu, memory) =
            (dice.pick(&["2", "8", "16", "32", "64"]), dice.pick(&["4Gi", "16Gi", "64Gi", "64Gi", "256Gi"]));
        let closed = dice.pick(&["", "", "", "", "", "closed=offline", "closed-for=web"]);
        writeln!(text, "host pve{host} cpu={cpu} memory={memory} {closed}").unwrap();
    }
    let limit = dice.pick(&["", "limit:cpu=20", "limit:memory=40Gi", "limit:nodes=2"]);
    writeln!(text, "pool web weight=5 label:team=red {limit}").unwrap();
    let taint = dice.pick(&["", "taint=slow:PreferNoSchedule", "taint=slow:NoSchedule"]);
    let choice = dice.pick(&["", "need:zone=Exists:+min=2", "need:instance-type=Exists:+min=4"]);
    writeln!(text, "pool batch {taint} {choice}\npool last need:zone=NotIn:pve1").unwrap();
    writeln!(text, "{}", dice.pick(&["", "option min-values=BestEffort", "option preferences=Ignore"])).unwrap();
    writeln!(text, "daemon agent cpu=100m memory=64Mi tolerate=slow").unwrap();
    for node in 0..dice.below(4) {
        let more = dice.pick(&["", "rising pool=web label:team=red", "label:zone=pve2", "leaving"]);
        writeln!(text, "node n{node} cpu=2 memory=4Gi {more}").unwrap();
    }
    for kind in 0..1 + dice.below(9) {
        let asks =
            dice.pick(&["cpu=100m memory=128Mi", "cpu=500m memory=3Gi", "cpu=1500m memory=1Gi", "cpu=3 memory=9Gi"]);
        let wish = dice.pick(&[
            "",
            "",
            "need:zone=In:pve2,pve3",
            "need:team=In:red",
            "prefer:3:zone=In:pve3 prefer:9:zone=In:pve9",
            "or:zone=In:pve9 or:zone=In:pve1",
            "tolerate=slow",
            "port=80",
            "need:instance-type=NotIn:c1.1VCPU-2GB",
        ]);
        for pod in 0..1 + dice.below(9) {
            writeln!(text, "pod p{kind}-{pod} created={} {asks} {wish}", kind % 4).unwrap();
        }
    }
    // Now and then more nodes than a sort keeps in order.
    if seed.is_multiple_of(6) {
        (0..18).for_each(|pod| writeln!(text, "pod apart-{pod} cpu=100m memory=128Mi port=8080").unwrap());
        writeln!(text, "host large cpu=96 memory=512Gi").unwrap();
    }
    text
}

/// The same cluster, whose pools take the host with the most free memory.
fn by_memory(text: &str) -> String {
    let line = |line: &str| if line.starts_with("pool ") { format!("{line} hosts=MaxMemory") } else { line.to_owned() };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Everything a plan says.
fn in_full(plan: &Plan) -> String {
    let amounts =
        |of: &Resources| of.iter().map(|(name, amount)| format!("{name}={amount}")).collect::<Vec<_>>().join(" ");
    let mut text = String::new();
    for node in &plan.new_nodes {
        let chosen = &node.chosen;
        let place = chosen.place.as_ref().map(|place| format!("{}/{}", place.region, place.host));
        writeln!(text, "new {} {} {place:?} {}", node.pool, chosen.instance_type, chosen.price).unwrap();
        writeln!(text, "{} | {} | {:?}", node.requirements, chosen.requirements, chosen.labels).unwrap();
        writeln!(text, "{} | {:?} | {}", amounts(&node.requests), node.instance_types, node.min_values_relaxed)
            .unwrap();
        node.pods.iter().for_each(|pod| writeln!(text, "{pod}").unwrap());
    }
    plan.placements.iter().for_each(|placement| writeln!(text, "{} on {}", placement.pod, placement.node).unwrap());
    plan.unplaced.iter().for_each(|unplaced| writeln!(text, "{}: {}", unplaced.pod, unplaced.reason).unwrap());
    text
}

/// FNV-1a: short, and the same everywhere.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[test]
fn plans_on_hosts_are_those_that_were_recorded() {
    let mut found = String::new();
    let (mut new, mut waiting, mut most) = (0, 0, 0);
    for seed in 1..=CLUSTERS {
        let plan = sound_plan(&cluster(&text(seed)));
        new += plan.new_nodes.len();
        waiting += plan.unplaced.len();
        most = most.max(plan.new_nodes.len());
        let other = sound_plan(&cluster(&by_memory(&text(seed))));
        writeln!(found, "{seed} {:016x} {:016x}", hash(&in_full(&plan)), hash(&in_full(&other))).unwrap();
    }
    assert!(new > 150 && waiting > 100 && most > 12, "the clusters say little: {new} {waiting} {most}");
    let changed: Vec<&str> = found.lines().filter(|line| !RECORDED.lines().any(|recorded| recorded == *line)).collect();
    assert!(found == RECORDED, "plans changed: {changed:?}; all lines of today:\n{found}");
}
