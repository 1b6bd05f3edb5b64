//! Watches tell every change once, in order, from the version they ask for.

use std::time::Duration;

use futures::{Stream, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Resource, ResourceExt as _};
use serde_json::{Value, json};
use tenon_sim::{Cluster, ClusterConfig};

use crate::cluster::{Asker, MAPS, PODS, admin, cluster, map, pod, typed_map, typed_pod};

fn told<K: Resource>(event: &WatchEvent<K>) -> String {
    match event {
        WatchEvent::Added(object) => format!("+{}", object.name_any()),
        WatchEvent::Modified(object) => format!("~{}", object.name_any()),
        WatchEvent::Deleted(object) => format!("-{}", object.name_any()),
        WatchEvent::Bookmark(_) => "bookmark".into(),
        WatchEvent::Error(status) => format!("error {}", status.code),
    }
}

async fn next<K: Resource>(events: &mut (impl Stream<Item = kube::Result<WatchEvent<K>>> + Unpin)) -> String {
    told(&events.try_next().await.unwrap().unwrap())
}

#[tokio::test]
async fn a_watch_tells_what_happens_after_its_version() {
    let pods: Api<Pod> = Api::default_namespaced(cluster().client());
    let first = pods.create(&PostParams::default(), &typed_pod("a")).await.unwrap();
    let events = pods.watch(&WatchParams::default(), &first.resource_version().unwrap()).await.unwrap();
    let mut events = std::pin::pin!(events.boxed());
    pods.create(&PostParams::default(), &typed_pod("b")).await.unwrap();
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "x": "y" } } }));
    pods.patch("a", &PatchParams::default(), &patch).await.unwrap();
    pods.delete("b", &DeleteParams::default()).await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(next(&mut events).await);
    }
    assert_eq!(seen, ["+b", "~a", "~b", "-b"]);
}

#[tokio::test]
async fn a_watch_without_a_version_begins_with_what_is_there() {
    let pods: Api<Pod> = Api::default_namespaced(cluster().client());
    pods.create(&PostParams::default(), &typed_pod("a")).await.unwrap();
    for version in ["", "0"] {
        let events = pods.watch(&WatchParams::default(), version).await.unwrap();
        assert_eq!(next(&mut std::pin::pin!(events.boxed())).await, "+a");
    }
}

#[tokio::test]
async fn an_object_that_stops_matching_is_deleted_for_the_watch() {
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster().client());
    let first = maps.create(&PostParams::default(), &typed_map("m")).await.unwrap();
    let params = WatchParams::default().labels("on=yes");
    let events = maps.watch(&params, &first.resource_version().unwrap()).await.unwrap();
    let mut events = std::pin::pin!(events.boxed());
    for (label, expected) in [(json!("yes"), "+m"), (json!("no"), "-m"), (json!("yes"), "+m")] {
        let patch = Patch::Merge(json!({ "metadata": { "labels": { "on": label } } }));
        let new = maps.patch("m", &PatchParams::default(), &patch).await.unwrap();
        let event = events.try_next().await.unwrap().unwrap();
        assert_eq!(told(&event), expected);
        if let WatchEvent::Deleted(last) = event {
            assert_eq!(last.resource_version(), new.resource_version());
            assert_eq!(last.labels()["on"], "yes", "it is told as it was when it still matched");
        }
    }
}

#[tokio::test]
async fn a_version_that_is_too_old_has_expired() {
    let cluster = Cluster::new(ClusterConfig { history: 3, ..ClusterConfig::default() }).unwrap();
    let asker = Asker(cluster.client());
    let first = asker.make(PODS, pod("p0")).await;
    let version = first["metadata"]["resourceVersion"].as_str().unwrap();
    for name in ["p1", "p2", "p3"] {
        asker.make(PODS, pod(name)).await;
    }
    let pods: Api<Pod> = Api::default_namespaced(asker.0.clone());
    let mut seen = std::pin::pin!(pods.watch(&WatchParams::default(), version).await.unwrap().boxed());
    assert_eq!(next(&mut seen).await, "+p1", "the oldest change that is kept");
    asker.make(PODS, pod("p4")).await;
    let events = pods.watch(&WatchParams::default(), version).await.unwrap();
    let events: Vec<_> = events.try_collect().await.unwrap();
    let [WatchEvent::Error(status)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    assert!(status.message.starts_with(&format!("too old resource version: {version}")));
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_tells_its_version_every_minute() {
    let asker = admin();
    let pods: Api<Pod> = Api::default_namespaced(asker.0.clone());
    let params = WatchParams::default();
    let begun = tokio::time::Instant::now();
    let (_, list) = asker.get(PODS).await;
    let events = pods.watch(&params, list["metadata"]["resourceVersion"].as_str().unwrap()).await.unwrap();
    let mut events = std::pin::pin!(events.boxed());
    let made = asker.make(MAPS, map("elsewhere")).await;
    let event = events.try_next().await.unwrap().unwrap();
    assert_eq!(begun.elapsed().as_secs(), 60);
    let WatchEvent::Bookmark(bookmark) = event else { panic!("{event:?}") };
    assert_eq!(Value::from(bookmark.metadata.resource_version), made["metadata"]["resourceVersion"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_its_time_is_up() {
    let pods: Api<Pod> = Api::default_namespaced(cluster().client());
    let begun = tokio::time::Instant::now();
    let events =
        pods.watch(&WatchParams { bookmarks: false, ..WatchParams::default().timeout(30) }, "1").await.unwrap();
    assert_eq!(events.count().await, 0);
    assert_eq!(begun.elapsed(), Duration::from_secs(30));
}

#[tokio::test]
async fn a_watch_can_begin_with_a_streamed_list() {
    let asker = admin();
    asker.make(PODS, pod("a")).await;
    let streamed = "watch=true&sendInitialEvents=true&timeoutSeconds=1";
    let path = format!("{PODS}?{streamed}&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
    let (_, text) = asker.text("GET", &path, ("", Value::Null)).await;
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&events[0]["type"], &events[1]["type"]), (&json!("ADDED"), &json!("BOOKMARK")));
    assert_eq!(events[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    assert_eq!(asker.get(&format!("{PODS}?{streamed}")).await.0, 422);
}

#[tokio::test]
async fn a_watch_of_a_namespace_hears_of_no_other() {
    let asker = admin();
    let path = format!("{PODS}?watch=true&timeoutSeconds=1&resourceVersion=1");
    asker.make("/api/v1/namespaces/kube-system/pods", pod("other")).await;
    asker.make(PODS, pod("mine")).await;
    let (_, text) = asker.text("GET", &path, ("", Value::Null)).await;
    assert_eq!(text.lines().count(), 1, "{text}");
    assert_eq!(asker.get(&format!("{PODS}?watch=true&resourceVersion=abc")).await.0, 500);
}
