//! Pods that want to be near others, or far from them.

use serde_json::{Map, Value, json};

use super::super::dice::Dice;
use super::rules::{PREFERRED, REQUIRED};
use super::workloads::{App, NAMESPACES};
use super::{HOST, Place, ZONE};

/// The pod affinity and anti-affinity of an app.
pub(super) fn affinity(dice: &mut Dice, place: &Place, app: &App) -> Map<String, Value> {
    let mut affinity = Map::new();
    let near = side(dice, place, app, &Side { near: true, required: 10, preferred: 8 });
    if !near.is_empty() {
        affinity.insert("podAffinity".to_owned(), json!(near));
    }
    let far = side(dice, place, app, &Side { near: false, required: 10, preferred: 10 });
    if !far.is_empty() {
        affinity.insert("podAntiAffinity".to_owned(), json!(far));
    }
    affinity
}

/// Which of both, and how likely its terms are.
struct Side {
    near: bool,
    required: u64,
    preferred: u64,
}

fn side(dice: &mut Dice, place: &Place, app: &App, side: &Side) -> Map<String, Value> {
    let Side { near, required, preferred } = *side;
    let mut musts = Vec::new();
    if !near && app.apart {
        musts.push(json!({"labelSelector": {"matchLabels": {"app": app.name}}, "topologyKey": HOST}));
    }
    if dice.chance(required) {
        musts.push(term(dice, place, app, near));
    }
    let mut wishes = Vec::new();
    if dice.chance(preferred) {
        for _ in 0..*dice.pick(&[1, 1, 2]) {
            let term = term(dice, place, app, near);
            wishes.push(json!({"weight": dice.between(1, 100), "podAffinityTerm": term}));
        }
    }
    let mut side = Map::new();
    if !musts.is_empty() {
        side.insert(REQUIRED.to_owned(), json!(musts));
    }
    if !wishes.is_empty() {
        side.insert(PREFERRED.to_owned(), json!(wishes));
    }
    side
}

/// One term: whom it means, in which namespaces, and how near is near.
fn term(dice: &mut Dice, place: &Place, app: &App, near: bool) -> Value {
    let own = dice.chance(50);
    let whom = if own { app } else { dice.pick(&place.apps) };
    let selector = match dice.below(10) {
        0 => json!({"matchLabels": {"stack": whom.stack}}),
        1 => json!({"matchExpressions": [{"key": "app", "operator": "In", "values": [whom.name]}]}),
        2 if !near => json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [app.name]}]}),
        _ => json!({"matchLabels": {"app": whom.name}}),
    };
    let key = if near { *dice.pick(&[HOST, ZONE, ZONE]) } else { *dice.pick(&[HOST, HOST, ZONE]) };
    let mut term = json!({"labelSelector": selector, "topologyKey": key});
    if whom.namespace == app.namespace && !dice.chance(12) {
        return term;
    }
    match dice.below(10) {
        0..5 => term["namespaces"] = json!([whom.namespace]),
        5..7 => term["namespaceSelector"] = json!({"matchLabels": {"team": dice.pick(&NAMESPACES).1}}),
        7 => term["namespaceSelector"] = json!({}),
        8 => {
            term["namespaces"] = json!([app.namespace]);
            term["namespaceSelector"] = json!({"matchLabels": {"team": "home"}});
        }
        _ => {}
    }
    term
}
