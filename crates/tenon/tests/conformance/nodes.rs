//! What do kubelets, schedulers and controllers write on nodes?

use serde_json::{Value, json};
use testbed::eventually;

use crate::ground::{Ground, wide};
use crate::reply::{condition, text, uid, version};
use crate::things::{node, with};

async fn joined(ground: &Ground) -> anyhow::Result<(String, Value)> {
    let made = ground.made(&wide("nodes"), node(&ground.name)).await?;
    Ok((format!("{}/{}", wide("nodes"), ground.name), made))
}

/// Patches with a version, again and again: a node has controllers of its own that write in between.
async fn guarded(ground: &Ground, path: &str, patch: impl Fn(&Value) -> Value) -> anyhow::Result<Value> {
    eventually("a write wins", async || {
        let found = ground.get(path).await?.expect(200)?;
        let meta = json!({ "metadata": { "resourceVersion": version(&found), "uid": uid(&found) } });
        let reply = ground.merge(path, with(patch(&found), meta)).await?;
        if reply.code == 409 {
            return Ok(None);
        }
        reply.expect(200).map(Some)
    })
    .await
}

fn keys(node: &Value) -> Vec<&str> {
    node["spec"]["taints"].as_array().into_iter().flatten().map(|taint| text(taint, "/key")).collect()
}

pub(crate) async fn a_new_node_keeps_its_status(ground: &Ground) -> anyhow::Result<()> {
    let (_, made) = joined(ground).await?;
    assert_eq!(text(&made, "/status/allocatable/memory"), "7Gi");
    assert_eq!(condition(&made, "Ready").map(|told| text(told, "/status")), Some("True"));
    assert_eq!(text(&made, "/spec/providerID"), format!("proxmox://region/{}", ground.name));
    Ok(())
}

pub(crate) async fn a_new_node_is_not_ready_at_first(ground: &Ground) -> anyhow::Result<()> {
    let ours = json!({ "spec": { "taints": [{ "key": "karpenter.sh/unregistered", "effect": "NoExecute" }] } });
    let made = ground.made(&wide("nodes"), with(node(&ground.name), ours)).await?;
    let expected = json!([
        { "key": "karpenter.sh/unregistered", "effect": "NoExecute" },
        { "key": "node.kubernetes.io/not-ready", "effect": "NoSchedule" },
    ]);
    assert_eq!(made["spec"]["taints"], expected);
    Ok(())
}

pub(crate) async fn a_node_without_allocatable_offers_its_capacity(ground: &Ground) -> anyhow::Result<()> {
    let body = json!({ "metadata": { "name": ground.name }, "status": { "capacity": { "cpu": "4" } } });
    let made = ground.made(&wide("nodes"), body).await?;
    assert_eq!(made["status"]["allocatable"], json!({ "cpu": "4" }));
    Ok(())
}

pub(crate) async fn taints_are_replaced_under_a_version(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = joined(ground).await?;
    let ours = json!([{ "key": "karpenter.sh/disrupted", "effect": "NoSchedule" }]);
    let patched = guarded(ground, &path, |_| json!({ "spec": { "taints": ours } })).await?;
    assert_eq!(keys(&patched), ["karpenter.sh/disrupted"]);
    let patched = guarded(ground, &path, |_| json!({ "spec": { "taints": null } })).await?;
    assert_eq!(patched["spec"].get("taints"), None);
    Ok(())
}

pub(crate) async fn labels_annotations_and_finalizers_come_in_one_patch(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = joined(ground).await?;
    let patched = guarded(ground, &path, |found| {
        let owner = json!({ "apiVersion": "v1", "kind": "Namespace", "name": ground.name, "uid": uid(found) });
        json!({ "metadata": {
            "labels": { "karpenter.sh/registered": "true" }, "annotations": { "tenon.dev/host": "pve1" },
            "finalizers": ["karpenter.sh/termination"], "ownerReferences": [owner],
        } })
    })
    .await?;
    assert_eq!(text(&patched, "/metadata/labels/karpenter.sh~1registered"), "true");
    assert_eq!(text(&patched, "/metadata/labels/kubernetes.io~1hostname"), ground.name);
    assert_eq!(patched["metadata"]["finalizers"], json!(["karpenter.sh/termination"]));
    assert_eq!(uid(&patched), uid(&made));
    ground.merge(&path, json!({ "metadata": { "finalizers": null, "ownerReferences": null } })).await?.expect(200)?;
    Ok(())
}

pub(crate) async fn a_heartbeat_changes_only_the_status(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = joined(ground).await?;
    let beat = json!({ "status": { "conditions": [{
        "type": "Ready", "status": "False", "reason": "KubeletNotReady", "lastHeartbeatTime": "2026-01-01T00:00:00Z",
    }] }, "spec": { "providerID": "another" } });
    let patched = ground.merge(&format!("{path}/status"), beat).await?.expect(200)?;
    assert_eq!(condition(&patched, "Ready").map(|told| text(told, "/reason")), Some("KubeletNotReady"));
    assert_eq!(text(&patched, "/spec/providerID"), text(&made, "/spec/providerID"));
    assert_eq!(text(&patched, "/status/capacity/cpu"), "4", "the rest of the status stays");
    Ok(())
}

pub(crate) async fn a_write_of_the_node_leaves_its_status(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = joined(ground).await?;
    let patch = json!({ "spec": { "unschedulable": true }, "status": { "capacity": { "cpu": "99" } } });
    let patched = ground.merge(&path, patch).await?.expect(200)?;
    assert_eq!((patched["spec"]["unschedulable"].clone(), text(&patched, "/status/capacity/cpu")), (json!(true), "4"));
    Ok(())
}

pub(crate) async fn a_node_has_no_generation(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = joined(ground).await?;
    let patched = ground.merge(&path, json!({ "spec": { "unschedulable": true } })).await?.expect(200)?;
    assert_eq!((made["metadata"].get("generation"), patched["metadata"].get("generation")), (None, None));
    Ok(())
}

pub(crate) async fn a_node_that_joins_again_already_exists(ground: &Ground) -> anyhow::Result<()> {
    joined(ground).await?;
    ground.post(&wide("nodes"), node(&ground.name)).await?.refused(409, "AlreadyExists")?;
    Ok(())
}

pub(crate) async fn the_lease_of_a_node_goes_with_it(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = joined(ground).await?;
    let owner = json!({ "apiVersion": "v1", "kind": "Node", "name": ground.name, "uid": uid(&made) });
    let body =
        with(crate::things::lease(&ground.name, &ground.name), json!({ "metadata": { "ownerReferences": [owner] } }));
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    ground.made(leases, body).await?;
    ground.delete(&path, json!(null)).await?.expect(200)?;
    ground.gone(&format!("{leases}/{}", ground.name)).await
}
