//! What NodeOverlays say of themselves, and what plans go by, look by look.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tenon_api::plan_options::{FeatureGates, PlanOptions};
use tenon_api::{NodeOverlay, ProxmoxNodeClass};

use super::pass::pass;
use super::run;
use crate::claim::test_stage::ClaimStage;
use crate::settings::Settings;
use crate::stop::stop;

const SIZE: &str = "s1.4VCPU-16GB";

fn api(stage: &ClaimStage) -> Api<NodeOverlay> {
    Api::all(stage.client.clone())
}

async fn add(stage: &ClaimStage, name: &str, more: &Value) {
    let mut spec = json!({ "requirements": [] });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let overlay: NodeOverlay = serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap();
    api(stage).create(&PostParams::default(), &overlay).await.unwrap();
}

async fn listed(stage: &ClaimStage) -> Vec<Arc<NodeOverlay>> {
    api(stage).list(&ListParams::default()).await.unwrap().items.into_iter().map(Arc::new).collect()
}

/// Looks at what there is; whether nothing is left to do.
async fn look(stage: &ClaimStage) -> bool {
    stage.settle().await;
    pass(&stage.context, listed(stage).await).await == super::pass::Left::default()
}

/// The status and the reason of `ValidationSucceeded`, and the status of `Ready`.
async fn said(stage: &ClaimStage, name: &str) -> (String, String, String) {
    let conditions = api(stage).get(name).await.unwrap().status.unwrap_or_default().conditions.unwrap_or_default();
    let of = |type_: &str| conditions.iter().find(|condition| condition.type_ == type_).unwrap().clone();
    let (validation, ready) = (of("ValidationSucceeded"), of("Ready"));
    (format!("{:?}", validation.status), validation.reason, format!("{:?}", ready.status))
}

fn words(status: &str, reason: &str, ready: &str) -> (String, String, String) {
    (status.to_owned(), reason.to_owned(), ready.to_owned())
}

async fn events(stage: &ClaimStage) -> Vec<String> {
    let events = Api::<Event>::all(stage.client.clone()).list(&ListParams::default()).await.unwrap().items;
    let ours = events.into_iter().filter(|event| event.reason.as_deref() == Some("ValidationSucceeded"));
    ours.filter_map(|event| event.note).collect()
}

#[tokio::test(start_paused = true)]
async fn i6_an_overlay_says_that_it_is_applied_and_a_second_look_changes_nothing() {
    let stage = ClaimStage::new().await;
    add(&stage, "a", &json!({ "price": "1", "capacity": { "example.com/fpga": 2 } })).await;
    let book = &stage.context.memory.overlays;
    assert!(!book.published().knows("default"), "before the first look");
    assert!(look(&stage).await);
    assert_eq!(said(&stage, "a").await, words("True", "ValidationSucceeded", "True"));
    let (published, epoch) = (book.published(), book.epoch());
    assert_eq!(published.capacity("default", SIZE).unwrap().get("example.com/fpga").value(), 2);
    let version = listed(&stage).await[0].metadata.resource_version.clone();
    assert!(look(&stage).await);
    assert_eq!(listed(&stage).await[0].metadata.resource_version, version, "nothing is written again");
    assert!(Arc::ptr_eq(&published, &book.published()) && epoch == book.epoch(), "and nothing is published again");
    assert_eq!(events(&stage).await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn i6_an_overlay_that_conflicts_says_with_which_one_once_and_applies_when_the_other_is_gone() {
    let stage = ClaimStage::new().await;
    add(&stage, "a", &json!({ "price": "1", "weight": 3, "capacity": { "example.com/a": 1 } })).await;
    add(&stage, "b", &json!({ "priceAdjustment": "+10%", "weight": 3 })).await;
    assert!(look(&stage).await && look(&stage).await);
    assert_eq!(said(&stage, "a").await, words("False", "Conflict", "False"));
    assert_eq!(said(&stage, "b").await, words("True", "ValidationSucceeded", "True"));
    let told = events(&stage).await;
    assert_eq!(told.len(), 1);
    let expected = "ValidationSucceeded is False (Conflict): conflict with NodeOverlay b of the same weight 3: both change the price";
    assert!(told[0].starts_with(expected), "{told:?}");
    let book = &stage.context.memory.overlays;
    assert_eq!(book.published().capacity("default", SIZE), None, "no part of it is applied");
    let epoch = book.epoch();
    api(&stage).delete("b", &DeleteParams::default()).await.unwrap();
    assert!(look(&stage).await);
    assert_eq!(said(&stage, "a").await, words("True", "ValidationSucceeded", "True"));
    assert_ne!(book.epoch(), epoch, "whatever was found not worth a change is asked again");
    assert!(book.published().capacity("default", SIZE).is_some());
}

#[tokio::test(start_paused = true)]
async fn i6_an_overlay_that_makes_no_sense_says_why() {
    let stage = ClaimStage::new().await;
    // The schema lets a label pass that is too long for a node.
    let label = format!("example.com/{}", "x".repeat(64));
    add(&stage, "a", &json!({ "requirements": [{ "key": label, "operator": "Exists" }], "price": "1" })).await;
    assert!(look(&stage).await);
    assert_eq!(said(&stage, "a").await, words("False", "RuntimeValidation", "False"));
    assert!(stage.context.memory.overlays.published().knows("default"), "pools do not wait for it");
}

#[tokio::test(start_paused = true)]
async fn i6_what_was_found_of_an_overlay_that_is_another_by_now_is_not_published() {
    let stage = ClaimStage::new().await;
    add(&stage, "a", &json!({ "price": "1" })).await;
    let before = listed(&stage).await;
    let patch = Patch::Merge(json!({ "spec": { "price": "2" } }));
    api(&stage).patch("a", &PatchParams::default(), &patch).await.unwrap();
    let left = pass(&stage.context, before.clone()).await;
    assert!(left.is_outdated && left.errors.is_empty());
    assert!(!stage.context.memory.overlays.published().knows("default"));
    api(&stage).delete("a", &DeleteParams::default()).await.unwrap();
    assert!(pass(&stage.context, before).await.is_outdated, "one that is gone is another, too");
    assert!(look(&stage).await);
    assert!(stage.context.memory.overlays.published().knows("default"));
}

#[tokio::test(start_paused = true)]
async fn i6_a_pool_whose_class_is_missing_waits_alone_and_is_known_when_the_class_is_there() {
    let stage = ClaimStage::new().await;
    add(&stage, "a", &json!({ "price": "1" })).await;
    let class = Api::<ProxmoxNodeClass>::all(stage.client.clone()).get("default").await.unwrap();
    let pools: Api<tenon_api::NodePool> = Api::all(stage.client.clone());
    let mut pool = pools.get("default").await.unwrap();
    pool.metadata = serde_json::from_value(json!({ "name": "other" })).unwrap();
    pool.spec.template.spec.node_class_ref.name = "late".to_owned();
    pools.create(&PostParams::default(), &pool).await.unwrap();
    stage.settle().await;
    let left = pass(&stage.context, listed(&stage).await).await;
    assert_eq!(left.errors, ["cannot apply NodeOverlays to NodePool other: ProxmoxNodeClass late does not exist"]);
    let published = stage.context.memory.overlays.published();
    assert!(published.knows("default") && !published.knows("other"));
    let mut late = class;
    late.metadata = serde_json::from_value(json!({ "name": "late" })).unwrap();
    Api::all(stage.client.clone()).create(&PostParams::default(), &late).await.unwrap();
    assert!(look(&stage).await);
    assert!(stage.context.memory.overlays.published().knows("other"));
}

#[tokio::test(start_paused = true)]
async fn i6_a_status_that_cannot_be_written_keeps_no_plan_waiting() {
    let mut stage = ClaimStage::new().await;
    add(&stage, "a", &json!({ "price": "1" })).await;
    stage.forbid(|method, path| method == "PATCH" && path.ends_with("/status"));
    stage.settle().await;
    let left = pass(&stage.context, listed(&stage).await).await;
    assert!(!left.is_outdated && left.errors[0].starts_with("cannot write status of NodeOverlay a: "), "{left:?}");
    assert!(stage.context.memory.overlays.published().knows("default"));
}

/// A stage with a loop that looks by itself.
async fn running(gate: bool) -> (ClaimStage, crate::stop::Stopper, tokio::task::JoinHandle<()>) {
    let feature_gates = FeatureGates { node_overlay: gate, ..FeatureGates::default() };
    let planning = PlanOptions { feature_gates, ..PlanOptions::default() };
    let stage = ClaimStage::with(Settings { planning, ..Settings::default() }).await;
    let (stopper, stop) = stop();
    let task = tokio::spawn(run(stage.context.clone(), stop));
    (stage, stopper, task)
}

#[tokio::test(start_paused = true)]
async fn i6_overlays_are_looked_at_when_one_of_them_or_a_pool_changes_and_not_without_the_gate() {
    let (stage, stopper, task) = running(true).await;
    let wait = || tokio::time::sleep(Duration::from_secs(3));
    wait().await;
    let book = &stage.context.memory.overlays;
    assert!(book.published().knows("default"), "without an overlay pools are known as well");
    add(&stage, "a", &json!({ "price": "1" })).await;
    wait().await;
    assert_eq!(said(&stage, "a").await, words("True", "ValidationSucceeded", "True"));
    let epoch = book.epoch();
    wait().await;
    assert_eq!(book.epoch(), epoch, "its own status is no change");
    let pools: Api<tenon_api::NodePool> = Api::all(stage.client.clone());
    let mut pool = pools.get("default").await.unwrap();
    pool.metadata = serde_json::from_value(json!({ "name": "other" })).unwrap();
    pools.create(&PostParams::default(), &pool).await.unwrap();
    wait().await;
    assert!(book.published().knows("other"));
    api(&stage).delete("a", &DeleteParams::default()).await.unwrap();
    wait().await;
    assert_ne!(book.epoch(), epoch);
    stopper.tell();
    task.await.unwrap();
    let (stage, _stopper, task) = running(false).await;
    task.await.unwrap();
    assert_eq!(stage.context.memory.overlays.epoch(), 0);
}
