//! What ends a launch or a release that cannot go on, and what does not keep either from going on.

use std::time::Duration;

use tenon_controllers::claim::{DesiredVm, ReleasePass};
use tenon_model::{LaunchRecord, LaunchStep};
use tenon_sim::{FaultKind, FaultSpec, TemplateSpec, VmSpec};

use crate::claim::site::{Death, End, FIRST_ID, Site, intent, launch_once, let_go, live, live_with, release_once};

async fn launched(site: &Site) -> LaunchRecord {
    let mut record = intent(FIRST_ID, site.now());
    assert_eq!(live(site, &site.client(Death::Never), &mut record).await, End::Launched);
    record
}

#[tokio::test(start_paused = true)]
async fn a_host_that_dies_under_a_recorded_task_ends_the_launch() {
    let site = Site::new();
    site.estate.hold_tasks("qmclone");
    let estate = site.estate.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(3)).await;
        estate.set_host_online("pve1", false).unwrap();
    });
    let mut record = intent(FIRST_ID, site.now());
    let End::GaveUp(why) = live(&site, &site.client(Death::Never), &mut record).await else {
        panic!("it should give up")
    };
    assert!(record.upid.is_some(), "the task was recorded");
    assert_eq!(why, "host pve1 did not answer for 5 min");
}

#[tokio::test(start_paused = true)]
async fn a_task_that_never_ends_ends_the_launch_and_is_stopped() {
    let site = Site::new();
    let before = site.estate.volumes().len();
    site.estate.hold_tasks("qmclone");
    let client = site.client(Death::Never);
    let mut record = intent(FIRST_ID, site.now());
    let End::GaveUp(why) = live(&site, &client, &mut record).await else { panic!("it should give up") };
    assert_eq!(why, "task qmclone on host pve1 did not end within 30 min");
    assert_eq!(let_go(&client, &record).await, Some(ReleasePass::Released));
    assert!(site.vms().is_empty());
    assert_eq!(site.estate.volumes().len(), before);
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_to_start_keeps_the_running_vm() {
    let site = Site::new();
    site.estate.fail_next(FaultSpec::new("POST", "/status/start", FaultKind::DropReply));
    // The second start is sent while the VM still looks stopped, and its task finds it running.
    let text = format!("VM {FIRST_ID} already running");
    let mut record = intent(FIRST_ID, site.now());
    site.estate.fail_next(FaultSpec::new("POST", "/status/start", FaultKind::TaskError(text)));
    assert_eq!(live(&site, &site.client(Death::Never), &mut record).await, End::Launched);
    assert_eq!((site.vms().len(), site.vms()[0].status), (1, "running"));
    assert_eq!(record.retired.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_storage_that_cannot_link_gets_a_full_clone() {
    let site = Site::new();
    let text = "Linked clone feature is not supported for 'shared:9000/base-9000-disk-0.qcow2' (scsi0)".to_owned();
    site.estate.fail_next(FaultSpec::new("POST", "/clone", FaultKind::Refuse { status: 500, text }));
    let record = launched(&site).await;
    assert!(record.full_clone);
    let clones: Vec<String> = site
        .estate
        .ledger()
        .iter()
        .filter(|entry| entry.path.ends_with("/clone"))
        .map(|entry| entry.params.get("full").cloned().unwrap_or_default())
        .collect();
    assert_eq!(clones, ["0", "1"]);
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_ha_moved_off_a_dead_host_is_found_and_removed() {
    let site = Site::new();
    let record = launched(&site).await;
    site.estate.set_host_online("pve1", false).unwrap();
    site.estate.migrate(FIRST_ID, "pve2").unwrap();
    assert_eq!(let_go(&site.client(Death::Never), &record).await, Some(ReleasePass::Released));
    assert!(site.vms().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_vm_on_a_dead_host_is_not_taken_for_gone() {
    let site = Site::new();
    let record = launched(&site).await;
    site.estate.set_host_online("pve1", false).unwrap();
    let client = site.client(Death::Never);
    let owner = site.order().owner;
    let seen = release_once(&client, &owner, &record).await;
    assert!(matches!(seen, Ok(ReleasePass::Wait(_))), "{seen:?}");
    site.estate.set_host_online("pve1", true).unwrap();
    assert_eq!(let_go(&client, &record).await, Some(ReleasePass::Released));
}

/// The host says that it has no such VM, and the listing shows it there: it is not gone.
#[tokio::test(start_paused = true)]
async fn a_vm_that_is_listed_is_never_taken_for_gone() {
    let site = Site::new();
    let record = launched(&site).await;
    let text = format!("Configuration file 'nodes/pve1/qemu-server/{FIRST_ID}.conf' does not exist");
    site.estate.fail_next(FaultSpec::new("GET", "/config", FaultKind::Refuse { status: 500, text }));
    let seen = release_once(&site.client(Death::Never), &site.order().owner, &record).await;
    assert!(matches!(seen, Ok(ReleasePass::Wait(_))), "{seen:?}");
}

/// A template that is protected, and a clone that is deleted before and after it was configured.
#[tokio::test(start_paused = true)]
async fn a_clone_of_a_protected_template_can_be_removed() {
    for step in [LaunchStep::Identify, LaunchStep::Launched] {
        let site = Site::new();
        site.estate.remove_vm(9000).unwrap();
        let config = [("protection".to_owned(), "1".to_owned())].into();
        site.estate.add_template(&TemplateSpec { config, ..TemplateSpec::default() }).unwrap();
        let client = site.client(Death::Never);
        let mut record = intent(FIRST_ID, site.now());
        while record.step < step {
            let pass = launch_once(&client, &site.order(), &record, &site.time()).await;
            match pass.unwrap() {
                tenon_engine::launch::LaunchResult::Record(next) => record = next,
                _ => tokio::time::sleep(Duration::from_secs(1)).await,
            }
        }
        assert_eq!(let_go(&client, &record).await, Some(ReleasePass::Released), "{step:?}");
        assert!(site.vms().is_empty(), "{step:?}");
        assert_eq!(site.estate.vm(9000).unwrap().config["protection"], "1", "the template stays protected");
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspended_vm_of_ours_is_removed() {
    let site = Site::new();
    let record = launched(&site).await;
    site.admin("POST", &format!("/nodes/pve1/qemu/{FIRST_ID}/status/suspend"), &[("todisk", "1")]).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(site.vms()[0].lock.as_deref(), Some("suspended"));
    assert_eq!(let_go(&site.client(Death::Never), &record).await, Some(ReleasePass::Released));
    assert!(site.vms().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_seed_that_may_not_be_deleted_is_reported_and_holds_nothing_up() {
    let site = Site::pool_scoped_without("Datastore.Allocate").await;
    let record = launched(&site).await;
    let Some(ReleasePass::SeedLeft(left)) = let_go(&site.client(Death::Never), &record).await else {
        panic!("the seed should be left")
    };
    assert!(!left.may_help && left.why.contains("Datastore.Allocate"), "{left:?}");
    assert_eq!(left.volume, "shared:iso/user-data-claim-1.iso");
    assert!(site.vms().is_empty());
}

/// A foreign VM under our id that a backup has locked, before anything of ours was made.
#[tokio::test(start_paused = true)]
async fn a_locked_foreign_vm_is_not_taken_for_our_incomplete_clone() {
    let site = Site::new();
    let base =
        TemplateSpec { host: "pve1".to_owned(), vmid: FIRST_ID, name: "mail".to_owned(), ..TemplateSpec::default() };
    site.estate.add_vm(&VmSpec { base, running: true }).unwrap();
    site.estate.lock(FIRST_ID, "backup").unwrap();
    let mut record = intent(FIRST_ID, site.now());
    assert_eq!(live(&site, &site.client(Death::Never), &mut record).await, End::Launched);
    assert_eq!((record.vmid.get(), record.incomplete.len()), (FIRST_ID + 1, 0));
    let intent = intent(FIRST_ID, site.now());
    assert_eq!(let_go(&site.client(Death::Never), &intent).await, Some(ReleasePass::Released));
    assert_eq!(site.estate.vm(FIRST_ID).unwrap().lock.as_deref(), Some("backup"));
}

#[tokio::test(start_paused = true)]
async fn without_room_for_first_boot_data_nothing_is_cloned() {
    let site = Site::new();
    let mut record = LaunchRecord { seed_storage: None, ..intent(FIRST_ID, site.now()) };
    let End::GaveUp(why) = live(&site, &site.client(Death::Never), &mut record).await else {
        panic!("it should give up")
    };
    assert!(why.contains("has room for first-boot data"), "{why}");
    assert!(!site.estate.ledger().iter().any(|entry| entry.path.ends_with("/clone")));
}

#[tokio::test(start_paused = true)]
async fn the_first_seed_after_the_last_was_deleted_is_uploaded_at_once() {
    let site = Site::new();
    let record = launched(&site).await;
    assert_eq!(let_go(&site.client(Death::Never), &record).await, Some(ReleasePass::Released));
    let mut next = intent(FIRST_ID + 1, site.now());
    assert_eq!(live(&site, &site.client(Death::Never), &mut next).await, End::Launched);
    let uploads = site.estate.ledger().iter().filter(|entry| entry.path.ends_with("/upload")).count();
    assert_eq!(uploads, 2);
}

/// The seed of an earlier version, named by the VM's id.
#[tokio::test(start_paused = true)]
async fn a_seed_named_by_the_vm_id_goes_with_its_vm() {
    let site = Site::new();
    let before = site.estate.volumes().len();
    let record = launched(&site).await;
    let old = format!("shared:iso/user-data-{FIRST_ID}.iso");
    site.estate.put_iso("pve1", &old, bytes::Bytes::from_static(b"old")).unwrap();
    let drive = format!("{old},media=cdrom");
    site.admin("PUT", &format!("/nodes/pve1/qemu/{FIRST_ID}/config"), &[("ide2", &drive)]).await;
    assert_eq!(let_go(&site.client(Death::Never), &record).await, Some(ReleasePass::Released));
    assert_eq!(site.estate.volumes().len(), before);
}

/// Proxmox names neither path nor privilege when either of two would do.
#[tokio::test(start_paused = true)]
async fn a_clone_that_is_refused_without_a_reason_names_the_missing_privilege() {
    let cases = [
        ("VM.Allocate", Some("k8s"), "Permission check failed (/pool/k8s, VM.Allocate)"),
        ("none", None, "Permission check failed (/vms/20000, VM.Allocate)"),
    ];
    for (missing, pool, words) in cases {
        let site = Site::pool_scoped_without(missing).await;
        let order = DesiredVm { pool: pool.map(str::to_owned), ..site.order() };
        let mut record = intent(FIRST_ID, site.now());
        let ended = live_with(&site, (&site.client(Death::Never), &order), &mut record).await;
        let End::GaveUp(why) = ended else { panic!("it should give up: {ended:?}") };
        assert!(why.contains(words), "{why}");
        assert!(site.vms().is_empty());
    }
}
