//! Does a roll-out stop when the first new node never comes, with everything old in place, and go on once the template is mended?

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use serde_json::json;
use tenon_api::{NodeClaim, NodePool};
use tenon_sim::{FaultEffect, FaultMatch, FaultRule, GuestConfig, GuestFault, GuestFaultRule, GuestMatch, Repeat};

use crate::bench::{from_json, quick_guests};
use crate::disrupting::{marked, uids};
use crate::ground::{Kind, scenarios};
use crate::recorded::{Recorded, most_disrupted};
use crate::world::{NAMESPACE, World};

/// A replacement that never joins is given up after ten minutes, and its NodeClaim five minutes later.
const GIVEN_UP: Duration = Duration::from_secs(1_200);

/// Several looks for nodes to disrupt.
const LOOKS: Duration = Duration::from_secs(45);

scenarios! {
    a_roll_out_whose_first_vm_cannot_be_made_halts_and_goes_on_after_a_change,
    a_roll_out_keeps_to_the_disruption_budget_of_pods,
}

/// Two nodes of a NodePool that gives up launches soon, with a pod each.
async fn two_nodes(kind: Kind, guests: GuestConfig) -> anyhow::Result<Option<World>> {
    let Some(mut world) = World::new(kind, guests).await? else { return Ok(None) };
    world.limit_launch(Duration::from_secs(5));
    world.add_rules().await?;
    world.start_controller()?;
    world.disrupt_with(json!({ "consolidateAfter": "Never", "budgets": [{ "nodes": "1" }] })).await?;
    world.deploy("web", 2).await?;
    world.until_running("web", 2).await?;
    Ok(Some(world))
}

/// The roll-out is halted, and all is as it was before it.
async fn until_halted(world: &World, old: &BTreeSet<String>) -> anyhow::Result<()> {
    world
        .until_within(GIVEN_UP, "the roll-out is halted", async || {
            let told = world.condition::<NodePool>("default", "DriftRolloutHalted").await?;
            Ok(told.filter(|told| told.reason == "ReplacementFailed").map(drop))
        })
        .await?;
    world.until_event("DriftRolloutHalted", "No more Nodes of NodePool default are replaced because of drift").await?;
    world
        .until_within(GIVEN_UP, "only the old nodes are left", async || Ok((uids(world).await? == *old).then_some(())))
        .await?;
    assert_eq!(marked(&world.claims().await?), 0, "{}", world.tail());
    world.until_running("web", 2).await
}

async fn until_replaced(world: &World, old: &BTreeSet<String>) -> anyhow::Result<()> {
    world
        .until_within(GIVEN_UP, "both nodes are replaced", async || {
            let now = uids(world).await?;
            Ok((now.len() == 2 && now.is_disjoint(old)).then_some(()))
        })
        .await?;
    world.until_running("web", 2).await?;
    let told = world.condition::<NodePool>("default", "DriftRolloutHalted").await?;
    assert!(told.is_none(), "{told:?}");
    Ok(())
}

async fn ends(world: World) -> anyhow::Result<()> {
    world.disrupt_with(json!({ "consolidateAfter": "1s", "budgets": [{ "nodes": "100%" }] })).await?;
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn a_roll_out_whose_first_vm_cannot_be_made_halts_and_goes_on_after_a_change(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = two_nodes(kind, quick_guests()).await? else { return Ok(()) };
    let old = uids(&world).await?;
    let refused = FaultEffect::Refuse { status: 500, text: "the moon is in the wrong house".to_owned() };
    world.estate.add_fault(FaultRule::new(FaultMatch::call("POST", "/nodes/*/qemu/*/clone"), refused));
    world.relabel("broken").await?;
    until_halted(&world, &old).await?;
    // It stays so, also for a controller that starts anew.
    let clones = world.clones().len();
    world.kill_controller()?;
    world.start_controller()?;
    world.let_pass(LOOKS).await?;
    assert_eq!((uids(&world).await?, world.clones().len()), (old.clone(), clones), "{}", world.tail());
    world.estate.remove_faults();
    world.relabel("mended").await?;
    until_replaced(&world, &old).await?;
    ends(world).await
}

/// Time enough for a node that never joins passes in no time here.
#[tokio::test(start_paused = true)]
async fn embedded_a_template_that_never_joins_halts_after_the_first_node_and_going_back_ends_it() -> anyhow::Result<()>
{
    // The VM that boots third.
    let third = GuestMatch { repeat: Repeat { nth: Some(3), ..Repeat::default() }, ..GuestMatch::default() };
    let faults = vec![GuestFaultRule { when: third, fault: GuestFault::NeverJoins }];
    let guests = GuestConfig { faults, ..quick_guests() };
    let Some(world) = two_nodes(Kind::Embedded, guests).await? else { return Ok(()) };
    let (old, vms) = (uids(&world).await?, world.vms());
    world.relabel("broken").await?;
    until_halted(&world, &old).await?;
    assert_eq!(
        (world.vms(), world.clones().len()),
        (vms, 3),
        "the VM that never joined is gone, and no other was tried"
    );
    // Going back makes the old nodes what is wanted again.
    world.change_default(json!({ "template": { "metadata": { "labels": null } } })).await?;
    world
        .until("nothing has drifted", async || {
            let told = world.condition::<NodePool>("default", "DriftRolloutHalted").await?;
            let mut drifted = 0;
            for claim in world.claims().await? {
                let found = world.condition::<NodeClaim>(&claim.name_any(), "Drifted").await?;
                drifted += usize::from(found.is_some_and(|found| format!("{:?}", found.status) == "True"));
            }
            Ok((told.is_none() && drifted == 0).then_some(()))
        })
        .await?;
    for _ in 0..20 {
        world.let_pass(LOOKS).await?;
    }
    assert_eq!(uids(&world).await?, old, "{}", world.tail());
    // And one that works rolls through.
    world.relabel("mended").await?;
    until_replaced(&world, &old).await?;
    ends(world).await
}

async fn a_roll_out_keeps_to_the_disruption_budget_of_pods(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = two_nodes(kind, quick_guests()).await? else { return Ok(()) };
    let budget: PodDisruptionBudget = from_json(json!({
        "metadata": { "name": "web" },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": "web" } } },
    }))?;
    Api::namespaced(world.admin.clone(), NAMESPACE).create(&PostParams::default(), &budget).await?;
    let old = uids(&world).await?;
    let recorded = Recorded::pods(&world, NAMESPACE).await?;
    let claims = Recorded::claims(&world).await?;
    world.relabel("rolled").await?;
    until_replaced(&world, &old).await?;
    let instants = recorded.end(&world).await?;
    let least = instants.iter().map(|pods| pods.iter().filter(|pod| is_running(pod)).count()).min();
    assert!(least >= Some(1), "one pod ran at every one of {} instants\n{}", instants.len(), world.tail());
    assert_eq!(most_disrupted(&claims.end(&world).await?, "default"), 1, "{}", world.tail());
    world.until_running("web", 2).await?;
    no_pod_was_deleted_past_its_budget(&world)?;
    ends(world).await
}

fn is_running(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase == Some("Running") && pod.metadata.deletion_timestamp.is_none()
}

/// Pods go by eviction, which the API server holds to the budget. Only a real one writes down who deleted what.
fn no_pod_was_deleted_past_its_budget(world: &World) -> anyhow::Result<()> {
    if matches!(world.ground(), crate::ground::Ground::Embedded(_)) {
        return Ok(());
    }
    let account = crate::rights::user(crate::rights::ACCOUNT);
    let events = world.testbed()?.audit().read()?;
    let of_pods = |event: &&testbed::AuditEvent| {
        event.object_ref.as_ref().is_some_and(|object| object.resource == "pods") && event.user.username == account
    };
    let deleted: Vec<_> = events.iter().filter(of_pods).filter(|event| event.verb == "delete").collect();
    assert!(deleted.is_empty(), "{deleted:#?}");
    Ok(())
}
