//! How are objects made and read?

use serde_json::json;

use crate::ground::Ground;
use crate::reply::{text, uid, version};
use crate::things::{config_map, with};

pub(crate) async fn a_new_object_has_uid_time_and_version(ground: &Ground) -> anyhow::Result<()> {
    let maps = ground.here("configmaps");
    let made = ground.made(&maps, config_map("a")).await?;
    assert_eq!(text(&made, "/metadata/namespace"), ground.name);
    assert_eq!(uid(&made).len(), 36, "{made:#}");
    assert!(text(&made, "/metadata/creationTimestamp").ends_with('Z'), "{made:#}");
    assert!(version(&made).parse::<u64>()? > 0);
    assert_eq!((text(&made, "/apiVersion"), text(&made, "/kind")), ("v1", "ConfigMap"));
    let read = ground.get(&format!("{maps}/a")).await?.expect(200)?;
    assert_eq!((uid(&read), version(&read)), (uid(&made), version(&made)));
    assert_eq!(read["data"], json!({ "key": "value" }));
    Ok(())
}

pub(crate) async fn a_missing_object_is_not_found(ground: &Ground) -> anyhow::Result<()> {
    let told = ground.get(&format!("{}/a", ground.here("configmaps"))).await?.refused(404, "NotFound")?;
    assert_eq!(told["message"], "configmaps \"a\" not found");
    assert_eq!(told["details"], json!({ "name": "a", "kind": "configmaps" }));
    Ok(())
}

pub(crate) async fn a_missing_object_of_a_group_names_the_group(ground: &Ground) -> anyhow::Result<()> {
    let told = ground.get(&format!("{}/a", ground.here("apps/deployments"))).await?.refused(404, "NotFound")?;
    assert_eq!(told["message"], "deployments.apps \"a\" not found");
    assert_eq!(told["details"], json!({ "name": "a", "group": "apps", "kind": "deployments" }));
    Ok(())
}

pub(crate) async fn a_second_object_of_a_name_already_exists(ground: &Ground) -> anyhow::Result<()> {
    let maps = ground.here("configmaps");
    ground.made(&maps, config_map("a")).await?;
    let told = ground.post(&maps, config_map("a")).await?.refused(409, "AlreadyExists")?;
    assert_eq!(told["message"], "configmaps \"a\" already exists");
    assert_eq!(told["details"], json!({ "name": "a", "kind": "configmaps" }));
    Ok(())
}

pub(crate) async fn a_generated_name_has_five_letters_more(ground: &Ground) -> anyhow::Result<()> {
    let body = json!({ "metadata": { "generateName": "a-" } });
    let made = ground.made(&ground.here("configmaps"), body).await?;
    let tail = text(&made, "/metadata/name").strip_prefix("a-").unwrap_or_default();
    assert!(tail.len() == 5 && tail.bytes().all(|b| b"bcdfghjklmnpqrstvwxz2456789".contains(&b)), "{made:#}");
    assert_eq!(text(&made, "/metadata/generateName"), "a-");
    Ok(())
}

pub(crate) async fn a_long_base_of_a_name_is_cut(ground: &Ground) -> anyhow::Result<()> {
    let base = "a".repeat(80);
    let made = ground.made(&ground.here("configmaps"), json!({ "metadata": { "generateName": base } })).await?;
    assert_eq!(text(&made, "/metadata/name").len(), 63);
    Ok(())
}

pub(crate) async fn an_object_without_a_name_is_invalid(ground: &Ground) -> anyhow::Result<()> {
    let told = ground.post(&ground.here("configmaps"), json!({ "metadata": {} })).await?.refused(422, "Invalid")?;
    let cause = &told["details"]["causes"][0];
    assert_eq!((text(cause, "/reason"), text(cause, "/field")), ("FieldValueRequired", "metadata.name"));
    Ok(())
}

pub(crate) async fn a_name_with_capitals_is_invalid(ground: &Ground) -> anyhow::Result<()> {
    let told = ground.post(&ground.here("configmaps"), config_map("Capital")).await?.refused(422, "Invalid")?;
    let details = &told["details"];
    assert_eq!((text(details, "/name"), text(details, "/kind")), ("Capital", "ConfigMap"));
    let cause = &details["causes"][0];
    assert_eq!((text(cause, "/reason"), text(cause, "/field")), ("FieldValueInvalid", "metadata.name"));
    Ok(())
}

pub(crate) async fn nothing_is_made_in_a_namespace_that_is_missing(ground: &Ground) -> anyhow::Result<()> {
    let told = ground.post("/api/v1/namespaces/nowhere/configmaps", config_map("a")).await?;
    let told = told.refused(404, "NotFound")?;
    assert_eq!(told["message"], "namespaces \"nowhere\" not found");
    assert_eq!(told["details"], json!({ "name": "nowhere", "kind": "namespaces" }));
    Ok(())
}

pub(crate) async fn the_namespace_of_the_body_must_be_that_of_the_path(ground: &Ground) -> anyhow::Result<()> {
    let body = with(config_map("a"), json!({ "metadata": { "namespace": "default" } }));
    ground.post(&ground.here("configmaps"), body).await?.refused(400, "BadRequest")?;
    Ok(())
}

pub(crate) async fn a_body_of_another_kind_is_a_bad_request(ground: &Ground) -> anyhow::Result<()> {
    let body = with(config_map("a"), json!({ "apiVersion": "v1", "kind": "Secret" }));
    ground.post(&ground.here("configmaps"), body).await?.refused(400, "BadRequest")?;
    Ok(())
}

pub(crate) async fn a_body_of_another_version_is_a_bad_request(ground: &Ground) -> anyhow::Result<()> {
    let body = with(config_map("a"), json!({ "apiVersion": "apps/v1", "kind": "ConfigMap" }));
    ground.post(&ground.here("configmaps"), body).await?.refused(400, "BadRequest")?;
    Ok(())
}

pub(crate) async fn a_new_object_may_not_bring_a_version(ground: &Ground) -> anyhow::Result<()> {
    let body = with(config_map("a"), json!({ "metadata": { "resourceVersion": "1" } }));
    let reply = ground.post(&ground.here("configmaps"), body).await?;
    let told = reply.expect(500)?;
    assert_eq!(text(&told, "/message"), "resourceVersion should not be set on objects to be created");
    Ok(())
}

pub(crate) async fn what_only_the_server_sets_is_overwritten(ground: &Ground) -> anyhow::Result<()> {
    let theirs = "00000000-0000-0000-0000-000000000000";
    let meta = json!({ "uid": theirs, "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7,
        "deletionTimestamp": "2001-01-01T00:00:00Z" });
    let made = ground.made(&ground.here("configmaps"), with(config_map("a"), json!({ "metadata": meta }))).await?;
    assert_ne!(uid(&made), theirs);
    assert!(!text(&made, "/metadata/creationTimestamp").starts_with("2001"));
    assert_eq!(made["metadata"].get("deletionTimestamp"), None);
    Ok(())
}

pub(crate) async fn an_object_made_anew_is_another_one(ground: &Ground) -> anyhow::Result<()> {
    let maps = ground.here("configmaps");
    let first = ground.made(&maps, config_map("a")).await?;
    ground.delete(&format!("{maps}/a"), json!(null)).await?.expect(200)?;
    let second = ground.made(&maps, config_map("a")).await?;
    assert_ne!(uid(&first), uid(&second));
    assert_ne!(version(&first), version(&second));
    Ok(())
}

pub(crate) async fn secrets_keep_plain_text_as_data(ground: &Ground) -> anyhow::Result<()> {
    let body =
        json!({ "metadata": { "name": "a" }, "stringData": { "key": "value" }, "data": { "other": "b3RoZXI=" } });
    let made = ground.made(&ground.here("secrets"), body).await?;
    assert_eq!(made["data"], json!({ "key": "dmFsdWU=", "other": "b3RoZXI=" }));
    assert_eq!((made.get("stringData"), text(&made, "/type")), (None, "Opaque"));
    let patch = json!({ "stringData": { "other": "value" } });
    let path = format!("{}/a", ground.here("secrets"));
    let patched = ground.merge(&path, patch).await?.expect(200)?;
    assert_eq!(patched["data"], json!({ "key": "dmFsdWU=", "other": "dmFsdWU=" }));
    Ok(())
}

pub(crate) async fn labels_and_annotations_are_kept(ground: &Ground) -> anyhow::Result<()> {
    let meta = json!({ "labels": { "a.example/b": "c" }, "annotations": { "d.example/e": "{\"f\":1}" } });
    let made = ground.made(&ground.here("configmaps"), with(config_map("a"), json!({ "metadata": meta }))).await?;
    assert_eq!(
        (&made["metadata"]["labels"], &made["metadata"]["annotations"]),
        (&meta["labels"], &meta["annotations"])
    );
    Ok(())
}

pub(crate) async fn what_is_empty_or_null_is_not_kept(ground: &Ground) -> anyhow::Result<()> {
    let maps = ground.here("configmaps");
    let meta = json!({ "labels": {}, "annotations": null, "finalizers": [], "ownerReferences": [] });
    let made = ground.made(&maps, with(config_map("a"), json!({ "metadata": meta, "immutable": null }))).await?;
    for key in ["labels", "annotations", "finalizers", "ownerReferences"] {
        assert_eq!(made["metadata"].get(key), None, "{key}");
    }
    assert_eq!(made.get("immutable"), None);
    let same = ground.put(&format!("{maps}/a"), made.clone()).await?.expect(200)?;
    assert_eq!(version(&same), version(&made));
    Ok(())
}
