//! Which part of an object does a write change, and what is counted?

use serde_json::json;

use crate::ground::{Ground, wide};
use crate::reply::{generation, number, text, uid, version};
use crate::things::{deployment, node, pool, with};

pub(crate) async fn a_custom_object_is_made_without_a_status(ground: &Ground) -> anyhow::Result<()> {
    ground.define().await?;
    let body = with(pool(&ground.name), json!({ "status": { "nodes": 3 } }));
    let made = ground.made(&wide("karpenter.sh/nodepools"), body).await?;
    assert_eq!((made.get("status"), generation(&made)), (None, 1));
    Ok(())
}

pub(crate) async fn a_write_of_the_whole_leaves_the_status(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = ground.pool().await?;
    ground.merge(&format!("{path}/status"), json!({ "status": { "nodes": 3 } })).await?.expect(200)?;
    let patch = json!({ "spec": { "weight": 7 }, "status": { "nodes": 4 } });
    let patched = ground.merge(&path, patch).await?.expect(200)?;
    assert_eq!((number(&patched, "/spec/weight"), number(&patched, "/status/nodes")), (7, 3));
    let updated = ground.put(&path, with(patched, json!({ "status": { "nodes": 5 } }))).await?.expect(200)?;
    assert_eq!(number(&updated, "/status/nodes"), 3);
    Ok(())
}

pub(crate) async fn a_write_of_the_status_leaves_the_rest(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = ground.pool().await?;
    let patch = json!({
        "metadata": { "labels": { "a": "b" }, "finalizers": ["tenon.dev/test"] },
        "spec": { "weight": 7 }, "status": { "nodes": 3 },
    });
    let patched = ground.merge(&format!("{path}/status"), patch).await?.expect(200)?;
    assert_eq!(number(&patched, "/status/nodes"), 3);
    assert_eq!((patched["spec"].get("weight"), patched["metadata"].get("labels")), (None, None));
    assert_eq!(patched["metadata"].get("finalizers"), None);
    assert_eq!((uid(&patched), generation(&patched)), (uid(&made), 1));
    assert_ne!(version(&patched), version(&made));
    Ok(())
}

pub(crate) async fn a_status_of_a_stale_version_is_a_conflict(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = ground.pool().await?;
    let patch = |nodes: u8| {
        let meta = json!({ "resourceVersion": version(&made), "uid": uid(&made) });
        json!({ "metadata": meta, "status": { "nodes": nodes } })
    };
    ground.merge(&format!("{path}/status"), patch(1)).await?.expect(200)?;
    ground.merge(&format!("{path}/status"), patch(2)).await?.refused(409, "Conflict")?;
    Ok(())
}

pub(crate) async fn a_status_is_read_with_the_whole(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = ground.pool().await?;
    let whole = ground.get(&format!("{path}/status")).await?.expect(200)?;
    assert_eq!((uid(&whole), &whole["spec"]), (uid(&made), &made["spec"]));
    ground.get(&format!("{}/none/status", wide("karpenter.sh/nodepools"))).await?.refused(404, "NotFound")?;
    let missing = format!("{}/none/status", wide("karpenter.sh/nodepools"));
    ground.merge(&missing, json!({ "status": {} })).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn conditions_are_written_as_they_come(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = ground.pool().await?;
    let conditions = json!([{
        "type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    }]);
    let patch = json!({ "status": { "conditions": conditions } });
    let patched = ground.merge(&format!("{path}/status"), patch).await?.expect(200)?;
    assert_eq!(patched["status"]["conditions"], conditions);
    Ok(())
}

pub(crate) async fn only_a_change_of_what_is_wanted_raises_the_generation(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = ground.pool().await?;
    let labelled = ground.merge(&path, json!({ "metadata": { "labels": { "a": "b" } } })).await?.expect(200)?;
    let same = ground.merge(&path, json!({ "spec": { "weight": null } })).await?.expect(200)?;
    let changed = ground.merge(&path, json!({ "spec": { "weight": 7 } })).await?.expect(200)?;
    let told = ground.merge(&format!("{path}/status"), json!({ "status": { "nodes": 1 } })).await?.expect(200)?;
    let forced = ground.merge(&path, json!({ "metadata": { "generation": 9 } })).await?.expect(200)?;
    let counts = [&made, &labelled, &same, &changed, &told, &forced].map(generation);
    assert_eq!(counts, [1, 1, 1, 2, 2, 2]);
    Ok(())
}

pub(crate) async fn a_deployment_counts_changes_of_its_spec(ground: &Ground) -> anyhow::Result<()> {
    let deployments = ground.here("apps/deployments");
    let path = format!("{deployments}/a");
    let made = ground.made(&deployments, deployment("a")).await?;
    let labelled = ground.merge(&path, json!({ "metadata": { "labels": { "a": "b" } } })).await?.expect(200)?;
    let changed = ground.merge(&path, json!({ "spec": { "minReadySeconds": 1 } })).await?.expect(200)?;
    assert_eq!([&made, &labelled, &changed].map(generation), [1, 1, 2]);
    Ok(())
}

pub(crate) async fn a_deployment_is_made_without_a_status(ground: &Ground) -> anyhow::Result<()> {
    let deployments = ground.here("apps/deployments");
    let body = with(deployment("a"), json!({ "status": { "replicas": 5 } }));
    let made = ground.made(&deployments, body).await?;
    assert_eq!(made["status"], json!({}));
    assert_eq!(number(&made, "/spec/progressDeadlineSeconds"), 600);
    assert_eq!(text(&made, "/spec/strategy/type"), "RollingUpdate");
    Ok(())
}

pub(crate) async fn labels_of_a_built_in_object_come_with_its_status(ground: &Ground) -> anyhow::Result<()> {
    ground.made(&wide("nodes"), node(&ground.name)).await?;
    let path = format!("{}/{}/status", wide("nodes"), ground.name);
    let patch = json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "unschedulable": true } });
    let patched = ground.merge(&path, patch).await?.expect(200)?;
    assert_eq!(text(&patched, "/metadata/labels/a"), "b");
    assert_eq!(patched["spec"].get("unschedulable"), None);
    Ok(())
}

pub(crate) async fn an_update_of_the_status_leaves_the_rest(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = ground.pool().await?;
    let new = with(made.clone(), json!({ "spec": { "weight": 7 }, "status": { "nodes": 3 } }));
    let updated = ground.put(&format!("{path}/status"), new).await?.expect(200)?;
    assert_eq!((number(&updated, "/status/nodes"), &updated["spec"]), (3, &made["spec"]));
    let stale = with(made, json!({ "status": { "nodes": 4 } }));
    ground.put(&format!("{path}/status"), stale).await?.refused(409, "Conflict")?;
    Ok(())
}

pub(crate) async fn a_kind_without_a_status_has_none_to_write(ground: &Ground) -> anyhow::Result<()> {
    let maps = ground.here("configmaps");
    ground.made(&maps, crate::things::config_map("a")).await?;
    ground.merge(&format!("{maps}/a/status"), json!({ "status": {} })).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn a_write_of_a_pod_leaves_its_status(ground: &Ground) -> anyhow::Result<()> {
    let made = ground.running_pod("a").await?;
    let patch = json!({ "metadata": { "annotations": { "a": "b" } }, "status": { "phase": "Failed" } });
    let patched = ground.merge(&format!("{}/a", ground.here("pods")), patch).await?.expect(200)?;
    assert_eq!(patched["status"], made["status"]);
    Ok(())
}
