//! Who wins when two write?

use serde_json::json;

use crate::ground::Ground;
use crate::reply::{order, text, uid, version};
use crate::things::{config_map, lease, with};

pub(crate) async fn an_update_of_a_stale_version_is_a_conflict(ground: &Ground) -> anyhow::Result<()> {
    let (maps, path) = (ground.here("configmaps"), format!("{}/a", ground.here("configmaps")));
    let first = ground.made(&maps, config_map("a")).await?;
    ground.merge(&path, json!({ "data": { "key": "other" } })).await?.expect(200)?;
    let told = ground.put(&path, first).await?.refused(409, "Conflict")?;
    assert_eq!(told["details"], json!({ "name": "a", "kind": "configmaps" }));
    let message = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your \
                   changes to the latest version and try again";
    assert_eq!(text(&told, "/message"), message);
    Ok(())
}

pub(crate) async fn an_update_of_the_latest_version_is_done(ground: &Ground) -> anyhow::Result<()> {
    let (maps, path) = (ground.here("configmaps"), format!("{}/a", ground.here("configmaps")));
    let first = ground.made(&maps, config_map("a")).await?;
    let second = ground.put(&path, with(first.clone(), json!({ "data": { "key": "other" } }))).await?.expect(200)?;
    assert_eq!((uid(&second), text(&second, "/data/key")), (uid(&first), "other"));
    assert!(order(&second)? > order(&first)?);
    Ok(())
}

pub(crate) async fn an_update_without_a_version_overwrites(ground: &Ground) -> anyhow::Result<()> {
    let (maps, path) = (ground.here("configmaps"), format!("{}/a", ground.here("configmaps")));
    let first = ground.made(&maps, config_map("a")).await?;
    let second = ground.put(&path, json!({ "metadata": { "name": "a" }, "data": { "b": "c" } })).await?.expect(200)?;
    assert_eq!((uid(&second), &second["data"]), (uid(&first), &json!({ "b": "c" })));
    assert_eq!(text(&second, "/metadata/creationTimestamp"), text(&first, "/metadata/creationTimestamp"));
    Ok(())
}

pub(crate) async fn an_update_of_a_lease_needs_a_version(ground: &Ground) -> anyhow::Result<()> {
    let leases = ground.here("coordination.k8s.io/leases");
    ground.made(&leases, lease("a", "one")).await?;
    let told = ground.put(&format!("{leases}/a"), lease("a", "two")).await?.refused(422, "Invalid")?;
    assert_eq!(text(&told, "/details/causes/0/field"), "metadata.resourceVersion");
    Ok(())
}

pub(crate) async fn an_update_of_a_custom_object_needs_a_version(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = ground.pool().await?;
    let new = with(made, json!({ "metadata": { "resourceVersion": "" } }));
    let told = ground.put(&path, new).await?.refused(422, "Invalid")?;
    assert_eq!(text(&told, "/details/causes/0/field"), "metadata.resourceVersion");
    Ok(())
}

pub(crate) async fn a_write_that_changes_nothing_keeps_the_version(ground: &Ground) -> anyhow::Result<()> {
    let (maps, path) = (ground.here("configmaps"), format!("{}/a", ground.here("configmaps")));
    let first = ground.made(&maps, config_map("a")).await?;
    let patched = ground.merge(&path, json!({ "data": { "key": "value" } })).await?.expect(200)?;
    assert_eq!(version(&patched), version(&first));
    let updated = ground.put(&path, first.clone()).await?.expect(200)?;
    assert_eq!(version(&updated), version(&first));
    Ok(())
}

pub(crate) async fn versions_rise_over_all_kinds(ground: &Ground) -> anyhow::Result<()> {
    let first = ground.made(&ground.here("configmaps"), config_map("a")).await?;
    let second = ground.made(&ground.here("coordination.k8s.io/leases"), lease("a", "one")).await?;
    let third = ground.made(&ground.here("configmaps"), config_map("b")).await?;
    assert!(order(&first)? < order(&second)? && order(&second)? < order(&third)?);
    Ok(())
}

pub(crate) async fn an_update_of_another_uid_is_a_conflict(ground: &Ground) -> anyhow::Result<()> {
    let (maps, path) = (ground.here("configmaps"), format!("{}/a", ground.here("configmaps")));
    ground.made(&maps, config_map("a")).await?;
    let other = json!({ "metadata": { "uid": "00000000-0000-0000-0000-000000000000" } });
    let told = ground.put(&path, with(config_map("a"), other)).await?.refused(409, "Conflict")?;
    assert!(text(&told, "/message").contains("Precondition failed: UID in precondition"), "{told:#}");
    Ok(())
}

pub(crate) async fn an_update_of_a_missing_object_is_not_found(ground: &Ground) -> anyhow::Result<()> {
    let path = format!("{}/a", ground.here("configmaps"));
    ground.put(&path, config_map("a")).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn the_name_of_the_body_must_be_that_of_the_path(ground: &Ground) -> anyhow::Result<()> {
    let maps = ground.here("configmaps");
    ground.made(&maps, config_map("a")).await?;
    let told = ground.put(&format!("{maps}/a"), config_map("b")).await?.refused(400, "BadRequest")?;
    assert_eq!(told["message"], "the name of the object (b) does not match the name on the URL (a)");
    Ok(())
}

pub(crate) async fn of_two_writers_of_a_version_one_wins(ground: &Ground) -> anyhow::Result<()> {
    let (maps, path) = (ground.here("configmaps"), format!("{}/a", ground.here("configmaps")));
    let made = ground.made(&maps, config_map("a")).await?;
    let patch = |who: &str| json!({ "metadata": { "resourceVersion": version(&made) }, "data": { "key": who } });
    let writers = ["one", "two", "three", "four"].map(|who| ground.merge(&path, patch(who)));
    let replies = futures::future::try_join_all(writers).await?;
    let codes = |code: u16| replies.iter().filter(|reply| reply.code == code).count();
    assert_eq!((codes(200), codes(409)), (1, 3), "{replies:#?}");
    let winner = replies.iter().find(|reply| reply.code == 200).map(|reply| reply.body.clone()).unwrap_or_default();
    assert_eq!(ground.get(&path).await?.expect(200)?["data"], winner["data"]);
    Ok(())
}

pub(crate) async fn a_lease_is_taken_by_one_of_two(ground: &Ground) -> anyhow::Result<()> {
    let leases = ground.here("coordination.k8s.io/leases");
    let made = ground.made(&leases, lease("a", "nobody")).await?;
    let taken = |who: &str| with(made.clone(), json!({ "spec": { "holderIdentity": who } }));
    let path = format!("{leases}/a");
    let first = ground.put(&path, taken("one")).await?.expect(200)?;
    ground.put(&path, taken("two")).await?.refused(409, "Conflict")?;
    assert_eq!(text(&first, "/spec/holderIdentity"), "one");
    assert_eq!(text(&first, "/spec/renewTime"), "2026-01-01T00:00:00.000000Z");
    ground.post(&leases, lease("a", "three")).await?.refused(409, "AlreadyExists")?;
    Ok(())
}
