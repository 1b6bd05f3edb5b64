//! On which node is a pod put because of its volumes, and which volume does a claim get?

use serde_json::{Value, json};
use testbed::eventually;

use crate::ground::{Ground, wide};
use crate::reply::text;
use crate::scheduling::Nodes;
use crate::things::with;

const SIZE: &str = "1Gi";

/// A class of volumes that are bound when a pod needs them.
async fn class(ground: &Ground, provisioner: &str, more: Value) -> anyhow::Result<()> {
    let base = json!({
        "metadata": { "name": ground.name }, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer",
    });
    ground.made(&wide("storage.k8s.io/storageclasses"), with(base, more)).await.map(drop)
}

async fn claim(ground: &Ground, name: &str, class: &str) -> anyhow::Result<()> {
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": class, "resources": { "requests": { "storage": SIZE } },
    });
    let body = json!({ "metadata": { "name": name }, "spec": spec });
    ground.made(&ground.here("persistentvolumeclaims"), body).await.map(drop)
}

/// A volume of a driver that can be used in one zone.
async fn volume(nodes: &Nodes<'_>, zone: &str, (name, more): (&str, Value)) -> anyhow::Result<()> {
    let expression = json!({ "key": nodes.zone(), "operator": "In", "values": [zone] });
    let spec = json!({
        "capacity": { "storage": SIZE }, "accessModes": ["ReadWriteOnce"], "persistentVolumeReclaimPolicy": "Delete",
        "csi": { "driver": "csi.example", "volumeHandle": name },
        "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [expression] }] } },
    });
    let body = json!({ "metadata": { "name": nodes.name(name) }, "spec": with(spec, more) });
    nodes.ground.made(&wide("persistentvolumes"), body).await.map(drop)
}

/// What makes a volume one of a claim.
fn of_claim(ground: &Ground, claim: &str, class: &str) -> Value {
    json!({ "storageClassName": class, "claimRef": { "namespace": ground.name, "name": claim } })
}

fn using(claim: &str) -> Value {
    json!({ "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": claim } }] })
}

async fn bound(ground: &Ground, claim: &str) -> anyhow::Result<String> {
    eventually(&format!("claim {claim} is bound"), async || {
        let found = ground.get(&format!("{}/{claim}", ground.here("persistentvolumeclaims"))).await?.expect(200)?;
        Ok((text(&found, "/status/phase") == "Bound").then(|| text(&found, "/spec/volumeName").to_owned()))
    })
    .await
}

pub(crate) async fn a_pod_goes_where_its_volume_can_be_used(ground: &Ground) -> anyhow::Result<()> {
    let nodes = Nodes::new(ground, &[("a", "1"), ("b", "2")]).await?;
    volume(&nodes, "2", ("v", of_claim(ground, "data", ""))).await?;
    claim(ground, "data", "").await?;
    assert_eq!(bound(ground, "data").await?, nodes.name("v"));
    nodes.goes_to("b", ("first", "web", using("data"))).await?;
    let elsewhere = with(using("data"), json!({ "nodeSelector": { nodes.host(): "a" } }));
    nodes.waits("node affinity", ("second", "web", elsewhere)).await
}

pub(crate) async fn a_claim_that_waits_for_a_pod_gets_a_volume_where_the_pod_can_go(
    ground: &Ground,
) -> anyhow::Result<()> {
    let nodes = Nodes::new(ground, &[("a", "1"), ("b", "2")]).await?;
    class(ground, "kubernetes.io/no-provisioner", json!({})).await?;
    volume(&nodes, "2", ("v", json!({ "storageClassName": ground.name }))).await?;
    for name in ["one", "two"] {
        claim(ground, name, &ground.name).await?;
    }
    nodes.goes_to("b", ("first", "web", using("one"))).await?;
    assert_eq!(bound(ground, "one").await?, nodes.name("v"));
    nodes.waits("didn't find available persistent volumes to bind", ("second", "web", using("two"))).await
}

pub(crate) async fn a_claim_is_told_the_node_and_the_pod_waits_for_its_volume(ground: &Ground) -> anyhow::Result<()> {
    let nodes = Nodes::new(ground, &[("a", "1"), ("b", "2")]).await?;
    let allowed =
        json!({ "allowedTopologies": [{ "matchLabelExpressions": [{ "key": nodes.zone(), "values": ["2"] }] }] });
    class(ground, "csi.example", allowed).await?;
    claim(ground, "data", &ground.name).await?;
    ground.made(&ground.here("pods"), nodes.pod("first", "web", &using("data"))).await?;
    let path = format!("{}/data", ground.here("persistentvolumeclaims"));
    let selected = eventually("the claim is told the node", async || {
        let found = ground.get(&path).await?.expect(200)?;
        let annotation = found.pointer("/metadata/annotations/volume.kubernetes.io~1selected-node");
        Ok(annotation.and_then(Value::as_str).map(str::to_owned))
    })
    .await?;
    assert_eq!(selected, nodes.name("b"));
    let pod = ground.get(&format!("{}/first", ground.here("pods"))).await?.expect(200)?;
    assert_eq!(pod["spec"].get("nodeName"), None, "it waits for its volume");
    volume(&nodes, "2", ("v", of_claim(ground, "data", &ground.name))).await?;
    assert_eq!(bound(ground, "data").await?, nodes.name("v"));
    let node = eventually("the pod is bound", async || {
        let pod = ground.get(&format!("{}/first", ground.here("pods"))).await?.expect(200)?;
        Ok(pod["spec"]["nodeName"].as_str().map(str::to_owned))
    })
    .await?;
    assert_eq!(node, nodes.name("b"));
    Ok(())
}

pub(crate) async fn a_pod_waits_for_claims_that_are_missing_or_have_no_volume(ground: &Ground) -> anyhow::Result<()> {
    let nodes = Nodes::new(ground, &[("a", "1")]).await?;
    nodes.waits("persistentvolumeclaim \"absent\" not found", ("first", "web", using("absent"))).await?;
    class(ground, "csi.example", json!({ "volumeBindingMode": "Immediate" })).await?;
    claim(ground, "data", &ground.name).await?;
    nodes.waits("unbound immediate PersistentVolumeClaims", ("second", "web", using("data"))).await
}

pub(crate) async fn a_node_attaches_as_many_volumes_as_its_driver_can(ground: &Ground) -> anyhow::Result<()> {
    let nodes = Nodes::new(ground, &[("a", "1")]).await?;
    let driver = json!({ "name": "csi.example", "nodeID": "a", "topologyKeys": [], "allocatable": { "count": 1 } });
    let body = json!({ "metadata": { "name": nodes.name("a") }, "spec": { "drivers": [driver] } });
    ground.made(&wide("storage.k8s.io/csinodes"), body).await?;
    for (name, of) in [("v", "one"), ("w", "two")] {
        volume(&nodes, "1", (name, of_claim(ground, of, ""))).await?;
        claim(ground, of, "").await?;
        bound(ground, of).await?;
    }
    nodes.goes_to("a", ("first", "web", using("one"))).await?;
    nodes.goes_to("a", ("shares", "web", using("one"))).await?;
    nodes.waits("exceed max volume count", ("second", "web", using("two"))).await
}
