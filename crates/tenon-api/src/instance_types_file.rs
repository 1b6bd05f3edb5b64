//! The file that brings other sizes of VMs: a JSON list, with keys in any case.

use std::collections::BTreeMap;

use serde_json::Value;
use tenon_model::resources::{CPU, MEMORY, PODS};
use tenon_model::{CapacityType, InstanceType, Overhead, Quantity, Resources};

/// A size without a word about pods takes as many as a kubelet does by default.
const DEFAULT_PODS: i64 = 110;

/// Reads the sizes of a file, which stand in place of the built-in ones.
pub fn read(text: &str) -> Result<Vec<InstanceType>, InstanceTypesError> {
    let list: Vec<Value> = serde_json::from_str(text)
        .map_err(|error| InstanceTypesError { size: "the file".to_owned(), why: error.to_string() })?;
    let mut sizes = Vec::new();
    for (index, entry) in list.iter().enumerate() {
        let entry = lower_keys(entry);
        let name = entry.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let size = if name.is_empty() { format!("entry {}", index + 1) } else { name.clone() };
        let fail = |why: String| InstanceTypesError { size: size.clone(), why };
        let read = instance_type(name, &entry).map_err(fail)?;
        if sizes.iter().any(|known: &InstanceType| known.name == read.name) {
            return Err(fail("it stands there twice".to_owned()));
        }
        sizes.push(read);
    }
    Ok(sizes)
}

fn instance_type(name: String, entry: &BTreeMap<String, Value>) -> Result<InstanceType, String> {
    if name.is_empty() {
        return Err("it has no name".to_owned());
    }
    let mut capacity = resources(entry.get("capacity"), "capacity")?;
    for needed in [CPU, MEMORY] {
        if capacity.get(needed) <= Quantity::ZERO {
            return Err(format!("its capacity has no {needed}"));
        }
    }
    if capacity.get(PODS).is_zero() {
        capacity = capacity.with(PODS, Quantity::whole(DEFAULT_PODS));
    }
    let overhead = entry.get("overhead").map(lower_keys).unwrap_or_default();
    let part = |key: &str| resources(overhead.get(key), key);
    let overhead = Overhead {
        kube_reserved: part("kubereserved")?,
        system_reserved: part("systemreserved")?,
        eviction_threshold: part("evictionthreshold")?,
    };
    let capacity_type = match entry.get("capacitytype").and_then(Value::as_str) {
        None | Some("" | "on-demand") => CapacityType::OnDemand,
        Some("spot") => CapacityType::Spot,
        Some("reserved") => CapacityType::Reserved,
        Some(other) => return Err(format!("its capacitytype `{other}` is none of on-demand, spot, reserved")),
    };
    Ok(InstanceType { name, capacity, overhead, capacity_type })
}

fn resources(value: Option<&Value>, what: &str) -> Result<Resources, String> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(Resources::default()) };
    let map = value.as_object().ok_or_else(|| format!("its {what} is not a map"))?;
    let mut resources = Resources::default();
    for (resource, amount) in map {
        let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
        let amount: Quantity = text.trim().parse().map_err(|error| format!("its {what} of {resource}: {error}"))?;
        resources = resources.with(resource, amount);
    }
    Ok(resources)
}

/// The keys of an object in lower case: the reference reads them in any.
fn lower_keys(value: &Value) -> BTreeMap<String, Value> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.map(|(key, value)| (key.to_lowercase(), value.clone())).collect()
}

/// Why a file of sizes cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("instance type {size}: {why}")]
pub struct InstanceTypesError {
    size: String,
    why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_reference_is_read_as_it_is() {
        let text = r#"[{"name":"big.8","capacity":{"cpu":"8","memory":"32Gi","vendor.example/gpu":1},"CapacityType":"spot",
            "Overhead":{"KubeReserved":{"cpu":"100m"},"evictionThreshold":{"memory":"100Mi"}},"offerings":[{"x":1}]},
            {"Name":"plain","Capacity":{"cpu":2,"memory":4294967296,"pods":"30"}}]"#;
        let sizes = read(text).unwrap();
        assert_eq!(sizes[0].capacity_type, CapacityType::Spot);
        assert_eq!(sizes[0].allocatable().get(CPU), Quantity::milli(7_900));
        assert_eq!(sizes[0].capacity.get("vendor.example/gpu"), Quantity::whole(1));
        assert_eq!(sizes[0].capacity.get(PODS), Quantity::whole(110));
        assert_eq!(sizes[1].allocatable(), sizes[1].capacity);
        assert_eq!(sizes[1].capacity.get(PODS), Quantity::whole(30));
    }

    #[test]
    fn an_entry_that_cannot_be_used_is_named_with_its_fault() {
        for (text, words) in [
            ("{}", "the file"),
            (r#"[{"capacity":{"cpu":1,"memory":1}}]"#, "entry 1: it has no name"),
            (r#"[{"name":"a","capacity":{"cpu":1}}]"#, "a: its capacity has no memory"),
            (r#"[{"name":"a","capacity":{"cpu":"lots","memory":1}}]"#, "its capacity of cpu: `lots`"),
            (r#"[{"name":"a","capacity":{"cpu":1,"memory":1},"capacitytype":"free"}]"#, "`free` is none of"),
            (r#"[{"name":"a","capacity":{"cpu":1,"memory":1}},{"name":"a","capacity":{"cpu":1,"memory":1}}]"#, "twice"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
