//! On which node is a pod put because of other pods and of its volumes? The same on kube-scheduler and on the one in memory.

use serde_json::{Value, json};
use tenon_sim::Actors;
use testbed::eventually;

use crate::ground::{Ground, wide};
use crate::reply::{condition, text};
use crate::things::with;

/// A few nodes of one behaviour. Labels have its name, so that nodes of others are in no domain.
pub(crate) struct Nodes<'g> {
    pub(crate) ground: &'g Ground,
    /// On the real server somebody else schedules.
    _actors: Option<Actors>,
}

impl<'g> Nodes<'g> {
    /// Nodes with these names and zones; one without a zone has an empty one.
    pub(crate) async fn new(ground: &'g Ground, zones: &[(&str, &str)]) -> anyhow::Result<Nodes<'g>> {
        let nodes = Nodes { ground, _actors: ground.actors() };
        for (name, zone) in zones {
            let zone = if zone.is_empty() { json!({}) } else { json!({ nodes.zone(): zone }) };
            let labels = with(json!({ nodes.here(): "yes", nodes.host(): name }), zone);
            let offers = json!({ "cpu": "4", "memory": "8Gi", "pods": "110" });
            let status = json!({
                "capacity": offers, "allocatable": offers,
                "conditions": [{ "type": "Ready", "status": "True", "reason": "KubeletReady" }],
            });
            let body = json!({ "metadata": { "name": nodes.name(name), "labels": labels }, "status": status });
            ground.made(&wide("nodes"), body).await?;
        }
        Ok(nodes)
    }

    pub(crate) fn zone(&self) -> String {
        format!("zone/{}", self.ground.name)
    }

    pub(crate) fn host(&self) -> String {
        format!("host/{}", self.ground.name)
    }

    fn here(&self) -> String {
        format!("here/{}", self.ground.name)
    }

    pub(crate) fn name(&self, node: &str) -> String {
        format!("{}-{node}", self.ground.name)
    }

    /// A pod with a label that only these nodes take. Nobody takes taints off nodes without a kubelet, so it tolerates them.
    pub(crate) fn pod(&self, name: &str, app: &str, spec: &Value) -> Value {
        let base = json!({
            "metadata": { "name": name, "labels": { "app": app } },
            "spec": {
                "nodeSelector": { self.here(): "yes" }, "tolerations": [{ "operator": "Exists" }],
                "containers": [{ "name": "c", "image": "registry.example/c:1" }],
            },
        });
        with(base, json!({ "spec": spec }))
    }

    /// A pod that is on a node from the start.
    pub(crate) async fn bound(&self, name: &str, app: &str, (node, spec): (&str, Value)) -> anyhow::Result<()> {
        let spec = with(spec, json!({ "nodeName": self.name(node) }));
        self.ground.made(&self.ground.here("pods"), self.pod(name, app, &spec)).await.map(drop)
    }

    /// Where a pod goes: a node, or why nowhere.
    pub(crate) async fn outcome(&self, name: &str) -> anyhow::Result<Result<String, String>> {
        let path = format!("{}/{name}", self.ground.here("pods"));
        let prefix = self.name("");
        eventually(&format!("pod {name} is bound or refused"), async || {
            let found = self.ground.get(&path).await?.expect(200)?;
            if let Some(node) = found["spec"]["nodeName"].as_str() {
                return Ok(Some(Ok(node.strip_prefix(&prefix).unwrap_or(node).to_owned())));
            }
            let told = condition(&found, "PodScheduled").filter(|told| text(told, "/reason") == "Unschedulable");
            Ok(told.map(|told| Err(text(told, "/message").to_owned())))
        })
        .await
    }

    pub(crate) async fn makes(&self, name: &str, app: &str, spec: Value) -> anyhow::Result<Result<String, String>> {
        self.ground.made(&self.ground.here("pods"), self.pod(name, app, &spec)).await?;
        self.outcome(name).await
    }

    /// The pod goes to a node.
    pub(crate) async fn goes_to(&self, node: &str, (name, app, spec): (&str, &str, Value)) -> anyhow::Result<()> {
        assert_eq!(self.makes(name, app, spec).await?.as_deref(), Ok(node), "pod {name}");
        Ok(())
    }

    /// The pod goes nowhere, and this is said of some node.
    pub(crate) async fn waits(&self, why: &str, (name, app, spec): (&str, &str, Value)) -> anyhow::Result<()> {
        let outcome = self.makes(name, app, spec).await?;
        let told = outcome.expect_err(&format!("pod {name} waits"));
        assert!(told.contains(why), "pod {name}: {told}");
        Ok(())
    }

    fn spread(&self, label: &str, more: Value) -> Value {
        let base = json!({
            "maxSkew": 1, "topologyKey": label, "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": { "matchLabels": { "app": "web" } },
        });
        json!({ "topologySpreadConstraints": [with(base, more)] })
    }
}

fn term(label: &str, app: &str) -> Value {
    json!({ "topologyKey": label, "labelSelector": { "matchLabels": { "app": app } } })
}

fn affinity(terms: &[Value]) -> Value {
    json!({ "affinity": { "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": terms } } })
}

fn anti_affinity(terms: &[Value]) -> Value {
    json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": terms } } })
}

fn asking(cpu: &str) -> Value {
    json!({ "containers": [{
        "name": "c", "image": "registry.example/c:1", "resources": { "requests": { "cpu": cpu } },
    }] })
}

const UNEVEN: &str = "didn't match pod topology spread constraints";

pub(crate) async fn a_spread_pod_goes_to_the_emptiest_zone(ground: &Ground) -> anyhow::Result<()> {
    let nodes = Nodes::new(ground, &[("a", "1"), ("b", "2"), ("c", "")]).await?;
    let spread = nodes.spread(&nodes.zone(), json!({}));
    nodes.bound("first", "web", ("a", json!({}))).await?;
    nodes.bound("other", "db", ("b", json!({}))).await?;
    nodes.goes_to("b", ("second", "web", spread.clone())).await?;
    nodes.bound("third", "web", ("a", json!({}))).await?;
    nodes.bound("large", "db", ("b", asking("4"))).await?;
    nodes.waits(UNEVEN, ("fourth", "web", with(spread.clone(), asking("1")))).await?;
    // One that is not counted itself may make it one more.
    nodes.goes_to("a", ("not-counted", "db", with(spread, asking("1")))).await
}

pub(crate) async fn too_few_domains_count_as_an_empty_one(ground: &Ground) -> anyhow::Result<()> {
    let nodes = Nodes::new(ground, &[("a", "1")]).await?;
    let spread = nodes.spread(&nodes.zone(), json!({ "minDomains": 2 }));
    nodes.goes_to("a", ("first", "web", spread.clone())).await?;
    nodes.waits(UNEVEN, ("second", "web", spread)).await
}

pub(crate) async fn a_spread_counts_nodes_the_pod_could_go_to(ground: &Ground) -> anyhow::Result<()> {
    let nodes = Nodes::new(ground, &[("a", "1"), ("b", "2")]).await?;
    let only_a = json!({ "nodeSelector": { nodes.host(): "a" } });
    let honour = with(nodes.spread(&nodes.zone(), json!({})), only_a.clone());
    nodes.bound("first", "web", ("a", json!({}))).await?;
    nodes.goes_to("a", ("second", "web", honour)).await?;
    let ignore = with(nodes.spread(&nodes.zone(), json!({ "nodeAffinityPolicy": "Ignore" })), only_a);
    nodes.waits(UNEVEN, ("third", "web", ignore)).await
}

pub(crate) async fn pods_that_are_being_deleted_do_not_count_for_a_spread(ground: &Ground) -> anyhow::Result<()> {
    let nodes = Nodes::new(ground, &[("a", "1"), ("b", "2")]).await?;
    for name in ["first", "second"] {
        let going =
            json!({ "metadata": { "finalizers": ["example.com/stay"] }, "spec": { "nodeName": nodes.name("a") } });
        ground.made(&ground.here("pods"), with(nodes.pod(name, "web", &json!({})), going)).await?;
        let options = json!({ "gracePeriodSeconds": 0 });
        ground.delete(&format!("{}/{name}", ground.here("pods")), options).await?.expect(200)?;
    }
    nodes.bound("third", "web", ("b", json!({}))).await?;
    nodes.goes_to("a", ("fourth", "web", nodes.spread(&nodes.zone(), json!({})))).await?;
    for name in ["first", "second"] {
        let patch = json!({ "metadata": { "finalizers": null } });
        ground.merge(&format!("{}/{name}", ground.here("pods")), patch).await?;
    }
    Ok(())
}

pub(crate) async fn a_pod_goes_where_its_mates_are_and_the_first_of_them_anywhere(
    ground: &Ground,
) -> anyhow::Result<()> {
    let nodes = Nodes::new(ground, &[("a", "1"), ("b", "2"), ("c", "")]).await?;
    let own = affinity(&[term(&nodes.zone(), "db")]);
    const NO_MATE: &str = "didn't match pod affinity rules";
    nodes.waits(NO_MATE, ("early", "web", own.clone())).await?;
    let first = nodes.makes("first", "db", own.clone()).await?;
    assert!(matches!(first.as_deref(), Ok("a" | "b")), "{first:?}");
    let zone = first.unwrap_or_default();
    nodes.goes_to(&zone, ("second", "db", own)).await?;
    // One pod has to be chosen by all terms.
    nodes.bound("loner", "other", ("c", json!({}))).await?;
    let both = affinity(&[term(&nodes.zone(), "db"), term(&nodes.host(), "other")]);
    nodes.waits(NO_MATE, ("third", "db", both)).await
}

pub(crate) async fn pods_stay_away_from_each_other_in_both_directions(ground: &Ground) -> anyhow::Result<()> {
    let nodes = Nodes::new(ground, &[("a", "1"), ("b", "2")]).await?;
    let apart = anti_affinity(&[term(&nodes.zone(), "web")]);
    nodes.bound("first", "web", ("a", json!({}))).await?;
    nodes.goes_to("b", ("second", "db", apart.clone())).await?;
    nodes
        .waits(
            "didn't satisfy existing pods anti-affinity rules",
            ("third", "web", with(json!({}), json!({ "nodeSelector": { nodes.host(): "b" } }))),
        )
        .await?;
    nodes.bound("fourth", "web", ("b", json!({}))).await?;
    nodes.waits("didn't match pod anti-affinity rules", ("fifth", "db", apart)).await
}

pub(crate) async fn terms_look_into_the_namespaces_they_choose(ground: &Ground) -> anyhow::Result<()> {
    let nodes = Nodes::new(ground, &[("a", "1"), ("b", "2")]).await?;
    let other = format!("{}-x", ground.name);
    let labels = json!({ "team": ground.name });
    ground.made("/api/v1/namespaces", json!({ "metadata": { "name": other, "labels": labels } })).await?;
    let pod = with(nodes.pod("first", "web", &json!({})), json!({ "spec": { "nodeName": nodes.name("a") } }));
    eventually("the namespace takes pods", async || {
        Ok((ground.post(&format!("/api/v1/namespaces/{other}/pods"), pod.clone()).await?.code == 201).then_some(()))
    })
    .await?;
    let full = json!({ "nodeSelector": { nodes.host(): "a" } });
    let here = anti_affinity(&[term(&nodes.zone(), "web")]);
    nodes.goes_to("a", ("own", "db", with(here, full.clone()))).await?;
    let named = anti_affinity(&[with(term(&nodes.zone(), "web"), json!({ "namespaces": [other] }))]);
    nodes.waits("anti-affinity rules", ("named", "db", with(named, full.clone()))).await?;
    let chosen = json!({ "namespaceSelector": { "matchLabels": { "team": ground.name } } });
    let chosen = anti_affinity(&[with(term(&nodes.zone(), "web"), chosen)]);
    nodes.waits("anti-affinity rules", ("chosen", "db", with(chosen, full))).await
}
