//! Can what a tenant writes, or a bug of ours, stop the controller? Durations longer than time, and passes that panic.

use std::time::Duration;

use serde_json::json;

use crate::bench::quick_guests;
use crate::embedded::Gate;
use crate::ground::{Kind, scenarios};
use crate::world::World;

/// Some 11 million years.
const ENDLESS: &str = "99999999999h";

scenarios! {
    durations_longer_than_time_neither_stop_a_drain_nor_the_controller,
}

async fn durations_longer_than_time_neither_stop_a_drain_nor_the_controller(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    world.add_template("debian-13").await?;
    world.add_class(json!({})).await?;
    let template = json!({ "spec": {
        "requirements": [], "terminationGracePeriod": ENDLESS, "expireAfter": ENDLESS,
        "nodeClassRef": { "group": tenon_api::names::PROXMOX, "kind": "ProxmoxNodeClass", "name": "default" },
    } });
    let budgets = json!([{ "nodes": "100%", "schedule": "@daily", "duration": ENDLESS }]);
    world
        .add_pool(json!({ "template": template, "disruption": { "consolidateAfter": "1s", "budgets": budgets } }))
        .await?;
    world.start_controller()?;
    let container = json!({ "resources": { "requests": { "cpu": "9", "memory": "4Gi" } } });
    world.deploy_pods(("endless", 1), container, json!({ "terminationGracePeriodSeconds": i64::MAX })).await?;
    world.until_running("endless", 1).await?;
    let first = world.claims().await?.remove(0);
    let name = first.metadata.name.unwrap_or_default();
    world.delete_claim(&name).await?;
    world
        .until_told(("NodeClaim", &name), "TerminationGracePeriodExpiring", "are deleted by 9999-12-30T22:00:00Z")
        .await?;
    world.until_running("endless", 1).await?;
    world
        .until_within(Duration::from_secs(150), "the first node is removed", async || {
            let claims = world.claims().await?;
            Ok(claims.iter().all(|claim| claim.metadata.name.as_ref() != Some(&name)).then_some(()))
        })
        .await?;
    assert!(!world.log().contains("panicked"), "{}", world.tail());
    assert!(world.is_controller_running()?);
    world.end().await
}

/// The bug is in the client of Proxmox, so every loop that looks there meets it, and every claim.
#[tokio::test(start_paused = true)]
async fn a_pass_that_panics_is_counted_named_and_tried_again_and_nothing_else_stops() -> anyhow::Result<()> {
    let Some(mut world) = World::running(Kind::Embedded).await? else { return Ok(()) };
    world.deploy("before", 1).await?;
    world.until_running("before", 1).await?;
    world.deploy("during", 1).await?;
    let (claim, _) = world.until_launch("a second node is planned", |record| record.vmid.get() == 20_001).await?;
    world.embedded()?.answer(Gate::Panics);
    tokio::time::sleep(Duration::from_secs(180)).await;
    assert!(world.is_controller_running()?, "{}", world.tail());
    let (name, log) = (claim.metadata.name.unwrap_or_default(), world.log());
    let of_claim: Vec<&str> = log.lines().filter(|line| line.contains("reconciling NodeClaim panicked")).collect();
    assert!(of_claim.iter().any(|line| line.contains(&name)), "{}", world.tail());
    assert!((4..12).contains(&of_claim.len()), "{} lines: it waits longer each time", of_claim.len());
    for controller in ["status", "provisioner", "nodeclaim.garbagecollection", "nodeclaim.disruption"] {
        assert!(
            log.contains(&format!("\"controller\":\"{controller}\"")),
            "{controller} did not panic\n{}",
            world.tail()
        );
    }
    let counted = world.embedded()?.served("metrics")?;
    assert!(!counted.contains("tenon_pass_errors_total{controller=\"nodeclaim.lifecycle\"} 0"), "{counted}");

    world.embedded()?.answer(Gate::Open);
    world.until_running("during", 1).await?;
    world.scale("before", 0).await?;
    world.scale("during", 0).await?;
    world
        .until_within(Duration::from_secs(300), "nothing runs", async || Ok(world.vms().is_empty().then_some(())))
        .await?;
    world.until_nothing_is_left().await?;
    world.end().await
}
