//! Does kill -9 at any moment of a launch leave exactly one VM for each claim, and nothing in the end?

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use kube::ResourceExt;
use tenon_model::LaunchStep;
use tenon_sim::{FaultKind, FaultSpec};

use crate::ground::{Kind, scenarios};
use crate::world::{World, record_of};

/// Looks of a controller at its VM that fail before anything can be made. Each is tried again a little later, the last
/// about four seconds after the one before it, so that there is time to kill it.
const FAILED_LOOKS: usize = 3;

scenarios! {
    a_controller_killed_before_during_and_after_a_copy_goes_on_with_the_same_vm,
    a_controller_killed_during_an_unanswered_copy_an_upload_or_a_destroy_finishes_it,
    a_claim_deleted_during_its_copy_leaves_no_vm,
}

async fn a_controller_killed_before_during_and_after_a_copy_goes_on_with_the_same_vm(kind: Kind) -> anyhow::Result<()> {
    let Some(mut world) = World::running(kind).await? else { return Ok(()) };
    killed_before_the_copy(&mut world).await?;
    killed_during_the_copy(&mut world).await?;
    killed_during(&mut world, "qmstart", LaunchStep::Start).await?;
    assert_one_vm_for_each_claim(&world, 3).await?;

    for app in ["before", "during", "qmstart"] {
        world.scale(app, 0).await?;
    }
    world.until_nothing_is_left().await?;
    assert_eq!(world.clones().len(), 3, "{}", world.tail());
    world.end().await
}

async fn a_controller_killed_during_an_unanswered_copy_an_upload_or_a_destroy_finishes_it(
    kind: Kind,
) -> anyhow::Result<()> {
    let Some(mut world) = World::running(kind).await? else { return Ok(()) };
    killed_without_an_answer(&mut world).await?;
    killed_during(&mut world, "imgcopy", LaunchStep::UploadSeed).await?;
    assert_one_vm_for_each_claim(&world, 2).await?;

    world.estate.hold_tasks("qmdestroy");
    for app in ["unanswered", "imgcopy"] {
        world.scale(app, 0).await?;
    }
    world.until("a VM is being destroyed", async || Ok(is_destroying(&world).then_some(()))).await?;
    world.kill_controller()?;
    world.estate.release_tasks();
    world.start_controller()?;
    world.until_nothing_is_left().await?;
    assert_eq!(world.clones().len(), 2, "{}", world.tail());
    world.end().await
}

async fn a_claim_deleted_during_its_copy_leaves_no_vm(kind: Kind) -> anyhow::Result<()> {
    let Some(world) = World::running(kind).await? else { return Ok(()) };
    deleted_without_an_answer(&world).await?;
    let before = world.clones().len();
    world.estate.hold_tasks("qmclone");
    world.deploy("web", 1).await?;
    let (first, record) = world.until_launch("a copy runs", |record| record.upid.is_some()).await?;
    world.delete_claim(&first.name_any()).await?;
    // The pod still waits, and gets another claim: the first is not waited for.
    let (second, _) =
        world.until_launch("another copy runs", |other| other.vmid != record.vmid && other.upid.is_some()).await?;
    // Its copy is stopped, and cleans up after itself.
    world.until("only the second claim is left", async || Ok((world.claims().await?.len() == 1).then_some(()))).await?;
    world.estate.release_tasks();
    world.until_running("web", 1).await?;
    let claims = world.claims().await?;
    assert_eq!(claims[0].uid(), second.uid(), "{}", world.tail());
    assert_eq!(world.vms(), [record_of(&claims[0])?.vmid.get()], "{}", world.tail());
    assert_eq!(world.clones().len(), before + 2, "{}", world.tail());

    world.scale("web", 0).await?;
    world.until_nothing_is_left().await?;
    assert_eq!(world.clones().len(), before + 2, "{}", world.tail());
    world.end().await
}

/// What is meant is written down, and nothing was asked of Proxmox yet.
async fn killed_before_the_copy(world: &mut World) -> anyhow::Result<()> {
    let trouble = FaultKind::Refuse { status: 500, text: "cluster file system is slow today".into() };
    for _ in 0..FAILED_LOOKS {
        world.estate.fail_next(FaultSpec::new("GET", "/cluster/nextid", trouble.clone()));
    }
    world.deploy("before", 1).await?;
    let (claim, _) = world.until_launch("a claim is written", |record| record.step == LaunchStep::Clone).await?;
    world.kill_controller()?;
    ensure!(world.clones().is_empty(), "the copy was begun before the controller was killed\n{}", world.tail());
    world.start_controller()?;
    world.until_running("before", 1).await?;
    let uids: Vec<_> = world.claims().await?.iter().map(ResourceExt::uid).collect();
    assert_eq!(uids, [claim.uid()], "{}", world.tail());
    assert_one_vm_for_each_claim(world, 1).await
}

/// The copy runs, and its task is written down. The next controller finds it running.
async fn killed_during_the_copy(world: &mut World) -> anyhow::Result<()> {
    world.estate.hold_tasks("qmclone");
    world.deploy("during", 1).await?;
    let is_copying = |record: &tenon_model::LaunchRecord| record.step == LaunchStep::Clone && record.upid.is_some();
    let (_, record) = world.until_launch("a copy runs", is_copying).await?;
    world.kill_controller()?;
    let seen = world.estate.ledger().len();
    world.start_controller()?;
    let task = record.upid.context("the copy has no task")?;
    world
        .until("the next controller looks at the copy", async || {
            let ledger = world.estate.ledger();
            Ok(ledger.iter().skip(seen).any(|entry| entry.path.contains(&task)).then_some(()))
        })
        .await?;
    world.estate.release_tasks();
    world.until_running("during", 1).await?;
    assert_one_vm_for_each_claim(world, 2).await
}

/// The copy was begun, but its answer never came, and then the controller died.
async fn killed_without_an_answer(world: &mut World) -> anyhow::Result<()> {
    world.estate.hold_tasks("qmclone");
    world.estate.fail_next(FaultSpec::new("POST", "/clone", FaultKind::DropReply));
    world.deploy("unanswered", 1).await?;
    world.until("a copy is begun", async || Ok((!world.clones().is_empty()).then_some(()))).await?;
    world.kill_controller()?;
    world.estate.release_tasks();
    world.start_controller()?;
    world.until_running("unanswered", 1).await?;
    assert_one_vm_for_each_claim(world, 1).await
}

/// The copy was begun, but its answer never came, and now nobody wants it any more.
async fn deleted_without_an_answer(world: &World) -> anyhow::Result<()> {
    world.estate.hold_tasks("qmclone");
    world.estate.fail_next(FaultSpec::new("POST", "/clone", FaultKind::DropReply));
    world.deploy("unwanted", 1).await?;
    world.until("a copy is begun", async || Ok((!world.clones().is_empty()).then_some(()))).await?;
    let (claim, _) = world.until_launch("the claim stands", |_| true).await?;
    world.scale("unwanted", 0).await?;
    world.delete_claim(&claim.name_any()).await?;
    // The copy would never end by itself: its task is found, and stopped.
    world.until_nothing_is_left().await?;
    assert_eq!(world.clones().len(), 1, "{}", world.tail());
    world.estate.release_tasks();
    Ok(())
}

/// A step after the copy runs. The pods are named after its task.
async fn killed_during(world: &mut World, kind: &str, step: LaunchStep) -> anyhow::Result<()> {
    world.estate.hold_tasks(kind);
    world.deploy(kind, 1).await?;
    world.until_launch(&format!("a task {kind} runs"), |record| record.step == step && record.upid.is_some()).await?;
    world.kill_controller()?;
    world.estate.release_tasks();
    world.start_controller()?;
    world.until_running(kind, 1).await
}

/// As many claims as there should be, one copy ever for each, and no VM besides.
async fn assert_one_vm_for_each_claim(world: &World, count: usize) -> anyhow::Result<()> {
    let (claims, clones) = (world.claims().await?, world.clones());
    assert_eq!((claims.len(), clones.len()), (count, count), "{clones:#?}\n{}", world.tail());
    let mut expected = BTreeSet::new();
    for claim in &claims {
        let (uid, vmid) = (claim.uid().context("a claim has no uid")?, record_of(claim)?.vmid);
        expected.insert(vmid.get());
        let is_its_copy = |params: &std::collections::BTreeMap<String, String>| {
            params.get("newid") == Some(&vmid.to_string())
                && params.get("description").is_some_and(|text| text.contains(&uid))
        };
        let copies = clones.iter().filter(|entry| is_its_copy(&entry.params)).count();
        assert_eq!(copies, 1, "copies made for claim {uid}: {clones:#?}\n{}", world.tail());
    }
    assert_eq!(world.vms().into_iter().collect::<BTreeSet<_>>(), expected, "{}", world.tail());
    Ok(())
}

fn is_destroying(world: &World) -> bool {
    let is_destroy = |path: &str| path.contains("/qemu/");
    world
        .estate
        .ledger()
        .iter()
        .any(|entry| entry.method == "DELETE" && is_destroy(&entry.path) && entry.upid.is_some())
}
