//! Does a pod count here for what it counts for in the real scheduler?
//!
//! For each shape of pod there is a node with exactly what we say it needs, and for each resource one with a unit less.
//! The pod must go onto the first and onto none of the others, for want of just that resource.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tenon_api::pod::to_model;
use tenon_model::resources::{CPU, PODS};
use tenon_model::{Quantity, Resources};
use testbed::{eventually, shared_testbed};

use super::pod_shapes::{Shape, asking, overhead_class, shapes};

const NODE_LABEL: &str = "tenon.test/ground";

/// What counts as one less.
fn unit(resource: &str) -> Quantity {
    match resource {
        CPU => Quantity::milli(1),
        "hugepages-2Mi" => Quantity::whole(2 << 20),
        _ => Quantity::whole(1),
    }
}

/// A node that nobody runs, with so much for pods.
async fn make_node(client: &Client, name: &str, allocatable: &Resources) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = serde_json::from_value(json!({ "metadata": { "name": name, "labels": { NODE_LABEL: name } } }))?;
    nodes.create(&PostParams::default(), &node).await.with_context(|| format!("node {name} is refused"))?;
    let amounts: BTreeMap<&str, String> =
        allocatable.iter().map(|(resource, amount)| (resource, amount.to_string())).collect();
    let ready = json!({ "type": "Ready", "status": "True", "reason": "Test", "message": "" });
    let status = json!({ "status": { "capacity": amounts, "allocatable": amounts, "conditions": [ready] } });
    nodes
        .patch_status(name, &PatchParams::default(), &Patch::Merge(&status))
        .await
        .with_context(|| format!("status of node {name} is refused"))?;
    Ok(())
}

/// The pod of a shape, for one node. Nobody takes taints off a node without a kubelet, so it tolerates them all.
fn pod(name: &str, spec: &Value, node: &str) -> anyhow::Result<Pod> {
    let mut spec = spec.clone();
    spec["nodeSelector"] = json!({ NODE_LABEL: node });
    spec["tolerations"] = json!([{ "operator": "Exists" }]);
    Ok(serde_json::from_value(json!({ "metadata": { "name": name, "namespace": "default" }, "spec": spec }))?)
}

/// A pod that is on its node already, and what is said of it there.
fn holder(shape: &Shape, node: &str) -> anyhow::Result<Option<Pod>> {
    let Some(status) = &shape.status else { return Ok(None) };
    let mut pod = pod(&format!("{node}-holder"), &shape.spec, node)?;
    pod.spec.get_or_insert_default().node_name = Some(node.to_owned());
    pod.status = Some(serde_json::from_value(status.clone())?);
    Ok(Some(pod))
}

/// What is to be scheduled: the shape itself, or a plain pod beside one of that shape.
fn newcomer(shape: &Shape, node: &str) -> anyhow::Result<Pod> {
    let plain = json!({ "containers": [asking("a", "100m", "64Mi")] });
    pod(node, if shape.status.is_some() { &plain } else { &shape.spec }, node)
}

/// What we count a pod with.
fn requests(pod: &Pod) -> anyhow::Result<Resources> {
    Ok(to_model(&serde_json::from_value(serde_json::to_value(pod)?)?).requests.clone())
}

/// What we say a node needs for the shape: from the manifest, and from what the server makes of it, which is the same.
async fn needs(client: &Client, shape: &Shape) -> anyhow::Result<Resources> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let written = newcomer(shape, shape.name)?;
    let made = pods.create(&dry_run, &written).await.with_context(|| format!("pod {} is refused", shape.name))?;
    let mut needed = requests(&made)?;
    let is_filled_in = shape.spec.get("runtimeClassName").is_some();
    let same = is_filled_in || requests(&written)? == needed;
    ensure!(same, "{}: the server's defaults change what is needed", shape.name);
    let held = holder(shape, shape.name)?.as_ref().map(requests).transpose()?;
    for (resource, amount) in &shape.needs {
        let counted = held.as_ref().unwrap_or(&needed).get(resource);
        ensure!(counted == amount.parse()?, "{resource} of {} is {counted}, not {amount}", shape.name);
    }
    needed.add(&held.unwrap_or_default());
    Ok(needed)
}

/// Makes a node with so much, and lets the shape try to go there.
async fn try_on(client: &Client, shape: &Shape, node: &str, allocatable: &Resources) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    make_node(client, node, allocatable).await?;
    if let Some(holder) = holder(shape, node)? {
        let made = pods.create(&PostParams::default(), &holder).await.with_context(|| format!("holder on {node}"))?;
        let status = json!({ "status": shape.status });
        let name = made.metadata.name.unwrap_or_default();
        let patched = pods.patch_status(&name, &PatchParams::default(), &Patch::Strategic(&status)).await;
        patched.with_context(|| format!("status of {name}"))?;
    }
    let pod = newcomer(shape, node)?;
    pods.create(&PostParams::default(), &pod).await.with_context(|| format!("pod {node} is refused"))?;
    Ok(())
}

/// What the scheduler says: nothing if the pod has its node, else what is missing there. Before it has seen the node, it
/// says other things.
async fn verdict(client: &Client, name: &str) -> anyhow::Result<Option<String>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    eventually(&format!("the scheduler to look at pod {name}"), async || {
        let pod = pods.get(name).await?;
        if pod.spec.is_some_and(|spec| spec.node_name.is_some()) {
            return Ok(Some(None));
        }
        let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
        let said = conditions.into_iter().filter_map(|condition| condition.message);
        Ok(said.into_iter().find(|text| text.contains("Insufficient") || text.contains("Too many pods")).map(Some))
    })
    .await
}

#[tokio::test]
async fn the_scheduler_counts_a_pod_as_we_do() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let client = testbed.admin().await?;
    overhead_class(&client).await?;
    let shapes = shapes();
    assert!(shapes.len() >= 12, "there are only {} shapes", shapes.len());
    let mut expected: Vec<(String, Option<String>)> = Vec::new();
    for shape in &shapes {
        let needed = needs(&client, shape).await?;
        let exact = format!("{}-exact", shape.name);
        try_on(&client, shape, &exact, &needed).await?;
        expected.push((exact, None));
        let counted = needed.iter().filter(|(resource, amount)| *resource != PODS && !amount.is_zero());
        for (resource, amount) in counted {
            let short = format!("{}-short-{}", shape.name, resource.replace(['.', '/'], "-").to_lowercase());
            let less = needed.clone().with(resource, amount - unit(resource));
            try_on(&client, shape, &short, &less).await?;
            expected.push((short, Some(format!("Insufficient {resource}"))));
        }
    }
    let mut differences = Vec::new();
    for (name, reason) in expected {
        match (verdict(&client, &name).await?, reason) {
            (None, None) => {}
            (Some(said), Some(reason)) if said.contains(&reason) => {}
            (said, reason) => differences.push(format!("{name}: we say {reason:?}, the scheduler {said:?}")),
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
    Ok(())
}

#[tokio::test]
async fn a_node_has_room_for_so_many_pods() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let client = testbed.admin().await?;
    let plain = shapes().into_iter().find(|shape| shape.name == "plain").context("no plain shape")?;
    let needed = needs(&client, &plain).await?;
    assert_eq!(needed.get(PODS), Quantity::whole(1));
    try_on(&client, &plain, "one-pod", &needed).await?;
    assert_eq!(verdict(&client, "one-pod").await?, None);
    try_on(&client, &plain, "no-pod", &needed.with(PODS, Quantity::ZERO)).await?;
    let said = verdict(&client, "no-pod").await?.context("the pod has its node")?;
    assert!(said.contains("Too many pods"), "{said}");
    Ok(())
}
