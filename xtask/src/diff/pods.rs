//! The pods of a scenario: kinds of pods, a few of each.

use serde_json::{Map, Value, json};

use super::affinity::affinity;
use super::dice::Dice;
use super::pools::{Pool, TAINTS};
use super::vocabulary::{OS, POOL, Vocabulary, written};

/// Pods that wait, in kinds of one to eight equal ones.
pub(super) fn pending(dice: &mut Dice, words: &Vocabulary, pools: &[Pool]) -> Vec<Value> {
    // Now and then a scenario is larger, so that there are more than a dozen new nodes.
    let kinds = if dice.chance(10) { dice.between(10, 18) } else { dice.between(2, 9) };
    let mut all = Vec::new();
    for kind in 0..kinds {
        let spec = spec(dice, words, pools);
        let namespace = *dice.pick(&["default", "default", "shop"]);
        let age = dice.below(50);
        for replica in 0..dice.between(1, 8) {
            let mut metadata = json!({"name": format!("app-{kind}-{replica}"), "namespace": namespace});
            if dice.chance(50) {
                metadata["creationTimestamp"] = json!(format!("2026-01-01T00:00:{:02}Z", age + dice.below(9)));
            }
            if dice.chance(20) {
                metadata["uid"] = json!(format!("00000000-0000-4000-8000-{:012}", dice.below(1_000_000_000)));
            }
            all.push(
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status(dice)}),
            );
        }
    }
    all
}

fn status(dice: &mut Dice) -> Value {
    let condition = json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]);
    match dice.below(60) {
        0 => json!({"phase": "Pending"}),
        1 => json!({"phase": "Pending", "conditions": condition, "nominatedNodeName": "elsewhere"}),
        2 => json!({"phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}),
        _ => json!({"phase": "Pending", "conditions": condition}),
    }
}

/// What a pod is made of and asks for.
pub(super) fn spec(dice: &mut Dice, words: &Vocabulary, pools: &[Pool]) -> Value {
    let mut spec = Map::new();
    spec.insert("containers".to_owned(), json!(containers(dice)));
    if dice.chance(12) {
        spec.insert("initContainers".to_owned(), json!(init_containers(dice)));
    }
    if dice.chance(3) {
        spec.insert("overhead".to_owned(), json!({"cpu": "120m", "memory": "60Mi"}));
    }
    if dice.chance(4) {
        spec.insert("resources".to_owned(), for_all_containers(dice));
    }
    let mut used = Vec::new();
    if dice.chance(30) {
        spec.insert("nodeSelector".to_owned(), Value::Object(selector(dice, words, pools, &mut used)));
    }
    if let Some(affinity) = affinity(dice, words, &mut used) {
        spec.insert("affinity".to_owned(), json!({"nodeAffinity": affinity}));
    }
    let tolerations = tolerations(dice);
    if !tolerations.is_empty() {
        spec.insert("tolerations".to_owned(), json!(tolerations));
    }
    Value::Object(spec)
}

/// Resources of a pod as a whole.
fn for_all_containers(dice: &mut Dice) -> Value {
    let mut amounts = json!({"cpu": dice.pick(&["2", "4"]), "memory": dice.pick(&["2Gi", "8Gi"])});
    if let Some(amounts) = amounts.as_object_mut().filter(|_| dice.chance(40)) {
        amounts.remove(*dice.pick(&["cpu", "memory"]));
    }
    json!({*dice.pick(&["requests", "requests", "limits"]): amounts})
}

/// Resources of one container; a third of them as limits only.
pub(super) fn resources(dice: &mut Dice, cpu: &[&str], memory: &[&str]) -> Value {
    let mut amounts = json!({"cpu": dice.pick(cpu), "memory": dice.pick(memory)});
    if dice.chance(8) {
        amounts["ephemeral-storage"] = json!(format!("{}Gi", dice.between(1, 30)));
    }
    match dice.below(6) {
        0 | 1 => json!({"limits": amounts}),
        2 => json!({"requests": {"cpu": amounts["cpu"]}, "limits": amounts}),
        _ => json!({"requests": amounts}),
    }
}

const CPU: [&str; 8] = ["100m", "250m", "500m", "750m", "1", "1500m", "2", "3500m"];
const MEMORY: [&str; 7] = ["64Mi", "128Mi", "512Mi", "1Gi", "2Gi", "3Gi", "7Gi"];

fn containers(dice: &mut Dice) -> Vec<Value> {
    let mut first = json!({"name": "main", "resources": resources(dice, &CPU, &MEMORY)});
    if dice.chance(8) {
        first["resources"]["limits"]["example.com/gpu"] = json!(dice.between(1, 2).to_string());
    }
    if dice.chance(12) {
        first["ports"] = json!([port(dice)]);
    }
    let mut all = vec![first];
    if dice.chance(20) {
        all.push(json!({"name": "side", "resources": resources(dice, &CPU[..3], &MEMORY[..3])}));
    }
    all
}

/// A port of the host. Few numbers, so that they meet.
pub(super) fn port(dice: &mut Dice) -> Value {
    let number = *dice.pick(&[8080_u64, 8080, 9100]);
    let mut port = json!({"containerPort": number, "hostPort": number});
    if dice.chance(60) {
        port["protocol"] = json!(dice.pick(&["TCP", "TCP", "UDP"]));
    }
    if dice.chance(30) {
        port["hostIP"] = json!(dice.pick(&["10.0.0.1", "10.0.0.2", "0.0.0.0"]));
    }
    port
}

fn init_containers(dice: &mut Dice) -> Vec<Value> {
    let mut all = vec![json!({"name": "init", "resources": resources(dice, &CPU[4..], &MEMORY[3..])})];
    if dice.chance(35) {
        all.push(
            json!({"name": "proxy", "restartPolicy": "Always", "resources": resources(dice, &CPU[..3], &MEMORY[..3])}),
        );
    }
    all
}

fn selector(dice: &mut Dice, words: &Vocabulary, pools: &[Pool], used: &mut Vec<String>) -> Map<String, Value> {
    let mut labels = Map::new();
    if dice.chance(10) {
        labels.insert(POOL.to_owned(), json!(dice.pick(pools).name));
    }
    for _ in 0..dice.between(1, 2) {
        if let Some(key) = words.free_key(dice, used) {
            let value = json!(dice.pick(&key.values));
            labels.insert(written(dice, &key.name).to_owned(), value);
            used.push(key.name);
        }
    }
    if dice.chance(6) {
        labels.insert(written(dice, OS).to_owned(), json!("linux"));
    }
    // Karpenter refuses such a pod before it plans.
    if dice.chance(6) {
        labels.insert("karpenter.sh/unheard-of".to_owned(), json!("x"));
    }
    labels
}

/// What a pod puts up with.
pub(super) fn tolerations(dice: &mut Dice) -> Vec<Value> {
    let mut all = Vec::new();
    if dice.chance(5) {
        all.push(json!({"operator": "Exists"}));
    }
    for (key, value) in TAINTS {
        if dice.chance(25) {
            let mut one = match dice.below(3) {
                0 => json!({"key": key, "operator": "Exists"}),
                1 => json!({"key": key, "operator": "Equal", "value": value}),
                _ => json!({"key": key, "value": if dice.chance(80) { value } else { "other" }}),
            };
            if dice.chance(40) {
                one["effect"] = json!(dice.pick(&["NoSchedule", "NoExecute"]));
            }
            all.push(one);
        }
    }
    all
}
