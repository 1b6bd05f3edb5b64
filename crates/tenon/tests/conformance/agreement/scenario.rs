//! A scenario, the plan for it, and both as objects for a real API server.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Map, Value, json};
use tenon_model::{Effect, Requirements, Resources, Taint};

use super::namespaces;
use crate::things::with;

/// Labels that kubelets also set under an older name.
const OLD_NAMES: [(&str, &str); 5] = [
    ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"),
    ("kubernetes.io/arch", "beta.kubernetes.io/arch"),
    ("kubernetes.io/os", "beta.kubernetes.io/os"),
    ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
];

const GATE: &str = "tenon.test/plan";

/// What a scenario is made of, and the plan for it.
pub(super) struct Scenario {
    items: Vec<Value>,
    types: Vec<Value>,
    pub(super) plan: Value,
    pub(super) folder: PathBuf,
}

impl Scenario {
    pub(super) fn read(folder: &Path) -> anyhow::Result<Scenario> {
        let file = |name: &str| folder.join(name);
        let read = |name: &str| -> anyhow::Result<Value> { Ok(serde_json::from_slice(&std::fs::read(file(name))?)?) };
        // Whose plan it is does not matter: one that is there is tried instead of ours.
        let plan = if file("plan.json").exists() { read("plan.json")? } else { planned(folder)? };
        let mut items = list(&read("objects.json")?["items"]);
        namespaces::name_all(&mut items)?;
        Ok(Scenario { items, types: list(&read("instance-types.json")?), plan, folder: folder.to_owned() })
    }

    pub(super) fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.items.iter().filter(move |item| item["kind"] == kind)
    }

    /// Whether a node has not said yet what it is: pods on it are there, but what they need is not counted, as in Karpenter.
    pub(super) fn is_unknown(&self, name: &Value) -> bool {
        let node = self.of_kind("Node").find(|node| node["metadata"]["name"] == *name);
        let label = |node: &Value| node["metadata"]["labels"]["node.kubernetes.io/instance-type"].is_null();
        node.is_some_and(|node| self.claim_of(node).is_some() && label(node))
    }

    /// The claim of a node.
    fn claim_of(&self, node: &Value) -> Option<&Value> {
        let id = &node["spec"]["providerID"];
        self.of_kind("NodeClaim").find(|claim| !id.is_null() && claim["status"]["providerID"] == *id)
    }

    /// Nodes that are there, and claims whose node is still to come.
    pub(super) fn existing(&self) -> Vec<Value> {
        let mut nodes: Vec<Value> = self.of_kind("Node").map(|node| self.settled(node)).collect();
        let known: BTreeSet<String> = self.of_kind("Node").map(|node| text(&node["spec"]["providerID"])).collect();
        let is_coming = |claim: &&Value| !is_leaving(claim) && !known.contains(&text(&claim["status"]["providerID"]));
        let coming = self.of_kind("NodeClaim").filter(is_coming);
        nodes.extend(coming.map(|claim| {
            let name = &claim["metadata"]["name"];
            let labels = with(claim["metadata"]["labels"].clone(), json!({ "kubernetes.io/hostname": name }));
            node(&text(name), &labels, (&claim["spec"]["taints"], &claim["status"]["allocatable"]))
        }));
        nodes
    }

    /// A node once it has started: taints that go by themselves are gone. One that is removed takes no pods.
    fn settled(&self, found: &Value) -> Value {
        let claim = self.claim_of(found);
        let is_there = found["metadata"]["labels"]["karpenter.sh/initialized"] == "true";
        let startup = claim.map(|claim| list(&claim["spec"]["startupTaints"])).unwrap_or_default();
        let passing = |taint: &Value| {
            let key = text(&taint["key"]);
            let is_ours = key == "karpenter.sh/unregistered" || key.starts_with("node.kubernetes.io/");
            let is_startup = startup.iter().any(|one| one["key"] == taint["key"] && one["effect"] == taint["effect"]);
            claim.is_some() && !is_there && (is_ours || key.starts_with("node.cloudprovider") || is_startup)
        };
        let taints: Vec<Value> = list(&found["spec"]["taints"]).into_iter().filter(|taint| !passing(taint)).collect();
        let name = text(&found["metadata"]["name"]);
        // What its claim says, a node gets when it registers.
        let of_claim = claim.map_or_else(|| json!({}), |claim| claim["metadata"]["labels"].clone());
        let labels = with(of_claim, found["metadata"]["labels"].clone());
        let offers = claim.filter(|_| !is_there).map(|claim| with_devices(&found["status"], &claim["status"]));
        let offers = offers.unwrap_or_else(|| found["status"]["allocatable"].clone());
        let mut made = node(&name, &labels, (&json!(taints), &offers));
        if is_leaving(found) || claim.is_some_and(is_leaving) {
            made["spec"]["unschedulable"] = json!(true);
        }
        made
    }

    /// The nodes that the plan creates.
    pub(super) fn planned(&self) -> Vec<Value> {
        let claims = list(&self.plan["newNodeClaims"]);
        claims.iter().enumerate().map(|(number, claim)| self.planned_node(&format!("new-{number}"), claim)).collect()
    }

    fn planned_node(&self, name: &str, claim: &Value) -> Value {
        let size = self.types.iter().find(|size| size["name"] == claim["offering"]["instanceType"]);
        let size = size.cloned().unwrap_or_default();
        let is_chosen = |offering: &&Value| {
            let has = |label: &str, value: &Value| {
                let named = list(&offering["requirements"]);
                value.is_null() || named.iter().any(|one| one["key"] == label && one["values"][0] == *value)
            };
            has("topology.kubernetes.io/zone", &claim["offering"]["zone"])
                && has("karpenter.sh/capacity-type", &claim["offering"]["capacityType"])
        };
        let mut labels = Map::new();
        let offerings = list(&size["offerings"]);
        let offered = offerings.iter().find(is_chosen).map(|offering| list(&offering["requirements"]));
        let facts = list(&size["requirements"]).into_iter().filter(|one| list(&one["values"]).len() == 1);
        for one in list(&claim["requirements"]).into_iter().chain(facts).chain(offered.unwrap_or_default()) {
            if one["operator"] == "In" {
                labels.insert(text(&one["key"]), one["values"][0].clone());
            }
        }
        for (label, value) in [
            ("kubernetes.io/hostname", name),
            ("karpenter.sh/registered", "true"),
            ("karpenter.sh/initialized", "true"),
        ] {
            labels.insert(label.to_owned(), json!(value));
        }
        // Every kubelet says so of itself, also where a size does not.
        for (label, value) in [("kubernetes.io/arch", "amd64"), ("kubernetes.io/os", "linux")] {
            labels.entry(label).or_insert(json!(value));
        }
        labels.insert("node.kubernetes.io/instance-type".to_owned(), claim["offering"]["instanceType"].clone());
        let mut pools = self.of_kind("NodePool").filter(|pool| pool["metadata"]["name"] == claim["nodePool"]);
        let taints = pools.next().map(|pool| pool["spec"]["template"]["spec"]["taints"].clone());
        let taints = taints.unwrap_or_default();
        let labels = Value::Object(labels);
        let offers = self.left_to_pods(&size, (&labels, &taints));
        node(name, &labels, (&taints, &offers))
    }

    /// For each node that the plan creates: how many volumes of which driver it attaches.
    pub(super) fn attachment_limits(&self) -> Vec<(String, Map<String, Value>)> {
        let claims = list(&self.plan["newNodeClaims"]).into_iter().enumerate();
        let limits = claims.filter_map(|(number, claim)| {
            let size = self.types.iter().find(|size| size["name"] == claim["offering"]["instanceType"])?;
            Some((format!("new-{number}"), size["volumeAttachmentLimits"].as_object()?.clone()))
        });
        limits.collect()
    }

    /// What a size leaves to pods: without what the node keeps, and what its daemons need.
    fn left_to_pods(&self, size: &Value, (labels, taints): (&Value, &Value)) -> Value {
        let amounts = |value: &Value| -> Resources {
            let fields = value.as_object().into_iter().flatten();
            fields.filter_map(|(name, amount)| Some((name.clone(), amount.as_str()?.parse().ok()?))).collect()
        };
        let mut left = amounts(&size["capacity"]);
        for part in ["KubeReserved", "SystemReserved", "EvictionThreshold"] {
            left = left.without(&amounts(&size["overhead"][part]));
        }
        let labels: BTreeMap<String, String> = serde_json::from_value(labels.clone()).unwrap_or_default();
        let labels = Requirements::from_labels(&labels);
        for daemon in self.of_kind("DaemonSet") {
            // The newest pod of a DaemonSet knows what admission did to it.
            let is_its = |pod: &&Value| pod["metadata"]["ownerReferences"][0]["name"] == daemon["metadata"]["name"];
            let newest =
                self.of_kind("Pod").filter(is_its).max_by_key(|pod| text(&pod["metadata"]["creationTimestamp"]));
            let mut pod = json!({ "metadata": { "name": "d" }, "spec": daemon["spec"]["template"]["spec"] });
            for part in newest.iter().flat_map(|_| ["containers", "initContainers"]) {
                pod["spec"][part] = newest.map(|newest| newest["spec"][part].clone()).unwrap_or_default();
            }
            let Ok(pod) = serde_json::from_value::<tenon_api::kube_objects::WirePod>(admissible(&pod)) else {
                continue;
            };
            let pod = tenon_api::pod::to_model(&pod.into());
            let is_wanted = pod.alternatives.iter().any(|wanted| labels.meet(wanted, |_| false).is_ok());
            let is_open = list(taints).iter().all(|taint| {
                let effect = if taint["effect"] == "NoExecute" { Effect::NoExecute } else { Effect::NoSchedule };
                let taint = Taint { key: text(&taint["key"]), value: text(&taint["value"]), effect };
                taint.is_tolerated_by(&pod.tolerations)
            });
            if is_wanted && is_open {
                left = left.without(&pod.requests);
            }
        }
        json!(left.iter().map(|(name, amount)| (name.to_owned(), amount.to_string())).collect::<BTreeMap<_, _>>())
    }

    /// Pods that the plan speaks of.
    pub(super) fn planned_pods(&self) -> BTreeSet<String> {
        let left = list(&self.plan["unschedulable"]);
        self.placed().into_keys().chain(left.iter().map(|one| text(&one["pod"]))).collect()
    }

    /// Pods that differ from a pod in nothing but their name and age.
    pub(super) fn kind_of(&self, name: &str) -> BTreeSet<String> {
        let same = |pod: &Value| (pod["spec"].clone(), pod["metadata"]["labels"].clone());
        let Some(asked) = self.of_kind("Pod").find(|pod| key(pod) == name).map(same) else { return BTreeSet::new() };
        self.of_kind("Pod").filter(|pod| same(pod) == asked).map(key).collect()
    }

    /// The name of a node that a plan speaks of; before it is registered that is the name of its claim.
    fn node_name(&self, name: &str) -> String {
        let claim = self.of_kind("NodeClaim").find(|claim| claim["metadata"]["name"] == name);
        let id = claim.map(|claim| &claim["status"]["providerID"]).filter(|id| !id.is_null());
        let node = id.and_then(|id| self.of_kind("Node").find(|node| node["spec"]["providerID"] == *id));
        node.map_or_else(|| name.to_owned(), |node| text(&node["metadata"]["name"]))
    }

    /// The node of each pod that the plan places.
    pub(super) fn placed(&self) -> BTreeMap<String, String> {
        let new = list(&self.plan["newNodeClaims"]).into_iter().enumerate();
        let new = new.map(|(number, claim)| (format!("new-{number}"), claim["pods"].clone()));
        let existing = list(&self.plan["existingNodes"]).into_iter();
        let existing = existing.map(|node| (self.node_name(&text(&node["name"])), node["pods"].clone()));
        let all =
            new.chain(existing).flat_map(|(node, pods)| list(&pods).into_iter().map(move |pod| (pod, node.clone())));
        all.map(|(pod, node)| (text(&pod), node)).collect()
    }
}

/// Whether a node or claim is being removed. A claim also says so when its instance ends by itself.
fn is_leaving(object: &Value) -> bool {
    let ends = |one: &Value| one["type"] == "InstanceTerminating" && one["status"] == "True";
    !object["metadata"]["deletionTimestamp"].is_null() || list(&object["status"]["conditions"]).iter().any(ends)
}

/// What a node offers once it has started: devices that it does not report yet are those of its claim.
fn with_devices(status: &Value, claimed: &Value) -> Value {
    let mut offers = status["allocatable"].clone();
    for (name, amount) in claimed["allocatable"].as_object().into_iter().flatten() {
        if offers[name].is_null() || offers[name] == "0" {
            offers[name] = amount.clone();
        }
    }
    offers
}

/// Our plan.
pub(super) fn planned(folder: &Path) -> anyhow::Result<Value> {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tenon"));
    command.arg("plan").arg("-f").arg(folder.join("objects.json"));
    command.arg("--instance-types").arg(folder.join("instance-types.json"));
    if folder.join("options.json").exists() {
        command.arg("--options").arg(folder.join("options.json"));
    }
    let output = command.args(["-o", "json"]).output()?;
    let said = || format!("`tenon plan` said {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).with_context(said)
}

pub(super) fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn node(name: &str, labels: &Value, (taints, offers): (&Value, &Value)) -> Value {
    let taints = if taints.is_null() { json!([]) } else { taints.clone() };
    let mut labels = labels.clone();
    for (label, old) in OLD_NAMES {
        if let Some(value) = labels.get(label).cloned() {
            labels[old] = value;
        }
    }
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": labels }, "spec": { "taints": taints },
        "status": {
            "capacity": offers, "allocatable": offers,
            "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "" }],
        },
    })
}

/// A pod as the server takes it: what only controllers and admission set is left out.
pub(super) fn admissible(pod: &Value) -> Value {
    let meta = &pod["metadata"];
    let mut spec = pod["spec"].clone();
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            container["image"] = json!("registry.example/c:1");
        }
    }
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|field, value| {
            !["priority", "priorityClassName", "overhead"].contains(&field.as_str()) && !value.is_null()
        });
    }
    spec["terminationGracePeriodSeconds"] = json!(0);
    json!({
        "apiVersion": "v1", "kind": "Pod", "spec": spec,
        "metadata": { "name": meta["name"], "namespace": namespace(pod), "labels": meta["labels"] },
    })
}

/// The same with one container that asks for what a plan counts.
pub(super) fn asking_as_planned(pod: &Value) -> anyhow::Result<Value> {
    let model =
        tenon_api::pod::to_model(&serde_json::from_value::<tenon_api::kube_objects::WirePod>(pod.clone())?.into());
    let requests = model.requests.iter().filter(|(name, _)| *name != "pods");
    let requests: BTreeMap<_, _> = requests.map(|(name, amount)| (name.to_owned(), amount.to_string())).collect();
    let containers = list(&pod["spec"]["containers"]).into_iter().chain(list(&pod["spec"]["initContainers"]));
    let ports: Vec<Value> = containers.flat_map(|container| list(&container["ports"])).collect();
    let mut made = pod.clone();
    if let Some(spec) = made["spec"].as_object_mut() {
        spec.retain(|field, _| !["resources", "initContainers"].contains(&field.as_str()));
    }
    // Devices are limited to what is asked for; the server insists.
    let resources = json!({ "requests": requests, "limits": devices_of(&requests) });
    made["spec"]["containers"] =
        json!([{ "name": "c", "image": "registry.example/c:1", "resources": resources, "ports": ports }]);
    Ok(made)
}

/// Those of these amounts that are no resources of every machine.
fn devices_of(requests: &BTreeMap<String, String>) -> BTreeMap<&String, &String> {
    requests.iter().filter(|(name, _)| name.contains('/')).collect()
}

/// The same without a node, held back.
pub(super) fn waiting_pod(pod: &Value) -> Value {
    let mut made = with(admissible(pod), json!({ "spec": { "schedulingGates": [{ "name": GATE }] } }));
    made["spec"].as_object_mut().into_iter().for_each(|spec| drop(spec.remove("nodeName")));
    made
}

pub(super) fn namespace(pod: &Value) -> String {
    pod["metadata"]["namespace"].as_str().unwrap_or("default").to_owned()
}

pub(super) fn key(pod: &Value) -> String {
    format!("{}/{}", namespace(pod), text(&pod["metadata"]["name"]))
}

/// Which of several pods goes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Those early whose nodes have least in common with the nodes of the first pods: an emptier domain lets these in.
    EmptierDomainsFirst,
    /// One of those with the same labels in each zone: the first pods may need another pod in every zone.
    OneInEachZone,
}

impl Scenario {
    /// The order in which pods are let go: some first; of the others, those last that are only counted.
    pub(super) fn ordered<'s>(&self, pods: &[&'s Value], first: &BTreeSet<String>, order: Order) -> Vec<&'s Value> {
        let placed = self.placed();
        let nodes: Vec<Value> = self.existing().into_iter().chain(self.planned()).collect();
        let domains = |pod: &Value| {
            let node = nodes.iter().find(|node| node["metadata"]["name"] == placed[&key(pod)].as_str());
            let labels = node.map(|node| node["metadata"]["labels"].clone()).unwrap_or_default();
            ["topology.kubernetes.io/zone", "karpenter.sh/capacity-type"].map(|label| text(&labels[label]))
        };
        let wanted: Vec<_> = pods.iter().filter(|pod| first.contains(&key(pod))).flat_map(|pod| domains(pod)).collect();
        let (mut turns, mut sorted) = (BTreeMap::new(), Vec::new());
        for pod in pods {
            let own = domains(pod);
            let in_common = wanted.iter().filter(|domain| own.contains(*domain)).count();
            let [zone, _] = own;
            let alike = match order {
                Order::EmptierDomainsFirst => is_constrained(pod).to_string(),
                Order::OneInEachZone => pod["metadata"]["labels"].to_string(),
            };
            let turn = turns.entry((alike, zone)).or_insert(0);
            *turn += 1;
            let rank = match order {
                Order::EmptierDomainsFirst => (usize::from(!is_constrained(pod)), in_common, *turn),
                Order::OneInEachZone => (*turn, usize::from(!is_constrained(pod)), in_common),
            };
            sorted.push((!first.contains(&key(pod)), rank, *pod));
        }
        sorted.sort_by_key(|(is_later, rank, _)| (*is_later, *rank));
        sorted.into_iter().map(|(.., pod)| pod).collect()
    }
}

/// Whether other pods may keep a pod from a node.
fn is_constrained(pod: &Value) -> bool {
    let is_hard = |spread: &Value| spread["whenUnsatisfiable"] == "DoNotSchedule";
    let affinity = &pod["spec"]["affinity"];
    let required = |kind: &str| !list(&affinity[kind]["requiredDuringSchedulingIgnoredDuringExecution"]).is_empty();
    let spreads = list(&pod["spec"]["topologySpreadConstraints"]);
    spreads.iter().any(is_hard) || required("podAffinity") || required("podAntiAffinity")
}
