//! What does a list hold, and in which order?

use anyhow::Context as _;
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use kube::client::Body;
use serde_json::{Value, json};
use tenon_api::kube_objects::Pod;
use tenon_api::protobuf::{MEDIA_TYPE, PodList, PodReader};

use crate::ground::{Ground, wide};
use crate::reply::{names, number, order, text, version};

/// Secrets, of which no namespace has any by itself.
async fn secrets(ground: &Ground, names: &[&str]) -> anyhow::Result<String> {
    let path = ground.here("secrets");
    for name in names {
        ground.made(&path, json!({ "metadata": { "name": name } })).await?;
    }
    Ok(path)
}

pub(crate) async fn items_of_a_built_in_list_do_not_say_what_they_are(ground: &Ground) -> anyhow::Result<()> {
    let path = secrets(ground, &["a"]).await?;
    let list = ground.get(&path).await?.expect(200)?;
    assert_eq!((text(&list, "/kind"), text(&list, "/apiVersion")), ("SecretList", "v1"));
    assert_eq!((list["items"][0].get("kind"), list["items"][0].get("apiVersion")), (None, None));
    Ok(())
}

pub(crate) async fn items_of_a_custom_list_say_what_they_are(ground: &Ground) -> anyhow::Result<()> {
    ground.pool().await?;
    let query = [("fieldSelector", &*format!("metadata.name={}", ground.name))];
    let list = ground.list(&wide("karpenter.sh/nodepools"), &query).await?.expect(200)?;
    assert_eq!((text(&list, "/kind"), text(&list, "/apiVersion")), ("NodePoolList", "karpenter.sh/v1"));
    let item = &list["items"][0];
    assert_eq!((text(item, "/kind"), text(item, "/apiVersion")), ("NodePool", "karpenter.sh/v1"));
    Ok(())
}

pub(crate) async fn a_list_is_sorted_by_name(ground: &Ground) -> anyhow::Result<()> {
    let path = secrets(ground, &["c", "a", "b.x", "b"]).await?;
    assert_eq!(names(&ground.get(&path).await?.expect(200)?), ["a", "b", "b.x", "c"]);
    Ok(())
}

pub(crate) async fn a_list_over_all_namespaces_holds_each(ground: &Ground) -> anyhow::Result<()> {
    let label = json!({ "metadata": { "name": "a", "labels": { "of": ground.name } } });
    ground.made(&ground.here("secrets"), label.clone()).await?;
    let other = format!("/api/v1/namespaces/default/secrets/{}", ground.name);
    let named = crate::things::with(label, json!({ "metadata": { "name": ground.name } }));
    ground.made("/api/v1/namespaces/default/secrets", named).await?;
    let query = [("labelSelector", &*format!("of={}", ground.name))];
    let list = ground.list(&wide("secrets"), &query).await?.expect(200)?;
    let mut expected = vec![("default", ground.name.as_str()), (ground.name.as_str(), "a")];
    expected.sort_unstable();
    let place = |item: &Value| (text(item, "/metadata/namespace").to_owned(), text(item, "/metadata/name").to_owned());
    let found: Vec<_> = list["items"].as_array().into_iter().flatten().map(place).collect();
    assert_eq!(found.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect::<Vec<_>>(), expected);
    ground.delete(&other, json!(null)).await?.expect(200)?;
    Ok(())
}

pub(crate) async fn an_empty_list_has_a_version(ground: &Ground) -> anyhow::Result<()> {
    let list = ground.get(&ground.here("secrets")).await?.expect(200)?;
    assert_eq!(list["items"], json!([]));
    assert!(order(&list)? > 0);
    Ok(())
}

pub(crate) async fn a_list_is_as_new_as_what_it_holds(ground: &Ground) -> anyhow::Result<()> {
    let path = secrets(ground, &["a"]).await?;
    let made = ground.made(&path, json!({ "metadata": { "name": "b" } })).await?;
    assert!(order(&ground.get(&path).await?.expect(200)?)? >= order(&made)?);
    Ok(())
}

pub(crate) async fn a_missing_namespace_lists_nothing(ground: &Ground) -> anyhow::Result<()> {
    let list = ground.get("/api/v1/namespaces/nowhere/secrets").await?.expect(200)?;
    assert_eq!(list["items"], json!([]));
    Ok(())
}

pub(crate) async fn a_list_comes_in_pages(ground: &Ground) -> anyhow::Result<()> {
    let path = secrets(ground, &["a", "b", "c", "d", "e"]).await?;
    let first = ground.list(&path, &[("limit", "2")]).await?.expect(200)?;
    assert_eq!((names(&first), number(&first, "/metadata/remainingItemCount")), (vec!["a", "b"], 3));
    let rest = |list: &Value| text(list, "/metadata/continue").to_owned();
    let second = ground.list(&path, &[("limit", "2"), ("continue", &rest(&first))]).await?.expect(200)?;
    assert_eq!((names(&second), version(&second)), (vec!["c", "d"], version(&first)));
    let third = ground.list(&path, &[("limit", "2"), ("continue", &rest(&second))]).await?.expect(200)?;
    assert_eq!((names(&third), rest(&third)), (vec!["e"], String::new()));
    Ok(())
}

pub(crate) async fn all_pages_show_the_state_of_the_first(ground: &Ground) -> anyhow::Result<()> {
    let path = secrets(ground, &["a", "b", "d"]).await?;
    let first = ground.list(&path, &[("limit", "1")]).await?.expect(200)?;
    ground.made(&path, json!({ "metadata": { "name": "c" } })).await?;
    ground.delete(&format!("{path}/b"), json!(null)).await?.expect(200)?;
    let query = [("limit", "9"), ("continue", text(&first, "/metadata/continue"))];
    let second = ground.list(&path, &query).await?.expect(200)?;
    assert_eq!((names(&second), version(&second)), (vec!["b", "d"], version(&first)));
    Ok(())
}

pub(crate) async fn a_page_token_that_is_broken_is_a_bad_request(ground: &Ground) -> anyhow::Result<()> {
    ground.list(&ground.here("secrets"), &[("continue", "nonsense")]).await?.refused(400, "BadRequest")?;
    Ok(())
}

pub(crate) async fn a_list_from_the_cache_is_a_list(ground: &Ground) -> anyhow::Result<()> {
    let path = secrets(ground, &["a"]).await?;
    let made = ground.get(&format!("{path}/a")).await?.expect(200)?;
    let query = [("resourceVersion", version(&made)), ("resourceVersionMatch", "NotOlderThan")];
    assert_eq!(names(&ground.list(&path, &query).await?.expect(200)?), ["a"]);
    ground.list(&path, &[("resourceVersion", "0")]).await?.expect(200)?;
    Ok(())
}

pub(crate) async fn pages_of_a_selection_do_not_say_how_many_are_left(ground: &Ground) -> anyhow::Result<()> {
    let path = secrets(ground, &["a", "b", "c"]).await?;
    let list = ground.list(&path, &[("limit", "1"), ("fieldSelector", "metadata.name!=b")]).await?.expect(200)?;
    assert_eq!((names(&list), list["metadata"].get("remainingItemCount")), (vec!["a"], None));
    let query =
        [("limit", "1"), ("fieldSelector", "metadata.name!=b"), ("continue", text(&list, "/metadata/continue"))];
    let rest = ground.list(&path, &query).await?.expect(200)?;
    assert_eq!((names(&rest), text(&rest, "/metadata/continue")), (vec!["c"], ""));
    Ok(())
}

pub(crate) async fn a_whole_list_says_nothing_of_pages(ground: &Ground) -> anyhow::Result<()> {
    let path = secrets(ground, &["a", "b"]).await?;
    for query in [vec![], vec![("limit", "2")], vec![("limit", "0")]] {
        let list = ground.list(&path, &query).await?.expect(200)?;
        let meta = &list["metadata"];
        assert_eq!((meta.get("continue"), meta.get("remainingItemCount")), (None, None), "{query:?}");
    }
    Ok(())
}

pub(crate) async fn a_watch_goes_on_from_the_last_page(ground: &Ground) -> anyhow::Result<()> {
    let path = secrets(ground, &["a", "b"]).await?;
    let first = ground.list(&path, &[("limit", "1")]).await?.expect(200)?;
    ground.made(&path, json!({ "metadata": { "name": "c" } })).await?;
    let query = [("limit", "9"), ("continue", text(&first, "/metadata/continue"))];
    let last = ground.list(&path, &query).await?.expect(200)?;
    assert_eq!(names(&last), ["b"]);
    let mut watch = ground.watch(&path, &[("resourceVersion", version(&last))]).await?;
    watch.tells(&["ADDED c"]).await?;
    Ok(())
}

/// The embedded server has only JSON, and may: a client that accepts both reads what it gets.
pub(crate) async fn pods_may_be_asked_for_in_the_compact_format(ground: &Ground) -> anyhow::Result<()> {
    let path = ground.here("pods");
    for name in ["a", "b"] {
        ground.pod(name, json!({ "metadata": { "labels": { "of": "list" } } })).await?;
    }
    let formats = format!("{MEDIA_TYPE},application/json");
    let reply = ground.client.send(Request::get(&path).header(ACCEPT, formats).body(Body::empty())?).await?;
    assert_eq!(reply.status(), 200);
    let format = reply.headers()[CONTENT_TYPE].to_str()?.to_owned();
    let body = reply.into_body().collect_bytes().await?;
    let (pods, version) = if format == MEDIA_TYPE {
        let PodList::Page(page) = PodReader::default().list(&body)? else { anyhow::bail!("the server refused") };
        (page.pods, page.version)
    } else {
        let list: Value = serde_json::from_slice(&body)?;
        (serde_json::from_value(list["items"].clone())?, version(&list).to_owned())
    };
    assert_eq!(pods.iter().map(Pod::name).collect::<Vec<_>>(), ["a", "b"]);
    assert!(version.parse::<u64>()? > 0);
    for pod in pods {
        let (spec, status) = (pod.spec.context("a spec")?, pod.status.context("a status")?);
        assert_eq!((pod.metadata.labels["of"].as_str(), status.phase.as_deref()), ("list", Some("Pending")));
        assert!(!spec.containers[0].name.is_empty());
    }
    Ok(())
}
