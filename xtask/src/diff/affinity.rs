//! Which nodes the pods of a scenario need or would rather have.

use serde_json::{Map, Value, json};

use super::dice::Dice;
use super::vocabulary::{POOL, Vocabulary};

/// Node affinity, mostly on labels that are not in `used`.
pub(super) fn affinity(dice: &mut Dice, words: &Vocabulary, used: &mut Vec<String>) -> Option<Value> {
    let mut affinity = Map::new();
    if dice.chance(30) {
        let terms = required(dice, words, used);
        if !terms.is_empty() {
            affinity.insert(
                "requiredDuringSchedulingIgnoredDuringExecution".to_owned(),
                json!({"nodeSelectorTerms": terms}),
            );
        }
    }
    if dice.chance(25) {
        let terms = preferred(dice, words, used);
        affinity.insert("preferredDuringSchedulingIgnoredDuringExecution".to_owned(), json!(terms));
    }
    (!affinity.is_empty()).then_some(Value::Object(affinity))
}

fn required(dice: &mut Dice, words: &Vocabulary, used: &mut Vec<String>) -> Vec<Value> {
    let before = used.clone();
    let mut terms = Vec::new();
    for _ in 0..dice.between(1, 3) {
        let mut in_term = before.clone();
        let mut expressions = words.expressions(dice, 2, &mut in_term);
        expressions.extend(once_more(dice, words, &before));
        if !expressions.is_empty() {
            terms.push(json!({"matchExpressions": expressions}));
            used.extend(in_term);
        }
    }
    if dice.chance(3) {
        terms.push(json!({"matchExpressions": [{"key": POOL, "operator": "DoesNotExist"}]}));
    }
    terms
}

fn preferred(dice: &mut Dice, words: &Vocabulary, used: &[String]) -> Vec<Value> {
    let mut terms = Vec::new();
    for index in 0..dice.between(1, 3) {
        // Each weight once: which of two equal ones is heavier is nobody's promise.
        let weight = 1 + index * 30 + dice.below(25);
        let preference = match dice.below(30) {
            0 => json!({"matchExpressions": [{"key": POOL, "operator": "DoesNotExist"}]}),
            1 => json!({}),
            2 => json!({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-0"]}]}),
            _ => {
                let mut expressions = words.expressions(dice, 2, &mut used.to_vec());
                expressions.extend(once_more(dice, words, used));
                if expressions.is_empty() {
                    continue;
                }
                json!({"matchExpressions": expressions})
            }
        };
        terms.push(json!({"weight": weight, "preference": preference}));
    }
    terms
}

/// Now and then one more demand on a label that the pod asks for already. It may agree with the other or not.
fn once_more(dice: &mut Dice, words: &Vocabulary, used: &[String]) -> Vec<Value> {
    let key = words.used_key(dice, used).filter(|_| dice.chance(15));
    key.map(|key| key.pod_expressions(dice)).unwrap_or_default()
}
