//! Kinds that come with a definition.

use serde_json::{Value, json};
use tenon_sim::cluster_schema::{FieldError, FieldReason};
use tenon_sim::{Cluster, ClusterConfig};

use crate::cluster::{Asker, MERGE, STRATEGIC, admin};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/demo.dev/v1/widgets";

fn definition() -> Value {
    let scale = json!({ "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas" });
    let columns = json!([
        { "name": "Size", "type": "integer", "jsonPath": ".spec.replicas" },
        { "name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status" },
        { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
    ]);
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
        "subresources": { "status": {}, "scale": scale }, "additionalPrinterColumns": columns,
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.demo.dev" },
        "spec": {
            "group": "demo.dev", "scope": "Cluster", "versions": [version],
            "names": { "plural": "widgets", "kind": "Widget", "shortNames": ["wd"] },
        },
    })
}

fn widget(name: &str) -> Value {
    json!({
        "apiVersion": "demo.dev/v1", "kind": "Widget", "metadata": { "name": name }, "spec": { "replicas": 2 },
        "status": { "ignored": true },
    })
}

async fn with_widgets() -> Asker {
    let asker = admin();
    asker.make(DEFINITIONS, definition()).await;
    asker
}

#[tokio::test]
async fn a_definition_is_served_from_the_moment_it_is_made() {
    let asker = admin();
    assert_eq!(asker.get(WIDGETS).await, (404, Value::String("404 page not found\n".into())));
    let made = asker.make(DEFINITIONS, definition()).await;
    let told = &made["status"]["conditions"][1];
    assert_eq!((&told["type"], &told["status"]), (&json!("Established"), &json!("True")));
    assert_eq!(made["spec"]["names"]["listKind"], "WidgetList");
    let (code, list) = asker.get(WIDGETS).await;
    assert_eq!((code, &list["kind"]), (200, &json!("WidgetList")));
}

#[tokio::test]
async fn a_status_cannot_be_made_with_its_object() {
    let made = with_widgets().await.make(WIDGETS, widget("w")).await;
    assert_eq!((made.get("status"), &made["metadata"]["generation"]), (None, &json!(1)));
}

#[tokio::test]
async fn a_status_brings_nothing_else_along() {
    let asker = with_widgets().await;
    asker.make(WIDGETS, widget("w")).await;
    let patch = json!({
        "metadata": { "labels": { "x": "y" }, "finalizers": ["a.b/c"] }, "spec": { "replicas": 9 }, "status": { "replicas": 1 },
    });
    let (_, new) = asker.patch(&format!("{WIDGETS}/w/status"), (MERGE, patch)).await;
    assert_eq!((&new["spec"]["replicas"], &new["status"]), (&json!(2), &json!({ "replicas": 1 })));
    assert_eq!((new["metadata"].get("labels"), new["metadata"].get("finalizers")), (None, None));
    let (_, new) = asker.patch(&format!("{WIDGETS}/w"), (MERGE, json!({ "status": { "replicas": 7 } }))).await;
    assert_eq!(new["status"]["replicas"], 1);
}

#[tokio::test]
async fn a_status_with_an_old_version_is_a_conflict() {
    let asker = with_widgets().await;
    asker.make(WIDGETS, widget("w")).await;
    let patch = json!({ "metadata": { "resourceVersion": "1" }, "status": { "replicas": 1 } });
    assert_eq!(asker.patch(&format!("{WIDGETS}/w/status"), (MERGE, patch)).await.0, 409);
}

#[tokio::test]
async fn only_the_spec_counts_as_a_new_generation() {
    let asker = with_widgets().await;
    asker.make(WIDGETS, widget("w")).await;
    let path = format!("{WIDGETS}/w");
    let labels = json!({ "metadata": { "labels": { "x": "y" } } });
    assert_eq!(asker.patch(&path, (MERGE, labels)).await.1["metadata"]["generation"], 1);
    let spec = json!({ "spec": { "other": 1 } });
    assert_eq!(asker.patch(&path, (MERGE, spec)).await.1["metadata"]["generation"], 2);
}

#[tokio::test]
async fn a_scale_is_where_the_definition_says() {
    let asker = with_widgets().await;
    asker.make(WIDGETS, widget("w")).await;
    let (_, scale) = asker.patch(&format!("{WIDGETS}/w/scale"), (MERGE, json!({ "spec": { "replicas": 7 } }))).await;
    assert_eq!((&scale["spec"]["replicas"], &scale["status"]["replicas"]), (&json!(7), &json!(0)));
    assert_eq!(asker.get(&format!("{WIDGETS}/w")).await.1["spec"]["replicas"], 7);
}

#[tokio::test]
async fn custom_kinds_have_no_strategic_merge() {
    let asker = with_widgets().await;
    asker.make(WIDGETS, widget("w")).await;
    let (code, status) = asker.patch(&format!("{WIDGETS}/w"), (STRATEGIC, json!({}))).await;
    assert_eq!((code, status["reason"].as_str()), (415, Some("UnsupportedMediaType")));
}

#[tokio::test]
async fn bodies_must_say_what_they_are() {
    let asker = with_widgets().await;
    let (code, status) = asker.post(WIDGETS, json!({ "kind": "Widget", "metadata": { "name": "w" } })).await;
    let told = "the API version in the data () does not match the expected API version (demo.dev/v1)";
    assert_eq!((code, status["message"].as_str()), (400, Some(told)));
    let (code, status) = asker
        .post(WIDGETS, json!({ "apiVersion": "demo.dev/v1", "kind": "Gadget", "metadata": { "name": "w" } }))
        .await;
    let told = "Gadget.demo.dev \"w\" is invalid: kind: Invalid value: \"Gadget\": must be Widget";
    assert_eq!((code, status["message"].as_str()), (422, Some(told)));
}

#[tokio::test]
async fn an_update_must_name_its_version() {
    let asker = with_widgets().await;
    asker.make(WIDGETS, widget("w")).await;
    let (code, status) = asker.put(&format!("{WIDGETS}/w"), widget("w")).await;
    let told = "widgets.demo.dev \"w\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    assert_eq!((code, status["message"].as_str()), (422, Some(told)));
}

#[tokio::test]
async fn a_definition_goes_after_its_objects() {
    let asker = with_widgets().await;
    let mut held = widget("w");
    held["metadata"]["finalizers"] = json!(["a.b/c"]);
    asker.make(WIDGETS, held).await;
    asker.make(WIDGETS, widget("free")).await;
    asker.delete(&format!("{DEFINITIONS}/widgets.demo.dev"), Value::Null).await;
    assert_eq!(asker.get(&format!("{WIDGETS}/free")).await.0, 404);
    assert_eq!(asker.post(WIDGETS, widget("late")).await.0, 405);
    asker.patch(&format!("{WIDGETS}/w"), (MERGE, json!({ "metadata": { "finalizers": null } }))).await;
    assert_eq!(asker.get(&format!("{DEFINITIONS}/widgets.demo.dev")).await.0, 404);
    assert_eq!(asker.get(WIDGETS).await.0, 404);
}

/// Sets a default, and wants no more than three replicas.
fn admit(schema: &Value, new: &mut Value, old: Option<&Value>) -> Result<(), Vec<FieldError>> {
    assert_eq!(schema["type"], "object");
    if old.is_none() {
        new["spec"]["made"] = json!(true);
    }
    if new["spec"]["replicas"].as_i64() > Some(3) {
        let (field, reason) = ("spec.replicas".into(), FieldReason::Invalid);
        return Err(vec![FieldError { field, reason, message: "Invalid value: 4: too many".into() }]);
    }
    Ok(())
}

#[tokio::test]
async fn schemas_are_asked_on_every_write() {
    let cluster = Cluster::new(ClusterConfig { admit, ..ClusterConfig::default() }).unwrap();
    let asker = Asker(cluster.client());
    asker.make(DEFINITIONS, definition()).await;
    assert_eq!(asker.make(WIDGETS, widget("w")).await["spec"]["made"], true);
    let (code, status) = asker.patch(&format!("{WIDGETS}/w"), (MERGE, json!({ "spec": { "replicas": 4 } }))).await;
    assert_eq!((code, status["reason"].as_str()), (422, Some("Invalid")));
    assert_eq!(status["message"], "Widget.demo.dev \"w\" is invalid: spec.replicas: Invalid value: 4: too many");
    assert_eq!(status["details"]["causes"][0]["field"], "spec.replicas");
}

#[tokio::test]
async fn columns_show_what_the_definition_says() {
    let asker = with_widgets().await;
    asker.make(WIDGETS, widget("w")).await;
    let status = json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } });
    asker.patch(&format!("{WIDGETS}/w/status"), (MERGE, status)).await;
    let request = http::Request::get(WIDGETS).header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let table: Value = asker.0.request(request.body(Vec::new()).unwrap()).await.unwrap();
    assert_eq!(table["kind"], "Table");
    assert_eq!(table["rows"][0]["cells"], json!(["w", 2, "True", "0s"]));
}
