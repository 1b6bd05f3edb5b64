//! The spec of an app's pods: what they ask for, and which machines they accept.

use serde_json::{Map, Value, json};

use super::super::dice::Dice;
use super::pools::{LANES, TIERS};
use super::workloads::App;
use super::{ARCH, CAPACITY, CORES, DEDICATED, FAMILY, LANE, Place, TIER, TYPE, ZONE, social, spread};

pub(super) const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
pub(super) const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// The spec that all waiting pods of the app share.
pub(super) fn spec(dice: &mut Dice, place: &Place, app: &App) -> Value {
    let mut spec = Map::new();
    spec.insert("containers".to_owned(), json!(containers(dice, app)));
    if dice.chance(8) {
        let requests = requests(app.cpu + dice.below(4) * 100, app.memory / 2 + 32);
        let first = json!({
            "name": "migrate", "image": "registry.example/migrate:1", "resources": {"requests": requests},
        });
        spec.insert("initContainers".to_owned(), json!([first]));
    }
    let mut keys = vec![ZONE, ARCH, CAPACITY, FAMILY, CORES, TYPE, TIER];
    if place.pools.iter().any(|pool| !pool.lanes.is_empty()) {
        keys.push(LANE);
    }
    let selector = selector(dice, place, &mut keys);
    if !selector.is_empty() {
        spec.insert("nodeSelector".to_owned(), json!(selector));
    }
    let mut affinity = social::affinity(dice, place, app);
    let node = node_affinity(dice, place, &mut keys);
    if !node.is_empty() {
        affinity.insert("nodeAffinity".to_owned(), json!(node));
    }
    if !affinity.is_empty() {
        spec.insert("affinity".to_owned(), json!(affinity));
    }
    let tolerations = tolerations(dice, place);
    if !tolerations.is_empty() {
        spec.insert("tolerations".to_owned(), json!(tolerations));
    }
    let spreads = if place.soft { Vec::new() } else { spread::generate(dice, place, app) };
    if !spreads.is_empty() {
        spec.insert("topologySpreadConstraints".to_owned(), json!(spreads));
    }
    Value::Object(spec)
}

fn requests(cpu: u64, memory: u64) -> Value {
    json!({"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")})
}

impl App {
    /// Its main container.
    pub(super) fn container(&self) -> Value {
        let image = format!("registry.example/{}:2", self.name);
        json!({"name": "main", "image": image, "resources": {"requests": requests(self.cpu, self.memory)}})
    }
}

fn containers(dice: &mut Dice, app: &App) -> Vec<Value> {
    let mut main = app.container();
    if app.gpu {
        main["resources"]["requests"]["nvidia.com/gpu"] = json!("1");
        main["resources"]["limits"] = json!({"nvidia.com/gpu": "1"});
    } else if dice.chance(8) {
        main["resources"] = json!({"limits": requests(app.cpu, app.memory)});
    }
    if dice.chance(7) {
        let port = *dice.pick(&[80, 443, 8443, 9100]);
        let protocol = dice.pick(&["TCP", "TCP", "UDP"]);
        main["ports"] = json!([{"containerPort": port, "hostPort": port, "protocol": protocol}]);
    }
    let mut all = vec![main];
    if dice.chance(12) {
        let image = "registry.example/metrics:1";
        all.push(json!({"name": "metrics", "image": image, "resources": {"requests": requests(20, 32)}}));
    }
    all
}

/// A value that machines may have for the key.
fn value(dice: &mut Dice, place: &Place, key: &str) -> String {
    let size = dice.pick(&place.sizes);
    match key {
        ZONE => dice.pick(&place.zones).clone(),
        ARCH => size.arch.to_owned(),
        CAPACITY => (*dice.pick(&["on-demand", "spot"])).to_owned(),
        FAMILY => size.family.to_owned(),
        CORES => size.cores.to_string(),
        TYPE => size.name.clone(),
        LANE => (*dice.pick(&LANES)).to_owned(),
        _ => (*dice.pick(&TIERS)).to_owned(),
    }
}

/// Takes one of the keys, so that no two rules of a pod speak of the same.
fn take(dice: &mut Dice, keys: &mut Vec<&'static str>) -> Option<&'static str> {
    if keys.is_empty() {
        return None;
    }
    Some(keys.remove(usize::try_from(dice.below(keys.len() as u64)).unwrap_or(0)))
}

/// A node selector: mostly none, else on zone, architecture, capacity type or tier.
fn selector(dice: &mut Dice, place: &Place, keys: &mut Vec<&'static str>) -> Map<String, Value> {
    let mut selector = Map::new();
    if dice.chance(22) {
        for _ in 0..*dice.pick(&[1, 1, 2]) {
            let key = *dice.pick(&[ZONE, ZONE, ARCH, CAPACITY, CAPACITY, TIER, LANE]);
            if let Some(at) = keys.iter().position(|known| *known == key) {
                keys.remove(at);
                selector.insert(key.to_owned(), json!(value(dice, place, key)));
            }
        }
    }
    selector
}

/// What a rule says about a key.
fn expression(dice: &mut Dice, place: &Place, key: &str) -> Value {
    if key == CORES {
        let operator = dice.pick(&["Gt", "Lt"]);
        let bound = if *operator == "Gt" { dice.between(1, 7) } else { dice.between(4, 33) };
        return json!({"key": key, "operator": operator, "values": [bound.to_string()]});
    }
    let operator = *dice.pick(&["In", "In", "In", "NotIn", "NotIn", "Exists", "DoesNotExist"]);
    match operator {
        "DoesNotExist" if key == TIER => json!({"key": key, "operator": operator}),
        "Exists" => json!({"key": key, "operator": operator}),
        "NotIn" => json!({"key": key, "operator": operator, "values": [value(dice, place, key)]}),
        _ => {
            let mut values = vec![value(dice, place, key), value(dice, place, key)];
            values.sort();
            values.dedup();
            json!({"key": key, "operator": "In", "values": values})
        }
    }
}

/// Node affinity: at most one required term, and some that are preferred.
fn node_affinity(dice: &mut Dice, place: &Place, keys: &mut Vec<&'static str>) -> Map<String, Value> {
    let mut term = |dice: &mut Dice, most: u64| {
        let mut expressions = Vec::new();
        for _ in 0..dice.between(1, most) {
            if let Some(key) = take(dice, keys) {
                expressions.push(expression(dice, place, key));
            }
        }
        (!expressions.is_empty()).then(|| json!({"matchExpressions": expressions}))
    };
    let mut affinity = Map::new();
    if dice.chance(20)
        && let Some(term) = term(dice, 2)
    {
        affinity.insert(REQUIRED.to_owned(), json!({"nodeSelectorTerms": [term]}));
    }
    if dice.chance(16) {
        let mut wishes = Vec::new();
        for _ in 0..dice.between(1, 2) {
            if let Some(term) = term(dice, 1) {
                wishes.push(json!({"weight": dice.between(1, 100), "preference": term}));
            }
        }
        if !wishes.is_empty() {
            affinity.insert(PREFERRED.to_owned(), json!(wishes));
        }
    }
    affinity
}

/// Tolerations for the taints of the pools.
fn tolerations(dice: &mut Dice, place: &Place) -> Vec<Value> {
    if dice.chance(3) {
        return vec![json!({"operator": "Exists"})];
    }
    let mut all = Vec::new();
    for taint in place.pools.iter().flat_map(|pool| &pool.taints) {
        if dice.chance(45) {
            let mut toleration = match dice.below(3) {
                0 => json!({"key": DEDICATED, "operator": "Exists"}),
                _ => json!({"key": DEDICATED, "operator": "Equal", "value": taint["value"]}),
            };
            if dice.chance(60) {
                toleration["effect"] = taint["effect"].clone();
            }
            all.push(toleration);
        }
    }
    if dice.chance(8) {
        all.push(json!({"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}));
    }
    all
}
