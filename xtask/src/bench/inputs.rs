//! What both programs plan: clusters of the size and kind that decide how fast a planner is.

use serde_json::{Value, json};

use crate::diff::cluster::{Asks, Cluster, bound, daemon, is, node, pod, pool};
use crate::diff::dice::Dice;
use crate::diff::scenario::Scenario;
use crate::diff::vocabulary::{ARCH, CAPACITY_TYPE, INSTANCE_TYPE, OS, ZONE};

/// Whether pods have the topology terms of Karpenter's own benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topology {
    Without,
    With,
}

/// One input, made when its turn comes: the large ones take much memory.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) pods: usize,
    pub(super) scenario: Box<dyn Fn() -> Scenario>,
}

impl Case {
    /// Whether a person who writes this name means the case: its own, or that of its group.
    pub(super) fn is(&self, name: &str) -> bool {
        self.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }
}

/// How many pods of its own mix Karpenter's benchmark has, and two sizes more.
const MIX: [usize; 8] = [1, 50, 100, 500, 1_000, 5_000, 10_000, 20_000];

/// How many pods its benchmark of preferences has.
const PREFERENCES: usize = 4_000;

/// Clusters as most people have them: forty pods.
const SMALL: std::ops::RangeInclusive<u64> = 1..=5;

pub(super) fn cases(topology: Topology) -> Vec<Case> {
    let case =
        |name: &str, pods: usize, scenario: Box<dyn Fn() -> Scenario>| Case { name: name.to_owned(), pods, scenario };
    let with = |policy: &'static str| Box::new(move || preferences(topology, policy).into_scenario());
    let mix =
        MIX.map(|count| case(&format!("mix-{count}"), count, Box::new(move || mix(count, topology).into_scenario())));
    let small = SMALL.map(|seed| case(&format!("small-{seed}"), 40, Box::new(move || small(seed).into_scenario())));
    let mut all: Vec<Case> = mix.into_iter().chain(small).collect();
    all.extend([
        case("preferences-respect", PREFERENCES, with("Respect")),
        case("preferences-ignore", PREFERENCES, with("Ignore")),
        case("existing-nodes", 1_000, Box::new(|| existing_nodes().into_scenario())),
        case("deployments", 50_000, Box::new(|| deployments().into_scenario())),
        case("all-distinct", 2_000, Box::new(|| all_distinct().into_scenario())),
        case("deep-relaxation", 1_000, Box::new(|| deep_relaxation().into_scenario())),
    ]);
    all
}

/// The catalogue of Karpenter's benchmark: 400 sizes with five offerings each, all at the price of the size.
fn four_hundred_types() -> Vec<Value> {
    let places = [("spot", "1"), ("spot", "2"), ("on-demand", "1"), ("on-demand", "2"), ("on-demand", "3")];
    let size = |number: u32| {
        let memory_gi = 2 * number;
        let price = 0.1 * f64::from(number) + 0.1 * f64::from(memory_gi) * 1.073_741_824;
        let offering = |(kind, zone): (&str, &str)| {
            let zone = is(ZONE, &format!("test-zone-{zone}"));
            json!({"price": price, "requirements": [is(CAPACITY_TYPE, kind), zone]})
        };
        json!({
            "name": format!("fake-it-{}", number - 1),
            "capacity": {"cpu": number.to_string(), "memory": format!("{memory_gi}Gi"), "pods": (10 * number).to_string()},
            "overhead": {"KubeReserved": {"cpu": "100m", "memory": "10Mi"}},
            "requirements": [
                is(ARCH, "amd64"),
                {"key": OS, "operator": "In", "values": ["linux", "windows", "darwin"]},
                {"key": ZONE, "operator": "In", "values": ["test-zone-1", "test-zone-2", "test-zone-3"]},
                {"key": CAPACITY_TYPE, "operator": "In", "values": ["spot", "on-demand"]},
            ],
            "offerings": places.map(offering),
        })
    };
    (1..=400).map(size).collect()
}

/// The pool of Karpenter's benchmark, whose limits are out of reach.
fn wide_pool() -> Value {
    pool("default", &json!({"limits": {"cpu": "10000000", "memory": "10000000Gi"}}))
}

const HOSTS: [&str; 3] = ["pve1", "pve2", "pve3"];

/// Tenon's built-in sizes on three hosts.
pub(super) fn sizes_on_hosts() -> Vec<Value> {
    let size = |cpu: u32, per_cpu: u32| {
        let memory_gi = cpu * per_cpu;
        let price = 0.025 * f64::from(cpu) + 0.001 * f64::from(memory_gi) * 1.073_741_824;
        let offering =
            |host: &str| json!({"price": price, "requirements": [is(CAPACITY_TYPE, "on-demand"), is(ZONE, host)]});
        json!({
            "name": format!("c{cpu}-m{memory_gi}"),
            "capacity": {"cpu": cpu.to_string(), "memory": format!("{memory_gi}Gi"), "pods": "110"},
            "overhead": {"KubeReserved": {"cpu": "100m", "memory": "300Mi"}},
            "offerings": HOSTS.map(offering),
        })
    };
    [1, 2, 4, 8, 16].iter().flat_map(|cpu| [2, 3, 4, 8].map(|per_cpu| size(*cpu, per_cpu))).collect()
}

const CPU: [&str; 5] = ["100m", "250m", "500m", "1", "1500m"];
const MEMORY: [&str; 6] = ["100Mi", "256Mi", "512Mi", "1Gi", "2Gi", "4Gi"];
const LETTERS: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];

fn labelled(mut pod: Value, labels: &Value) -> Value {
    pod["metadata"]["labels"] = labels.clone();
    pod
}

/// Karpenter's own diverse mix: a fifth each of plain pods, pods spread over zones and over nodes, pods with affinity to
/// a zone, and pods of which no two may be on one node.
fn mix(count: usize, topology: Topology) -> Cluster {
    let mut dice = Dice::new(42);
    let share = count / 5;
    let mut cluster = Cluster::new(four_hundred_types()).with(wide_pool());
    for number in 0..count {
        let (label, selected) = (json!({"my-label": dice.pick(&LETTERS)}), json!({"my-label": dice.pick(&LETTERS)}));
        let (cpu, memory) = (*dice.pick(&CPU), *dice.pick(&MEMORY));
        let spread = |key: &str| {
            json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": selected}}]})
        };
        let near = |kind: &str, key: &str, labels: &Value| {
            let term = json!({"topologyKey": key, "labelSelector": {"matchLabels": labels}});
            json!({"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
        };
        let (host, affine, apart) =
            ("kubernetes.io/hostname", json!({"my-affinity": label["my-label"]}), json!({"app": "nginx"}));
        let (labels, terms) = match number.checked_div(share) {
            Some(1) => (label, spread(ZONE)),
            Some(2) => (label, spread(host)),
            Some(3) => (affine.clone(), near("podAffinity", ZONE, &affine)),
            Some(4) => (apart.clone(), near("podAntiAffinity", host, &apart)),
            _ => (label, json!({})),
        };
        let terms = if topology == Topology::With { terms } else { json!({}) };
        cluster = cluster.with(labelled(pod(&format!("pod-{number}"), Asks(cpu, memory), &terms), &labels));
    }
    cluster
}

/// The pods of Karpenter's benchmark of preferences: all alike, with one that can be met and one that cannot.
fn preferences(topology: Topology, policy: &str) -> Cluster {
    let labels = json!({"app": "nginx"});
    let apart = |weight: u64, key: &str| json!({"weight": weight, "podAffinityTerm": {"topologyKey": key, "labelSelector": {"matchLabels": labels}}});
    let wish = |zone: &str| json!({"weight": 1, "preference": {"matchExpressions": [is(ZONE, zone)]}});
    let affinity = match topology {
        Topology::With => json!({
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish("test-zone-1")]},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                apart(10, ZONE), apart(1, "kubernetes.io/hostname")]},
        }),
        // Without topology, a zone that nobody offers takes the place of what cannot be met.
        Topology::Without => json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 10, "preference": {"matchExpressions": [is(ZONE, "nowhere")]}}, wish("test-zone-1")]}}),
    };
    let one = |number: usize| {
        labelled(pod(&format!("pod-{number}"), Asks("500m", "512Mi"), &json!({"affinity": affinity})), &labels)
    };
    let options = json!({"preferencePolicy": policy});
    Cluster::new(four_hundred_types()).with(wide_pool()).with_all((0..PREFERENCES).map(one)).with_options(options)
}

/// Forty pods of eight Deployments on a small Proxmox cluster. They need more than one node.
fn small(seed: u64) -> Cluster {
    let mut dice = Dice::new(seed);
    let mut cluster = Cluster::new(sizes_on_hosts())
        .with(pool("default", &json!({})))
        .with(daemon("network", Asks("100m", "128Mi"), &json!({"tolerations": [{"operator": "Exists"}]})))
        .with(daemon("logs", Asks("50m", "64Mi"), &json!({})));
    for app in 0..8 {
        let (cpu, memory) =
            (*dice.pick(&["250m", "500m", "1", "1", "2"]), *dice.pick(&["256Mi", "512Mi", "1Gi", "2Gi", "4Gi"]));
        let terms = match dice.below(8) {
            0 => json!({"nodeSelector": {ZONE: "pve2"}}),
            1 => json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [is(ZONE, "pve3")]}}]}}}),
            _ => json!({}),
        };
        for replica in 0..5 {
            cluster = cluster.with(pod(&format!("app-{app}-{replica}"), Asks(cpu, memory), &terms));
        }
    }
    cluster
}

/// A thousand pods, and ten thousand nodes that have little room each.
fn existing_nodes() -> Cluster {
    let mut cluster = Cluster::new(sizes_on_hosts()).with(pool("default", &json!({})));
    for number in 0..10_000 {
        let (name, host) = (format!("node-{number}"), HOSTS[number % 3]);
        let used = if number % 5 == 0 { Asks("6", "12Gi") } else { Asks("7500m", "15Gi") };
        cluster =
            cluster.with(node(&name, host, Asks("8", "16Gi"))).with(bound(&format!("bound-{number}"), &name, used));
    }
    for number in 0..1_000 {
        let kind = number % 30;
        let (cpu, memory) = (format!("{}m", 100 + kind * 37 % 1_500), format!("{}Mi", 128 + kind * 61 % 2_048));
        cluster = cluster.with(pod(&format!("pod-{number}"), Asks(&cpu, &memory), &json!({})));
    }
    cluster
}

/// Two hundred Deployments of 250 pods, some of which are particular about zone and capacity type.
fn deployments() -> Cluster {
    let mut dice = Dice::new(7);
    let mut cluster = Cluster::new(four_hundred_types()).with(wide_pool());
    for app in 0..200 {
        let (cpu, memory) = (format!("{}m", 50 * dice.between(1, 40)), format!("{}Mi", 64 * dice.between(1, 64)));
        let terms = match dice.below(8) {
            0 | 1 => json!({"nodeSelector": {ZONE: format!("test-zone-{}", dice.between(1, 3))}}),
            2 => json!({"nodeSelector": {CAPACITY_TYPE: "on-demand"}}),
            _ => json!({}),
        };
        for replica in 0..250 {
            cluster = cluster.with(pod(&format!("app-{app}-{replica}"), Asks(&cpu, &memory), &terms));
        }
    }
    cluster
}

/// Pods of which no two ask for the same: nothing that is remembered of one helps with another.
fn all_distinct() -> Cluster {
    let one = |number: usize| {
        let asks = (format!("{}m", 100 + number % 1_499), format!("{}Mi", 100 + number * 7 % 4_001));
        let not = json!({"key": INSTANCE_TYPE, "operator": "NotIn",
            "values": [format!("fake-it-{}", number % 397), format!("fake-it-{}", number * 31 % 389)]});
        let terms = json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [not]}]}}}});
        pod(&format!("pod-{number}"), Asks(&asks.0, &asks.1), &terms)
    };
    Cluster::new(four_hundred_types()).with(wide_pool()).with_all((0..2_000).map(one))
}

/// Pods that give up twenty preferences one by one before they find a place.
fn deep_relaxation() -> Cluster {
    let one = |number: usize| {
        let wish = |step: usize| {
            let zone = is(ZONE, &format!("nowhere-{}-{step}", number % 50));
            json!({"weight": step + 1, "preference": {"matchExpressions": [zone]}})
        };
        let wishes: Vec<Value> = (0..20).map(wish).collect();
        let terms = json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}});
        let asks = (format!("{}m", 100 + number % 50 * 20), format!("{}Mi", 128 + number % 50 * 16));
        pod(&format!("pod-{number}"), Asks(&asks.0, &asks.1), &terms)
    };
    Cluster::new(four_hundred_types()).with(wide_pool()).with_all((0..1_000).map(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods(scenario: &Scenario) -> Vec<&Value> {
        let items = scenario.objects["items"].as_array().unwrap().iter();
        items.filter(|item| item["kind"] == "Pod" && item["spec"]["nodeName"].is_null()).collect()
    }

    #[test]
    fn every_case_has_as_many_pods_as_it_says() {
        for case in cases(Topology::Without).iter().filter(|case| case.pods <= 1_000) {
            assert_eq!(pods(&(case.scenario)()).len(), case.pods, "{}", case.name);
        }
    }

    #[test]
    fn a_case_is_named_by_itself_or_with_its_group() {
        let named = |name: &str| cases(Topology::Without).iter().filter(|case| case.is(name)).count();
        assert_eq!(["mix-50", "mix", "small", "deployments", "mix-5"].map(named), [1, MIX.len(), 5, 1, 0]);
    }

    #[test]
    fn a_fifth_of_the_mix_is_of_each_kind_and_without_topology_no_pod_has_terms() {
        let with = mix(100, Topology::With).into_scenario();
        let count = |word: &str| pods(&with).iter().filter(|pod| pod["spec"].to_string().contains(word)).count();
        assert_eq!(["topologySpreadConstraints", "podAffinity", "podAntiAffinity"].map(count), [40, 20, 20]);
        let without = mix(100, Topology::Without).into_scenario();
        assert!(pods(&without).iter().all(|pod| pod["spec"].as_object().unwrap().len() == 1));
    }
}
