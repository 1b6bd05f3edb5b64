//! By which rule does a plan leave out a pod that kube-scheduler binds? Each rule is proven by another plan, of what is there in the
//! end; a pod that no rule explains is a fault.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kube::api::ListParams;
use serde_json::{Value, json};

use super::bench::Bench;
use super::scenario::{Scenario, key, list, planned, text};

/// Objects that a plan for the end is made from, besides NodePools.
const THERE: [&str; 6] = ["Namespace", "Node", "Pod", "PersistentVolume", "PersistentVolumeClaim", "StorageClass"];

/// Why a plan leaves out a pod that could be bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    /// Karpenter refuses such pods before anything is tried, and so does Tenon.
    Refused,
    /// It waits for reserved capacity.
    Deferred,
    /// Zone, instance type and labels of a new node may be open until it is created, and of a node that starts until it registers.
    /// Once all is settled, the next plan places the pod.
    OpenNodes,
    /// The same, and pods that were placed are on other nodes than the plan's.
    OtherNodes,
    /// Of several required node-affinity terms one is tried at a time.
    OneTerm,
    /// A spread with an empty selector counts every pod, as in Karpenter; kube-scheduler counts none.
    EmptySelector,
    /// None of these.
    Unexplained,
}

/// A pod that is bound although the plan leaves it out.
pub(super) struct LeftOut {
    pub(super) rule: Rule,
    /// The pod, and what the plan says of it.
    pub(super) told: String,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::Refused => "refused before anything is tried",
            Rule::Deferred => "waits for reserved capacity",
            Rule::OpenNodes => "nodes are not settled yet; the next plan places it",
            Rule::OtherNodes => "pods that it depends on were bound to other nodes; the next plan places it",
            Rule::OneTerm => "one required node-affinity term is tried at a time",
            Rule::EmptySelector => "the empty selector of a spread counts every pod, for kube-scheduler none",
            Rule::Unexplained => "not explained",
        })
    }
}

/// How many pods each rule leaves out.
pub(super) fn summary<'l>(all: impl Iterator<Item = &'l LeftOut>) -> String {
    let mut counts: BTreeMap<Rule, usize> = BTreeMap::new();
    all.for_each(|one| *counts.entry(one.rule).or_default() += 1);
    let told: Vec<String> = counts.iter().map(|(rule, count)| format!("{count} {rule}")).collect();
    if told.is_empty() { "none".to_owned() } else { told.join("; ") }
}

impl Bench {
    /// Names the rule for each of these pods, which are bound.
    pub(super) async fn explain(&self, scenario: &Scenario, pods: &[&Value]) -> anyhow::Result<Vec<LeftOut>> {
        let mut explained = Vec::new();
        if pods.is_empty() {
            return Ok(explained);
        }
        let there = self.there().await?;
        let names: BTreeSet<String> = pods.iter().map(|pod| key(pod)).collect();
        for pod in pods {
            let told = list(&scenario.plan["unschedulable"]).into_iter().find(|one| one["pod"] == key(pod));
            let told = told.unwrap_or_default();
            let rule = match (told["rejected"] == true, told["deferred"] == true) {
                (true, _) => Rule::Refused,
                (_, true) => Rule::Deferred,
                _ => proven(scenario, pod, (&there, &names))?,
            };
            let node =
                there.iter().find(|object| is_pod(object, &key(pod))).map(|found| text(&found["spec"]["nodeName"]));
            let told = format!("{} on {}: {}", key(pod), node.unwrap_or_default(), told["reasons"]);
            explained.push(LeftOut { rule, told });
        }
        Ok(explained)
    }

    /// What is on the server now.
    async fn there(&self) -> anyhow::Result<Vec<Value>> {
        let mut all = Vec::new();
        for kind in THERE {
            let version = if kind == "StorageClass" { "storage.k8s.io/v1" } else { "v1" };
            for found in self.api(kind, None).list(&ListParams::default()).await?.items {
                let mut object = serde_json::to_value(found)?;
                (object["apiVersion"], object["kind"]) = (json!(version), json!(kind));
                // Nobody reports for these nodes, which is noticed after a while.
                if let Some(taints) = object["spec"]["taints"].as_array_mut() {
                    taints.retain(|taint| !text(&taint["key"]).starts_with("node.kubernetes.io/"));
                }
                // Pods that wait are none of those that are there.
                if kind == "Pod" && object["spec"]["nodeName"].is_null() {
                    continue;
                }
                all.extend(claim_of(&mut object));
                all.push(object);
            }
        }
        Ok(all)
    }
}

/// The claim of a node that has a NodePool: without one, the node would be taken for one whose claim is gone.
fn claim_of(object: &mut Value) -> Option<Value> {
    let labels = object["metadata"]["labels"].clone();
    if object["kind"] != "Node" || labels["karpenter.sh/nodepool"].is_null() {
        return None;
    }
    let (name, status) = (text(&object["metadata"]["name"]), &object["status"]);
    let since = "2026-01-01T00:00:00Z";
    let conditions = ["Launched", "Registered", "Initialized"].map(
        |kind| json!({ "type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": since }),
    );
    let claim = json!({
        "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": { "name": name, "labels": labels },
        "spec": { "requirements": [], "nodeClassRef": { "group": "g", "kind": "k", "name": "n" } },
        "status": {
            "providerID": format!("test://{name}"), "nodeName": name, "conditions": conditions,
            "capacity": status["capacity"], "allocatable": status["allocatable"],
        },
    });
    object["spec"]["providerID"] = json!(format!("test://{name}"));
    Some(claim)
}

/// The rule that a plan of what is there in the end proves: once with all others that were left out, and once without them.
fn proven(scenario: &Scenario, pod: &Value, (there, left_out): (&[Value], &BTreeSet<String>)) -> anyhow::Result<Rule> {
    let others: Vec<Value> = there.iter().filter(|object| !is_pod(object, &key(pod))).cloned().collect();
    let alone = |object: &&Value| !(object["kind"] == "Pod" && left_out.contains(&key(object)));
    let without: Vec<Value> = others.iter().filter(alone).cloned().collect();
    let settled = if is_as_planned(scenario, there) { Rule::OpenNodes } else { Rule::OtherNodes };
    let pod = pending(pod);
    let one_term = single_terms(&pod).map(|pod| (pod, Rule::OneTerm));
    let ways = [(pod.clone(), settled)].into_iter().chain(one_term);
    for (pod, rule) in ways.chain(without_empty_selectors(&pod).map(|pod| (pod, Rule::EmptySelector))) {
        for around in [&others, &without] {
            if is_placed(scenario, &pod, around)? {
                return Ok(rule);
            }
        }
    }
    Ok(Rule::Unexplained)
}

fn is_pod(object: &Value, name: &str) -> bool {
    object["kind"] == "Pod" && key(object) == name
}

/// Whether every pod of the plan is on its node.
fn is_as_planned(scenario: &Scenario, there: &[Value]) -> bool {
    let placed = scenario.placed();
    let mut pods = there.iter().filter(|object| object["kind"] == "Pod");
    pods.all(|pod| placed.get(&key(pod)).is_none_or(|node| pod["spec"]["nodeName"] == node.as_str()))
}

/// The pod, waiting to be placed: pods of a node that is being removed still have it.
fn pending(pod: &Value) -> Value {
    let mut made = pod.clone();
    made["spec"].as_object_mut().into_iter().for_each(|spec| drop(spec.remove("nodeName")));
    let condition = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable" });
    made["status"] = json!({ "phase": "Pending", "conditions": [condition] });
    made
}

/// The pod without spreads that have an empty selector, if it has such.
fn without_empty_selectors(pod: &Value) -> Option<Value> {
    let mut made = pod.clone();
    let spreads = made["spec"]["topologySpreadConstraints"].as_array_mut()?;
    let before = spreads.len();
    spreads.retain(|spread| spread["labelSelector"] != json!({}));
    (spreads.len() < before).then_some(made)
}

/// The pod with each of its required node-affinity terms alone, if it has several.
fn single_terms(pod: &Value) -> impl Iterator<Item = Value> {
    let place = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let terms = pod.pointer(place).map(list).filter(|terms| terms.len() > 1).unwrap_or_default();
    terms.into_iter().filter_map(move |term| {
        let mut single = pod.clone();
        *single.pointer_mut(place)? = json!([term]);
        Some(single)
    })
}

/// Whether a plan puts the pod on one of the nodes that are there.
fn is_placed(scenario: &Scenario, pod: &Value, there: &[Value]) -> anyhow::Result<bool> {
    let folder = tempfile::tempdir()?;
    let items: Vec<&Value> = scenario.of_kind("NodePool").chain(there).chain([pod]).collect();
    let objects = json!({ "apiVersion": "v1", "kind": "List", "items": items });
    std::fs::write(folder.path().join("objects.json"), objects.to_string())?;
    for name in ["instance-types.json", "options.json"] {
        let file = scenario.folder.join(name);
        if file.exists() {
            std::fs::copy(file, folder.path().join(name))?;
        }
    }
    let plan = planned(folder.path())?;
    let nodes = list(&plan["existingNodes"]);
    Ok(nodes.iter().any(|node| list(&node["pods"]).iter().any(|placed| *placed == key(pod))))
}

#[test]
fn a_pod_has_each_of_several_terms_alone() {
    let pod = |terms: Value| {
        let required = json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } });
        json!({ "spec": { "affinity": { "nodeAffinity": required } } })
    };
    let both = pod(json!([{ "a": 1 }, { "b": 1 }]));
    let alone: Vec<Value> = single_terms(&both).collect();
    assert_eq!(alone, [pod(json!([{ "a": 1 }])), pod(json!([{ "b": 1 }]))]);
    assert_eq!(single_terms(&pod(json!([{ "a": 1 }]))).count(), 0);
    assert_eq!(single_terms(&json!({ "spec": {} })).count(), 0);
}

#[test]
fn spreads_with_an_empty_selector_are_left_out() {
    let pod = |spreads: Value| json!({ "spec": { "topologySpreadConstraints": spreads } });
    let (empty, other) = (json!({ "labelSelector": {} }), json!({ "labelSelector": { "matchLabels": { "a": "b" } } }));
    assert_eq!(without_empty_selectors(&pod(json!([empty, other]))), Some(pod(json!([other]))));
    assert_eq!(without_empty_selectors(&pod(json!([other]))), None);
    assert_eq!(without_empty_selectors(&json!({ "spec": {} })), None);
}

#[test]
fn pods_are_counted_by_rule() {
    let one = |rule| LeftOut { rule, told: String::new() };
    let all = [one(Rule::OneTerm), one(Rule::Refused), one(Rule::OneTerm)];
    let told = "1 refused before anything is tried; 2 one required node-affinity term is tried at a time";
    assert_eq!(summary(all.iter()), told);
    assert_eq!(summary([].iter()), "none");
}
