//! Which pods of a scenario care where other pods are. Put on top of a scenario that is made already, so that scenarios without
//! it stay what they are.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::dice::Dice;
use super::vocabulary::{ARCH, CAPACITY_TYPE, FAMILY, ZONE};
use super::void::required_terms;

/// Seeds from here on have topology.
pub(super) const FIRST_SEED: u64 = 1_000_000;

const HOSTNAME: &str = "kubernetes.io/hostname";
const APPS: [&str; 3] = ["web", "db", "cache"];
const NAMESPACES: [&str; 2] = ["default", "shop"];

/// Pods that are made from one template.
struct Workload {
    labels: Map<String, Value>,
    namespace: &'static str,
    constraints: Constraints,
    /// Whether the template asks for nothing else.
    is_plain: bool,
}

#[derive(Default)]
struct Constraints {
    spreads: Vec<Value>,
    affinity: Map<String, Value>,
}

/// Gives pods labels and constraints, and adds what these refer to.
pub(super) fn add(seed: u64, items: &mut Vec<Value>) {
    let dice = &mut Dice::new(seed ^ 0x70D0);
    let may_prefer = dice.chance(5);
    let mut known: BTreeMap<String, Workload> = BTreeMap::new();
    for item in items.iter_mut() {
        match item["kind"].as_str() {
            Some("NodePool") if !may_prefer => harden(&mut item["spec"]["template"]["spec"]),
            Some("NodeClaim" | "Node") if !may_prefer => harden(&mut item["spec"]),
            Some("Pod") => add_to_pod(dice, item, &mut known),
            _ => {}
        }
    }
    items.extend(namespaces(dice));
}

/// A preference against a node is given up at last, and then Karpenter forgets where the pods of a spread are.
fn harden(spec: &mut Value) {
    let taints = spec.get_mut("taints").and_then(Value::as_array_mut);
    let soft = taints.into_iter().flatten().filter(|taint| taint["effect"] == "PreferNoSchedule");
    soft.for_each(|taint| taint["effect"] = json!("NoSchedule"));
}

fn add_to_pod(dice: &mut Dice, pod: &mut Value, known: &mut BTreeMap<String, Workload>) {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if name.starts_with("bound-") {
        add_to_bound(dice, pod);
    } else if let Some((kind, _)) = name.rsplit_once('-').filter(|_| name.starts_with("app-")) {
        let terms = required_terms(&pod["spec"]).len();
        let workload = known.entry(kind.to_owned()).or_insert_with(|| workload(dice, terms));
        pod["metadata"]["namespace"] = json!(workload.namespace);
        pod["metadata"]["labels"] = json!(workload.labels);
        // A template that is rolled out: some pods are of the next revision already.
        if dice.chance(8) {
            pod["metadata"]["labels"]["rev"] = json!("2");
        }
        if workload.is_plain {
            let spec = pod["spec"].as_object_mut();
            spec.into_iter()
                .for_each(|spec| ["nodeSelector", "affinity"].iter().for_each(|key| drop(spec.remove(*key))));
        }
        workload.constraints.put(&mut pod["spec"]);
    }
}

fn workload(dice: &mut Dice, terms: usize) -> Workload {
    let mut labels = Map::new();
    let app = *dice.pick(&APPS);
    labels.insert("app".to_owned(), json!(app));
    labels.insert("rev".to_owned(), json!("1"));
    if dice.chance(40) {
        labels.insert("level".to_owned(), json!(dice.pick(&["high", "low"])));
    }
    let is_plain = dice.chance(60);
    let may_spread = is_plain || terms < 2 || dice.chance(5);
    let namespace = *dice.pick(&NAMESPACES);
    Workload { labels, namespace, constraints: constraints(dice, app, may_spread), is_plain }
}

fn constraints(dice: &mut Dice, app: &str, may_spread: bool) -> Constraints {
    let mut made = Constraints::default();
    if dice.chance(20) {
        return made;
    }
    if may_spread && dice.chance(60) {
        made.spreads = spreads(dice, app);
    }
    for (kind, percent) in [("podAffinity", 25), ("podAntiAffinity", 25)] {
        let mut terms = Map::new();
        if dice.chance(percent) {
            let all: Vec<Value> = (0..dice.pick(&[1, 1, 1, 2]).to_owned()).map(|_| term(dice, app)).collect();
            terms.insert("requiredDuringSchedulingIgnoredDuringExecution".to_owned(), json!(all));
        }
        if dice.chance(percent / 2) {
            let all: Vec<Value> = (0..dice.between(1, 2))
                .map(|index| json!({"weight": 1 + index * 40 + dice.below(30), "podAffinityTerm": term(dice, app)}))
                .collect();
            terms.insert("preferredDuringSchedulingIgnoredDuringExecution".to_owned(), json!(all));
        }
        if !terms.is_empty() {
            made.affinity.insert(kind.to_owned(), Value::Object(terms));
        }
    }
    made
}

impl Constraints {
    fn put(&self, spec: &mut Value) {
        if !self.spreads.is_empty() {
            spec["topologySpreadConstraints"] = json!(self.spreads);
        }
        for (kind, terms) in &self.affinity {
            spec["affinity"][kind.as_str()] = terms.clone();
        }
    }
}

/// A label whose values pods are counted by.
fn key(dice: &mut Dice) -> &'static str {
    match dice.below(40) {
        0..=16 => ZONE,
        17..=27 => HOSTNAME,
        28..=31 => CAPACITY_TYPE,
        32..=33 => ARCH,
        34 => FAMILY,
        35..=36 => "example.com/team",
        37 => "disk",
        38 => "tier",
        // Nothing has it.
        _ => "example.com/rack",
    }
}

/// One to three constraints, each on a label of its own or of another strictness, as the API asks for.
fn spreads(dice: &mut Dice, app: &str) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for _ in 0..dice.pick(&[1, 1, 1, 2, 2, 3]).to_owned() {
        let (key, is_strict) = (key(dice), dice.chance(70));
        let when = if is_strict { "DoNotSchedule" } else { "ScheduleAnyway" };
        if all.iter().any(|one| one["topologyKey"] == key && one["whenUnsatisfiable"] == when) {
            continue;
        }
        let mut one = json!({"topologyKey": key, "whenUnsatisfiable": when, "maxSkew": dice.pick(&[1, 1, 1, 2, 3])});
        let selector = selector(dice, app);
        let selects = !selector.is_null();
        if selects {
            one["labelSelector"] = selector;
        }
        if is_strict && dice.chance(15) {
            one["minDomains"] = json!(dice.between(1, 4));
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if dice.chance(20) {
                one[policy] = json!(dice.pick(&["Honor", "Ignore"]));
            }
        }
        if selects && dice.chance(12) {
            one["matchLabelKeys"] = json!(dice.pick(&[vec!["rev"], vec!["rev", "missing"]]));
        }
        all.push(one);
    }
    all
}

/// One term of affinity or anti-affinity, to pods of the same app or of others.
fn term(dice: &mut Dice, app: &str) -> Value {
    let mut term = json!({"topologyKey": key(dice)});
    let selector = selector(dice, app);
    if !selector.is_null() {
        term["labelSelector"] = selector;
    }
    match dice.below(10) {
        0 => term["namespaces"] = json!(dice.some(&NAMESPACES, 1)),
        1 => term["namespaceSelector"] = namespace_selector(dice),
        2 => {
            term["namespaces"] = json!([dice.pick(&NAMESPACES)]);
            term["namespaceSelector"] = namespace_selector(dice);
        }
        _ => {}
    }
    term
}

fn namespace_selector(dice: &mut Dice) -> Value {
    match dice.below(4) {
        0 => json!({}),
        1 => json!({"matchLabels": {"stage": "live"}}),
        2 => json!({"matchExpressions": [{"key": "stage", "operator": "NotIn", "values": ["live"]}]}),
        _ => {
            json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": NAMESPACES}]})
        }
    }
}

/// Which pods are counted: mostly those of the same app.
fn selector(dice: &mut Dice, app: &str) -> Value {
    let other = *dice.pick(&APPS);
    match dice.below(20) {
        0..=10 => json!({"matchLabels": {"app": app}}),
        11..=13 => json!({"matchLabels": {"app": other}}),
        14 => json!({"matchExpressions": [{"key": "app", "operator": "In", "values": [app, other]}]}),
        15 => json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [other]}]}),
        16 => json!({"matchExpressions": [{"key": "level", "operator": *dice.pick(&["Exists", "DoesNotExist"])}]}),
        17 => {
            json!({"matchLabels": {"app": app}, "matchExpressions": [{"key": "level", "operator": "In", "values": ["low"]}]})
        }
        18 => json!({}),
        // Without a selector nobody is counted.
        _ if dice.chance(50) => Value::Null,
        _ => json!({"matchLabels": {"app": "nobody"}}),
    }
}

/// A pod that runs: others are counted with it, and may have to stay away from it.
fn add_to_bound(dice: &mut Dice, pod: &mut Value) {
    let app = *dice.pick(&APPS);
    pod["metadata"]["namespace"] = json!(dice.pick(&NAMESPACES));
    if dice.chance(85) {
        pod["metadata"]["labels"] = json!({"app": app, "rev": dice.pick(&["1", "1", "2"])});
    }
    if dice.chance(4) {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T01:00:00Z");
    }
    let mut made = Constraints::default();
    if dice.chance(12) {
        let apart = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term(dice, app)]});
        made.affinity.insert("podAntiAffinity".to_owned(), apart);
    }
    // It matters only if the pod's node goes.
    if dice.chance(20) && required_terms(&pod["spec"]).len() < 2 {
        made.spreads = spreads(dice, app);
    }
    made.put(&mut pod["spec"]);
}

fn namespaces(dice: &mut Dice) -> Vec<Value> {
    let all = NAMESPACES.into_iter().chain(["kube-system"]).map(|name| {
        let mut labels = json!({"kubernetes.io/metadata.name": name});
        if dice.chance(60) {
            labels["stage"] = json!(dice.pick(&["live", "test"]));
        }
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    });
    all.collect()
}
