//! A token whose rights on VMs come from a resource pool: it cannot see its own clone until the clone has joined the pool.

use std::time::Duration;

use tenon_controllers::claim::ReleasePass;
use tenon_sim::{FaultKind, FaultSpec};

use crate::claim::crash::deaths;
use crate::claim::site::{Death, End, FIRST_ID, Site, intent, launch_once, let_go, live, release_once};

async fn requests() -> (usize, usize) {
    let site = Site::pool_scoped().await;
    let before = site.estate.ledger().len();
    let client = site.client(Death::Never);
    let mut record = intent(FIRST_ID, site.now());
    assert_eq!(live(&site, &client, &mut record).await, End::Launched);
    let launch = site.estate.ledger().len();
    assert_eq!(let_go(&client, &record).await, Some(ReleasePass::Released));
    (launch - before, site.estate.ledger().len() - launch)
}

#[tokio::test(start_paused = true)]
async fn a_controller_killed_at_any_request_of_a_launch_leaves_exactly_one_vm_with_rights_on_a_pool() {
    let (count, _) = requests().await;
    for death in deaths(count) {
        let site = Site::pool_scoped().await;
        let mut record = intent(FIRST_ID, site.now());
        assert_eq!(live(&site, &site.client(death), &mut record).await, End::Died, "{death:?}");
        let next = site.client(Death::Never);
        assert_eq!(live(&site, &next, &mut record).await, End::Launched, "{death:?}");
        let vms = site.vms();
        assert_eq!(vms.len(), 1, "{death:?}: {:?}", vms.iter().map(|vm| vm.vmid).collect::<Vec<_>>());
        assert_eq!((vms[0].vmid, vms[0].status), (FIRST_ID, "running"), "{death:?}");
        assert_eq!(let_go(&next, &record).await, Some(ReleasePass::Released), "{death:?}");
        assert!(site.vms().is_empty(), "{death:?}");
    }
    println!("{} deaths survived", count * 2);
}

#[tokio::test(start_paused = true)]
async fn a_controller_killed_at_any_request_of_a_release_leaves_nothing_with_rights_on_a_pool() {
    let (_, count) = requests().await;
    for death in deaths(count) {
        let site = Site::pool_scoped().await;
        let before = site.estate.volumes().len();
        let mut record = intent(FIRST_ID, site.now());
        assert_eq!(live(&site, &site.client(Death::Never), &mut record).await, End::Launched);
        assert_eq!(let_go(&site.client(death), &record).await, None, "{death:?}");
        assert_eq!(let_go(&site.client(Death::Never), &record).await, Some(ReleasePass::Released), "{death:?}");
        assert!(site.vms().is_empty(), "{death:?}");
        assert_eq!(site.estate.volumes().len(), before, "{death:?}");
    }
}

/// A long copy whose reply was lost: nothing of it can be seen until it is done.
#[tokio::test(start_paused = true)]
async fn a_clone_whose_reply_was_lost_is_found_by_its_task_while_it_cannot_be_seen() {
    let site = Site::pool_scoped().await;
    site.estate.fail_next(FaultSpec::new("POST", "/clone", FaultKind::DropReply));
    site.estate.hold_tasks("qmclone");
    let estate = site.estate.clone();
    let slow = tokio::spawn(async move {
        // Longer than any request is on its way.
        tokio::time::sleep(Duration::from_secs(75)).await;
        estate.release_tasks();
    });
    let mut record = intent(FIRST_ID, site.now());
    assert_eq!(live(&site, &site.client(Death::Never), &mut record).await, End::Launched);
    slow.await.unwrap();
    assert_eq!((site.vms().len(), record.vmid.get()), (1, FIRST_ID));
    let clones = site.estate.ledger().iter().filter(|entry| entry.path.ends_with("/clone")).count();
    assert_eq!(clones, 1);
}

#[tokio::test(start_paused = true)]
async fn a_launch_that_is_deleted_while_its_clone_cannot_be_seen_stops_the_clone_and_leaves_nothing() {
    let site = Site::pool_scoped().await;
    let before = site.estate.volumes().len();
    site.estate.fail_next(FaultSpec::new("POST", "/clone", FaultKind::DropReply));
    site.estate.hold_tasks("qmclone");
    let client = site.client(Death::Never);
    let record = intent(FIRST_ID, site.now());
    let lost = launch_once(&client, &site.order(), &record, &site.time()).await;
    assert!(matches!(lost, Ok(tenon_engine::launch::LaunchResult::Wait(_))), "{lost:?}");
    assert_eq!(let_go(&client, &record).await, Some(ReleasePass::Released));
    site.estate.release_tasks();
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(site.vms().is_empty(), "{:?}", site.vms());
    assert_eq!(site.estate.volumes().len(), before);
}

/// An id that somebody else has and nobody shows us.
#[tokio::test(start_paused = true)]
async fn a_foreign_vm_that_cannot_be_seen_costs_an_id_and_is_never_reported_as_ours() {
    let site = Site::pool_scoped().await;
    let base = tenon_sim::TemplateSpec {
        host: "pve1".to_owned(),
        vmid: FIRST_ID,
        name: "mail".to_owned(),
        ..tenon_sim::TemplateSpec::default()
    };
    site.estate.add_vm(&tenon_sim::VmSpec { base, running: true }).unwrap();
    let mut record = intent(FIRST_ID, site.now());
    assert_eq!(live(&site, &site.client(Death::Never), &mut record).await, End::Launched);
    assert_eq!((record.vmid.get(), record.incomplete.len()), (FIRST_ID + 1, 0));
    assert_eq!(site.estate.vm(FIRST_ID).unwrap().name, "mail");
}

/// Somebody else clones into the id that our claim means to take.
#[tokio::test(start_paused = true)]
async fn a_clone_task_of_somebody_else_is_neither_followed_nor_stopped() {
    for is_pool_scoped in [true, false] {
        let site = if is_pool_scoped { Site::pool_scoped().await } else { Site::new() };
        site.estate.hold_tasks("qmclone");
        let newid = FIRST_ID.to_string();
        site.admin("POST", "/access/users", &[("userid", "other@pve")]).await;
        site.admin("PUT", "/access/acl", &[("path", "/"), ("roles", "Administrator"), ("users", "other@pve")]).await;
        let made = site.admin("POST", "/access/users/other@pve/token/tt", &[("privsep", "0")]).await;
        let secret = made["data"]["value"].as_str().unwrap().to_owned();
        let clone = "/nodes/pve1/qemu/9000/clone";
        site.call_as(("other@pve!tt", &secret), "POST", clone, &[("newid", &newid), ("name", "theirs")]).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let client = site.client(Death::Never);
        let record = intent(FIRST_ID, site.now());
        // Whatever is decided about our launch, their clone goes on.
        for _ in 0..5 {
            let _ = release_once(&client, &site.order().owner, &record).await;
            let _ = launch_once(&client, &site.order(), &record, &site.time()).await;
        }
        site.estate.release_tasks();
        tokio::time::sleep(Duration::from_secs(30)).await;
        let theirs = site.estate.vm(FIRST_ID).expect("their VM is gone");
        assert_eq!((theirs.name.as_str(), theirs.lock), ("theirs", None), "pool-scoped: {is_pool_scoped}");
    }
}
