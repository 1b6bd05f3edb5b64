//! What stands in a claim that is written for a new node, field by field (C3, C4, C8).

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::{Value, json};
use tenon_api::plan_options::PlanOptions;
use tenon_api::{NodeClaim, NodePool, hash_stamp, names};
use tenon_controllers::provision::{Gathered, decide, to_claims, to_snapshot};
use tenon_engine::plan;
use tenon_model::{InstanceType, MinValuesPolicy, Reason, labels};

use crate::decisions::claims::ready_world;
use crate::decisions::objects::spec;

const MIN_VALUES_RELAXED: &str = "karpenter.sh/nodeclaim-min-values-relaxed";

/// The claim for the only new node.
fn claim(gathered: &Gathered) -> NodeClaim {
    let plan = plan(&to_snapshot(gathered, &InstanceType::built_in()));
    assert_eq!(plan.new_nodes.len(), 1, "{plan:?}");
    to_claims(&plan, &to_snapshot(gathered, &InstanceType::built_in()), gathered).remove(0).unwrap()
}

/// A world with one pod, whose pool is changed.
fn with_pool(change: impl FnOnce(&mut NodePool)) -> Gathered {
    let mut gathered = ready_world(1);
    let mut pool = gathered.pools[0].as_ref().clone();
    change(&mut pool);
    gathered.pools = vec![Arc::new(pool)];
    gathered
}

fn label<'a>(claim: &'a NodeClaim, name: &str) -> Option<&'a str> {
    claim.metadata.labels.as_ref()?.get(name).map(String::as_str)
}

fn annotation<'a>(claim: &'a NodeClaim, name: &str) -> Option<&'a str> {
    claim.metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

#[test]
fn pods_have_as_long_to_leave_as_their_pool_says_or_else_as_the_operator_does() {
    let grace = |pool: Option<&str>, operator: Option<&str>| {
        let mut gathered =
            with_pool(|found| found.spec.template.spec.termination_grace_period = pool.map(str::to_owned));
        gathered.termination_grace_period = operator.map(str::to_owned);
        claim(&gathered).spec.termination_grace_period
    };
    assert_eq!(grace(None, None), None);
    assert_eq!(grace(None, Some("48h")).as_deref(), Some("48h"));
    assert_eq!(grace(Some("1h"), Some("48h")).as_deref(), Some("1h"));
    assert_eq!(grace(Some("1h"), None).as_deref(), Some("1h"));
}

#[test]
fn a_claim_says_which_pool_it_was_planned_for_by_the_hash_of_that_moment() {
    let gathered = ready_world(1);
    let plan = plan(&to_snapshot(&gathered, &InstanceType::built_in()));
    let of_then = hash_stamp::of_pool(&gathered.pools[0]);
    let later = with_pool(|pool| pool.spec.template.spec.expire_after = "1h".to_owned());
    assert_ne!(hash_stamp::of_pool(&later.pools[0]), of_then, "the change would be drift");
    let written = to_claims(&plan, &to_snapshot(&gathered, &InstanceType::built_in()), &gathered).remove(0).unwrap();
    assert_eq!(of_then.len(), 2, "the hash and its version");
    assert!(of_then.iter().all(|(name, value)| annotation(&written, name) == Some(value)), "{written:?}");
}

#[test]
fn a_claim_has_the_labels_and_annotations_of_its_pool_s_template() {
    let gathered = with_pool(|pool| {
        pool.spec.template.metadata = spec(json!({
            "labels": { "team": "red", "kubernetes.io/tier": "a", "node.k8s.io/ring": "b" },
            "annotations": { "example.com/note": "text", "karpenter.sh/do-not-disrupt": "true" },
        }));
    });
    let claim = claim(&gathered);
    assert_eq!((label(&claim, "team"), label(&claim, "kubernetes.io/tier")), (Some("red"), Some("a")));
    assert_eq!(label(&claim, "node.k8s.io/ring"), Some("b"));
    assert_eq!(annotation(&claim, "example.com/note"), Some("text"));
    assert_eq!(annotation(&claim, "karpenter.sh/do-not-disrupt"), Some("true"));
    assert_eq!(label(&claim, names::LABEL_NODEPOOL), Some("default"));
    assert_eq!(label(&claim, names::LABEL_NODECLASS), Some("default"));
}

#[test]
fn demands_become_labels_in_domains_of_kubernetes_too_but_not_where_the_size_or_host_decides() {
    let gathered = with_pool(|pool| {
        pool.spec.template.spec.requirements = spec(json!([
            { "key": "kubernetes.io/tier", "operator": "In", "values": ["a"] },
            { "key": "subdomain.k8s.io/ring", "operator": "Exists" },
            { "key": labels::CAPACITY_TYPE, "operator": "In", "values": ["spot", "on-demand"] },
            { "key": labels::ZONE, "operator": "In", "values": ["pve1", "pve2", "nowhere"] },
            { "key": labels::REGION, "operator": "Exists" },
            { "key": labels::ARCH, "operator": "In", "values": ["amd64", "arm64"] },
        ]));
    });
    let claim = claim(&gathered);
    assert_eq!((label(&claim, "kubernetes.io/tier"), label(&claim, "subdomain.k8s.io/ring")), (Some("a"), Some("0")));
    let node = &plan(&to_snapshot(&gathered, &InstanceType::built_in())).new_nodes[0];
    for well_known in labels::WELL_KNOWN.into_iter().filter(|label| *label != names::LABEL_NODEPOOL) {
        let chosen = node.chosen.labels.get(well_known).map(String::as_str);
        assert_eq!(label(&claim, well_known), chosen, "{well_known} is what is made, not what was allowed");
    }
    assert!(label(&claim, labels::ZONE).is_some() && label(&claim, labels::HOSTNAME).is_none());
}

#[test]
fn a_claim_belongs_to_its_pool_and_names_its_class() {
    let gathered = with_pool(|pool| {
        let template = &mut pool.spec.template.spec;
        template.expire_after = "100h".to_owned();
        template.taints = spec(json!([{ "key": "own", "effect": "PreferNoSchedule" }]));
        template.startup_taints = spec(json!([{ "key": "start", "effect": "NoSchedule" }]));
    });
    let claim = claim(&gathered);
    let owner = OwnerReference {
        api_version: "karpenter.sh/v1".to_owned(),
        kind: "NodePool".to_owned(),
        name: "default".to_owned(),
        uid: "pool-uid".to_owned(),
        block_owner_deletion: Some(true),
        controller: None,
    };
    assert_eq!(claim.metadata.owner_references, Some(vec![owner]));
    assert_eq!((claim.metadata.generate_name.as_deref(), &claim.metadata.name), (Some("default-"), &None));
    let template = &gathered.pools[0].spec.template.spec;
    assert_eq!(claim.spec.node_class_ref, template.node_class_ref);
    assert_eq!((&claim.spec.taints, &claim.spec.startup_taints), (&template.taints, &template.startup_taints));
    assert_eq!(claim.spec.expire_after, template.expire_after);
}

#[test]
fn a_claim_asks_for_its_pods_and_once_for_its_daemons() {
    let mut gathered = ready_world(2);
    let pod = |pod: &Arc<tenon_api::kube_objects::Pod>| {
        let mut pod = pod.as_ref().clone();
        Arc::make_mut(&mut Arc::make_mut(pod.spec.as_mut().unwrap()).containers)[0].resources =
            spec(json!({ "requests": { "cpu": "2", "memory": "1Gi" } }));
        Arc::new(pod)
    };
    gathered.pods = gathered.pods.iter().map(pod).collect();
    gathered.daemons = vec![Arc::new(spec(json!({
        "metadata": { "name": "agent", "namespace": "n" },
        "spec": {
            "selector": { "matchLabels": { "app": "agent" } },
            "template": {
                "metadata": { "labels": { "app": "agent" } },
                "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": "250m", "memory": "64Mi" } } }] },
            },
        },
    })))];
    let claim = claim(&gathered);
    let requests = claim.spec.resources.unwrap().requests.unwrap();
    let text = |resource: &str| match &requests[resource] {
        IntOrString::String(text) => text.clone(),
        IntOrString::Int(number) => number.to_string(),
    };
    let amount = |resource: &str| text(resource).parse::<tenon_model::Quantity>().unwrap();
    assert_eq!(amount("cpu"), "4250m".parse().unwrap());
    assert_eq!(amount("memory"), "2112Mi".parse().unwrap());
    assert_eq!(amount("pods"), "3".parse().unwrap());
}

#[test]
fn a_well_known_label_that_is_only_demanded_is_no_label_of_the_claim() {
    let demands = json!([{ "key": "node.kubernetes.io/windows-build", "operator": "NotIn", "values": ["1"] }]);
    let claim = claim(&with_pool(|pool| pool.spec.template.spec.requirements = spec(demands)));
    assert_eq!(label(&claim, "node.kubernetes.io/windows-build"), None);
    assert!(claim.spec.requirements.iter().any(|demand| demand.key == "node.kubernetes.io/windows-build"));
}

#[test]
fn a_claim_demands_nothing_that_only_a_plan_knows() {
    let claim = claim(&ready_world(1));
    for hidden in ["karpenter.sh/registered", "karpenter.sh/initialized", "kubernetes.io/hostname"] {
        assert!(claim.spec.requirements.iter().all(|demand| demand.key != hidden), "{hidden}");
    }
}

fn wanting_many_families() -> Value {
    json!([{ "key": labels::INSTANCE_FAMILY, "operator": "Exists", "minValues": 50 }])
}

fn best_effort() -> PlanOptions {
    PlanOptions { min_values_policy: MinValuesPolicy::BestEffort, ..PlanOptions::default() }
}

#[test]
fn a_claim_says_whether_it_makes_do_with_fewer_values_than_its_pool_asks_for() {
    let strict = claim(&ready_world(1));
    assert_eq!(annotation(&strict, MIN_VALUES_RELAXED), Some("false"));
    let mut gathered = with_pool(|pool| pool.spec.template.spec.requirements = spec(wanting_many_families()));
    gathered.options = best_effort();
    assert_eq!(annotation(&claim(&gathered), MIN_VALUES_RELAXED), Some("true"));
}

#[test]
fn a_claim_made_by_hand_is_planned_with_what_the_operator_decided() {
    let mut gathered = ready_world(0);
    let mut class = gathered.classes[0].as_ref().clone();
    class.status.as_mut().unwrap().conditions = spec(json!([
        { "type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z" },
    ]));
    gathered.classes = vec![Arc::new(class)];
    let by_hand: NodeClaim = spec(json!({
        "metadata": { "name": "mine" },
        "spec": {
            "requirements": wanting_many_families(),
            "nodeClassRef": { "group": names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
        },
    }));
    let types = InstanceType::built_in();
    assert_eq!(decide(&by_hand, &gathered, &types).unwrap_err(), Reason::NothingOffered);
    gathered.options = best_effort();
    assert!(decide(&by_hand, &gathered, &types).unwrap().min_values_relaxed);
}
