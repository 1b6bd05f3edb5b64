//! Nodes that are there or on their way, from their objects (D5, D6, D7).

use serde_json::{Value, json};
use tenon_model::{NodeStage, NodeState, Quantity};

use super::{claim, merged, node, pod, snapshot, unsorted};

fn labels(labels: &[&str]) -> Value {
    let all: serde_json::Map<String, Value> = labels.iter().map(|label| ((*label).to_owned(), json!("true"))).collect();
    json!({ "metadata": { "labels": all } })
}

/// A node with the claim it was made for.
fn with_claim(of_node: &Value, of_claim: &Value) -> NodeState {
    let seen = snapshot(&[claim("c", "n1", of_claim), node("n1", of_node)]);
    assert_eq!(seen.nodes.len(), 1);
    seen.nodes[0].as_ref().clone()
}

const REGISTERED: &str = "karpenter.sh/registered";
const INITIALIZED: &str = "karpenter.sh/initialized";

/// Keys of the taints that pods must tolerate.
fn lasting(state: &NodeState) -> Vec<&str> {
    state.lasting_taints().map(|taint| taint.key.as_str()).collect()
}

#[test]
fn until_it_registers_a_node_has_the_labels_and_taints_of_its_claim() {
    let state = with_claim(&json!({ "spec": { "taints": [{ "key": "odd", "effect": "NoSchedule" }] } }), &json!({}));
    assert_eq!((state.name.as_str(), state.labels.get("from").unwrap_or_default()), ("c", "claim"));
    assert_eq!(lasting(&state), ["lasting"]);
}

#[test]
fn once_it_registered_a_node_has_its_own_labels_and_taints() {
    let taints = json!({ "spec": { "taints": [
        { "key": "own", "effect": "NoSchedule" },
        { "key": "boot", "effect": "NoSchedule" },
        { "key": "node.kubernetes.io/not-ready", "effect": "NoExecute" },
    ] } });
    let state = with_claim(&merged(labels(&[REGISTERED]), &taints), &json!({}));
    assert_eq!((state.name.as_str(), state.labels.get("from").is_some()), ("n1", false));
    assert_eq!((state.stage, lasting(&state)), (NodeStage::Rising, vec!["own"]));
    let state = with_claim(&merged(labels(&[REGISTERED, INITIALIZED]), &taints), &json!({}));
    assert_eq!((state.stage, lasting(&state).len()), (NodeStage::Initialized, 3));
}

#[test]
fn a_node_that_says_it_is_initialised_but_not_registered_keeps_its_claims_taints() {
    let taints = json!({ "spec": { "taints": [{ "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" }] } });
    let state = with_claim(&merged(labels(&[INITIALIZED]), &taints), &json!({}));
    assert_eq!(lasting(&state), ["lasting"]);
}

#[test]
fn a_node_that_is_started_again_is_not_held_back_by_the_marks_of_that() {
    let taints = json!({ "spec": { "taints": [{ "key": "karpenter.sh/rebooting", "effect": "NoSchedule" }] } });
    let condition = json!({ "type": "Rebooting", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" });
    let rebooting = json!({ "status": { "conditions": [condition] } });
    let up = merged(labels(&[REGISTERED, INITIALIZED]), &taints);
    assert_eq!(lasting(&with_claim(&up, &rebooting)), Vec::<&str>::new());
    assert_eq!(lasting(&with_claim(&up, &json!({}))), ["karpenter.sh/rebooting"]);
}

#[test]
fn what_the_kubelet_reports_as_nothing_at_first_is_what_the_claim_says() {
    let zeroed =
        json!({ "status": { "capacity": { "cpu": "2", "gpu": "0" }, "allocatable": { "cpu": "2", "gpu": "0" } } });
    let state = with_claim(&merged(labels(&[REGISTERED]), &zeroed), &json!({}));
    assert_eq!((state.allocatable.get("gpu"), state.capacity.get("gpu")), (Quantity::whole(2), Quantity::whole(2)));
    assert_eq!(state.allocatable.get("cpu"), Quantity::whole(2), "what it does report counts");
}

#[test]
fn once_it_is_initialised_a_node_has_what_it_reports_and_no_more() {
    let zeroed =
        json!({ "status": { "capacity": { "cpu": "2", "gpu": "0" }, "allocatable": { "cpu": "2", "gpu": "0" } } });
    let state = with_claim(&merged(labels(&[REGISTERED, INITIALIZED]), &zeroed), &json!({}));
    assert_eq!((state.allocatable.get("gpu"), state.allocatable.get("cpu")), (Quantity::ZERO, Quantity::whole(2)));
}

#[test]
fn i8_marked_a_node_leaves_with_its_claim_or_by_itself() {
    let gone = json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"] } });
    assert!(with_claim(&labels(&[REGISTERED, INITIALIZED]), &gone).is_leaving);
    assert!(snapshot(&[node("n1", &gone)]).nodes[0].is_leaving);
    assert!(!snapshot(&[node("n1", &json!({}))]).nodes[0].is_leaving);
}

#[test]
fn a_node_of_nobodys_pool_is_there_and_takes_pods() {
    let state = snapshot(&[node("n1", &json!({ "spec": { "providerID": "" } }))]).nodes[0].as_ref().clone();
    assert_eq!((state.name.as_str(), state.is_managed, state.stage), ("n1", false, NodeStage::Initialized));
}

#[test]
fn i8_provider_id_a_node_of_a_pool_counts_once_it_says_which_machine_and_what_size_it_is() {
    let of_pool =
        |more: Value| merged(json!({ "metadata": { "labels": { "karpenter.sh/nodepool": "default" } } }), &more);
    let sized = json!({ "metadata": { "labels": { "node.kubernetes.io/instance-type": "one" } } });
    let unidentified = |more: Value| {
        let seen = snapshot(&[node("n1", &more)]);
        seen.nodes.iter().map(|node| (node.is_unidentified, node.takes_pods(), node.pool.is_some())).collect::<Vec<_>>()
    };
    assert_eq!(unidentified(of_pool(json!({}))), [(true, false, false)]);
    assert_eq!(unidentified(of_pool(sized.clone())), [(false, true, true)]);
    assert_eq!(unidentified(of_pool(labels(&[INITIALIZED]))), [(false, true, true)]);
    let nowhere = merged(sized, &json!({ "spec": { "providerID": "" } }));
    assert_eq!(unidentified(of_pool(nowhere)), [(true, false, false)]);
}

#[test]
fn i8_usage_pods_on_a_node_that_does_not_say_yet_what_it_is_are_there_and_its_claim_takes_pods() {
    let bare =
        json!({ "metadata": { "labels": { "karpenter.sh/nodepool": "default" } }, "spec": { "providerID": "" } });
    let seen = snapshot(&[
        claim("c", "n1", &json!({})),
        node("n1", &bare),
        pod("a", &json!({ "spec": { "nodeName": "n1" } })),
    ]);
    let found: Vec<(&str, bool, usize)> =
        seen.nodes.iter().map(|node| (node.name.as_str(), node.takes_pods(), node.pods.len())).collect();
    assert_eq!(found, [("c", true, 0), ("n1", false, 1)]);
    let same_name = snapshot(&[
        claim("n1", "n1", &json!({})),
        node("n1", &bare),
        pod("a", &json!({ "spec": { "nodeName": "n1" } })),
    ]);
    assert_eq!(same_name.nodes.len(), 1, "nobody could tell the claim from the node");
}

#[test]
fn i8_usage_pods_that_are_over_use_nothing_and_leaving_ones_do() {
    let bound = |more: Value| merged(json!({ "spec": { "nodeName": "n1" } }), &more);
    let seen = snapshot(&[
        node("n1", &json!({})),
        pod("over", &bound(json!({ "status": { "phase": "Succeeded" } }))),
        pod("going", &bound(json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }))),
    ]);
    assert_eq!(seen.nodes[0].bound.get("cpu"), Quantity::whole(1));
}

#[test]
fn i8_provider_id_a_machine_that_two_claims_say_is_theirs_counts_once_whoever_is_listed_first() {
    let with_node =
        [node("n1", &labels(&[REGISTERED, INITIALIZED])), pod("a", &json!({ "spec": { "nodeName": "n1" } }))];
    for more in [&with_node[..], &[]] {
        for claims in [["c", "d"], ["d", "c"]] {
            let mut items: Vec<_> = claims.iter().map(|name| claim(name, "n1", &json!({}))).collect();
            items.extend_from_slice(more);
            let seen = unsorted(&items);
            assert_eq!(seen.nodes.len(), 1, "{claims:?}");
            assert_eq!(seen.nodes[0].name, if more.is_empty() { "c" } else { "n1" }, "{claims:?}");
        }
    }
}

#[test]
fn i8_provider_id_of_two_nodes_with_one_machine_the_same_is_the_claims_whichever_is_listed_first() {
    let of_one = json!({ "spec": { "providerID": "proxmox://r/n1" } });
    let both = [node("n1", &of_one), node("n2", &of_one)];
    for order in [[0, 1], [1, 0]] {
        let items = [claim("c", "n1", &json!({})), both[order[0]].clone(), both[order[1]].clone()];
        let seen = unsorted(&items);
        let found: Vec<(&str, bool)> = seen.nodes.iter().map(|node| (node.name.as_str(), node.is_managed)).collect();
        assert_eq!(found, [("c", true), ("n2", false)], "{order:?}");
    }
}

#[test]
fn a_node_says_since_when_it_drifted_or_may_be_consolidated_and_whether_it_is_to_be_left_alone() {
    let told = |kind: &str, at: &str| json!({ "type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": at });
    let conditions = json!([told("Drifted", "2026-01-01T00:00:10Z"), told("Consolidatable", "2026-01-01T00:00:20Z")]);
    let kept = json!({ "metadata": { "annotations": { "karpenter.sh/do-not-disrupt": "true" } } });
    let of_claim = merged(json!({ "status": { "conditions": conditions } }), &kept);
    let state = with_claim(&json!({}), &of_claim);
    let facts = state.disruption.unwrap();
    let [drifted, consolidatable] = [facts.claim.drifted_since, facts.claim.consolidatable_since].map(Option::unwrap);
    assert_eq!(consolidatable.nanos_since(drifted), 10_000_000_000);
    assert!(facts.claim.has_do_not_disrupt && facts.node.as_ref().is_some_and(|node| node.name == "n1"));
    let alone = snapshot(&[node("n2", &json!({}))]);
    assert_eq!(alone.nodes[0].disruption, None, "without a NodeClaim it is not ours to disrupt");
}
