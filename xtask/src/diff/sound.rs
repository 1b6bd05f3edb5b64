//! Whether a plan says the truth about itself: a cost that is made up would pass every comparison.

use std::collections::BTreeSet;

use serde_json::Value;

use super::judge::EPSILON;
use super::outcome::{Claim, Outcome};
use super::scenario::Scenario;
use super::vocabulary::{CAPACITY_TYPE, ZONE};

/// What the plan says that its input does not bear out.
pub(super) fn faults(plan: &Outcome, scenario: &Scenario) -> Vec<String> {
    let mut faults = pod_faults(plan, &scenario.objects);
    let mut sum = 0.0;
    for claim in &plan.new_node_claims {
        match claim.offering.as_ref() {
            Some(offering) if is_offered(offering, &scenario.types) => {
                sum += offering["price"].as_f64().unwrap_or_default();
            }
            offering => {
                let said = offering.unwrap_or(&Value::Null);
                faults.push(format!("{} uses an offering that is not in the instance types: {said}", name(claim)));
            }
        }
    }
    if faults.is_empty() && (sum - plan.cost()).abs() > EPSILON {
        faults.push(format!("the plan says that it costs {:.4}, but its offerings cost {sum:.4}", plan.cost()));
    }
    faults
}

fn name(claim: &Claim) -> String {
    format!("the new node of pod {}", claim.pods.first().map_or("(none)", String::as_str))
}

/// Each pod has one place, and is a pod of the input.
fn pod_faults(plan: &Outcome, objects: &Value) -> Vec<String> {
    let items = objects["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let named = items.iter().filter(|item| item["kind"] == "Pod").map(|pod| {
        let text = |field: &str| pod["metadata"][field].as_str();
        format!("{}/{}", text("namespace").unwrap_or("default"), text("name").unwrap_or_default())
    });
    let mut left: BTreeSet<String> = named.collect();
    plan.placed()
        .filter(|pod| !left.remove(*pod))
        .map(|pod| format!("pod {pod} is placed twice, or is not in the input"))
        .collect()
}

/// Whether the catalogue has this offering, to be had, at this price.
fn is_offered(offering: &Value, types: &Value) -> bool {
    let list = |value: &'_ Value| value.as_array().cloned().unwrap_or_default();
    let says = |one: &Value, key: &str, value: &Value| {
        let of_key =
            list(&one["requirements"]).into_iter().find(|entry| entry["key"] == key && entry["operator"] == "In");
        let value = value.as_str().unwrap_or_default();
        of_key.map_or(value.is_empty(), |entry| list(&entry["values"]).iter().any(|known| known == value))
    };
    list(types).iter().filter(|size| size["name"] == offering["instanceType"]).any(|size| {
        list(&size["offerings"]).iter().any(|one| {
            one["available"] != false
                && one["price"].as_f64() == offering["price"].as_f64()
                && says(one, ZONE, &offering["zone"])
                && says(one, CAPACITY_TYPE, &offering["capacityType"])
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scenario() -> Scenario {
        let requirements = json!([{"key": ZONE, "operator": "In", "values": ["a"]},
            {"key": CAPACITY_TYPE, "operator": "In", "values": ["spot"]}]);
        let types = json!([{"name": "m", "offerings": [{"requirements": requirements, "price": 0.5}]}]);
        let pod = json!({"kind": "Pod", "metadata": {"name": "a"}});
        Scenario { objects: json!({"items": [pod]}), types, options: None }
    }

    fn plan(pods: &[&str], price: f64, cost: f64) -> Outcome {
        let offering = json!({"instanceType": "m", "zone": "a", "capacityType": "spot", "price": price});
        let claim = json!({"pods": pods, "offering": offering});
        let plan = json!({"newNodeClaims": [claim], "existingNodes": [], "stats": {"cost": cost}});
        serde_json::from_value(plan).unwrap()
    }

    #[test]
    fn a_plan_that_the_catalogue_bears_out_is_sound() {
        assert!(faults(&plan(&["default/a"], 0.5, 0.5), &scenario()).is_empty());
    }

    #[test]
    fn a_price_or_a_sum_that_is_made_up_is_told() {
        assert_eq!(faults(&plan(&["default/a"], 0.4, 0.4), &scenario()).len(), 1);
        assert_eq!(faults(&plan(&["default/a"], 0.5, 0.4), &scenario()).len(), 1);
    }

    #[test]
    fn a_pod_that_is_placed_twice_or_made_up_is_told() {
        assert_eq!(faults(&plan(&["default/a", "default/a"], 0.5, 0.5), &scenario()).len(), 1);
        assert_eq!(faults(&plan(&["default/b"], 0.5, 0.5), &scenario()).len(), 1);
    }
}
