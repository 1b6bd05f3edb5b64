//! Lists: which objects, how many at a time, at which version.

use serde_json::{Value, json};

use crate::cluster::{Asker, MAPS, PODS, admin, map, pod, pod_on};

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

async fn labelled() -> Asker {
    let asker = admin();
    for (name, labels) in [("a", json!({ "k": "1" })), ("b", json!({ "k": "2", "extra": "" })), ("c", json!({}))] {
        let mut pod = pod(name);
        pod["metadata"]["labels"] = labels;
        asker.make(PODS, pod).await;
    }
    asker
}

#[tokio::test]
async fn labels_select() {
    let asker = labelled().await;
    for (selector, expected) in [
        ("k=1", vec!["a"]),
        ("k==1", vec!["a"]),
        ("k!=1", vec!["b", "c"]),
        ("k in (1, 2)", vec!["a", "b"]),
        ("k notin (1)", vec!["b", "c"]),
        ("k", vec!["a", "b"]),
        ("!k", vec!["c"]),
        ("k in (1,2),extra", vec!["b"]),
    ] {
        let query: String = form_urlencoded::byte_serialize(selector.as_bytes()).collect();
        let (_, list) = asker.get(&format!("{PODS}?labelSelector={query}")).await;
        assert_eq!(names(&list), expected, "{selector}");
    }
}

#[tokio::test]
async fn fields_select() {
    let asker = admin();
    asker.make(PODS, pod("a")).await;
    asker.make(PODS, pod_on("b", "n1")).await;
    for (selector, expected) in [
        ("spec.nodeName=n1", vec!["b"]),
        ("spec.nodeName=", vec!["a"]),
        ("metadata.name=a", vec!["a"]),
        ("metadata.namespace=default,status.phase=Pending", vec!["a", "b"]),
        ("status.phase!=Pending", vec![]),
    ] {
        let query: String = form_urlencoded::byte_serialize(selector.as_bytes()).collect();
        assert_eq!(names(&asker.get(&format!("/api/v1/pods?fieldSelector={query}")).await.1), expected, "{selector}");
    }
    let (code, status) = asker.get("/api/v1/pods?fieldSelector=spec.foo%3Dx").await;
    assert_eq!((code, status["message"].as_str()), (400, Some("field label not supported: spec.foo")));
}

#[tokio::test]
async fn long_lists_come_in_pages() {
    let asker = admin();
    for name in ["a", "b", "c", "d", "e"] {
        asker.make(PODS, pod(name)).await;
    }
    let (_, first) = asker.get(&format!("{PODS}?limit=2")).await;
    assert_eq!((names(&first), &first["metadata"]["remainingItemCount"]), (vec!["a", "b"], &json!(3)));
    let token = first["metadata"]["continue"].as_str().unwrap();
    let (_, rest) = asker.get(&format!("{PODS}?limit=10&continue={token}")).await;
    assert_eq!(names(&rest), ["c", "d", "e"]);
    assert_eq!(rest["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    assert_eq!(rest["metadata"].get("continue"), None);
    assert_eq!(asker.get(&format!("{PODS}?continue=garbage")).await.0, 400);
}

#[tokio::test]
async fn a_list_is_as_new_as_the_last_write_anywhere() {
    let asker = admin();
    let made = asker.make(MAPS, map("m")).await;
    let (_, list) = asker.get(PODS).await;
    assert_eq!(list["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("PodList"), &json!("v1")));
}

#[tokio::test]
async fn a_list_of_a_namespace_holds_only_its_own() {
    let asker = admin();
    asker.make(PODS, pod("a")).await;
    asker.make("/api/v1/namespaces/kube-system/pods", pod("s")).await;
    assert_eq!(names(&asker.get(PODS).await.1), ["a"]);
    assert_eq!(names(&asker.get("/api/v1/pods").await.1), ["a", "s"]);
    assert!(names(&asker.get("/api/v1/namespaces/none/pods").await.1).is_empty());
}
