//! A second source of scenarios, written from the format alone: small places and what people run there.

mod claims;
mod daemons;
mod estate;
mod pools;
mod rules;
mod sizes;
mod social;
mod spread;
mod storage;
mod workloads;

use serde_json::{Value, json};

use super::dice::Dice;
use super::scenario::Scenario;

/// The seeds from here on are of this source.
pub(super) const FIRST_SEED: u64 = 2_000_000;

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";
const ARCH: &str = "kubernetes.io/arch";
const OS: &str = "kubernetes.io/os";
const TYPE: &str = "node.kubernetes.io/instance-type";
const CAPACITY: &str = "karpenter.sh/capacity-type";
const POOL: &str = "karpenter.sh/nodepool";
const HASH: &str = "pod-template-hash";
/// Labels of the catalogue: the family of a size and its number of cores.
const FAMILY: &str = "sizes.example/family";
const CORES: &str = "sizes.example/cores";
/// Labels that people gave to pools and machines, and the key of their taints.
const TIER: &str = "homelab.example/tier";
const LANE: &str = "homelab.example/lane";
const DEDICATED: &str = "homelab.example/dedicated";

/// What all parts of a scenario know of the place.
struct Place {
    zones: Vec<String>,
    sizes: Vec<sizes::Size>,
    pools: Vec<pools::Pool>,
    apps: Vec<workloads::App>,
    /// Whether taints are only preferences. Nothing is spread then: relaxing such a taint is a known fault of the
    /// reference.
    soft: bool,
}

/// What the seed stands for.
pub(super) fn generate(seed: u64) -> Scenario {
    let mut dice = Dice::new(seed);
    let zones = sizes::zones(&mut dice);
    let sizes = sizes::generate(&mut dice, &zones);
    let soft = dice.chance(8);
    let pools = pools::generate(&mut dice, &zones, &sizes, soft);
    let apps = workloads::generate(&mut dice);
    let place = Place { zones, sizes, pools, apps, soft };
    let daemons = daemons::generate(&mut dice, &place);
    let mut machines = estate::generate(&mut dice, &place, &daemons);
    let running = workloads::running(&mut dice, &place, &mut machines);

    let mut items = namespaces();
    if place.apps.iter().any(|app| app.volume != storage::Volume::None) {
        items.extend(storage::classes(&mut dice, &place));
    }
    items.extend(place.pools.iter().map(pools::Pool::to_json));
    items.extend(daemons.iter().map(daemons::Daemon::to_json));
    items.extend(machines.into_iter().flat_map(|machine| machine.objects));
    items.extend(running);
    for app in &place.apps {
        items.extend(workloads::waiting(&mut dice, &place, app));
    }
    // Pods come last, after all that they speak of.
    items.sort_by_key(|item| item["kind"] == "Pod");
    Scenario {
        objects: json!({"apiVersion": "v1", "kind": "List", "items": items}),
        types: place.sizes.iter().map(sizes::Size::to_json).collect(),
        options: options(&mut dice),
    }
}

fn namespaces() -> Vec<Value> {
    let of = |name: &str, team: &str| {
        let labels = json!({"kubernetes.io/metadata.name": name, "team": team});
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": name, "labels": labels}})
    };
    let mut all: Vec<Value> = workloads::NAMESPACES.iter().map(|(name, team)| of(name, team)).collect();
    all.push(of("kube-system", "platform"));
    all
}

fn options(dice: &mut Dice) -> Option<Value> {
    match dice.below(8) {
        0 => Some(json!({"preferencePolicy": "Ignore"})),
        1 => Some(json!({"preferencePolicy": "Respect", "minValuesPolicy": "BestEffort"})),
        2 => Some(json!({"minValuesPolicy": "Strict"})),
        _ => None,
    }
}

/// An identity that the dice decide.
fn uid(dice: &mut Dice) -> String {
    let (first, second, last) = (dice.below(1 << 32), dice.below(1 << 16), dice.below(1 << 48));
    format!("{first:08x}-{second:04x}-4000-8000-{last:012x}")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn scenarios() -> Vec<Scenario> {
        (FIRST_SEED..FIRST_SEED + 200).map(generate).collect()
    }

    fn items(scenario: &Scenario) -> Vec<Value> {
        scenario.objects["items"].as_array().cloned().unwrap_or_default()
    }

    fn list(value: &Value) -> Vec<Value> {
        value.as_array().cloned().unwrap_or_default()
    }

    #[test]
    fn the_same_seed_gives_the_same_scenario() {
        for seed in FIRST_SEED..FIRST_SEED + 20 {
            let (once, again) = (generate(seed), generate(seed));
            assert_eq!((once.objects, once.types, once.options), (again.objects, again.types, again.options));
        }
        assert_ne!(generate(FIRST_SEED).objects, generate(FIRST_SEED + 1).objects);
    }

    #[test]
    fn every_kind_of_rule_comes_up() {
        let all: String = scenarios().iter().map(|it| format!("{}{}{:?}", it.objects, it.types, it.options)).collect();
        let words = "nodeSelector nodeAffinity podAffinity podAntiAffinity podAffinityTerm preference nodeSelectorTerms \
            topologySpreadConstraints minDomains DoNotSchedule ScheduleAnyway nodeTaintsPolicy nodeAffinityPolicy \
            matchLabelKeys namespaceSelector namespaces hostPort tolerations initContainers nvidia.com/gpu \
            PersistentVolumeClaim PersistentVolume allowedTopologies CSINode volumeAttachmentLimits WaitForFirstConsumer \
            NodeClaim DaemonSet StatefulSet ReplicaSet startupTaints limits minValues weight PreferNoSchedule NoExecute \
            deletionTimestamp unschedulable preferencePolicy minValuesPolicy available overhead control-plane \
            NotIn Exists DoesNotExist Gt Lt";
        for word in words.split_whitespace() {
            assert!(all.contains(&format!("{word}\"")), "{word} never comes up");
        }
        for key in [ZONE, HOST, CAPACITY] {
            assert!(all.contains(&format!("\"topologyKey\":\"{key}\"")), "nothing is spread over {key}");
        }
    }

    #[test]
    fn scenarios_have_the_promised_sizes() {
        for scenario in scenarios() {
            let items = items(&scenario);
            let count = |what: &dyn Fn(&Value) -> bool| items.iter().filter(|item| what(item)).count();
            assert!((3..=60).contains(&count(&|item| item["status"]["phase"] == "Pending" && item["kind"] == "Pod")));
            assert!((1..=4).contains(&count(&|item| item["kind"] == "NodePool")));
            assert!(count(&|item| item["kind"] == "DaemonSet") <= 3 && count(&|item| item["kind"] == "Node") <= 8);
            assert!((3..=12).contains(&list(&scenario.types).len()));
        }
    }

    #[test]
    fn names_are_unique_and_refer_to_things() {
        for scenario in scenarios() {
            let items = items(&scenario);
            let id = |kind: &str, space: &Value, name: &Value| format!("{kind} {space} {name}");
            let mut known = HashSet::new();
            for item in &items {
                let meta = &item["metadata"];
                assert!(known.insert(id(item["kind"].as_str().unwrap(), &meta["namespace"], &meta["name"])), "{meta}");
            }
            for pod in items.iter().filter(|item| item["kind"] == "Pod") {
                let claim = &pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"];
                let claim = id("PersistentVolumeClaim", &pod["metadata"]["namespace"], claim);
                assert!(pod["spec"].get("volumes").is_none() || known.contains(&claim), "{claim}");
                let node = &pod["spec"]["nodeName"];
                assert!(node.is_null() || known.contains(&id("Node", &Value::Null, node)), "{node}");
            }
        }
    }

    #[test]
    fn pods_are_valid() {
        for pod in scenarios().iter().flat_map(items).filter(|item| item["kind"] == "Pod") {
            let name = pod["metadata"]["name"].as_str().unwrap();
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(name.len() <= 63 && name.chars().all(plain) && !name.starts_with('-'), "{name}");
            let mut pairs = HashSet::new();
            for rule in list(&pod["spec"]["topologySpreadConstraints"]) {
                let hard = rule["whenUnsatisfiable"] == "DoNotSchedule";
                assert!(pairs.insert((rule["topologyKey"].to_string(), hard)), "{rule}");
                assert!(hard || rule.get("minDomains").is_none(), "{rule}");
                assert!(rule["labelSelector"].as_object().is_some_and(|selector| !selector.is_empty()), "{rule}");
            }
            let ports = pod["spec"].to_string().matches("hostPort").count();
            let required = &pod["spec"]["affinity"]["nodeAffinity"][rules::REQUIRED]["nodeSelectorTerms"];
            assert!(ports <= 1 && list(required).len() <= 1, "{pod}");
        }
    }
}
