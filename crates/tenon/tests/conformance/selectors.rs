//! Which objects does a list mean?

use serde_json::json;

use crate::ground::{Ground, wide};
use crate::reply::{names, text};
use crate::things::node;

/// Three secrets: `a` with `l=x`, `b` with `l=y` and `m=z`, `c` without labels.
async fn three(ground: &Ground) -> anyhow::Result<String> {
    let path = ground.here("secrets");
    for (name, labels) in [("a", json!({ "l": "x" })), ("b", json!({ "l": "y", "m": "z" })), ("c", json!({}))] {
        ground.made(&path, json!({ "metadata": { "name": name, "labels": labels } })).await?;
    }
    Ok(path)
}

/// Checks what a selector of labels finds of the three.
async fn finds(ground: &Ground, selectors: &[(&str, &[&str])]) -> anyhow::Result<()> {
    let path = three(ground).await?;
    for (selector, expected) in selectors {
        let list = ground.list(&path, &[("labelSelector", selector)]).await?.expect(200)?;
        assert_eq!(names(&list), *expected, "{selector}");
    }
    Ok(())
}

pub(crate) async fn a_label_can_be_equal(ground: &Ground) -> anyhow::Result<()> {
    finds(ground, &[("l=x", &["a"]), ("l==y", &["b"]), ("l = x", &["a"]), ("l=none", &[])]).await
}

pub(crate) async fn a_label_can_be_unequal_or_missing(ground: &Ground) -> anyhow::Result<()> {
    finds(ground, &[("l!=x", &["b", "c"]), ("m!=z", &["a", "c"])]).await
}

pub(crate) async fn a_label_can_be_one_of_several(ground: &Ground) -> anyhow::Result<()> {
    finds(ground, &[("l in (x,y)", &["a", "b"]), ("l in (y, none)", &["b"])]).await
}

pub(crate) async fn a_label_can_be_none_of_several(ground: &Ground) -> anyhow::Result<()> {
    finds(ground, &[("l notin (x,none)", &["b", "c"])]).await
}

pub(crate) async fn a_label_can_be_there_or_not(ground: &Ground) -> anyhow::Result<()> {
    finds(ground, &[("l", &["a", "b"]), ("!l", &["c"]), ("!m", &["a", "c"])]).await
}

pub(crate) async fn all_requirements_must_hold(ground: &Ground) -> anyhow::Result<()> {
    finds(ground, &[("l,m", &["b"]), ("l in (x,y),!m", &["a"]), ("l=x,m=z", &[])]).await
}

pub(crate) async fn a_selector_that_cannot_be_read_is_a_bad_request(ground: &Ground) -> anyhow::Result<()> {
    for selector in ["l in x", "l within (x)"] {
        ground.list(&ground.here("secrets"), &[("labelSelector", selector)]).await?.refused(400, "BadRequest")?;
    }
    Ok(())
}

pub(crate) async fn objects_are_found_by_name(ground: &Ground) -> anyhow::Result<()> {
    let path = three(ground).await?;
    for (selector, expected) in [
        ("metadata.name=a", vec!["a"]),
        ("metadata.name!=a", vec!["b", "c"]),
        ("metadata.name==b,metadata.namespace!=default", vec!["b"]),
        ("metadata.name=none", vec![]),
    ] {
        let list = ground.list(&path, &[("fieldSelector", selector)]).await?.expect(200)?;
        assert_eq!(names(&list), expected, "{selector}");
    }
    Ok(())
}

pub(crate) async fn custom_objects_are_found_by_name(ground: &Ground) -> anyhow::Result<()> {
    ground.pool().await?;
    let query = [("fieldSelector", &*format!("metadata.name={}", ground.name))];
    let list = ground.list(&wide("karpenter.sh/nodepools"), &query).await?.expect(200)?;
    assert_eq!(names(&list), [ground.name.as_str()]);
    Ok(())
}

pub(crate) async fn pods_are_found_by_node_and_phase(ground: &Ground) -> anyhow::Result<()> {
    ground.pod("free", json!({})).await?;
    ground.running_pod("bound").await?;
    let bound = format!("spec.nodeName={}", ground.name);
    let free = format!("spec.nodeName=,metadata.namespace={}", ground.name);
    let running = format!("spec.nodeName={},status.phase=Running", ground.name);
    let pending = format!("spec.nodeName={},status.phase!=Running", ground.name);
    for (path, selector, expected) in [
        (wide("pods"), bound, vec!["bound"]),
        (wide("pods"), free, vec!["free"]),
        (ground.here("pods"), running, vec!["bound"]),
        (ground.here("pods"), pending, vec![]),
        (ground.here("pods"), "status.phase=Pending".to_owned(), vec!["free"]),
        (ground.here("pods"), "spec.schedulerName=nobody,spec.nodeName!=".to_owned(), vec!["bound"]),
    ] {
        let list = ground.list(&path, &[("fieldSelector", &selector)]).await?.expect(200)?;
        assert_eq!(names(&list), expected, "{selector}");
    }
    Ok(())
}

pub(crate) async fn nodes_are_found_by_whether_they_take_pods(ground: &Ground) -> anyhow::Result<()> {
    let body = crate::things::with(node(&ground.name), json!({ "spec": { "unschedulable": true } }));
    ground.made(&wide("nodes"), body).await?;
    for (wanted, expected) in [("true", vec![ground.name.as_str()]), ("false", vec![])] {
        let selector = format!("spec.unschedulable={wanted},metadata.name={}", ground.name);
        let list = ground.list(&wide("nodes"), &[("fieldSelector", &selector)]).await?.expect(200)?;
        assert_eq!(names(&list), expected, "{selector}");
    }
    Ok(())
}

pub(crate) async fn secrets_are_found_by_type(ground: &Ground) -> anyhow::Result<()> {
    let path = three(ground).await?;
    ground.made(&path, json!({ "metadata": { "name": "d" }, "type": "tenon.dev/test" })).await?;
    let list = ground.list(&path, &[("fieldSelector", "type=tenon.dev/test")]).await?.expect(200)?;
    assert_eq!(names(&list), ["d"]);
    Ok(())
}

pub(crate) async fn a_field_that_is_not_served_is_a_bad_request(ground: &Ground) -> anyhow::Result<()> {
    let query = [("fieldSelector", "spec.none=a")];
    let told = ground.list(&ground.here("pods"), &query).await?.refused(400, "BadRequest")?;
    assert!(text(&told, "/message").contains("field label not supported: spec.none"), "{told:#}");
    ground.list(&ground.here("configmaps"), &[("fieldSelector", "data.key=a")]).await?.refused(400, "BadRequest")?;
    Ok(())
}
