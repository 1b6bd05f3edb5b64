//! A NodeOverlay as the engine knows it, or everything that is wrong with it.
//!
//! An API server refuses most of it; files are not checked by anybody else.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use tenon_model::validation::requirement_faults;
use tenon_model::{Overlay, PriceChange, PriceChangeError, Requirements, Resources, WrittenRequirement, resources};

use crate::{NodeOverlay, NodeOverlaySpec, OverlayRequirement, Requirement, quantity_of, written_requirement};

/// What only the provider decides.
const FIXED: [&str; 4] = [resources::CPU, resources::MEMORY, resources::EPHEMERAL_STORAGE, resources::PODS];

/// The overlay, or its faults: each a sentence.
pub(super) fn overlay(found: &NodeOverlay) -> Result<Overlay, Vec<String>> {
    let spec = &found.spec;
    let mut faults = Vec::new();
    let demands: Vec<WrittenRequirement> = spec.requirements.iter().map(written).collect();
    faults.extend(demands.iter().flat_map(requirement_faults));
    let price = price(spec).unwrap_or_else(|fault| {
        faults.push(fault);
        None
    });
    let capacity = capacity(spec.capacity.iter().flatten().collect(), &mut faults);
    if !faults.is_empty() {
        return Err(faults);
    }
    // What is no requirement was told of above.
    let requirements = Requirements::read(&demands).map_err(|error| vec![error.to_string()])?;
    let weight = spec.weight.unwrap_or_default();
    Ok(Overlay { name: found.name_any(), weight, requirements, price, capacity })
}

fn written(requirement: &OverlayRequirement) -> WrittenRequirement {
    let OverlayRequirement { key, operator, values } = requirement.clone();
    written_requirement(&Requirement { key, operator, values, min_values: None })
}

fn price(spec: &NodeOverlaySpec) -> Result<Option<PriceChange>, String> {
    let read = |change: Result<PriceChange, PriceChangeError>| change.map(Some).map_err(|error| error.to_string());
    match (&spec.price, &spec.price_adjustment) {
        (Some(_), Some(_)) => Err("set price or priceAdjustment, not both".to_owned()),
        (Some(price), None) => read(PriceChange::to(price)),
        (None, Some(adjustment)) => read(PriceChange::by(adjustment)),
        (None, None) => Ok(None),
    }
}

fn capacity(amounts: BTreeMap<&String, &IntOrString>, faults: &mut Vec<String>) -> Resources {
    let mut capacity = Resources::default();
    for (resource, amount) in amounts {
        match quantity_of(amount) {
            _ if FIXED.contains(&resource.as_str()) => {
                faults.push(format!("capacity {resource} cannot be changed by a NodeOverlay; remove it"));
            }
            Some(amount) if !amount.is_negative() => capacity = capacity.with(resource, amount),
            _ => faults.push(format!("capacity {resource} must be a quantity that is not negative, such as 1")),
        }
    }
    capacity
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(spec: &Value) -> Result<Overlay, Vec<String>> {
        overlay(&serde_json::from_value(json!({ "metadata": { "name": "a" }, "spec": spec })).unwrap())
    }

    #[test]
    fn i6_what_an_overlay_says_is_read_and_its_weight_is_nothing_unless_it_is_said() {
        let requirement = json!({ "key": "karpenter.sh/nodepool", "operator": "In", "values": ["p"] });
        let read = read(&json!({ "requirements": [requirement], "price": "1.5", "capacity": { "example.com/a": 2 } }));
        let read = read.unwrap();
        assert_eq!((read.name.as_str(), read.weight, read.price), ("a", 0, Some(PriceChange::to("1.5").unwrap())));
        assert_eq!(read.requirements.to_string(), "karpenter.sh/nodepool In [p]");
        assert_eq!(read.capacity.get("example.com/a").value(), 2);
    }

    #[test]
    fn i6_every_fault_of_an_overlay_is_told_at_once() {
        let wanted =
            |key: &str, operator: &str, values: Value| json!({ "key": key, "operator": operator, "values": values });
        for (spec, words) in [
            (json!({ "requirements": [wanted("a", "In", json!([]))] }), "operator In needs at least one value"),
            (json!({ "requirements": [wanted("a", "Gt", json!(["x"]))] }), "operator Gt needs exactly one value"),
            (json!({ "requirements": [wanted("x.karpenter.sh/a", "Exists", json!([]))] }), "is restricted"),
            (json!({ "requirements": [], "price": "1", "priceAdjustment": "+1" }), "set price or priceAdjustment"),
            (json!({ "requirements": [], "price": "cheap" }), "price \"cheap\" must be a decimal number"),
            (
                json!({ "requirements": [], "priceAdjustment": "5" }),
                "priceAdjustment \"5\" must be an amount with its sign",
            ),
            (json!({ "requirements": [], "capacity": { "cpu": 1 } }), "capacity cpu cannot be changed"),
            (json!({ "requirements": [], "capacity": { "a": "-1" } }), "capacity a must be a quantity"),
        ] {
            let faults = read(&spec).unwrap_err();
            assert!(faults.len() == 1 && faults[0].contains(words), "{spec}: {faults:?}");
        }
        let both = json!({ "requirements": [wanted("a", "In", json!([]))], "price": "x", "capacity": { "pods": 1 } });
        assert_eq!(read(&both).unwrap_err().len(), 3);
    }
}
