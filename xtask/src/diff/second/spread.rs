//! Topology spread constraints: over zones, machines, and ways to pay.

use serde_json::{Value, json};

use super::super::dice::Dice;
use super::workloads::{App, STACKS};
use super::{CAPACITY, HASH, HOST, Place, ZONE};

/// The constraints of an app's pods; a key comes twice only as a hard and a soft one.
pub(super) fn generate(dice: &mut Dice, place: &Place, app: &App) -> Vec<Value> {
    let mut all = Vec::new();
    if !dice.chance(35) {
        return all;
    }
    let mut keys = vec![ZONE, ZONE, HOST, HOST, CAPACITY];
    for _ in 0..*dice.pick(&[1, 1, 1, 2, 3]) {
        if keys.is_empty() {
            break;
        }
        let key = *dice.pick(&keys);
        keys.retain(|known| *known != key);
        let hard = dice.chance(70);
        all.push(constraint(dice, place, app, &Over { key, hard }));
        if dice.chance(8) {
            all.push(constraint(dice, place, app, &Over { key, hard: !hard }));
        }
    }
    all
}

/// What a constraint spreads over, and whether it must.
struct Over {
    key: &'static str,
    hard: bool,
}

fn constraint(dice: &mut Dice, place: &Place, app: &App, over: &Over) -> Value {
    let Over { key, hard } = *over;
    let mut constraint = json!({
        "topologyKey": key,
        "maxSkew": dice.pick(&[1, 1, 1, 2, 3]),
        "whenUnsatisfiable": if hard { "DoNotSchedule" } else { "ScheduleAnyway" },
        "labelSelector": selector(dice, place, app),
    });
    if hard && dice.chance(18) {
        let most = if key == CAPACITY { 2 } else { 4 };
        constraint["minDomains"] = json!(dice.between(1, most));
    }
    if dice.chance(14) {
        constraint["nodeAffinityPolicy"] = json!(dice.pick(&["Honor", "Ignore"]));
    }
    if dice.chance(14) {
        constraint["nodeTaintsPolicy"] = json!(dice.pick(&["Honor", "Honor", "Ignore"]));
    }
    if !app.stateful() && dice.chance(18) {
        constraint["matchLabelKeys"] = json!([HASH]);
    }
    constraint
}

/// Whom to count: mostly the app itself, else its stack, or it and another one.
fn selector(dice: &mut Dice, place: &Place, app: &App) -> Value {
    match dice.below(12) {
        0 => json!({"matchLabels": {"stack": app.stack}}),
        1 => {
            let other = dice.pick(&place.apps);
            let mut names = vec![&app.name, &other.name];
            names.sort();
            names.dedup();
            json!({"matchExpressions": [{"key": "app", "operator": "In", "values": names}]})
        }
        2 => json!({"matchLabels": {"stack": dice.pick(&STACKS)}}),
        3 => json!({"matchExpressions": [{"key": "stack", "operator": "Exists"}]}),
        _ => json!({"matchLabels": {"app": app.name}}),
    }
}
