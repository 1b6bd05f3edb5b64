//! Clusters that are put together by hand, object by object, where a seed would not say what is in them.

use serde_json::{Value, json};

use super::pools::class;
use super::scenario::Scenario;
use super::vocabulary::{CAPACITY_TYPE, INSTANCE_TYPE, POOL, ZONE, ZONES};

/// How much CPU and memory a pod requests, or a node has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asks<'a>(pub(crate) &'a str, pub(crate) &'a str);

/// A cluster under construction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cluster {
    items: Vec<Value>,
    types: Vec<Value>,
    options: Option<Value>,
}

impl Cluster {
    pub(crate) fn new(types: Vec<Value>) -> Cluster {
        Cluster { types, ..Cluster::default() }
    }

    /// Adds an object of any kind.
    pub(crate) fn with(mut self, item: Value) -> Cluster {
        self.items.push(item);
        self
    }

    pub(crate) fn with_all(mut self, items: impl IntoIterator<Item = Value>) -> Cluster {
        self.items.extend(items);
        self
    }

    pub(crate) fn with_options(mut self, options: Value) -> Cluster {
        self.options = Some(options);
        self
    }

    pub(crate) fn into_scenario(self) -> Scenario {
        let objects = json!({"apiVersion": "v1", "kind": "List", "items": self.items});
        Scenario { objects, types: json!(self.types), options: self.options }
    }
}

/// An instance type in every zone, on demand and as spot for half the price.
pub(crate) fn size(name: &str, cpu: u64, memory_gi: u64, price: f64) -> Value {
    let offering = |zone: &str, (capacity_type, share): (&str, f64)| json!({"price": price * share, "requirements": [is(ZONE, zone), is(CAPACITY_TYPE, capacity_type)]});
    let ways = [("on-demand", 1.0), ("spot", 0.5)];
    let offerings: Vec<Value> = ZONES.iter().flat_map(|zone| ways.map(|way| offering(zone, way))).collect();
    let capacity = json!({"cpu": cpu.to_string(), "memory": format!("{memory_gi}Gi"), "pods": "110"});
    let overhead = json!({"KubeReserved": {"cpu": "100m", "memory": "100Mi"}});
    json!({"name": name, "capacity": capacity, "overhead": overhead, "offerings": offerings})
}

/// A demand for one value of a label.
pub(crate) fn is(key: &str, value: &str) -> Value {
    json!({"key": key, "operator": "In", "values": [value]})
}

/// A NodePool, with more in its `spec`.
pub(crate) fn pool(name: &str, more: &Value) -> Value {
    let base = json!({"template": {"spec": {"nodeClassRef": class(), "requirements": []}}});
    let spec = merged(base, more);
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec})
}

/// A pod that fits nowhere yet, with more in its `spec`.
pub(crate) fn pod(name: &str, Asks(cpu, memory): Asks<'_>, more: &Value) -> Value {
    let container = json!({"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}});
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": merged(json!({"containers": [container]}), more),
        "status": {"phase": "Pending", "conditions": [condition]},
    })
}

/// The same pod several times.
pub(crate) fn pods(name: &str, count: usize, asks: Asks<'_>, more: &Value) -> Vec<Value> {
    (0..count).map(|number| pod(&format!("{name}-{number}"), asks, more)).collect()
}

/// A pod that runs on a node.
pub(crate) fn bound(name: &str, node: &str, asks: Asks<'_>) -> Value {
    let mut made = pod(name, asks, &json!({"nodeName": node}));
    made["status"] = json!({"phase": "Running"});
    made
}

/// A DaemonSet, with more in the `spec` of its pods.
pub(crate) fn daemon(name: &str, Asks(cpu, memory): Asks<'_>, more: &Value) -> Value {
    let container = json!({"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}});
    let labels = json!({"daemon": name});
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": merged(json!({"containers": [container]}), more)},
        },
    })
}

/// A Node that Tenon did not create.
pub(crate) fn node(name: &str, zone: &str, Asks(cpu, memory): Asks<'_>) -> Value {
    let amounts = json!({"cpu": cpu, "memory": memory, "pods": "110"});
    let labels = json!({ZONE: zone, "kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": format!("proxmox://one/{name}")},
        "status": {"capacity": amounts, "allocatable": amounts},
    })
}

/// The NodeClaim of a node with the same name, of an instance type of `size`.
pub(crate) fn claim(node: &str, of_pool: &str, instance_type: &str) -> Value {
    let labels = json!({POOL: of_pool, INSTANCE_TYPE: instance_type, ZONE: ZONES[0], CAPACITY_TYPE: "on-demand",
        "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"});
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": format!("claim-{node}"), "labels": labels},
        "spec": {"nodeClassRef": class(), "requirements": []},
        "status": {"providerID": format!("proxmox://one/{node}")},
    })
}

/// A value with the fields of another put in. Lists are replaced, not joined.
pub(crate) fn merged(mut base: Value, more: &Value) -> Value {
    match (base.as_object_mut(), more.as_object()) {
        (Some(fields), Some(more)) => {
            for (key, value) in more {
                let before = fields.remove(key).unwrap_or_default();
                fields.insert(key.clone(), merged(before, value));
            }
            base
        }
        _ => more.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_merged_in_wins_and_the_rest_stays() {
        let base = json!({"a": {"b": 1, "c": [1, 2]}, "d": 4});
        let more = json!({"a": {"c": [3]}, "e": {"f": 5}});
        assert_eq!(merged(base, &more), json!({"a": {"b": 1, "c": [3]}, "d": 4, "e": {"f": 5}}));
    }
}
