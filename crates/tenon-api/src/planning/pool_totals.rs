//! What do the nodes of each pool have together? Every launched machine counts once, with one `nodes`, until it is removed.

use std::collections::BTreeMap;
use std::sync::Arc;

use tenon_model::{Catalog, Quantity, RepairPolicies, Resources};

use super::Surroundings;
use super::nodes::machines;
use crate::kube_objects::Node;
use crate::objects::Objects;
use crate::{NodeClaim, NodePool};

/// By pool. A machine has what its claim says until its node reports it, and what its node says once it takes pods.
pub fn pool_totals(nodes: Vec<Arc<Node>>, node_claims: Vec<Arc<NodeClaim>>) -> BTreeMap<String, Resources> {
    let objects = Objects { nodes, node_claims, ..Objects::default() };
    let mut totals: BTreeMap<String, Resources> = BTreeMap::new();
    // Whether a node is broken changes nothing of what it has.
    let repair = RepairPolicies::none();
    for state in machines(&objects).iter().filter_map(|machine| machine.state(&Launched, &repair)) {
        let Some(pool) = state.pool.filter(|_| !state.is_leaving) else { continue };
        let total = totals.entry(pool).or_default();
        total.add(&state.capacity);
        total.add(&Resources::default().with("nodes", Quantity::whole(1)));
    }
    totals
}

/// Of a claim without a VM nothing is expected.
struct Launched;

impl Surroundings for Launched {
    fn catalog(&self, _pool: &NodePool) -> Arc<Catalog> {
        Arc::default()
    }

    fn not_ready(&self, _pool: &NodePool) -> Option<String> {
        None
    }

    fn expected(&self, claim: &NodeClaim) -> Option<(Resources, Resources)> {
        claim.status.as_ref()?.provider_id.as_ref().map(|_| Default::default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn claim(name: &str, more: &Value) -> Arc<NodeClaim> {
        let mut claim = json!({
            "metadata": { "name": name, "labels": { "karpenter.sh/nodepool": "default" } },
            "spec": { "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "n" } },
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            for (field, value) in value.as_object().into_iter().flatten() {
                claim[key][field] = value.clone();
            }
        }
        Arc::new(serde_json::from_value(claim).unwrap())
    }

    fn launched(name: &str) -> Arc<NodeClaim> {
        let resources = json!({ "cpu": "4", "memory": "8Gi", "example.com/gpu": "1" });
        let status = json!({ "providerID": format!("p://{name}"), "capacity": resources, "allocatable": resources });
        claim(name, &json!({ "status": status }))
    }

    fn node(name: &str, labels: &Value, capacity: &Value) -> Arc<Node> {
        let mut all = json!({ "karpenter.sh/nodepool": "default", "node.kubernetes.io/instance-type": "t" });
        all.as_object_mut().unwrap().extend(labels.as_object().cloned().unwrap_or_default());
        let node = json!({
            "metadata": { "name": name, "labels": all }, "spec": { "providerID": format!("p://{name}") },
            "status": { "capacity": capacity, "allocatable": capacity },
        });
        Arc::new(serde_json::from_value(node).unwrap())
    }

    /// The totals of pool `default`, as texts.
    fn total(nodes: &[Arc<Node>], claims: &[Arc<NodeClaim>]) -> BTreeMap<String, String> {
        let totals = pool_totals(nodes.to_vec(), claims.to_vec());
        let of = totals.get("default").cloned().unwrap_or_default();
        of.iter().map(|(name, amount)| (name.to_owned(), amount.to_string())).collect()
    }

    fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, amount)| ((*name).to_owned(), (*amount).to_owned())).collect()
    }

    #[test]
    fn i2_counter_a_claim_without_a_vm_counts_nothing_and_one_with_a_vm_what_it_says() {
        let planned = claim("b", &json!({ "metadata": { "annotations": { "tenon.dev/launch": "{}" } } }));
        assert_eq!(total(&[], &[claim("a", &json!({})), planned]), texts(&[]));
        let expected = texts(&[("cpu", "4"), ("memory", "8Gi"), ("example.com/gpu", "1"), ("nodes", "1")]);
        assert_eq!(total(&[], &[launched("a")]), expected);
        let silent = claim("a", &json!({ "status": { "providerID": "p://a" } }));
        assert_eq!(total(&[], &[silent]), texts(&[("nodes", "1")]), "a VM of which nobody knows the size is a node");
    }

    #[test]
    fn i2_counter_the_claims_values_count_first_and_the_nodes_once_it_is_initialized() {
        let reported = json!({ "cpu": "4", "memory": "7900Mi", "example.com/gpu": "0" });
        let coming = node("a", &json!({ "karpenter.sh/registered": "true" }), &reported);
        let expected = texts(&[("cpu", "4"), ("memory", "7900Mi"), ("example.com/gpu", "1"), ("nodes", "1")]);
        assert_eq!(total(&[coming], &[launched("a")]), expected, "what the kubelet does not report yet is the claim's");
        let labels = json!({ "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true" });
        let there = node("a", &labels, &reported);
        let expected = texts(&[("cpu", "4"), ("memory", "7900Mi"), ("example.com/gpu", "0"), ("nodes", "1")]);
        assert_eq!(total(&[there], &[launched("a")]), expected);
    }

    #[test]
    fn i2_counter_nodes_are_added_and_those_being_deleted_are_not_counted() {
        let deleted = json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" });
        let mut going = NodeClaim::clone(&launched("b"));
        going.metadata.deletion_timestamp = serde_json::from_value(deleted["deletionTimestamp"].clone()).unwrap();
        let both = texts(&[("cpu", "8"), ("memory", "16Gi"), ("example.com/gpu", "2"), ("nodes", "2")]);
        assert_eq!(total(&[], &[launched("a"), launched("b")]), both);
        let one = texts(&[("cpu", "4"), ("memory", "8Gi"), ("example.com/gpu", "1"), ("nodes", "1")]);
        assert_eq!(total(&[], &[launched("a"), Arc::new(going)]), one);
        let alone = node("c", &json!({ "karpenter.sh/initialized": "true" }), &json!({ "cpu": "2" }));
        assert_eq!(total(&[alone], &[]), texts(&[("cpu", "2"), ("nodes", "1")]), "a node that nobody claims");
    }
}
