//! Nodes are planned with the disk and the pods of their class, whoever asks for them.

use std::sync::Arc;

use serde_json::{Value, json};
use tenon_api::{NodeClaim, names};
use tenon_controllers::provision::{Gathered, decide, to_claims, to_snapshot};
use tenon_engine::plan;
use tenon_model::{InstanceType, Plan, Quantity};

use crate::decisions::claims::ready_world;
use crate::decisions::objects::spec;

/// A pool whose class has a disk of 100 GiB and ten pods on a node, and so many pods that ask for this.
#[expect(clippy::needless_pass_by_value, reason = "it is written where it is handed over")]
fn world(pods: usize, requests: Value) -> Gathered {
    let mut gathered = ready_world(1);
    let mut class = gathered.classes[0].as_ref().clone();
    class.spec.boot_device = spec(json!({ "size": "100G" }));
    class.spec.kubelet_configuration = Some(spec(json!({ "maxPods": 10 })));
    let ready = json!([{ "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    class.status.as_mut().unwrap().conditions = Some(spec(ready));
    gathered.classes = vec![Arc::new(class)];
    let pod = |index: usize| {
        Arc::new(spec(json!({
            "metadata": { "namespace": "n", "name": format!("p{index}"), "uid": format!("u{index}") },
            "spec": { "containers": [{ "name": "c", "resources": { "requests": requests } }] },
            "status": { "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" }] },
        })))
    };
    gathered.pods = (0..pods).map(pod).collect();
    gathered
}

fn planned(gathered: &Gathered) -> Plan {
    plan(&to_snapshot(gathered, &InstanceType::built_in()))
}

#[test]
fn a_pod_gets_a_node_with_as_much_disk_as_the_class_has() {
    assert_eq!(planned(&world(1, json!({ "ephemeral-storage": "100Gi" }))).new_nodes.len(), 1);
    let refused = planned(&world(1, json!({ "ephemeral-storage": "101Gi" }))).unplaced.remove(0).reason.to_string();
    assert!(refused.contains("ephemeral-storage"), "{refused}");
}

#[test]
fn a_node_takes_no_more_pods_than_its_kubelet() {
    let gathered = world(12, json!({ "cpu": "1m" }));
    let mut pods: Vec<usize> = planned(&gathered).new_nodes.iter().map(|node| node.pods.len()).collect();
    pods.sort_unstable();
    assert_eq!(pods, [2, 10]);
}

#[test]
fn a_claim_in_flight_counts_with_the_numbers_of_its_class() {
    let mut gathered = world(1, json!({ "ephemeral-storage": "60Gi" }));
    let snapshot = to_snapshot(&gathered, &InstanceType::built_in());
    let mut claim = to_claims(&plan(&snapshot), &snapshot, &gathered).remove(0).unwrap();
    claim.metadata.name = Some("default-x".to_owned());
    gathered.claims = vec![Arc::new(claim)];
    let snapshot = to_snapshot(&gathered, &InstanceType::built_in());
    let coming = &snapshot.nodes[0];
    assert_eq!(coming.allocatable.get("ephemeral-storage").to_string(), "100Gi");
    assert_eq!(coming.allocatable.get("pods"), Quantity::whole(10));
    assert_eq!(snapshot.pools[0].used.get("ephemeral-storage").to_string(), "100Gi");
    assert!(plan(&snapshot).new_nodes.is_empty(), "its pod has room there");
}

#[test]
fn a_claim_that_somebody_made_may_ask_for_the_disk_of_its_class() {
    let gathered = world(0, json!({}));
    let by_hand = |disk: &str| -> NodeClaim {
        let class = json!({ "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" });
        let resources = json!({ "requests": { "ephemeral-storage": disk } });
        let of = json!({ "requirements": [], "nodeClassRef": class, "resources": resources });
        spec(json!({ "metadata": { "name": "by-hand" }, "spec": of }))
    };
    assert!(decide(&by_hand("90Gi"), &gathered, &InstanceType::built_in()).is_ok());
    assert!(decide(&by_hand("101Gi"), &gathered, &InstanceType::built_in()).is_err());
}
