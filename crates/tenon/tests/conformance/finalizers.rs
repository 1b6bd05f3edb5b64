//! What keeps an object that is deleted, and what lets it go?

use serde_json::{Value, json};

use crate::ground::{Ground, wide};
use crate::reply::{generation, text, uid, version};
use crate::things::{config_map, node, with};

const OURS: &str = "karpenter.sh/termination";

/// A ConfigMap with finalizers.
async fn held(ground: &Ground, finalizers: &[&str]) -> anyhow::Result<(String, Value)> {
    let maps = ground.here("configmaps");
    let made = with(config_map("a"), json!({ "metadata": { "finalizers": finalizers } }));
    Ok((format!("{maps}/a"), ground.made(&maps, made).await?))
}

/// The same, already being deleted.
async fn leaving(ground: &Ground, finalizers: &[&str]) -> anyhow::Result<(String, Value)> {
    let (path, _) = held(ground, finalizers).await?;
    let told = ground.delete(&path, json!(null)).await?.expect(200)?;
    Ok((path, told))
}

pub(crate) async fn a_finalizer_keeps_a_deleted_object(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = held(ground, &[OURS]).await?;
    let told = ground.delete(&path, json!(null)).await?.expect(200)?;
    assert_eq!((text(&told, "/kind"), uid(&told)), ("ConfigMap", uid(&made)), "the object is the answer");
    let kept = ground.get(&path).await?.expect(200)?;
    assert!(text(&kept, "/metadata/deletionTimestamp").ends_with('Z'), "{kept:#}");
    assert_eq!(kept["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(kept["metadata"]["finalizers"], json!([OURS]));
    assert_ne!(version(&kept), version(&made));
    Ok(())
}

pub(crate) async fn an_object_goes_with_its_last_finalizer(ground: &Ground) -> anyhow::Result<()> {
    let (path, left) = leaving(ground, &[OURS]).await?;
    let meta = json!({ "finalizers": [], "resourceVersion": version(&left), "uid": uid(&left) });
    let told = ground.merge(&path, json!({ "metadata": meta })).await?.expect(200)?;
    assert_eq!((uid(&told), told["metadata"].get("finalizers")), (uid(&left), None));
    ground.get(&path).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn an_object_stays_while_one_finalizer_is_left(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = leaving(ground, &[OURS, "tenon.dev/other"]).await?;
    ground.merge(&path, json!({ "metadata": { "finalizers": ["tenon.dev/other"] } })).await?.expect(200)?;
    ground.get(&path).await?.expect(200)?;
    ground.edit(&path, json!([{ "op": "remove", "path": "/metadata/finalizers/0" }])).await?.expect(200)?;
    ground.get(&path).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn a_second_deletion_changes_nothing(ground: &Ground) -> anyhow::Result<()> {
    let (path, first) = leaving(ground, &[OURS]).await?;
    let second = ground.delete(&path, json!(null)).await?.expect(200)?;
    assert_eq!(version(&second), version(&first));
    assert_eq!(second["metadata"]["deletionTimestamp"], first["metadata"]["deletionTimestamp"]);
    Ok(())
}

pub(crate) async fn no_finalizer_is_added_to_what_goes(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = leaving(ground, &[OURS]).await?;
    let patch = json!({ "metadata": { "finalizers": [OURS, "tenon.dev/late"] } });
    let told = ground.merge(&path, patch).await?.refused(422, "Invalid")?;
    let cause = &told["details"]["causes"][0];
    assert_eq!((text(cause, "/reason"), text(cause, "/field")), ("FieldValueForbidden", "metadata.finalizers"));
    Ok(())
}

pub(crate) async fn what_goes_can_still_be_written(ground: &Ground) -> anyhow::Result<()> {
    let (path, left) = leaving(ground, &[OURS]).await?;
    let patch = json!({ "metadata": { "annotations": { "a": "b" } }, "data": { "key": "late" } });
    let patched = ground.merge(&path, patch).await?.expect(200)?;
    assert_eq!(text(&patched, "/data/key"), "late");
    assert_eq!(patched["metadata"]["deletionTimestamp"], left["metadata"]["deletionTimestamp"]);
    Ok(())
}

pub(crate) async fn a_deletion_cannot_be_taken_back(ground: &Ground) -> anyhow::Result<()> {
    let (path, left) = leaving(ground, &[OURS]).await?;
    let patched = ground.merge(&path, json!({ "metadata": { "deletionTimestamp": null } })).await?.expect(200)?;
    assert_eq!(patched["metadata"]["deletionTimestamp"], left["metadata"]["deletionTimestamp"]);
    Ok(())
}

pub(crate) async fn the_last_finalizer_of_a_stale_version_stays(ground: &Ground) -> anyhow::Result<()> {
    let (path, left) = leaving(ground, &[OURS]).await?;
    ground.merge(&path, json!({ "data": { "key": "late" } })).await?.expect(200)?;
    let meta = json!({ "finalizers": [], "resourceVersion": version(&left) });
    ground.merge(&path, json!({ "metadata": meta })).await?.refused(409, "Conflict")?;
    ground.get(&path).await?.expect(200)?;
    Ok(())
}

pub(crate) async fn without_a_deletion_the_last_finalizer_is_just_removed(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = held(ground, &[OURS]).await?;
    let patched = ground.merge(&path, json!({ "metadata": { "finalizers": null } })).await?.expect(200)?;
    assert_eq!(patched["metadata"].get("finalizers"), None);
    ground.get(&path).await?.expect(200)?;
    Ok(())
}

pub(crate) async fn the_deletion_of_a_held_custom_object_counts_as_a_change(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = ground.pool().await?;
    ground.merge(&path, json!({ "metadata": { "finalizers": [OURS] } })).await?.expect(200)?;
    let left = ground.delete(&path, json!({ "preconditions": { "uid": uid(&made) } })).await?.expect(200)?;
    assert_eq!((generation(&made), generation(&left)), (1, 2));
    let status = json!({ "status": { "nodes": 3 } });
    let told = ground.merge(&format!("{path}/status"), status).await?.expect(200)?;
    assert_eq!((generation(&told), &told["status"]["nodes"]), (2, &json!(3)), "its status is still written");
    ground.merge(&path, json!({ "metadata": { "finalizers": null } })).await?.expect(200)?;
    ground.get(&path).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn a_node_waits_for_our_finalizer(ground: &Ground) -> anyhow::Result<()> {
    let path = format!("{}/{}", wide("nodes"), ground.name);
    let held = json!({ "metadata": { "finalizers": [OURS] } });
    let made = ground.made(&wide("nodes"), with(node(&ground.name), held)).await?;
    ground.delete(&path, json!({ "preconditions": { "uid": uid(&made) } })).await?.expect(200)?;
    let kept = ground.get(&path).await?.expect(200)?;
    assert!(!text(&kept, "/metadata/deletionTimestamp").is_empty());
    // The node's own controllers write it as well, so the version is left out here.
    let meta = json!({ "finalizers": null, "uid": uid(&kept) });
    ground.merge(&path, json!({ "metadata": meta })).await?.expect(200)?;
    ground.get(&path).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn an_update_may_remove_the_last_finalizer(ground: &Ground) -> anyhow::Result<()> {
    let (path, left) = leaving(ground, &[OURS]).await?;
    ground.put(&path, with(left, json!({ "metadata": { "finalizers": [] } }))).await?.expect(200)?;
    ground.get(&path).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn a_write_of_the_status_removes_no_finalizer(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = ground.pool_with(json!({ "metadata": { "finalizers": [OURS] } })).await?;
    ground.delete(&path, json!(null)).await?.expect(200)?;
    let patch = json!({ "metadata": { "finalizers": null }, "status": { "nodes": 1 } });
    let told = ground.merge(&format!("{path}/status"), patch).await?.expect(200)?;
    assert_eq!(told["metadata"]["finalizers"], json!([OURS]));
    ground.get(&path).await?.expect(200)?;
    ground.merge(&path, json!({ "metadata": { "finalizers": null } })).await?.expect(200)?;
    Ok(())
}

pub(crate) async fn of_two_removals_of_a_finalizer_at_once_one_does_it_and_neither_harms(
    ground: &Ground,
) -> anyhow::Result<()> {
    let (path, left) = leaving(ground, &[OURS]).await?;
    let patch = json!({ "metadata": { "finalizers": [], "resourceVersion": version(&left), "uid": uid(&left) } });
    let both = [patch.clone(), patch].map(|patch| ground.merge(&path, patch));
    let mut codes: Vec<u16> = futures::future::try_join_all(both).await?.iter().map(|reply| reply.code).collect();
    codes.sort_unstable();
    assert_eq!(codes.first(), Some(&200));
    // A server that has decided about both before either was written says of both that they did it.
    assert!(matches!(codes.last(), Some(200 | 404 | 409)), "{codes:?}");
    ground.get(&path).await?.refused(404, "NotFound")?;
    Ok(())
}
