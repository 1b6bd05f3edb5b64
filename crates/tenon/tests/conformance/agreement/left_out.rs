//! By which rule does a plan leave out a pod that kube-scheduler binds? Each rule is proven by another plan, of what is there in the
//! end; a pod that no rule explains is a fault.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use kube::api::ListParams;
use serde_json::{Value, json};

use super::bench::Bench;
use super::scenario::{Scenario, key, list, planned, text};
use super::world::World;

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
    /// A spread counts domains that NodePools could create a node in, as in Karpenter; kube-scheduler only those of nodes.
    NewDomain,
    /// Nobody is placed on a node that lacks the label of a required anti-affinity to them, as in Karpenter; kube-scheduler keeps
    /// nobody away by a label that a node lacks.
    AbsentLabel,
    /// What a pod prefers is required at first, as by Karpenter: the next plan would rather create a node than use one that is there.
    Preferred,
}

/// A pod that is bound although the plan leaves it out.
pub(super) struct LeftOut {
    /// Together they explain it. If there are none, it is a fault.
    pub(super) rules: Vec<Rule>,
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
            Rule::NewDomain => "a spread counts domains that no node is in yet, for kube-scheduler it does not",
            Rule::AbsentLabel => "an anti-affinity over a label that the node lacks",
            Rule::Preferred => "a new node would have what it prefers",
        })
    }
}

/// These rules in words.
pub(super) fn named(rules: &[Rule]) -> String {
    let words: Vec<String> = rules.iter().map(Rule::to_string).collect();
    if words.is_empty() { "not explained".to_owned() } else { words.join(", and ") }
}

/// How many pods which rules leave out.
pub(super) fn summary<'l>(all: impl Iterator<Item = &'l LeftOut>) -> String {
    let mut counts: BTreeMap<&[Rule], usize> = BTreeMap::new();
    all.for_each(|one| *counts.entry(&one.rules).or_default() += 1);
    let told: Vec<String> = counts.iter().map(|(rules, count)| format!("{count} {}", named(rules))).collect();
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
            let rules = match (told["rejected"] == true, told["deferred"] == true) {
                (true, _) => vec![Rule::Refused],
                (_, true) => vec![Rule::Deferred],
                _ => proven(scenario, pod, (&there, &names))?,
            };
            let node =
                there.iter().find(|object| is_pod(object, &key(pod))).map(|found| text(&found["spec"]["nodeName"]));
            let told = format!("{} on {}: {}", key(pod), node.unwrap_or_default(), told["reasons"]);
            explained.push(LeftOut { rules, told });
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

/// The rules that a plan of what is there in the end proves, as few as can be: once with all others that were left out, and once
/// without them.
fn proven(
    scenario: &Scenario,
    pod: &Value,
    (there, left_out): (&[Value], &BTreeSet<String>),
) -> anyhow::Result<Vec<Rule>> {
    let node = there.iter().find(|object| is_pod(object, &key(pod))).map(|found| text(&found["spec"]["nodeName"]));
    let others: Vec<Value> = there.iter().filter(|object| !is_pod(object, &key(pod))).cloned().collect();
    let alone = |object: &&Value| !(object["kind"] == "Pod" && left_out.contains(&key(object)));
    let without: Vec<Value> = others.iter().filter(alone).cloned().collect();
    let pools: Vec<Value> = scenario.of_kind("NodePool").cloned().collect();
    let worlds = [others, without].map(|there| World { pools: pools.clone(), there, pod: pending(pod) });
    let mut spare: Vec<Rule> = Vec::new();
    for (mut rules, world) in ways(worlds, &node.unwrap_or_default()) {
        if rules.is_empty() {
            rules.push(if is_as_planned(scenario, there) { Rule::OpenNodes } else { Rule::OtherNodes });
        }
        if !spare.is_empty() && rules.len() >= spare.len() {
            break;
        }
        match place(scenario, &world)? {
            Place::NodeThatIsThere => return Ok(rules),
            Place::NewNode
                if spare.is_empty() && place(scenario, &world.without_preferences())? == Place::NodeThatIsThere =>
            {
                rules.push(Rule::Preferred);
                spare = rules;
            }
            Place::NewNode | Place::None => {}
        }
    }
    Ok(spare)
}

/// These worlds, and what becomes of them by every set of rules, the smaller sets first.
fn ways(worlds: [World; 2], node: &str) -> Vec<(Vec<Rule>, World)> {
    let mut ways: Vec<(Vec<Rule>, World)> = worlds.map(|world| (Vec::new(), world)).into();
    for rule in [Rule::OneTerm, Rule::EmptySelector, Rule::NewDomain, Rule::AbsentLabel] {
        let changed = ways.iter().flat_map(|(rules, world)| {
            let made = match rule {
                Rule::OneTerm => world.with_single_terms(),
                Rule::EmptySelector => world.without_empty_selectors().into_iter().collect(),
                Rule::NewDomain => world.without_new_domains().into_iter().collect(),
                _ => world.without_absent_labels(node).into_iter().collect(),
            };
            made.into_iter().map(|world| (rules.iter().copied().chain([rule]).collect(), world))
        });
        let changed: Vec<(Vec<Rule>, World)> = changed.collect();
        ways.extend(changed);
    }
    ways.sort_by_key(|(rules, _)| rules.len());
    ways
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

/// Where a plan puts a pod.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    NodeThatIsThere,
    NewNode,
    None,
}

/// Where a plan puts the pod of this world.
fn place(scenario: &Scenario, world: &World) -> anyhow::Result<Place> {
    let folder = tempfile::tempdir()?;
    let items: Vec<&Value> = world.pools.iter().chain(&world.there).chain([&world.pod]).collect();
    let objects = json!({ "apiVersion": "v1", "kind": "List", "items": items });
    std::fs::write(folder.path().join("objects.json"), objects.to_string())?;
    for name in ["instance-types.json", "options.json"] {
        let file = scenario.folder.join(name);
        if file.exists() {
            std::fs::copy(file, folder.path().join(name))?;
        }
    }
    let plan = planned(folder.path())?;
    let is_among =
        |part: &str| list(&plan[part]).iter().any(|node| list(&node["pods"]).contains(&json!(key(&world.pod))));
    Ok(match (is_among("existingNodes"), is_among("newNodeClaims")) {
        (true, _) => Place::NodeThatIsThere,
        (_, true) => Place::NewNode,
        _ => Place::None,
    })
}

#[test]
fn worlds_are_changed_by_every_set_of_rules() {
    let spec = json!({ "topologySpreadConstraints": [{ "labelSelector": {} }], "affinity": { "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [{ "topologyKey": "disk" }] } } });
    let node = json!({ "kind": "Node", "metadata": { "name": "n", "labels": {} } });
    let world = World { pools: Vec::new(), there: vec![node], pod: json!({ "kind": "Pod", "spec": spec }) };
    let rules: Vec<Vec<Rule>> = ways([world.clone(), world], "n").into_iter().map(|(rules, _)| rules).collect();
    let both = vec![Rule::EmptySelector, Rule::AbsentLabel];
    let [one, other] = [vec![Rule::EmptySelector], vec![Rule::AbsentLabel]];
    assert_eq!(rules, [vec![], vec![], one.clone(), one, other.clone(), other, both.clone(), both]);
}

#[test]
fn pods_are_counted_by_rule() {
    let one = |rules: &[Rule]| LeftOut { rules: rules.to_vec(), told: String::new() };
    let all = [one(&[Rule::OneTerm]), one(&[Rule::Refused]), one(&[Rule::OneTerm]), one(&[])];
    let told =
        "1 not explained; 1 refused before anything is tried; 2 one required node-affinity term is tried at a time";
    assert_eq!(summary(all.iter()), told);
    assert_eq!(summary([].iter()), "none");
    assert_eq!(
        named(&[Rule::Deferred, Rule::Refused]),
        "waits for reserved capacity, and refused before anything is tried"
    );
}
