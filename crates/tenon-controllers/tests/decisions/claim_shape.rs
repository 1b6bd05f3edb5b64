//! What a new NodeClaim looks like: labels, owner, class, taints, requests (C8).

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};
use tenon_api::{NodeClaim, NodePool};
use tenon_controllers::provision::{to_claims, to_snapshot};
use tenon_engine::plan;
use tenon_model::{InstanceType, Seconds, VmIdRange};

use crate::claims::ready_world;
use crate::objects::spec;

/// The claim for one pod, of a pool whose template says more.
fn claim_of(template: &Value) -> NodeClaim {
    claim_with(template, vec![])
}

fn claim_with(template: &Value, daemons: Vec<Value>) -> NodeClaim {
    let mut gathered = ready_world(1);
    let mut pool = serde_json::to_value(gathered.pools[0].as_ref()).unwrap();
    for part in ["metadata", "spec"] {
        for (field, value) in template[part].as_object().into_iter().flatten() {
            pool["spec"]["template"][part][field] = value.clone();
        }
    }
    gathered.pools = vec![Arc::new(spec::<NodePool>(pool))];
    gathered.daemons = daemons.into_iter().map(|daemon| Arc::new(spec(daemon))).collect();
    let plan = plan(&to_snapshot(&gathered, &InstanceType::built_in()));
    to_claims(&plan, &gathered, VmIdRange::default(), Seconds(7)).remove(0).unwrap()
}

#[test]
fn a_claim_has_the_labels_of_its_template_those_of_kubernetes_domains_too() {
    let wanted = [("team", "red"), ("kubernetes.io/x", "1"), ("sub.kubernetes.io/x", "2"), ("k8s.io/x", "3")];
    let labels: serde_json::Map<String, Value> =
        wanted.into_iter().map(|(label, value)| (label.to_owned(), json!(value))).collect();
    let claim = claim_of(&json!({ "metadata": { "labels": labels } }));
    for (label, value) in wanted {
        assert_eq!(claim.metadata.labels.as_ref().unwrap()[label], value);
    }
}

#[test]
fn a_claim_names_its_pool_and_its_class_in_labels_and_reference() {
    let claim = claim_of(&json!({}));
    let labels = claim.metadata.labels.as_ref().unwrap();
    assert_eq!(labels["karpenter.sh/nodepool"], "default");
    let class = &claim.spec.node_class_ref;
    assert_eq!(labels[&format!("{}/proxmoxnodeclass", class.group)], "default");
    assert_eq!((class.kind.as_str(), class.name.as_str()), ("ProxmoxNodeClass", "default"));
}

#[test]
fn a_claim_is_owned_by_its_pool_which_waits_for_it_and_does_not_control_it() {
    let claim = claim_of(&json!({}));
    let owners = claim.metadata.owner_references.as_ref().unwrap();
    let owner = &owners[0];
    assert_eq!((owners.len(), owner.api_version.as_str(), owner.kind.as_str()), (1, "karpenter.sh/v1", "NodePool"));
    assert_eq!((owner.name.as_str(), owner.uid.as_str()), ("default", "pool-uid"));
    assert_eq!((owner.block_owner_deletion, owner.controller), (Some(true), None));
}

#[test]
fn a_claim_has_the_taints_of_its_template() {
    let claim = claim_of(&json!({ "spec": {
        "taints": [{ "key": "own", "effect": "PreferNoSchedule" }],
        "startupTaints": [{ "key": "boot", "effect": "NoSchedule" }],
    } }));
    let keys = |taints: &Option<Vec<tenon_api::Taint>>| -> Vec<String> {
        taints.iter().flatten().map(|taint| taint.key.clone()).collect()
    };
    assert_eq!((keys(&claim.spec.taints), keys(&claim.spec.startup_taints)), (vec!["own".into()], vec!["boot".into()]));
}

#[test]
fn a_well_known_label_that_is_only_demanded_is_no_label_of_the_claim() {
    let demands = json!([{ "key": "node.kubernetes.io/windows-build", "operator": "NotIn", "values": ["1"] }]);
    let claim = claim_of(&json!({ "spec": { "requirements": demands } }));
    assert!(!claim.metadata.labels.as_ref().unwrap().contains_key("node.kubernetes.io/windows-build"));
    assert!(claim.spec.requirements.iter().any(|demand| demand.key == "node.kubernetes.io/windows-build"));
}

#[test]
fn a_claim_demands_nothing_that_only_a_plan_knows() {
    let claim = claim_of(&json!({}));
    for hidden in ["karpenter.sh/registered", "karpenter.sh/initialized", "kubernetes.io/hostname"] {
        assert!(claim.spec.requirements.iter().all(|demand| demand.key != hidden), "{hidden}");
    }
}

#[test]
fn a_claim_requests_what_its_pods_and_its_daemons_need() {
    let containers = json!([{ "name": "c", "resources": { "requests": { "cpu": "500m", "memory": "1Gi" } } }]);
    let daemon = json!({
        "metadata": { "name": "d", "namespace": "n" },
        "spec": { "selector": {}, "template": { "spec": { "containers": containers } } },
    });
    let claim = claim_with(&json!({}), vec![daemon]);
    let requests = claim.spec.resources.as_ref().unwrap().requests.as_ref().unwrap();
    let text = |name: &str| match &requests[name] {
        IntOrString::String(text) => text.clone(),
        IntOrString::Int(number) => number.to_string(),
    };
    assert_eq!((text("cpu"), text("memory"), text("pods")), ("14500m".into(), "5Gi".into(), "2".into()));
}
