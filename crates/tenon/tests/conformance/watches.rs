//! What does a watch tell of which change?

use std::time::Duration;

use anyhow::Context as _;
use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::runtime::{WatchStreamExt as _, reflector, watcher};
use serde_json::{Value, json};
use testbed::eventually;

use crate::ground::{Ground, wide};
use crate::reply::{order, text, version};

fn secret(name: &str, label: &str) -> Value {
    json!({ "metadata": { "name": name, "labels": { "l": label } } })
}

fn labelled(label: &str) -> Value {
    json!({ "metadata": { "labels": { "l": label } } })
}

pub(crate) async fn a_watch_goes_on_from_a_list(ground: &Ground) -> anyhow::Result<()> {
    let path = ground.here("secrets");
    ground.made(&path, secret("before", "x")).await?;
    let list = ground.get(&path).await?.expect(200)?;
    ground.made(&path, secret("a", "x")).await?;
    let mut watch = ground.watch(&path, &[("resourceVersion", version(&list))]).await?;
    ground.merge(&format!("{path}/a"), labelled("y")).await?.expect(200)?;
    ground.made(&path, secret("b", "x")).await?;
    ground.delete(&format!("{path}/before"), json!(null)).await?.expect(200)?;
    ground.delete(&format!("{path}/a"), json!(null)).await?.expect(200)?;
    let told = watch.tells(&["ADDED a", "MODIFIED a", "ADDED b", "DELETED before", "DELETED a"]).await?;
    let versions = told.iter().map(order).collect::<Result<Vec<_>, _>>()?;
    assert!(versions.is_sorted() && versions.first() > Some(&order(&list)?), "{versions:?}");
    assert_eq!((text(&told[1], "/metadata/labels/l"), text(&told[4], "/metadata/labels/l")), ("y", "y"));
    assert_eq!((text(&told[0], "/kind"), text(&told[0], "/apiVersion")), ("Secret", "v1"));
    Ok(())
}

pub(crate) async fn a_watch_goes_on_from_an_event(ground: &Ground) -> anyhow::Result<()> {
    let path = ground.here("secrets");
    let first = ground.made(&path, secret("a", "x")).await?;
    ground.made(&path, secret("b", "x")).await?;
    let mut watch = ground.watch(&path, &[("resourceVersion", version(&first))]).await?;
    let told = watch.tells(&["ADDED b"]).await?;
    ground.made(&path, secret("c", "x")).await?;
    let mut next = ground.watch(&path, &[("resourceVersion", version(&told[0]))]).await?;
    next.tells(&["ADDED c"]).await?;
    Ok(())
}

pub(crate) async fn a_watch_without_a_version_tells_first_what_is_there(ground: &Ground) -> anyhow::Result<()> {
    let path = ground.here("secrets");
    for name in ["a", "b"] {
        ground.made(&path, secret(name, "x")).await?;
    }
    let mut watch = ground.watch(&path, &[]).await?;
    let (mut told, _) = watch.events(2).await?;
    told.sort_unstable();
    assert_eq!(told, ["ADDED a", "ADDED b"]);
    ground.delete(&format!("{path}/a"), json!(null)).await?.expect(200)?;
    watch.tells(&["DELETED a"]).await?;
    Ok(())
}

pub(crate) async fn a_label_that_changes_comes_and_goes(ground: &Ground) -> anyhow::Result<()> {
    let path = ground.here("secrets");
    ground.made(&path, secret("a", "x")).await?;
    let list = ground.get(&path).await?.expect(200)?;
    let query = [("resourceVersion", version(&list)), ("labelSelector", "l=x")];
    let mut watch = ground.watch(&path, &query).await?;
    let away = ground.merge(&format!("{path}/a"), labelled("y")).await?.expect(200)?;
    ground.merge(&format!("{path}/a"), labelled("z")).await?.expect(200)?;
    ground.merge(&format!("{path}/a"), labelled("x")).await?.expect(200)?;
    ground.made(&path, secret("b", "y")).await?;
    ground.delete(&format!("{path}/a"), json!(null)).await?.expect(200)?;
    let told = watch.tells(&["DELETED a", "ADDED a", "DELETED a"]).await?;
    assert_eq!(version(&told[0]), version(&away), "it went with the change");
    assert_eq!(text(&told[0], "/metadata/labels/l"), "x", "and is told as it was when it matched");
    Ok(())
}

pub(crate) async fn a_bound_pod_comes_to_the_watch_of_its_node(ground: &Ground) -> anyhow::Result<()> {
    ground.pod("a", json!({})).await?;
    let list = ground.get(&wide("pods")).await?.expect(200)?;
    let bound = format!("spec.nodeName={}", ground.name);
    let query = [("resourceVersion", version(&list)), ("fieldSelector", &*bound)];
    let mut watch = ground.watch(&wide("pods"), &query).await?;
    let binding = json!({ "metadata": { "name": "a" }, "target": { "kind": "Node", "name": ground.name } });
    ground.post(&format!("{}/a/binding", ground.here("pods")), binding).await?.expect(201)?;
    let options = json!({ "gracePeriodSeconds": 0 });
    ground.delete(&format!("{}/a", ground.here("pods")), options).await?.expect(200)?;
    let (told, _) = watch.events(2).await?;
    assert_eq!(told[0], "ADDED a");
    // A pod that goes at once may be marked first.
    let last = if told[1] == "MODIFIED a" { watch.events(1).await?.0 } else { told };
    assert_eq!(last.last().map(String::as_str), Some("DELETED a"));
    Ok(())
}

pub(crate) async fn a_watch_of_one_name_hears_of_no_other(ground: &Ground) -> anyhow::Result<()> {
    let path = ground.here("secrets");
    let list = ground.get(&path).await?.expect(200)?;
    let query = [("resourceVersion", version(&list)), ("fieldSelector", "metadata.name=b")];
    let mut watch = ground.watch(&path, &query).await?;
    for name in ["a", "b"] {
        ground.made(&path, secret(name, "x")).await?;
        ground.delete(&format!("{path}/{name}"), json!(null)).await?.expect(200)?;
    }
    watch.tells(&["ADDED b", "DELETED b"]).await?;
    Ok(())
}

pub(crate) async fn a_watch_of_a_namespace_hears_of_no_other(ground: &Ground) -> anyhow::Result<()> {
    let path = ground.here("secrets");
    let list = ground.get(&path).await?.expect(200)?;
    let mut watch = ground.watch(&path, &[("resourceVersion", version(&list))]).await?;
    let elsewhere = format!("/api/v1/namespaces/default/secrets/{}", ground.name);
    ground.made("/api/v1/namespaces/default/secrets", secret(&ground.name, "x")).await?;
    ground.delete(&elsewhere, json!(null)).await?.expect(200)?;
    ground.made(&path, secret("a", "x")).await?;
    watch.tells(&["ADDED a"]).await?;
    Ok(())
}

pub(crate) async fn a_held_object_is_changed_and_then_deleted(ground: &Ground) -> anyhow::Result<()> {
    let path = ground.here("secrets");
    let list = ground.get(&path).await?.expect(200)?;
    let mut watch = ground.watch(&path, &[("resourceVersion", version(&list))]).await?;
    let held = json!({ "metadata": { "name": "a", "finalizers": ["tenon.dev/test"] } });
    ground.made(&path, held).await?;
    ground.delete(&format!("{path}/a"), json!(null)).await?.expect(200)?;
    ground.merge(&format!("{path}/a"), json!({ "metadata": { "finalizers": null } })).await?.expect(200)?;
    let told = watch.tells(&["ADDED a", "MODIFIED a", "DELETED a"]).await?;
    assert!(!text(&told[1], "/metadata/deletionTimestamp").is_empty());
    Ok(())
}

pub(crate) async fn a_write_that_changes_nothing_is_not_told(ground: &Ground) -> anyhow::Result<()> {
    let path = ground.here("secrets");
    let made = ground.made(&path, secret("a", "x")).await?;
    let mut watch = ground.watch(&path, &[("resourceVersion", version(&made))]).await?;
    ground.merge(&format!("{path}/a"), labelled("x")).await?.expect(200)?;
    ground.merge(&format!("{path}/a"), labelled("y")).await?.expect(200)?;
    let told = watch.tells(&["MODIFIED a"]).await?;
    assert_eq!(text(&told[0], "/metadata/labels/l"), "y");
    Ok(())
}

pub(crate) async fn a_watch_of_custom_objects_tells_status_and_spec(ground: &Ground) -> anyhow::Result<()> {
    let (path, made) = ground.pool().await?;
    let name = format!("metadata.name={}", ground.name);
    let query = [("resourceVersion", version(&made)), ("fieldSelector", &*name)];
    let mut watch = ground.watch(&wide("karpenter.sh/nodepools"), &query).await?;
    ground.merge(&format!("{path}/status"), json!({ "status": { "nodes": 1 } })).await?.expect(200)?;
    ground.merge(&path, json!({ "spec": { "weight": 2 } })).await?.expect(200)?;
    ground.delete(&path, json!(null)).await?.expect(200)?;
    let [first, second, third] = ["MODIFIED", "MODIFIED", "DELETED"].map(|kind| format!("{kind} {}", ground.name));
    let told = watch.tells(&[&first, &second, &third]).await?;
    assert_eq!((told[0]["status"]["nodes"].clone(), told[1]["spec"]["weight"].clone()), (json!(1), json!(2)));
    Ok(())
}

pub(crate) async fn a_watch_takes_bookmarks_and_ends_in_time(ground: &Ground) -> anyhow::Result<()> {
    let path = ground.here("secrets");
    let list = ground.get(&path).await?.expect(200)?;
    let query = [("resourceVersion", version(&list)), ("allowWatchBookmarks", "true"), ("timeoutSeconds", "1")];
    let mut watch = ground.watch(&path, &query).await?;
    while let Some((kind, _)) = watch.next().await? {
        assert_eq!(kind, "BOOKMARK", "nothing else happens here");
    }
    Ok(())
}

pub(crate) async fn a_streamed_list_ends_with_a_bookmark(ground: &Ground) -> anyhow::Result<()> {
    let path = ground.here("secrets");
    let made = ground.made(&path, secret("a", "x")).await?;
    let query =
        [("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"), ("allowWatchBookmarks", "true")];
    let mut watch = ground.watch(&path, &query).await?;
    watch.tells(&["ADDED a"]).await?;
    let (kind, mark) = watch.next().await?.context("the watch goes on")?;
    assert_eq!((kind.as_str(), text(&mark, "/kind")), ("BOOKMARK", "Secret"));
    assert_eq!(mark["metadata"]["annotations"], json!({ "k8s.io/initial-events-end": "true" }));
    assert!(order(&mark)? >= order(&made)?);
    ground.made(&path, secret("b", "x")).await?;
    watch.tells(&["ADDED b"]).await?;
    Ok(())
}

pub(crate) async fn a_list_can_be_watched_from_its_own_version_at_once(ground: &Ground) -> anyhow::Result<()> {
    let path = ground.here("secrets");
    let list = ground.list(&path, &[("limit", "500")]).await?.expect(200)?;
    let mut watch = ground.watch(&path, &[("resourceVersion", version(&list)), ("timeoutSeconds", "1")]).await?;
    assert!(watch.next().await?.is_none(), "nothing happened");
    Ok(())
}

pub(crate) async fn a_reflector_follows_the_server(ground: &Ground) -> anyhow::Result<()> {
    let path = ground.here("secrets");
    ground.made(&path, secret("a", "x")).await?;
    let api: Api<Secret> = Api::namespaced(ground.client.clone(), &ground.name);
    let (store, writer) = reflector::store();
    let changes = watcher(api, watcher::Config::default().timeout(2)).reflect(writer).applied_objects();
    let following = changes.try_for_each(async |_| Ok(()));
    let checking = async {
        tokio::time::timeout(Duration::from_secs(60), store.wait_until_ready()).await??;
        let names = || {
            let mut names: Vec<String> = store.state().iter().filter_map(|s| s.metadata.name.clone()).collect();
            names.sort_unstable();
            names
        };
        assert_eq!(names(), ["a"]);
        ground.made(&path, secret("b", "x")).await?;
        eventually("b is seen", async || Ok((names() == ["a", "b"]).then_some(()))).await?;
        ground.delete(&format!("{path}/a"), json!(null)).await?.expect(200)?;
        eventually("a is gone", async || Ok((names() == ["b"]).then_some(()))).await
    };
    tokio::select! {
        ended = following => anyhow::bail!("the watcher ended: {ended:?}"),
        checked = checking => checked,
    }
}

pub(crate) async fn a_version_that_is_no_number_starts_no_watch(ground: &Ground) -> anyhow::Result<()> {
    let query = [("watch", "true"), ("resourceVersion", "nonsense"), ("timeoutSeconds", "1")];
    let reply = ground.list(&ground.here("secrets"), &query).await?;
    assert!((400..=500).contains(&reply.code) && reply.body["kind"] == "Status", "{reply:?}");
    reply.expect(500)?;
    Ok(())
}

pub(crate) async fn a_watch_of_an_unknown_field_is_a_bad_request(ground: &Ground) -> anyhow::Result<()> {
    let query = [("watch", "true"), ("fieldSelector", "spec.none=a"), ("timeoutSeconds", "1")];
    ground.list(&ground.here("pods"), &query).await?.refused(400, "BadRequest")?;
    Ok(())
}
