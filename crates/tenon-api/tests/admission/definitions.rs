//! A user's manifests against our definitions.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use testbed::shared_testbed;

/// Installs every definition and waits until it is served.
pub(crate) async fn install(client: &Client) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in tenon_api::definitions() {
        let name = definition.name_any();
        match definitions.create(&PostParams::default(), &definition).await {
            // Another test of this binary was first.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            outcome => drop(outcome.with_context(|| format!("the definition {name} is refused"))?),
        }
        let served = await_condition(definitions.clone(), &name, conditions::is_crd_established());
        tokio::time::timeout(Duration::from_secs(30), served).await??;
    }
    Ok(())
}

fn api(client: &Client, object: &Value) -> anyhow::Result<Api<DynamicObject>> {
    let (group, version) =
        object["apiVersion"].as_str().and_then(|text| text.split_once('/')).context("no apiVersion")?;
    let kind = object["kind"].as_str().context("no kind")?;
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural(kind));
    Ok(Api::all_with(client.clone(), &resource))
}

fn plural(kind: &str) -> &'static str {
    match kind {
        "NodePool" => "nodepools",
        "NodeClaim" => "nodeclaims",
        "ProxmoxNodeClass" => "proxmoxnodeclasses",
        _ => "proxmoxunmanagedtemplates",
    }
}

/// Creates an object and returns what the server made of it.
async fn create(client: &Client, object: &Value) -> anyhow::Result<kube::Result<Value>> {
    let parsed: DynamicObject = serde_json::from_value(object.clone())?;
    let made = api(client, object)?.create(&PostParams::default(), &parsed).await;
    Ok(made.map(|made| made.data))
}

fn node_class(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1",
        "kind": "ProxmoxNodeClass",
        "metadata": { "name": name },
        "spec": { "instanceTemplateRef": { "kind": "ProxmoxUnmanagedTemplate", "name": "debian" } },
    })
}

fn node_pool(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": { "name": name },
        "spec": { "template": { "spec": {
            "requirements": [{ "key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"] }],
            "nodeClassRef": { "group": "karpenter.proxmox.sinextra.dev", "kind": "ProxmoxNodeClass", "name": "default" },
        } } },
    })
}

fn node_claim(name: &str) -> Value {
    let mut claim = node_pool(name);
    claim["kind"] = "NodeClaim".into();
    claim["spec"] = claim["spec"]["template"]["spec"].take();
    claim
}

fn template(name: &str) -> Value {
    json!({
        "apiVersion": "karpenter.proxmox.sinextra.dev/v1alpha1",
        "kind": "ProxmoxUnmanagedTemplate",
        "metadata": { "name": name },
        "spec": { "templateName": "debian-13" },
    })
}

#[tokio::test]
async fn minimal_manifests_are_accepted_with_the_reference_defaults() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let client = testbed.admin().await?;
    install(&client).await?;
    let pool = create(&client, &node_pool("minimal")).await??;
    assert_eq!(pool["spec"]["template"]["spec"]["expireAfter"], "720h");
    assert_eq!(pool["spec"]["disruption"]["consolidateAfter"], "0s");
    assert_eq!(pool["spec"]["disruption"]["consolidationPolicy"], "WhenEmptyOrUnderutilized");
    assert_eq!(pool["spec"]["disruption"]["budgets"], json!([{ "nodes": "10%" }]));
    let class = create(&client, &node_class("minimal")).await??;
    assert_eq!(class["spec"]["bootDevice"], json!({ "size": "30G" }));
    assert_eq!(class["spec"]["metadataOptions"], json!({ "type": "none" }));
    assert_eq!(class["spec"]["placementStrategy"], json!({ "zoneBalance": "Balanced" }));
    let claim = create(&client, &node_claim("minimal")).await??;
    assert_eq!(claim["spec"]["expireAfter"], "720h");
    create(&client, &template("minimal")).await??;
    Ok(())
}

/// An object, a JSON pointer into it, the value to put there, and a word of the refusal.
type Bad = (Value, &'static str, Value, &'static str);

fn refused() -> Vec<Bad> {
    let requirement = "/spec/template/spec/requirements/0";
    let with = |pointer: &'static str, value: Value, words: &'static str| (node_pool("bad"), pointer, value, words);
    vec![
        with("/spec/weight", json!(0), "spec.weight"),
        with("/spec/weight", json!(101), "spec.weight"),
        with("/spec/limits", json!({ "cpu": "lots" }), "spec.limits"),
        with("/spec/disruption", json!({ "consolidateAfter": "soon" }), "consolidateAfter"),
        with("/spec/disruption", json!({ "consolidationPolicy": "Always" }), "consolidationPolicy"),
        with("/spec/disruption", json!({ "budgets": [{ "nodes": "200%" }] }), "nodes"),
        with("/spec/disruption", json!({ "budgets": [{ "nodes": "1", "schedule": "@daily" }] }), "set together"),
        with("/spec/template/metadata", json!({ "labels": { "karpenter.sh/x": "y" } }), "set by the autoscaler"),
        with(
            "/spec/template/metadata",
            json!({ "labels": { "kubernetes.io/hostname": "y" } }),
            "differs for every node",
        ),
        with("/spec/template/spec/nodeClassRef/name", json!(""), "name must not be empty"),
        with("/spec/template/spec/expireAfter", json!("1d"), "expireAfter"),
        with("/spec/template/spec/taints", json!([{ "key": "a", "effect": "Never" }]), "effect"),
        with(requirement, json!({ "key": "a", "operator": "In", "values": [] }), "at least one value"),
        with(requirement, json!({ "key": "a", "operator": "Gt", "values": ["x"] }), "requirements"),
        with(requirement, json!({ "key": "a", "operator": "Gt", "values": ["-1"] }), "non-negative"),
        with(
            requirement,
            json!({ "key": "a", "operator": "In", "values": ["b"], "minValues": 2 }),
            "minValues is greater",
        ),
        with(requirement, json!({ "key": "karpenter.sh/nodepool", "operator": "Exists" }), "set by the autoscaler"),
        (node_class("bad"), "/spec/bootDevice", json!({ "size": "30M" }), "bootDevice.size"),
        (node_class("bad"), "/spec/metadataOptions", json!({ "type": "usb" }), "metadataOptions.type"),
        (node_class("bad"), "/spec/resourcePool", json!("a/b/c/d"), "resourcePool"),
        (node_class("bad"), "/spec/kubeletConfiguration", json!({ "maxPods": 9 }), "maxPods"),
        (node_class("bad"), "/spec/instanceTemplateRef/kind", json!("Template"), "instanceTemplateRef.kind"),
        (template("bad"), "/spec", json!({ "region": "r" }), "templateName, tags, or both"),
    ]
}

#[tokio::test]
async fn what_the_reference_refuses_is_refused_with_a_word_that_helps() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let client = testbed.admin().await?;
    install(&client).await?;
    for (mut object, pointer, value, words) in refused() {
        let case = format!("{pointer} = {value}");
        put(&mut object, pointer, value)?;
        match create(&client, &object).await? {
            Err(kube::Error::Api(status)) if status.code == 422 || status.code == 400 => {
                ensure!(status.message.contains(words), "{case}: `{words}` is not in: {}", status.message);
            }
            other => anyhow::bail!("{case} was not refused: {other:?}"),
        }
    }
    Ok(())
}

/// Puts a value where the pointer says; the parent must be there.
fn put(object: &mut Value, pointer: &str, value: Value) -> anyhow::Result<()> {
    let (parent, key) = pointer.rsplit_once('/').context("not a pointer")?;
    let parent = object.pointer_mut(parent).with_context(|| format!("no {parent}"))?;
    match key.parse::<usize>() {
        Ok(index) => parent[index] = value,
        Err(_) => parent[key] = value,
    }
    Ok(())
}

#[tokio::test]
async fn a_claim_never_changes_and_a_pool_keeps_the_kind_of_its_class() -> anyhow::Result<()> {
    let Some(testbed) = shared_testbed()? else { return Ok(()) };
    let client = testbed.admin().await?;
    install(&client).await?;
    let changes = [
        (node_claim("fixed"), json!({ "spec": { "expireAfter": "1h" } }), "cannot be changed"),
        (
            node_pool("fixed"),
            json!({ "spec": { "template": { "spec": { "nodeClassRef": { "kind": "Other" } } } } }),
            "kind of nodeClassRef",
        ),
        (node_pool("fixed-replicas"), json!({ "spec": { "replicas": 1 } }), "cannot be added or removed"),
    ];
    for (object, change, words) in changes {
        create(&client, &object).await??;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let outcome = api(&client, &object)?.patch(name, &PatchParams::default(), &Patch::Merge(&change)).await;
        match outcome {
            Err(kube::Error::Api(status)) => ensure!(status.message.contains(words), "{}", status.message),
            other => anyhow::bail!("{change} was not refused: {other:?}"),
        }
    }
    Ok(())
}
