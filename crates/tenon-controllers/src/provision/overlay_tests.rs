//! What NodeOverlays make of plans: which size is bought, what its claim says, and that a pool that was not looked at waits.

use serde_json::{Value, json};
use tenon_api::plan_options::{FeatureGates, PlanOptions};
use tenon_api::planning::EvaluatedOverlays;
use tenon_api::{NodeClaim, NodeOverlay, names};

use super::overlays::evaluate_overlays;
use super::test_stage::{Stage, add_pod};
use crate::settings::Settings;

/// Not the cheapest size for two cores.
const LARGE: &str = "m1.4VCPU-32GB";

async fn stage() -> Stage {
    let feature_gates = FeatureGates { node_overlay: true, ..FeatureGates::default() };
    let planning = PlanOptions { feature_gates, ..PlanOptions::default() };
    Stage::with(Settings { planning, ..Settings::default() }).await
}

fn overlay(name: &str, more: &Value) -> NodeOverlay {
    let wanted = json!([{ "key": names::LABEL_INSTANCE_TYPE, "operator": "In", "values": [LARGE] }]);
    let mut spec = json!({ "requirements": wanted });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
}

fn publish(stage: &Stage, overlays: &[NodeOverlay]) -> bool {
    let (pools, classes) = (stage.context.watched.pools.state(), stage.context.watched.classes.state());
    let evaluated: EvaluatedOverlays = evaluate_overlays(overlays, &pools, &classes, &stage.context.settings.types);
    assert!(evaluated.faults.is_empty(), "{:?}", evaluated.faults);
    stage.context.memory.overlays.publish(evaluated)
}

/// The one claim there is: its size, and the annotations that overlays are told by.
async fn claim(stage: &Stage) -> (String, Vec<&'static str>) {
    let claims: Vec<NodeClaim> = stage.claims().await;
    let [claim] = claims.as_slice() else { panic!("{} claims", claims.len()) };
    let annotations = claim.metadata.annotations.clone().unwrap();
    let told = [names::ANNOTATION_PRICE_OVERLAY, names::ANNOTATION_CAPACITY_OVERLAY];
    let told = told.into_iter().filter(|name| annotations.get(*name).is_some_and(|value| value == "true"));
    (claim.metadata.labels.as_ref().unwrap()[names::LABEL_INSTANCE_TYPE].clone(), told.collect())
}

#[tokio::test(start_paused = true)]
async fn i6_a_pool_that_overlays_were_not_applied_to_yet_makes_no_node_and_says_so() {
    let stage = stage().await;
    stage.until_waiting(1).await;
    stage.pass().await;
    assert_eq!(stage.claims().await.len(), 0);
    let told = stage.told("FailedScheduling").await;
    assert!(told[0].contains("NodeOverlays are not applied to NodePool default yet"), "{told:?}");
    assert!(publish(&stage, &[]));
    stage.pass().await;
    let (size, told) = claim(&stage).await;
    assert!(size != LARGE && told.is_empty(), "{size} {told:?}");
}

#[tokio::test(start_paused = true)]
async fn i6_i11_the_size_that_an_overlay_makes_cheap_is_bought_and_its_claim_says_so() {
    let stage = stage().await;
    stage.until_waiting(1).await;
    publish(&stage, &[overlay("a", &json!({ "priceAdjustment": "-100%" }))]);
    stage.pass().await;
    assert_eq!(claim(&stage).await, (LARGE.to_owned(), vec![names::ANNOTATION_PRICE_OVERLAY]));
}

#[tokio::test(start_paused = true)]
async fn i6_a_resource_that_only_an_overlay_promises_is_bought_once_and_counted_on_until_the_node_is_there() {
    let stage = stage().await;
    add_pod(&stage.client, "needs", ("1", json!({ "overhead": { "example.com/fpga": "1" } }))).await;
    stage.until_waiting(2).await;
    publish(&stage, &[overlay("a", &json!({ "capacity": { "example.com/fpga": 2 } }))]);
    stage.pass().await;
    assert_eq!(claim(&stage).await, (LARGE.to_owned(), vec![names::ANNOTATION_CAPACITY_OVERLAY]));
    let (_, _, plan) = stage.plan().await;
    assert_eq!((plan.placements.len(), plan.new_nodes.len()), (2, 0), "{plan:?}");
}
