//! Lets kube-scheduler bind the pods of a scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::bail;
use kube::Client;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use serde_json::{Value, json};
use testbed::eventually;
use tokio::time::{Instant, sleep};

use super::left_out::LeftOut;
use super::scenario::{Order, Scenario, admissible, asking_as_planned, key, list, namespace, text, waiting_pod};

/// Pods that a plan leaves out are bound by then, or not at all.
const AT_ONCE: Duration = Duration::from_millis(1_500);

/// A control plane on which a scenario is tried.
pub(super) struct Bench {
    pub(super) client: Client,
}

impl Bench {
    pub(super) fn api(&self, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let (group, plural) = match kind {
            "StorageClass" => ("storage.k8s.io", "storageclasses".to_owned()),
            "CSINode" => ("storage.k8s.io", "csinodes".to_owned()),
            other => ("", format!("{}s", other.to_lowercase())),
        };
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", kind), &plural);
        match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    pub(super) async fn create(&self, object: &Value) -> anyhow::Result<()> {
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

    pub(super) async fn all(
        &self,
        scenario: &Scenario,
        turns: (&BTreeSet<String>, Order),
    ) -> anyhow::Result<(Vec<String>, Vec<LeftOut>)> {
        self.prepare(scenario).await?;
        self.make_storage(scenario).await?;
        self.bind_old(scenario).await?;
        self.run(scenario, turns).await
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
        for pod in bound.filter(|pod| !planned.contains(&key(pod))) {
            let made = admissible(pod);
            let is_unknown = scenario.is_unknown(&pod["spec"]["nodeName"]);
            self.create_pod(&if is_unknown { without_needs(made) } else { made }).await?;
        }
        Ok(())
    }

    /// Lets the pods go, each with its node nominated, again and again until no more of them is bound; then those that the plan
    /// leaves out. Returns pods of the plan that stay pending, and others that were bound.
    async fn run(
        &self,
        scenario: &Scenario,
        (first, order): (&BTreeSet<String>, Order),
    ) -> anyhow::Result<(Vec<String>, Vec<LeftOut>)> {
        let placed = scenario.placed();
        let waiting: Vec<&Value> = scenario.of_kind("Pod").filter(|pod| placed.contains_key(&key(pod))).collect();
        let waiting = scenario.ordered(&waiting, first, order).into_iter();
        let (first, last): (Vec<&Value>, Vec<&Value>) = waiting.partition(|pod| first.contains(&key(pod)));
        let refused = self.bind_in_turn((first, last), &placed).await?;
        // Nodes that are being removed are domains for as long as they are there; a plan counts on their end.
        self.remove_leaving(scenario, !refused.is_empty()).await?;
        let refused = refused.into_iter().map(|(pod, _)| pod).collect();
        let refused = self.bind_each(refused, &placed).await?;
        // Whoever did not get the node of the plan may have another.
        let refusals = self.without_those_bound_elsewhere(refused).await?;
        let left: Vec<String> = list(&scenario.plan["unschedulable"]).iter().map(|one| text(&one["pod"])).collect();
        let others: Vec<&Value> = scenario.of_kind("Pod").filter(|pod| left.contains(&key(pod))).collect();
        for pod in &others {
            self.create_pod(&waiting_pod(pod)).await?;
        }
        let bound = self.release(&others, AT_ONCE).await?;
        let others: Vec<&Value> = others.into_iter().filter(|pod| bound.contains(&key(pod))).collect();
        Ok((refusals, self.explain(scenario, &others).await?))
    }

    /// Removes nodes that are being removed, if pods wait.
    async fn remove_leaving(&self, scenario: &Scenario, is_waited_for: bool) -> anyhow::Result<()> {
        let (nodes, existing) = (self.api("Node", None), scenario.existing());
        let leaving = existing.iter().filter(|node| is_waited_for && node["spec"]["unschedulable"] == true);
        for name in leaving.map(|node| text(&node["metadata"]["name"])) {
            nodes.delete(&name, &DeleteParams::default()).await?;
            eventually("the node is gone", async || Ok(nodes.get_opt(&name).await?.is_none().then_some(()))).await?;
        }
        Ok(())
    }

    /// Lets pods go to their nodes, some as soon as they can: they, and those that were refused since, are asked again after each pod
    /// that is bound, before the next one takes what is allowed. Returns who is left, and why.
    async fn bind_in_turn<'s>(
        &self,
        (eager, others): (Vec<&'s Value>, Vec<&'s Value>),
        placed: &BTreeMap<String, String>,
    ) -> anyhow::Result<Vec<(&'s Value, String)>> {
        let pods = |refused: Vec<(&'s Value, String)>| refused.into_iter().map(|(pod, _)| pod).collect::<Vec<_>>();
        let first: BTreeSet<String> = eager.iter().map(|pod| key(pod)).collect();
        let mut left = pods(self.bind_each(eager, placed).await?);
        for pod in others {
            let node = &placed[&key(pod)];
            if self.bind(pod, Some(node.as_str())).await?.is_err() {
                left.push(pod);
            } else if left.iter().any(|pod| first.contains(&key(pod))) {
                left = pods(self.bind_each(left, placed).await?);
            }
        }
        self.bind_each(left, placed).await
    }

    /// Lets pods go to their nodes, again and again until no more of them is bound. Returns who is left, and why.
    async fn bind_each<'s>(
        &self,
        mut waiting: Vec<&'s Value>,
        placed: &BTreeMap<String, String>,
    ) -> anyhow::Result<Vec<(&'s Value, String)>> {
        let (mut left, mut before) = (Vec::new(), usize::MAX);
        while !waiting.is_empty() && waiting.len() < before {
            before = waiting.len();
            left = Vec::new();
            for pod in waiting {
                let node = &placed[&key(pod)];
                if let Err(why) = self.bind(pod, Some(node.as_str())).await? {
                    left.push((pod, format!("{} on {node}: {why}", key(pod))));
                }
            }
            waiting = left.iter().map(|(pod, _)| *pod).collect();
        }
        Ok(left)
    }

    /// Lets pods go wherever the scheduler wants them. Returns what was said of those that are bound nowhere.
    async fn without_those_bound_elsewhere(&self, refused: Vec<(&Value, String)>) -> anyhow::Result<Vec<String>> {
        let mut left = Vec::new();
        for (pod, told) in refused {
            if self.bind(pod, None).await?.is_err() {
                left.push(told);
            }
        }
        Ok(left)
    }

    /// Makes a pod. One that the server refuses because its parts ask for more than the whole is made with what the whole asks for:
    /// generated pods may be so, and are planned so.
    async fn create_pod(&self, pod: &Value) -> anyhow::Result<()> {
        match self.create(pod).await {
            Err(error) if error.to_string().contains("is invalid") => self.create(&asking_as_planned(pod)?).await,
            outcome => outcome,
        }
    }

    /// Lets a pod go to its node, or to any. If it goes nowhere or elsewhere, it is taken back. One at a time, because the scheduler counts
    /// pods that are nominated as if they were there.
    async fn bind(&self, pod: &Value, node: Option<&str>) -> anyhow::Result<Result<(), String>> {
        self.create_pod(&waiting_pod(pod)).await?;
        if let Some(node) = node {
            self.patch(pod, ("status", json!({ "status": { "nominatedNodeName": node } }))).await?;
        }
        self.patch(pod, ("", json!({ "spec": { "schedulingGates": null } }))).await?;
        let (api, name) = (self.api("Pod", Some(&namespace(pod))), text(&pod["metadata"]["name"]));
        let told = eventually("the scheduler says something", async || {
            self.provision(pod).await?;
            let found = api.get(&name).await?;
            if let Some(found) = found.data["spec"]["nodeName"].as_str() {
                let is_right = node.is_none_or(|node| found == node);
                return Ok(Some(if is_right { Ok(()) } else { Err(format!("it goes to {found}")) }));
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
            for pod in pods {
                self.provision(pod).await?;
            }
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

/// A pod that takes nothing of its node.
fn without_needs(mut pod: Value) -> Value {
    if let Some(spec) = pod["spec"].as_object_mut() {
        spec.remove("resources");
    }
    for list in ["containers", "initContainers"] {
        for container in pod["spec"][list].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            container.remove("resources");
            container.remove("ports");
        }
    }
    pod
}
