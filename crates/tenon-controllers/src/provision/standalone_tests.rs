//! Claims that are there already: in which order they are planned, at what cost, and what is known of those that go.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use tenon_api::{NodeClaim, names};
use tokio::sync::mpsc;

use super::gather::gather;
use super::standalone;
use super::test_stage::{Stage, object};

#[tokio::test(start_paused = true)]
async fn claims_made_standalone_that_fit_nowhere_cost_one_look_at_proxmox_together() {
    let mut stage = Stage::new().await;
    stage.show_claims().await;
    stage.add_claims(&["a", "b", "c", "d"], "1000").await;
    let asked = || stage.asked.load(Ordering::Relaxed);
    // Templates are read once, not with every look.
    gather(&stage.context).await;
    let later = || tokio::time::sleep(Duration::from_secs(3));
    later().await;
    let begun = asked();
    gather(&stage.context).await;
    let one_look = asked() - begun;
    later().await;
    standalone::pass(&stage.context).await;
    assert_eq!((asked() - begun, one_look > 0), (2 * one_look, true));
    assert_eq!(stage.told("FailedScheduling").await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn of_claims_made_standalone_the_first_is_served_first() {
    let mut stage = Stage::new().await;
    stage.show_claims().await;
    let names = ["e", "b", "d", "a", "c"];
    stage.add_claims(&names, "1").await;
    standalone::pass(&stage.context).await;
    let mut made = stage.claims().await;
    made.sort_by_key(|claim| super::record_of(claim).unwrap().vmid);
    assert_eq!(made.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), names);
}

#[tokio::test(start_paused = true)]
async fn a_claim_made_standalone_gets_the_label_of_its_class() {
    let mut stage = Stage::new().await;
    stage.show_claims().await;
    stage.add_claims(&["a"], "1").await;
    standalone::pass(&stage.context).await;
    assert_eq!(stage.claims().await[0].labels()[names::LABEL_NODECLASS], "default");
}

#[tokio::test(start_paused = true)]
async fn budgets_are_looked_at_from_the_moment_a_claim_is_deleted() {
    let mut stage = Stage::new().await;
    stage.show_claims().await;
    let spec = json!({ "maxUnavailable": 0, "selector": { "matchLabels": { "app": "x" } } });
    let budget = object(json!({ "metadata": { "name": "b", "namespace": "default" }, "spec": spec }));
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(stage.client.clone(), "default");
    budgets.create(&PostParams::default(), &budget).await.unwrap();
    stage.add_claims(&["a"], "1").await;
    assert!(gather(&stage.context).await.budgets.is_empty(), "nobody leaves");
    let claims: Api<NodeClaim> = Api::all(stage.client.clone());
    claims.delete("a", &DeleteParams::default()).await.unwrap();
    let is_going = |claim: &NodeClaim| claim.metadata.deletion_timestamp.is_some();
    while stage.context.watched.claims.state_filter(is_going).is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(gather(&stage.context).await.budgets.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn of_a_claim_that_vanished_nothing_is_remembered_though_nobody_asked_us_to_let_it_go() {
    let mut stage = Stage::new().await;
    stage.pass().await;
    let name = stage.claims().await[0].name_any();
    let (changes, (_wake, woken)) = (stage.take_unread(), mpsc::channel(1));
    let (stopper, stop) = crate::stop::stop();
    let context = Arc::new(stage.context);
    assert_eq!(context.memory.pods_of(&name).len(), 1);
    let running = tokio::spawn(crate::claim::run(context.clone(), changes, woken, stop));
    context.watched.ready().await;
    let claims: Api<NodeClaim> = Api::all(stage.client.clone());
    claims.delete(&name, &DeleteParams::default()).await.unwrap();
    let let_go = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
    claims.patch(&name, &PatchParams::default(), &let_go).await.unwrap();
    tokio::time::timeout(Duration::from_secs(60), async {
        while !context.memory.pods_of(&name).is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await
    .unwrap();
    stopper.tell();
    running.await.unwrap();
}
