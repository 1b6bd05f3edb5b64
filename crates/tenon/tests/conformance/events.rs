//! How is something said of an object, and said again?

use serde_json::{Value, json};

use crate::ground::{Ground, wide};
use crate::reply::{names, number, text};

fn event(ground: &Ground, name: &str) -> Value {
    json!({
        "metadata": { "name": name }, "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "karpenter", "reportingInstance": "karpenter", "action": "Launched",
        "reason": "Launched", "note": "a node was made", "type": "Normal",
        "regarding": { "apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": ground.name, "uid": "u-1" },
    })
}

pub(crate) async fn an_event_is_made(ground: &Ground) -> anyhow::Result<()> {
    let made = ground.made(&ground.here("events.k8s.io/events"), event(ground, "a.1")).await?;
    assert_eq!((text(&made, "/kind"), text(&made, "/apiVersion")), ("Event", "events.k8s.io/v1"));
    assert_eq!((text(&made, "/note"), text(&made, "/regarding/name")), ("a node was made", "p"));
    assert_eq!(text(&made, "/eventTime"), "2026-01-01T00:00:00.000000Z");
    Ok(())
}

pub(crate) async fn an_event_that_is_said_again_is_counted(ground: &Ground) -> anyhow::Result<()> {
    let events = ground.here("events.k8s.io/events");
    ground.made(&events, event(ground, "a.1")).await?;
    let series = json!({ "series": { "count": 2, "lastObservedTime": "2026-01-01T00:02:00.000000Z" } });
    let patched = ground.merge(&format!("{events}/a.1"), series.clone()).await?.expect(200)?;
    assert_eq!(number(&patched, "/series/count"), 2);
    assert_eq!(text(&patched, "/series/lastObservedTime"), "2026-01-01T00:02:00.000000Z");
    ground.merge(&format!("{events}/none"), series).await?.refused(404, "NotFound")?;
    Ok(())
}

pub(crate) async fn an_event_is_seen_the_old_way_too(ground: &Ground) -> anyhow::Result<()> {
    ground.made(&ground.here("events.k8s.io/events"), event(ground, "a.1")).await?;
    let old = ground.get(&format!("{}/a.1", ground.here("events"))).await?.expect(200)?;
    assert_eq!((text(&old, "/kind"), text(&old, "/apiVersion")), ("Event", "v1"));
    assert_eq!((text(&old, "/message"), text(&old, "/involvedObject/uid")), ("a node was made", "u-1"));
    assert_eq!(text(&old, "/reportingComponent"), "karpenter");
    Ok(())
}

pub(crate) async fn events_are_found_by_what_they_regard(ground: &Ground) -> anyhow::Result<()> {
    let events = ground.here("events.k8s.io/events");
    ground.made(&events, event(ground, "a.1")).await?;
    let other = json!({ "regarding": { "uid": "u-2" }, "reason": "Other", "type": "Warning" });
    ground.made(&events, crate::things::with(event(ground, "b.1"), other)).await?;
    for (path, selector, expected) in [
        (ground.here("events"), "involvedObject.uid=u-1,involvedObject.kind=Pod", "a.1"),
        (ground.here("events"), "reason=Other", "b.1"),
        (ground.here("events"), "type=Warning,involvedObject.name=p", "b.1"),
        (events.clone(), "regarding.uid=u-1,reason=Launched", "a.1"),
    ] {
        let list = ground.list(&path, &[("fieldSelector", selector)]).await?.expect(200)?;
        assert_eq!(names(&list), [expected], "{selector}");
    }
    Ok(())
}

pub(crate) async fn events_of_objects_without_a_namespace_live_in_default(ground: &Ground) -> anyhow::Result<()> {
    let regarding = json!({ "apiVersion": "v1", "kind": "Node", "name": ground.name, "uid": "u", "namespace": null });
    let mut body = event(ground, &format!("{}.1", ground.name));
    body["regarding"] = regarding;
    ground.made("/apis/events.k8s.io/v1/namespaces/default/events", body).await?;
    let query = [("fieldSelector", &*format!("involvedObject.name={}", ground.name))];
    let list = ground.list(&wide("events"), &query).await?.expect(200)?;
    let mine = list["items"].as_array().into_iter().flatten().filter(|item| text(item, "/reason") == "Launched");
    assert_eq!(mine.map(|item| text(item, "/metadata/namespace")).collect::<Vec<_>>(), ["default"]);
    Ok(())
}
