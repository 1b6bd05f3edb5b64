//! Objects are made, read and replaced.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, PostParams};
use serde_json::json;

use crate::cluster::{MAPS, PODS, admin, cluster, map, pod, typed_map};

#[tokio::test]
async fn a_new_object_gets_identity_and_defaults() {
    let (_, made) = admin().post(PODS, pod("a")).await;
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["metadata"]["namespace"], "default");
    assert!(made["metadata"]["uid"].as_str().unwrap().len() == 36);
    assert!(made["metadata"]["resourceVersion"].as_str().unwrap().parse::<u64>().unwrap() > 0);
    assert_eq!(made["spec"]["terminationGracePeriodSeconds"], 30);
    assert_eq!(made["spec"]["tolerations"][0]["tolerationSeconds"], 300);
    assert_eq!(made["status"], json!({ "phase": "Pending", "qosClass": "BestEffort" }));
}

#[tokio::test]
async fn the_same_seed_gives_the_same_objects() {
    let mut seen = Vec::new();
    for _ in 0..2 {
        let asker = admin();
        asker.make(MAPS, json!({ "metadata": { "generateName": "gen-" } })).await;
        let (_, list) = asker.get("/api/v1/configmaps").await;
        let names: Vec<_> = list["items"].as_array().unwrap().iter().map(|item| item["metadata"].clone()).collect();
        seen.push((
            names.iter().map(|m| (m["name"].clone(), m["uid"].clone())).collect::<Vec<_>>(),
            list["items"][0]["data"].clone(),
        ));
    }
    assert_eq!(seen[0], seen[1]);
}

#[tokio::test]
async fn a_generated_name_ends_in_five_letters() {
    let made = admin().make(MAPS, json!({ "metadata": { "generateName": "gen-" } })).await;
    let name = made["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("gen-") && name.len() == 9, "{name}");
    assert_eq!(made["metadata"]["generateName"], "gen-");
}

#[tokio::test]
async fn a_name_is_taken_once() {
    let asker = admin();
    asker.make(MAPS, map("m")).await;
    let (code, status) = asker.post(MAPS, map("m")).await;
    assert_eq!((code, status["reason"].as_str()), (409, Some("AlreadyExists")));
    assert_eq!(status["message"], "configmaps \"m\" already exists");
    assert_eq!(status["details"], json!({ "name": "m", "kind": "configmaps" }));
}

#[tokio::test]
async fn an_object_needs_a_name() {
    let (code, status) = admin().post(PODS, json!({ "metadata": {}, "spec": {} })).await;
    assert_eq!((code, status["reason"].as_str()), (422, Some("Invalid")));
    assert_eq!(
        status["message"],
        "Pod \"\" is invalid: metadata.name: Required value: name or generateName is required"
    );
    assert_eq!(status["details"]["causes"][0]["reason"], "FieldValueRequired");
}

#[tokio::test]
async fn a_name_must_be_a_subdomain() {
    let (code, status) = admin().post(MAPS, map("Bad_Name")).await;
    assert_eq!((code, status["details"]["causes"][0]["field"].as_str()), (422, Some("metadata.name")));
}

#[tokio::test]
async fn a_namespace_must_exist() {
    let (code, status) = admin().post("/api/v1/namespaces/none/pods", pod("a")).await;
    assert_eq!((code, status["message"].as_str()), (404, Some("namespaces \"none\" not found")));
}

#[tokio::test]
async fn every_namespace_is_furnished() {
    let asker = admin();
    asker.make("/api/v1/namespaces", json!({ "metadata": { "name": "mine" } })).await;
    for namespace in ["default", "kube-system", "kube-public", "kube-node-lease", "mine"] {
        let (code, roots) = asker.get(&format!("/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt")).await;
        assert_eq!(code, 200, "{namespace}");
        assert!(roots["data"]["ca.crt"].as_str().unwrap().starts_with("-----BEGIN CERTIFICATE"));
        let (code, _) = asker.get(&format!("/api/v1/namespaces/{namespace}/serviceaccounts/default")).await;
        assert_eq!(code, 200, "{namespace}");
    }
    let namespaces: Api<Namespace> = Api::all(asker.0.clone());
    assert_eq!(namespaces.get("mine").await.unwrap().status.unwrap().phase.as_deref(), Some("Active"));
}

#[tokio::test]
async fn bodies_of_another_kind_are_refused() {
    let (code, status) = admin().post(PODS, json!({ "apiVersion": "v1", "kind": "Node" })).await;
    assert_eq!(code, 400);
    let told =
        "Node in version \"v1\" cannot be handled as a Pod: converting (v1.Node) to (core.Pod): unknown conversion";
    assert_eq!(status["message"], told);
}

#[tokio::test]
async fn a_stale_version_loses() {
    let maps: Api<ConfigMap> = Api::default_namespaced(cluster().client());
    let first = maps.create(&PostParams::default(), &typed_map("m")).await.unwrap();
    let mut newer = first.clone();
    newer.data = Some([("a".to_owned(), "c".to_owned())].into());
    maps.replace("m", &PostParams::default(), &newer).await.unwrap();
    let kube::Error::Api(status) = maps.replace("m", &PostParams::default(), &first).await.unwrap_err() else {
        panic!("the server should have refused")
    };
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    let told = "Operation cannot be fulfilled on configmaps \"m\": the object has been modified; please apply your \
                changes to the latest version and try again";
    assert_eq!(status.message, told);
}

#[tokio::test]
async fn a_put_without_a_version_wins_where_the_kind_allows_it() {
    let asker = admin();
    asker.make(MAPS, map("m")).await;
    assert_eq!(asker.put(&format!("{MAPS}/m"), json!({ "metadata": { "name": "m" } })).await.0, 200);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "l" } });
    asker.make(leases, lease.clone()).await;
    let (code, status) = asker.put(&format!("{leases}/l"), lease).await;
    assert_eq!(code, 422);
    assert_eq!(
        status["message"],
        "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified \
         for an update"
    );
}

#[tokio::test]
async fn a_put_for_another_uid_is_a_conflict() {
    let asker = admin();
    asker.make(MAPS, map("m")).await;
    let (code, status) = asker.put(&format!("{MAPS}/m"), json!({ "metadata": { "name": "m", "uid": "other" } })).await;
    assert_eq!(code, 409);
    assert!(status["message"].as_str().unwrap().contains("Precondition failed: UID in precondition: other"));
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_no_change() {
    let asker = admin();
    let made = asker.make(MAPS, map("m")).await;
    let (_, same) = asker.put(&format!("{MAPS}/m"), map("m")).await;
    assert_eq!(made["metadata"]["resourceVersion"], same["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn plain_texts_of_secrets_are_encoded() {
    let secret = json!({ "metadata": { "name": "s" }, "stringData": { "a": "b" } });
    let made = admin().make("/api/v1/namespaces/default/secrets", secret).await;
    assert_eq!((&made["data"], &made["type"]), (&json!({ "a": "Yg==" }), &json!("Opaque")));
    assert_eq!(made.get("stringData"), None);
}

#[tokio::test]
async fn both_kinds_of_events_are_the_same_events() {
    let asker = admin();
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": { "name": "e" }, "note": "hello", "reason": "R",
        "regarding": { "kind": "Pod", "name": "p" }, "reportingController": "karpenter", "type": "Normal",
    });
    asker.make("/apis/events.k8s.io/v1/namespaces/default/events", event).await;
    let (_, old) = asker.get("/api/v1/events?fieldSelector=involvedObject.name%3Dp,type%3DNormal").await;
    assert_eq!(
        (&old["items"][0]["message"], &old["items"][0]["reportingComponent"]),
        (&json!("hello"), &json!("karpenter"))
    );
    let (_, new) = asker.get("/apis/events.k8s.io/v1/namespaces/default/events/e").await;
    assert_eq!((&new["note"], &new["regarding"]["name"]), (&json!("hello"), &json!("p")));
}
