//! Does a token with rights on a resource pool suffice, and does a missing privilege say its name?

use std::time::Duration;

use serde_json::json;
use tenon_sim::{FaultEffect, FaultMatch, FaultRule};

use crate::bench::quick_guests;
use crate::ground::{Kind, scenarios};
use crate::world::World;

scenarios! {
    rights_on_a_resource_pool_suffice_when_a_clone_is_lost_and_the_controller_killed,
    a_seed_that_may_not_be_deleted_is_reported_and_holds_nothing_up,
    a_refused_upload_names_the_missing_privilege,
    a_full_storage_is_named_as_the_cause_of_a_failed_clone,
}

/// A world whose controller has every right but one, on a resource pool.
async fn without(kind: Kind, privilege: &str, more: serde_json::Value) -> anyhow::Result<Option<World>> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(None) };
    world.use_pool_token_without(privilege).await?;
    world.limit_launch(Duration::from_secs(30));
    world.add_template("debian-13").await?;
    let mut class = json!({ "resourcePool": "k8s" });
    for (key, value) in more.as_object().into_iter().flatten() {
        class[key] = value.clone();
    }
    world.add_class(class).await?;
    world.add_pool(json!({})).await?;
    world.start_controller()?;
    Ok(Some(world))
}

async fn rights_on_a_resource_pool_suffice_when_a_clone_is_lost_and_the_controller_killed(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(mut world) = without(kind, "none", json!({})).await? else { return Ok(()) };
    // The reply never comes, and the clone cannot be seen until it is done.
    let lost = FaultMatch::call("POST", "/nodes/*/qemu/*/clone").times(1);
    world.estate.add_fault(FaultRule::new(lost, FaultEffect::DropReply));
    world.estate.hold_tasks("qmclone");
    world.deploy("web", 1).await?;
    world.until("a clone is begun", async || Ok((!world.clones().is_empty()).then_some(()))).await?;
    world.kill_controller()?;
    world.start_controller()?;
    let (_, record) = world.until_launch("the clone is found by its task", |record| record.upid.is_some()).await?;
    world.estate.release_tasks();
    world.until_running("web", 1).await?;
    assert_eq!((world.clones().len(), world.vms()), (1, vec![record.vmid.get()]), "{}", world.tail());
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn a_seed_that_may_not_be_deleted_is_reported_and_holds_nothing_up(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = without(kind, "Datastore.Allocate", json!({})).await? else { return Ok(()) };
    world.deploy("web", 1).await?;
    world.until_running("web", 1).await?;
    world.until_event("SeedNotDeleted", "Datastore.Allocate").await?;
    world.scale("web", 0).await?;
    world
        .until("claim, node and VM are gone", async || {
            let left = world.claims().await?.len() + world.nodes().await?.len() + world.vms().len();
            Ok((left == 0).then_some(()))
        })
        .await?;
    for volume in world.estate.volumes().iter().filter(|volume| volume.content == "iso") {
        let path = format!("/nodes/pve1/storage/shared/content/{}", volume.volid);
        world.proxmox("DELETE", &path, &[]).await?;
    }
    world.let_pass(Duration::from_secs(2)).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn a_refused_upload_names_the_missing_privilege(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = without(kind, "Datastore.AllocateTemplate", json!({})).await? else { return Ok(()) };
    world.deploy("web", 1).await?;
    let words = "Permission check failed (/storage/shared, Datastore.AllocateTemplate)";
    world.until_event("InsufficientCapacityError", words).await?;
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}

async fn a_full_storage_is_named_as_the_cause_of_a_failed_clone(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::new(kind, quick_guests()).await? else { return Ok(()) };
    world.add_template("debian-13").await?;
    world.add_class(json!({ "bootDevice": { "storage": "local" } })).await?;
    world.add_pool(json!({})).await?;
    // Found full only while it is written to, as by another VM that grows meanwhile.
    let clone = FaultMatch::call("POST", "/nodes/*/qemu/*/clone").times(1);
    world.estate.add_fault(FaultRule::new(clone, FaultEffect::FullStorage));
    world.start_controller()?;
    world.deploy("web", 1).await?;
    let told = world.until_event("InsufficientCapacityError", "No space left on device").await?;
    assert!(told.contains("make room on that storage") && !told.contains("convert"), "{told}");
    world.until_running("web", 1).await?;
    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    world.end().await
}
