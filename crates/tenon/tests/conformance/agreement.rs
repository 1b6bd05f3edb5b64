//! Does kube-scheduler bind what a plan places? Nodes are made by hand as the plan says, and the pods are let go.
//!
//! `TENON_SCENARIOS` names a folder of scenarios; `cargo xtask diff scheduler` writes one from seeds. Without it, those that are
//! recorded are tried.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use kube::Client;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Map, Value, json};
use tenon_model::{Effect, Requirements, Resources, Taint};
use testbed::{Lookup, Testbed, eventually};
use tokio::time::{Instant, sleep};

use crate::things::with;

/// Pods that a plan leaves out are bound by then, or not at all.
const AT_ONCE: Duration = Duration::from_millis(1_500);

/// Labels that kubelets also set under an older name.
const OLD_NAMES: [(&str, &str); 5] = [
    ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"),
    ("kubernetes.io/arch", "beta.kubernetes.io/arch"),
    ("kubernetes.io/os", "beta.kubernetes.io/os"),
    ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
];

/// So many orders are tried.
const TRIES: usize = 4;

const GATE: &str = "tenon.test/plan";

/// What a scenario is made of, and the plan for it.
struct Scenario {
    items: Vec<Value>,
    types: Vec<Value>,
    plan: Value,
}

impl Scenario {
    fn read(folder: &Path) -> anyhow::Result<Scenario> {
        let file = |name: &str| folder.join(name);
        let read = |name: &str| -> anyhow::Result<Value> { Ok(serde_json::from_slice(&std::fs::read(file(name))?)?) };
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tenon"));
        command
            .arg("plan")
            .arg("-f")
            .arg(file("objects.json"))
            .arg("--instance-types")
            .arg(file("instance-types.json"));
        if file("options.json").exists() {
            command.arg("--options").arg(file("options.json"));
        }
        let output = command.args(["-o", "json"]).output()?;
        let plan = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("`tenon plan` said {}", String::from_utf8_lossy(&output.stderr)))?;
        let items = list(&read("objects.json")?["items"]);
        Ok(Scenario { items, types: list(&read("instance-types.json")?), plan })
    }

    fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.items.iter().filter(move |item| item["kind"] == kind)
    }

    /// Whether a node has not said yet what it is: what runs on it is not counted, as in Karpenter.
    fn is_unknown(&self, name: &Value) -> bool {
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
    fn existing(&self) -> Vec<Value> {
        let mut nodes: Vec<Value> = self.of_kind("Node").map(|node| self.settled(node)).collect();
        let known: BTreeSet<String> = self.of_kind("Node").map(|node| text(&node["spec"]["providerID"])).collect();
        let is_coming = |claim: &&Value| {
            let is_leaving = !claim["metadata"]["deletionTimestamp"].is_null();
            !is_leaving && !known.contains(&text(&claim["status"]["providerID"]))
        };
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
        let mut made = node(&name, &labels, (&json!(taints), &found["status"]["allocatable"]));
        let is_leaving = |object: &Value| !object["metadata"]["deletionTimestamp"].is_null();
        if is_leaving(found) || claim.is_some_and(is_leaving) {
            made["spec"]["unschedulable"] = json!(true);
        }
        made
    }

    /// The nodes that the plan creates.
    fn planned(&self) -> Vec<Value> {
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
        labels.insert("node.kubernetes.io/instance-type".to_owned(), claim["offering"]["instanceType"].clone());
        let mut pools = self.of_kind("NodePool").filter(|pool| pool["metadata"]["name"] == claim["nodePool"]);
        let taints = pools.next().map(|pool| pool["spec"]["template"]["spec"]["taints"].clone());
        let taints = taints.unwrap_or_default();
        let labels = Value::Object(labels);
        let offers = self.left_to_pods(&size, (&labels, &taints));
        node(name, &labels, (&taints, &offers))
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
    fn planned_pods(&self) -> BTreeSet<String> {
        let left = list(&self.plan["unschedulable"]);
        self.placed().into_keys().chain(left.iter().map(|one| text(&one["pod"]))).collect()
    }

    /// The name of a node that a plan speaks of; before it is registered that is the name of its claim.
    fn node_name(&self, name: &str) -> String {
        let claim = self.of_kind("NodeClaim").find(|claim| claim["metadata"]["name"] == name);
        let id = claim.map(|claim| &claim["status"]["providerID"]).filter(|id| !id.is_null());
        let node = id.and_then(|id| self.of_kind("Node").find(|node| node["spec"]["providerID"] == *id));
        node.map_or_else(|| name.to_owned(), |node| text(&node["metadata"]["name"]))
    }

    /// The node of each pod that the plan places.
    fn placed(&self) -> BTreeMap<String, String> {
        let new = list(&self.plan["newNodeClaims"]).into_iter().enumerate();
        let new = new.map(|(number, claim)| (format!("new-{number}"), claim["pods"].clone()));
        let existing = list(&self.plan["existingNodes"]).into_iter();
        let existing = existing.map(|node| (self.node_name(&text(&node["name"])), node["pods"].clone()));
        let all =
            new.chain(existing).flat_map(|(node, pods)| list(&pods).into_iter().map(move |pod| (pod, node.clone())));
        all.map(|(pod, node)| (text(&pod), node)).collect()
    }
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn text(value: &Value) -> String {
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
fn admissible(pod: &Value) -> Value {
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

/// The same without a node, held back.
fn waiting_pod(pod: &Value) -> Value {
    let mut made = with(admissible(pod), json!({ "spec": { "schedulingGates": [{ "name": GATE }] } }));
    made["spec"].as_object_mut().into_iter().for_each(|spec| drop(spec.remove("nodeName")));
    made
}

fn namespace(pod: &Value) -> String {
    pod["metadata"]["namespace"].as_str().unwrap_or("default").to_owned()
}

fn key(pod: &Value) -> String {
    format!("{}/{}", namespace(pod), text(&pod["metadata"]["name"]))
}

impl Scenario {
    /// The order in which pods are let go: some first; of the others, those last that are only counted, and one for each zone in
    /// turn.
    fn ordered<'s>(&self, pods: &[&'s Value], first: &BTreeSet<String>) -> Vec<&'s Value> {
        let placed = self.placed();
        let nodes: Vec<Value> = self.existing().into_iter().chain(self.planned()).collect();
        let zone = |pod: &Value| {
            let node = nodes.iter().find(|node| node["metadata"]["name"] == placed[&key(pod)].as_str());
            node.map(|node| text(&node["metadata"]["labels"]["topology.kubernetes.io/zone"])).unwrap_or_default()
        };
        let (mut turns, mut sorted) = (BTreeMap::new(), Vec::new());
        for pod in pods {
            let turn = turns.entry((is_constrained(pod), zone(pod))).or_insert(0);
            *turn += 1;
            let half = (!first.contains(&key(pod)), !is_constrained(pod));
            sorted.push((half, *turn, *pod));
        }
        sorted.sort_by_key(|(half, turn, _)| (*half, *turn));
        sorted.into_iter().map(|(_, _, pod)| pod).collect()
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

struct Bench {
    client: Client,
}

impl Bench {
    fn api(&self, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let (version, plural) = ("v1".to_owned(), format!("{}s", kind.to_lowercase()));
        let resource =
            ApiResource { group: String::new(), api_version: version.clone(), version, kind: kind.to_owned(), plural };
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    async fn create(&self, object: &Value) -> anyhow::Result<()> {
        let namespace = object["metadata"]["namespace"].as_str();
        let api = self.api(&text(&object["kind"]), namespace);
        let object: DynamicObject = serde_json::from_value(object.clone())?;
        // A namespace has no ServiceAccount in its first moments.
        eventually(&format!("{:?} is created", object.metadata.name), async || {
            match api.create(&PostParams::default(), &object).await {
                Ok(_) => Ok(Some(())),
                Err(kube::Error::Api(status)) if status.message.contains("service account") => Ok(None),
                Err(kube::Error::Api(status)) => bail!("{}", status.message),
                Err(error) => Err(error.into()),
            }
        })
        .await
    }

    async fn patch(&self, pod: &Value, (subresource, patch): (&str, Value)) -> anyhow::Result<()> {
        let (api, name) = (self.api("Pod", Some(&namespace(pod))), text(&pod["metadata"]["name"]));
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        match subresource {
            "" => api.patch(&name, &params, &patch).await?,
            other => api.patch_subresource(other, &name, &params, &patch).await?,
        };
        Ok(())
    }

    async fn all(&self, scenario: &Scenario, first: &BTreeSet<String>) -> anyhow::Result<(Vec<String>, Vec<String>)> {
        self.prepare(scenario).await?;
        self.bind_old(scenario).await?;
        self.run(scenario, first).await
    }

    async fn prepare(&self, scenario: &Scenario) -> anyhow::Result<()> {
        for found in scenario.of_kind("Namespace") {
            let name = text(&found["metadata"]["name"]);
            let labels = json!({ "metadata": { "labels": found["metadata"]["labels"] } });
            let api = self.api("Namespace", None);
            if api.get_opt(&name).await?.is_none() {
                self.create(&json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })).await?;
            }
            api.patch(&name, &PatchParams::default(), &Patch::Merge(labels)).await?;
        }
        for node in scenario.existing().into_iter().chain(scenario.planned()) {
            self.create(&node).await?;
        }
        eventually("nodes are ready", async || {
            let nodes = self.api("Node", None).list(&ListParams::default()).await?;
            let is_tainted = |node: &DynamicObject| {
                list(&node.data["spec"]["taints"]).iter().any(|taint| taint["key"] == "node.kubernetes.io/not-ready")
            };
            Ok((!nodes.items.iter().any(is_tainted)).then_some(()))
        })
        .await
    }

    /// Pods that were on nodes before.
    async fn bind_old(&self, scenario: &Scenario) -> anyhow::Result<()> {
        // Who is being deleted is gone before long; the plan counts on that, as Karpenter does.
        let has_ended = |pod: &Value| {
            let is_going = !pod["metadata"]["deletionTimestamp"].is_null();
            is_going || matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
        };
        let bound = scenario.of_kind("Pod").filter(|pod| !pod["spec"]["nodeName"].is_null() && !has_ended(pod));
        // Who is placed again was made again.
        let planned = scenario.planned_pods();
        let bound = bound.filter(|pod| !planned.contains(&key(pod)) && !scenario.is_unknown(&pod["spec"]["nodeName"]));
        for pod in bound {
            self.create(&admissible(pod)).await?;
        }
        Ok(())
    }

    /// Lets the pods go, each with its node nominated, again and again until no more of them is bound; then those that the plan
    /// leaves out. Returns pods of the plan that stay pending, and others that were bound.
    async fn run(&self, scenario: &Scenario, first: &BTreeSet<String>) -> anyhow::Result<(Vec<String>, Vec<String>)> {
        let placed = scenario.placed();
        let mut waiting: Vec<&Value> = scenario.of_kind("Pod").filter(|pod| placed.contains_key(&key(pod))).collect();
        waiting = scenario.ordered(&waiting, first);
        let (mut refusals, mut before) = (Vec::new(), usize::MAX);
        while !waiting.is_empty() && waiting.len() < before {
            before = waiting.len();
            refusals.clear();
            let mut left = Vec::new();
            for pod in waiting {
                if let Err(why) = self.bind(pod, &placed[&key(pod)]).await? {
                    refusals.push(format!("{} on {}: {why}", key(pod), placed[&key(pod)]));
                    left.push(pod);
                }
            }
            waiting = left;
        }
        let left: Vec<String> = list(&scenario.plan["unschedulable"]).iter().map(|one| text(&one["pod"])).collect();
        let others: Vec<&Value> = scenario.of_kind("Pod").filter(|pod| left.contains(&key(pod))).collect();
        for pod in &others {
            self.create(&waiting_pod(pod)).await?;
        }
        let bound = self.release(&others, AT_ONCE).await?;
        let reason = |pod: &String| {
            let mut refused = list(&scenario.plan["unschedulable"]).into_iter().filter(|one| one["pod"] == **pod);
            format!("{pod}: {}", refused.next().unwrap_or_default()["reasons"])
        };
        Ok((refusals, left.iter().filter(|pod| bound.contains(*pod)).map(reason).collect()))
    }

    /// Lets a pod go to its node. If it goes nowhere or elsewhere, it is taken back. One at a time, because the scheduler counts
    /// pods that are nominated as if they were there.
    async fn bind(&self, pod: &Value, node: &str) -> anyhow::Result<Result<(), String>> {
        self.create(&waiting_pod(pod)).await?;
        self.patch(pod, ("status", json!({ "status": { "nominatedNodeName": node } }))).await?;
        self.patch(pod, ("", json!({ "spec": { "schedulingGates": null } }))).await?;
        let (api, name) = (self.api("Pod", Some(&namespace(pod))), text(&pod["metadata"]["name"]));
        let told = eventually("the scheduler says something", async || {
            let found = api.get(&name).await?;
            if let Some(found) = found.data["spec"]["nodeName"].as_str() {
                return Ok(Some(if found == node { Ok(()) } else { Err(format!("it goes to {found}")) }));
            }
            let told = list(&found.data["status"]["conditions"]);
            let why = told.iter().find(|one| one["type"] == "PodScheduled" && one["reason"] == "Unschedulable");
            Ok(why.map(|why| Err(text(&why["message"]))))
        })
        .await?;
        if told.is_err() {
            api.delete(&name, &DeleteParams::default().grace_period(0)).await?;
            eventually("the pod is gone", async || Ok(api.get_opt(&name).await?.is_none().then_some(()))).await?;
        }
        Ok(told)
    }

    /// Lets pods go, and waits until all of them are bound, or for so long. Returns all that are bound.
    async fn release(&self, pods: &[&Value], patience: Duration) -> anyhow::Result<BTreeSet<String>> {
        for pod in pods {
            self.patch(pod, ("", json!({ "spec": { "schedulingGates": null } }))).await?;
        }
        let began = Instant::now();
        loop {
            let bound = self.bound().await?;
            if pods.iter().all(|pod| bound.contains(&key(pod))) || began.elapsed() >= patience {
                return Ok(bound);
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    async fn bound(&self) -> anyhow::Result<BTreeSet<String>> {
        let pods = self.api("Pod", None).list(&ListParams::default()).await?;
        let is_bound = |pod: &&DynamicObject| !pod.data["spec"]["nodeName"].is_null();
        let key = |pod: &DynamicObject| {
            let part = |text: &Option<String>| text.clone().unwrap_or_default();
            format!("{}/{}", part(&pod.metadata.namespace), part(&pod.metadata.name))
        };
        Ok(pods.items.iter().filter(is_bound).map(key).collect())
    }
}

/// A plan says where pods go; whether they can depends on who is there already. So whoever is left goes first in another try.
async fn bound_in_some_order(scenario: &Scenario) -> anyhow::Result<(Vec<String>, Vec<String>)> {
    let (mut first, mut last) = (BTreeSet::new(), (Vec::new(), Vec::new()));
    for _ in 0..TRIES {
        let testbed = Testbed::start_with(&Lookup::from_env()?)?;
        last = Bench { client: testbed.admin().await? }.all(scenario, &first).await?;
        if last.0.is_empty() {
            break;
        }
        first.extend(last.0.iter().filter_map(|told| Some(told.split_once(' ')?.0.to_owned())));
    }
    Ok(last)
}

fn scenarios() -> anyhow::Result<Vec<PathBuf>> {
    let recorded = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/scenarios");
    let folder = std::env::var("TENON_SCENARIOS").unwrap_or_else(|_| recorded.to_owned());
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot read {folder}"))?;
    let mut folders: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?;
    folders.sort();
    anyhow::ensure!(!folders.is_empty(), "there are no scenarios in {folder}");
    Ok(folders)
}

#[tokio::test]
async fn kube_scheduler_binds_every_pod_that_a_plan_places() -> anyhow::Result<()> {
    if testbed::shared_testbed()?.is_none() {
        return Ok(());
    }
    let mut faults = Vec::new();
    for folder in scenarios()? {
        let scenario = Scenario::read(&folder)?;
        let name = folder.file_name().unwrap_or_default().display().to_string();
        let (pending, bound) = match bound_in_some_order(&scenario).await {
            // The generator also writes pods that no server would have let in.
            Err(error) if error.to_string().contains("is invalid") => {
                println!("{name}: {error}");
                continue;
            }
            outcome => outcome?,
        };
        println!("{name}: {} placed, {} of them pending", scenario.placed().len(), pending.len());
        pending.iter().for_each(|told| println!("  pending: {told}"));
        bound.iter().for_each(|told| println!("  bound, although the plan leaves it out: {told}"));
        if !pending.is_empty() {
            faults.push(format!("{name}: {}", pending.join(", ")));
        }
    }
    anyhow::ensure!(faults.is_empty(), "kube-scheduler leaves pods pending that a plan places: {}", faults.join("; "));
    Ok(())
}
