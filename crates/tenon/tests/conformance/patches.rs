//! What does a patch do, and when is it refused?

use http::Method;
use serde_json::json;

use crate::ground::{Ground, wide};
use crate::reply::{text, uid, version};
use crate::things::{config_map, node};

async fn map(ground: &Ground) -> anyhow::Result<(String, serde_json::Value)> {
    let maps = ground.here("configmaps");
    let made = ground.made(&maps, config_map("a")).await?;
    Ok((format!("{maps}/a"), made))
}

pub(crate) async fn a_patch_with_the_right_version_and_uid_is_done(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = ground.pool().await?;
    let meta = json!({ "resourceVersion": version(&made), "uid": uid(&made), "labels": { "a": "b" } });
    let patched = ground.merge(&path, json!({ "metadata": meta })).await?.expect(200)?;
    assert_eq!(text(&patched, "/metadata/labels/a"), "b");
    assert_ne!(version(&patched), version(&made));
    Ok(())
}

pub(crate) async fn a_patch_of_a_stale_version_is_a_conflict(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = ground.pool().await?;
    ground.merge(&path, json!({ "metadata": { "labels": { "a": "b" } } })).await?.expect(200)?;
    let meta = json!({ "resourceVersion": version(&made), "uid": uid(&made), "labels": { "a": "c" } });
    let told = ground.merge(&path, json!({ "metadata": meta })).await?.refused(409, "Conflict")?;
    assert_eq!(told["details"], json!({ "name": ground.name, "group": "karpenter.sh", "kind": "nodepools" }));
    assert!(text(&told, "/message").contains("the object has been modified"), "{told:#}");
    Ok(())
}

pub(crate) async fn a_patch_of_another_uid_is_invalid(ground: &Ground) -> anyhow::Result<()> {
    let (map, made) = map(ground).await?;
    let (pool, _) = ground.pool().await?;
    let meta = json!({ "uid": "00000000-0000-0000-0000-000000000000", "labels": { "a": "c" } });
    for path in [&map, &pool] {
        // Not a conflict: without a version nothing says that somebody else wrote in between.
        let told = ground.merge(path, json!({ "metadata": meta })).await?.refused(422, "Invalid")?;
        assert_eq!(text(&told, "/details/causes/0/field"), "metadata.uid");
    }
    assert_eq!(version(&ground.get(&map).await?.expect(200)?), version(&made));
    Ok(())
}

pub(crate) async fn a_patch_of_another_uid_and_a_stale_version_is_a_conflict(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = map(ground).await?;
    // As our writers send it of an object that was made anew meanwhile.
    let meta = json!({ "uid": "00000000-0000-0000-0000-000000000000", "resourceVersion": "1" });
    ground.merge(&path, json!({ "metadata": meta, "data": { "key": "x" } })).await?.refused(409, "Conflict")?;
    Ok(())
}

pub(crate) async fn null_in_a_merge_patch_removes(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = map(ground).await?;
    let patch = json!({ "metadata": { "annotations": { "a": "1", "b": "2" } }, "data": { "key": null, "other": "x" } });
    let patched = ground.merge(&path, patch).await?.expect(200)?;
    assert_eq!(patched["data"], json!({ "other": "x" }));
    let removed = ground.merge(&path, json!({ "metadata": { "annotations": { "a": null } } })).await?.expect(200)?;
    assert_eq!(removed["metadata"]["annotations"], json!({ "b": "2" }));
    let removed = ground.merge(&path, json!({ "metadata": { "annotations": { "b": null } } })).await?.expect(200)?;
    assert_eq!(removed["metadata"].get("annotations"), None, "the last one takes the map along");
    Ok(())
}

pub(crate) async fn a_merge_patch_replaces_lists_whole(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = ground.pool().await?;
    let taints = |keys: &[&str]| {
        let taints: Vec<_> = keys.iter().map(|key| json!({ "key": key, "effect": "NoSchedule" })).collect();
        json!({ "spec": { "template": { "spec": { "taints": taints } } } })
    };
    ground.merge(&path, taints(&["a", "b"])).await?.expect(200)?;
    let patched = ground.merge(&path, taints(&["c"])).await?.expect(200)?;
    assert_eq!(patched["spec"]["template"]["spec"]["taints"], json!([{ "key": "c", "effect": "NoSchedule" }]));
    Ok(())
}

pub(crate) async fn a_json_patch_adds_replaces_and_removes(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = map(ground).await?;
    let operations = json!([
        { "op": "test", "path": "/metadata/resourceVersion", "value": version(&made) },
        { "op": "add", "path": "/metadata/labels", "value": { "a": "c" } },
        { "op": "add", "path": "/metadata/labels/d.example~1e", "value": "f" },
        { "op": "replace", "path": "/data/key", "value": "other" },
        { "op": "add", "path": "/data/more", "value": "x" },
        { "op": "remove", "path": "/data/more" },
    ]);
    let patched = ground.edit(&path, operations).await?.expect(200)?;
    assert_eq!(patched["metadata"]["labels"], json!({ "a": "c", "d.example/e": "f" }));
    assert_eq!(patched["data"], json!({ "key": "other" }));
    Ok(())
}

pub(crate) async fn a_json_patch_whose_test_fails_is_invalid(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = map(ground).await?;
    let operations = json!([
        { "op": "replace", "path": "/data/key", "value": "x" },
        { "op": "test", "path": "/metadata/uid", "value": "another" },
    ]);
    let told = ground.edit(&path, operations).await?.refused(422, "Invalid")?;
    assert_eq!(told["message"], "the server rejected our request due to an error in our request");
    assert_eq!(version(&ground.get(&path).await?.expect(200)?), version(&made), "nothing of it is done");
    Ok(())
}

pub(crate) async fn a_json_patch_of_a_missing_path_is_invalid(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = map(ground).await?;
    ground.edit(&path, json!([{ "op": "remove", "path": "/data/none" }])).await?.refused(422, "Invalid")?;
    ground.edit(&path, json!([{ "op": "add", "path": "/a/b", "value": "c" }])).await?.refused(422, "Invalid")?;
    Ok(())
}

pub(crate) async fn a_json_patch_that_is_no_list_is_a_bad_request(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = map(ground).await?;
    ground.edit(&path, json!({ "op": "remove", "path": "/data" })).await?.refused(400, "BadRequest")?;
    Ok(())
}

pub(crate) async fn a_patch_of_a_missing_object_is_not_found(ground: &Ground) -> anyhow::Result<()> {
    let path = format!("{}/a", ground.here("configmaps"));
    let told = ground.merge(&path, json!({ "data": {} })).await?.refused(404, "NotFound")?;
    assert_eq!(told["details"], json!({ "name": "a", "kind": "configmaps" }));
    ground.edit(&path, json!([])).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn a_patch_cannot_rename(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = map(ground).await?;
    let told = ground.merge(&path, json!({ "metadata": { "name": "b" } })).await?.refused(400, "BadRequest")?;
    assert_eq!(told["message"], "the name of the object (b) does not match the name on the URL (a)");
    let (pool, _) = ground.pool().await?;
    ground.merge(&pool, json!({ "metadata": { "name": "b" } })).await?.refused(400, "BadRequest")?;
    Ok(())
}

pub(crate) async fn a_patch_in_an_unknown_language_is_unsupported(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = map(ground).await?;
    let reply = ground.send(Method::PATCH, &path, "application/json", Some(json!({}))).await?;
    reply.refused(415, "UnsupportedMediaType")?;
    Ok(())
}

pub(crate) async fn a_strategic_patch_of_a_custom_object_is_unsupported(ground: &Ground) -> anyhow::Result<()> {
    let (path, _) = ground.pool().await?;
    let language = "application/strategic-merge-patch+json";
    let reply = ground.send(Method::PATCH, &path, language, Some(json!({ "metadata": {} }))).await?;
    reply.refused(415, "UnsupportedMediaType")?;
    Ok(())
}

pub(crate) async fn a_strategic_patch_merges_lists_by_key(ground: &Ground) -> anyhow::Result<()> {
    ground.made(&wide("nodes"), node(&ground.name)).await?;
    let path = format!("{}/{}/status", wide("nodes"), ground.name);
    let more = json!({ "status": { "conditions": [{ "type": "DiskPressure", "status": "False" }] } });
    let language = "application/strategic-merge-patch+json";
    let patched = ground.send(Method::PATCH, &path, language, Some(more)).await?.expect(200)?;
    let kinds: Vec<&str> =
        patched["status"]["conditions"].as_array().into_iter().flatten().map(|told| text(told, "/type")).collect();
    assert!(kinds.contains(&"Ready") && kinds.contains(&"DiskPressure"), "{kinds:?}");
    Ok(())
}
