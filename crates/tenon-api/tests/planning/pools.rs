//! Pools: which of them are told of, and as what (C2, C6).

use serde_json::{Value, json};
use tenon_api::objects::Kind;
use tenon_model::{Effect, Quantity, Requirement, Snapshot};

use super::{claim, merged, node, snapshot};

fn pool(name: &str, more: &Value) -> (Kind, Value) {
    let class = json!({ "group": "g", "kind": "Klass", "name": "c" });
    let plain = json!({
        "metadata": { "name": name },
        "spec": { "template": { "metadata": {}, "spec": { "requirements": [], "nodeClassRef": class } } },
    });
    (Kind::NodePool, merged(plain, more))
}

fn names(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.pools.iter().map(|pool| pool.name.as_str()).collect()
}

#[test]
fn a_pool_that_is_going_is_not_told_of() {
    let going = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"] } });
    assert_eq!(names(&snapshot(&[pool("a", &json!({})), pool("b", &going)])), ["a"]);
}

#[test]
fn a_pool_of_fixed_size_says_so() {
    let seen = snapshot(&[pool("a", &json!({})), pool("b", &json!({ "spec": { "replicas": 3 } }))]);
    assert_eq!((seen.pools[0].replicas, seen.pools[1].replicas), (None, Some(3)));
}

#[test]
fn labels_demands_and_taints_of_the_template_are_the_pools() {
    let template = json!({
        "metadata": { "labels": { "team": "red" } },
        "spec": {
            "requirements": [
                { "key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a", "b"] },
                { "key": "beta.kubernetes.io/instance-type", "operator": "In", "values": ["one"], "minValues": 1 },
            ],
            "taints": [{ "key": "gpu", "value": "yes", "effect": "NoSchedule" }],
            "startupTaints": [{ "key": "boot", "effect": "NoExecute" }],
        },
    });
    let seen = snapshot(&[pool("a", &json!({ "spec": { "template": template, "weight": 7 } }))]);
    let pool = &seen.pools[0];
    assert_eq!(pool.requirements.get("team"), Some(&Requirement::is("red")));
    assert_eq!(pool.requirements.get("topology.kubernetes.io/zone").unwrap().to_string(), "In [a, b]");
    let named = pool.requirements.get("node.kubernetes.io/instance-type").unwrap();
    assert_eq!((named.to_string().as_str(), named.min_values()), ("In [one]", Some(1)));
    assert_eq!(pool.requirements.get("g/klass"), Some(&Requirement::is("c")), "the label of its class");
    assert_eq!((pool.taints[0].key.as_str(), pool.startup_taints[0].effect), ("gpu", Effect::NoExecute));
    assert_eq!(pool.weight, 7);
}

#[test]
fn a_pool_uses_what_its_nodes_and_claims_have_and_each_machine_once() {
    let labels = json!({ "metadata": { "labels": {
        "karpenter.sh/nodepool": "default", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true" } } });
    let seen = snapshot(&[
        pool("default", &json!({})),
        claim("a", "n1", &json!({})),
        node("n1", &labels),
        claim("b", "n2", &json!({})),
        node("stranger", &json!({})),
    ]);
    let used = &seen.pools[0].used;
    assert_eq!((used.get("cpu"), used.get("nodes")), (Quantity::whole(8), Quantity::whole(2)));
}

#[test]
fn a_claim_counts_against_the_limit_before_it_has_a_machine() {
    let mut ours = claim("c", "n1", &json!({ "metadata": { "annotations": { "tenon.dev/launch": "{}" } } }));
    ours.1["status"] = json!({});
    let seen = snapshot(&[pool("default", &json!({})), ours]);
    assert_eq!(seen.pools[0].used.get("cpu"), Quantity::whole(7), "what its size has");
}
